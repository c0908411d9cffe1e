"""Checks of the weather of fires."""
