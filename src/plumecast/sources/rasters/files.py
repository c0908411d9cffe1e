"""Raster files: ASCII grid, GeoTIFF (or Erdas Imagine) and NetCDF."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base import paths as named
from plumecast.base.errors import PlumecastError
from plumecast.compute.regrid import grid_from_centres
from plumecast.sources.rasters.ascii import is_ascii_grid, read_ascii
from plumecast.sources.rasters.geotiff import read_geotiff
from plumecast.sources.rasters.raster import Raster, check_grid, check_size

EVENT_MAP = "event-ID"
"""Part of the file name of LANDIS-II event maps, which are read with their day-of-fire maps."""

_EASTWARD = {"x", "lon", "longitude", "easting", "west_east"}
_SUFFIXES = {".asc", ".tif", ".tiff", ".img", ".nc", ".nc4"}


def find_rasters(paths: named.Paths) -> list[Path]:
    """Raster files of a directory, glob, file or list; sorted by name, a list keeps its order."""
    return named.find_files(
        paths,
        belongs=lambda path: path.suffix.lower() in _SUFFIXES and EVENT_MAP not in path.name,
        nothing=f"no rasters here; expected files that end in {', '.join(sorted(_SUFFIXES))}",
    )


def read_raster(path: Path, variable: str | None = None) -> Raster:
    """Read a NetCDF file, an ASCII grid or a GeoTIFF, by the file's first bytes.

    Raises if its cells have no size or lie nowhere on Earth.
    """
    named.check_regular(path)
    if path.is_dir():
        raise PlumecastError(f"{path}: not a file; give the path of a raster")
    try:
        with path.open("rb") as file:
            magic = file.read(16)
    except OSError as error:
        raise PlumecastError(f"{path}: cannot be opened ({error.strerror})") from error
    if not magic:
        raise PlumecastError(f"{path}: the file is empty; write it again")
    if magic[:3] == b"CDF" or magic[1:4] == b"HDF":
        raster = _read_netcdf(path, variable)
    elif is_ascii_grid(magic):
        raster = read_ascii(path)
    else:
        raster = read_geotiff(path)
    check_grid(path, raster.grid)
    return raster


def _read_netcdf(path: Path, variable: str | None) -> Raster:
    """One 2-D variable with coordinates along both dimensions."""
    try:
        with xr.open_dataset(path, decode_times=False, decode_timedelta=False) as file:
            names = [str(name) for name in file.data_vars if file[name].ndim >= 2]
            if variable is None and len(names) == 1:
                variable = names[0]
            if variable not in names:
                raise PlumecastError(
                    f"{path}: give variable, one of "
                    f"{', '.join(names) or 'none: the file has no 2-D variable'}"
                )
            field = file[variable]
            shape = [size for size in field.shape if size != 1] or [1]
            check_size(path, math.prod(shape[:-1]), shape[-1])
            field = field.load()
            mapping = field.attrs.get("grid_mapping", field.encoding.get("grid_mapping"))
            crs: Any = dict(file[mapping].attrs) if mapping in file.variables else None
    except PlumecastError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise PlumecastError(f"{path}: damaged or truncated NetCDF file ({error})") from error
    field = field.squeeze(drop=True)
    if field.ndim != 2:
        raise PlumecastError(
            f"{path}: {variable} has dimensions {field.dims}; select one y, x field"
        )
    missing = [str(dim) for dim in field.dims if dim not in field.coords]
    if missing:
        raise PlumecastError(
            f"{path}: no coordinates along {', '.join(missing)}; add the cell centres to the file"
        )
    if str(field.dims[0]).lower() in _EASTWARD:
        field = field.transpose()
    for item in (field, *(field[dim] for dim in field.dims)):
        if item.dtype.kind not in "iuf":
            raise PlumecastError(
                f"{path}: {item.name} has values of type {item.dtype}; write them as numbers"
            )
    y, x = (field[dim].values.astype(np.float64) for dim in field.dims)
    values = field.values.astype(np.float64)
    if y[0] > y[-1]:
        y, values = y[::-1], values[::-1]
    if crs is None and str(field[field.dims[1]].attrs.get("units", "")).startswith("degree"):
        crs = "EPSG:4326"
    return Raster(values, grid_from_centres(x, y, str(path)), crs, None)
