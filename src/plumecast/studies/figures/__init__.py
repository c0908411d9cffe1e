"""Common style of the figures, and maps of smoke."""
