"""Quantities of interest: what is asked of a smoke field."""
