"""Arrival-time rasters → time since ignition: what FARSITE, ELMFIRE and their like write.

file → burned cells with hours since ignition → one field or a series → the surrogate's grid, by
overlapping area.
"""

from plumecast.source.rasters.files import find_rasters
from plumecast.source.rasters.options import FORMATS, HORIZON, UNITS
from plumecast.source.rasters.read import iter_arrival_times, read_arrival_times
from plumecast.source.rasters.where_read import map_arrival_times

__all__ = [
    "FORMATS",
    "HORIZON",
    "UNITS",
    "find_rasters",
    "iter_arrival_times",
    "map_arrival_times",
    "read_arrival_times",
]
