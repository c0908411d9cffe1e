"""Arrival-time rasters of FARSITE, ELMFIRE and similar models → time since ignition.

file → burned cells with their arrival times → time since ignition at one or several hours →
area-weighted mean on the surrogate's grid.
"""

from plumecast.sources.rasters.arrival_times import (
    ArrivalTimes,
    iter_arrival_times,
    read_arrival_times,
)
from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.fires import FORMATS, HORIZON, UNITS, RasterOptions

__all__ = [
    "FORMATS",
    "HORIZON",
    "UNITS",
    "ArrivalTimes",
    "RasterOptions",
    "find_rasters",
    "iter_arrival_times",
    "read_arrival_times",
]
