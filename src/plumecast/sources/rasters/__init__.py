"""Arrival-time rasters of FARSITE, ELMFIRE and similar models → time since ignition.

file → burned cells with their arrival times → time since ignition at one or several hours →
area-weighted mean on the surrogate's grid.
"""

from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.map_fires import map_arrival_times, reduce_arrival_times
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
    "reduce_arrival_times",
]
