"""The public names of `plumecast.sources` and their homes."""

from .rasters.arrival_times import iter_arrival_times as iter_arrival_times
from .rasters.fires import RasterOptions as RasterOptions
from .wrf.fires import read_wrf_fires as read_wrf_fires
from .wrf.options import WrfOptions as WrfOptions
