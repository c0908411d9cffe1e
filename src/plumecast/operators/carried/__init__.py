"""Cheap physics: smoke carried by the weather of every fire, as inputs of the operators."""
