"""Scenarios and their differences: the same or other fires under two conditions."""
