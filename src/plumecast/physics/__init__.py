"""Physics: one function per equation, with its reference.

Functions of numbers and arrays, without labels or files. The simulator and the operators share
them; some are plain functions that the simulator also compiles.
"""
