"""The version of plumecast, in one place."""

__version__ = "0.2.0"
