"""Sources of snapshots: WRF files and rasters; all return the same Dataset."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
