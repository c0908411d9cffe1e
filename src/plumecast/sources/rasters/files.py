"""Raster files: ASCII grid, GeoTIFF (or another GDAL raster) and NetCDF."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base import paths as named
from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.sources.rasters.georeference import import_extra
from plumecast.sources.regrid import Grid, grid_from_centres

EVENT_MAP = "event-ID"
"""Part of the file name of LANDIS-II event maps, which are read with their day-of-fire maps."""

_ASCII_KEYS = {"ncols", "nrows", "xllcorner", "xllcenter", "yllcorner", "yllcenter", "cellsize",
               "nodata_value"}  # fmt: skip
_EASTWARD = {"x", "lon", "longitude", "easting", "west_east"}
_SUFFIXES = {".asc", ".tif", ".tiff", ".img", ".nc", ".nc4"}


class Raster(NamedTuple):
    """Values (ny, nx) of one file, south row first, and their grid."""

    values: Array
    grid: Grid
    crs: Any  # anything that pyproj accepts, or None
    nodata: float | None


def find_rasters(paths: named.Paths) -> list[Path]:
    """Raster files of a directory, glob, file or list; sorted by name, a list keeps its order."""
    return named.find_files(
        paths,
        belongs=lambda path: path.suffix.lower() in _SUFFIXES and EVENT_MAP not in path.name,
        nothing=f"no rasters here; expected files that end in {', '.join(sorted(_SUFFIXES))}",
    )


def read_raster(path: Path, variable: str | None = None) -> Raster:
    """Read a NetCDF file, an ASCII grid or a GDAL raster (GeoTIFF), by the file's first bytes."""
    try:
        with path.open("rb") as file:
            magic = file.read(16)
    except OSError as error:
        raise PlumecastError(f"{path}: cannot be opened ({error.strerror})") from error
    if magic[:3] == b"CDF" or magic[1:4] == b"HDF":
        return _read_netcdf(path, variable)
    if magic.lstrip()[:5].lower() in (b"ncols", b"nrows"):
        return _read_ascii(path)
    return _read_gdal(path)


def _read_ascii(path: Path) -> Raster:
    """Esri ASCII grid: `key value` lines, then rows from north to south."""
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    header: dict[str, float] = {}
    try:
        for line in lines:
            key, *rest = line.split()
            if key.lower() not in _ASCII_KEYS:
                break
            header[key.lower()] = float(rest[0])
        nx, ny, size = int(header["ncols"]), int(header["nrows"]), header["cellsize"]
        left = header["xllcorner"] if "xllcorner" in header else header["xllcenter"] - size / 2
        bottom = header["yllcorner"] if "yllcorner" in header else header["yllcenter"] - size / 2
        values = np.array(" ".join(lines[len(header) :]).split(), dtype=np.float64)
    except (ValueError, KeyError, IndexError) as error:
        raise PlumecastError(f"{path}: not a readable ASCII grid ({error})") from error
    if values.size != nx * ny:
        raise PlumecastError(
            f"{path}: {values.size} values, but its header says {ny} × {nx}; write it again"
        )
    projection = path.with_suffix(".prj")
    crs = projection.read_text().strip() if projection.exists() else None
    grid = Grid(left, bottom, size, size, nx, ny)
    return Raster(values.reshape(ny, nx)[::-1], grid, crs, header.get("nodata_value"))


def _read_gdal(path: Path) -> Raster:
    """A single-band, north-up or south-up raster that GDAL can read."""
    rasterio = import_extra("rasterio", path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        try:
            with rasterio.open(path) as file:
                count, at, crs, nodata = file.count, file.transform, file.crs, file.nodata
                values = file.read(1).astype(np.float64)
        except rasterio.errors.RasterioIOError as error:
            raise PlumecastError(f"{path}: not a readable raster ({error})") from error
    if count != 1:
        raise PlumecastError(f"{path}: {count} bands; give one arrival-time band per file")
    if at.is_identity or at.b or at.d or at.a < 0:
        raise PlumecastError(
            f"{path}: not georeferenced, or rotated; warp it to a grid along x and y (gdalwarp)"
        )
    ny, nx = values.shape
    north_up = at.e < 0
    bottom = at.f + ny * at.e if north_up else at.f
    grid = Grid(at.c, bottom, at.a, abs(at.e), nx, ny)
    return Raster(values[::-1] if north_up else values, grid, crs and crs.to_wkt(), nodata)


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
            field = file[variable].load()
            mapping = field.attrs.get("grid_mapping", field.encoding.get("grid_mapping"))
            crs: Any = dict(file[mapping].attrs) if mapping in file.variables else None
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, PlumecastError):
            raise
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
    y, x = (field[dim].values.astype(np.float64) for dim in field.dims)
    values = field.values.astype(np.float64)
    if y[0] > y[-1]:
        y, values = y[::-1], values[::-1]
    if crs is None and str(field[field.dims[1]].attrs.get("units", "")).startswith("degree"):
        crs = "EPSG:4326"
    return Raster(values, grid_from_centres(x, y, str(path)), crs, None)
