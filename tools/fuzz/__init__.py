"""Mutated inputs, kills and races: `make fuzz`. A target is a module here and a line in TARGETS."""
