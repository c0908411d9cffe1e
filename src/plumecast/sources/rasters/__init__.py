"""Arrival-time rasters → time since ignition: what FARSITE, ELMFIRE and their like write.

file → burned cells with hours since ignition → one field or a series → the surrogate's grid, by
overlapping area.
"""

from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.map_fires import map_arrival_times
from plumecast.sources.rasters.options import FORMATS, HORIZON, UNITS
from plumecast.sources.rasters.read import iter_arrival_times, read_arrival_times

__all__ = [
    "FORMATS",
    "HORIZON",
    "UNITS",
    "find_rasters",
    "iter_arrival_times",
    "map_arrival_times",
    "read_arrival_times",
]
