"""GeoTIFF and Erdas Imagine files, opened by GDAL without any other file and without a network.

GDAL reads more than 100 formats. Some of them (VRT) name other files or addresses, which it would
open. So the first bytes must be those of an allowed format, only the drivers of these formats are
tried, and files beside the raster (.aux.xml, .ovr, .msk, .tfw) are not looked for.
"""

from __future__ import annotations

import contextlib
import mmap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid
from plumecast.data.crs import import_extra
from plumecast.sources.rasters.raster import Raster, check_size
from plumecast.sources.rasters.tiff_blocks import check_blocks

_FORMATS = {
    b"II*\0": "GTiff", b"MM\0*": "GTiff", b"II+\0": "GTiff", b"MM\0+": "GTiff", b"EHFA": "HFA",
}  # fmt: skip
"""Allowed drivers of GDAL, by the first four bytes of a file."""

_ALONE = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_GEOREF_SOURCES": "INTERNAL",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none",
    "GDAL_HTTP_MAX_RETRY": "0",
    "PROJ_NETWORK": "OFF",
}
"""Options of GDAL: no file beside the raster, no network."""

_ELSEWHERE = b"ExternalRasterDMS"  # in an Erdas Imagine file whose values are in another file


@contextlib.contextmanager
def open_geotiff(path: str | Path) -> Iterator[Any]:
    """An open rasterio dataset of a sane size; errors of GDAL become a PlumecastError."""
    where = Path(path).absolute()  # no prefix such as zip:// or GTIFF_DIR: has a meaning to GDAL
    rasterio = import_extra("rasterio", path)
    driver = _driver(path, where)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rasterio.errors.NotGeoreferencedWarning)
        try:
            with (
                rasterio.Env(**_ALONE),
                rasterio.open(where, driver=driver, sharing=False) as file,
            ):
                check_size(path, file.height, file.width)
                if driver == "GTiff":
                    check_blocks(where)
                yield file
        except rasterio.errors.NotGeoreferencedWarning:
            # A damaged file may have a cell size but no corner, which would be taken as (0, 0).
            raise PlumecastError(_no_place(path)) from None
        except (rasterio.errors.RasterioError, rasterio.errors.CRSError) as error:
            text = " ".join(str(error).split())
            raise PlumecastError(f"{path}: not a readable raster ({text})") from error


def _no_place(path: str | Path) -> str:
    return f"{path}: not georeferenced, or rotated; warp it to a grid along x and y (gdalwarp)"


def _driver(path: str | Path, where: Path) -> str:
    """The driver for a file, by its first bytes; raises for formats that are not allowed."""
    if str(where).startswith("/vsi"):
        raise PlumecastError(
            f"{path}: a virtual file system of GDAL; give the path of a file on this machine"
        )
    try:
        with where.open("rb") as file:
            beginning = file.read(512)
            if _FORMATS.get(beginning[:4]) == "HFA":
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    if content.find(_ELSEWHERE) >= 0:
                        raise PlumecastError(
                            f"{path}: its values are in another file (.ige); make one GeoTIFF of "
                            "both (gdal_translate)"
                        )
    except OSError as error:
        raise PlumecastError(f"{path}: cannot be opened ({error.strerror})") from error
    if b"<VRTDataset" in beginning:
        raise PlumecastError(
            f"{path}: a virtual raster (VRT), which names other files; convert it to a GeoTIFF "
            "(gdal_translate)"
        )
    if beginning[:4] not in _FORMATS:
        raise PlumecastError(
            f"{path}: not a readable raster: it begins with {beginning[:8]!r}; give a GeoTIFF, an "
            "ASCII grid, a NetCDF or an Erdas Imagine file"
        )
    return _FORMATS[beginning[:4]]


def read_geotiff(path: Path) -> Raster:
    """A single-band, north-up or south-up raster."""
    with open_geotiff(path) as file:
        if file.count != 1:
            raise PlumecastError(f"{path}: {file.count} bands; give one arrival-time band per file")
        at, crs, nodata = file.transform, file.crs, file.nodata
        if at.is_identity or at.b or at.d or at.a < 0:
            raise PlumecastError(_no_place(path))
        values = _band(path, file)
        wkt = crs and crs.to_wkt()
    ny, nx = values.shape
    north_up = at.e < 0
    bottom = at.f + ny * at.e if north_up else at.f
    grid = Grid(at.c, bottom, at.a, abs(at.e), nx, ny)
    return Raster(values[::-1] if north_up else values, grid, wkt, nodata)


def _band(path: Path, file: Any) -> Array:
    """The values of the only band, NaN where the file masks them."""
    kind = np.dtype(file.dtypes[0]).kind
    if kind not in "iuf":
        raise PlumecastError(f"{path}: values of type {file.dtypes[0]}; write them as float32")
    if file.scales[0] != 1.0 or file.offsets[0] != 0.0:
        raise PlumecastError(
            f"{path}: values with a scale ({file.scales[0]:g}) and an offset "
            f"({file.offsets[0]:g}); write the arrival times themselves (gdal_translate -unscale)"
        )
    values = file.read(1).astype(np.float64)
    if any(flag.name == "per_dataset" for flag in file.mask_flag_enums[0]):
        values[file.read_masks(1) == 0] = np.nan
    return values
