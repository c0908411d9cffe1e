"""WRF-Fire output (wrfout files) → the snapshots of a fire.

files → frames in time order → for each frame, the time since ignition averaged from the fire grid
to the smoke grid, and the mixing ratio converted to µg m⁻³, averaged over the column and summed
over the frames → one labelled Dataset. One frame is in memory at a time.
"""

from plumecast.sources.wrf.files import find_runs
from plumecast.sources.wrf.fires import (
    TIME_LIMIT,
    FireResult,
    fire_name,
    read_wrf,
    read_wrf_fires,
)
from plumecast.sources.wrf.options import SMOKE_FLOOR, WrfOptions

__all__ = [
    "SMOKE_FLOOR",
    "TIME_LIMIT",
    "FireResult",
    "WrfOptions",
    "find_runs",
    "fire_name",
    "read_wrf",
    "read_wrf_fires",
]
