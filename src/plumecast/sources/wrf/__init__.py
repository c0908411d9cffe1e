"""wrfout files → the snapshots of a fire, in small named steps.

files → frames in time order → per frame: time since ignition on the fire grid, averaged to the
smoke grid; mixing ratio → µg m⁻³ → column mean → cumulative sum over the frames → one labelled
Dataset. One frame is in memory at a time.
"""

from plumecast.sources.wrf.fires import FireResult, fire_name, read_wrf, read_wrf_fires
from plumecast.sources.wrf.run import SMOKE_FLOOR

__all__ = ["SMOKE_FLOOR", "FireResult", "fire_name", "read_wrf", "read_wrf_fires"]
