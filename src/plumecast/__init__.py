"""plumecast: from a wildfire to its smoke with closed-form operators."""

from plumecast._version import __version__

__all__ = ["__version__"]
