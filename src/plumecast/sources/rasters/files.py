"""Raster files: found by name, read by their first bytes; GeoTIFF and Erdas Imagine through GDAL.

GDAL reads more than 100 formats. Some of them (VRT) name other files or addresses, which it would
open. So the first bytes must be those of an allowed format, only the drivers of these formats are
tried, and files beside the raster (.aux.xml, .ovr, .msk, .tfw) are not looked for. GDAL also
guesses where a directory contradicts itself, reads blocks that are not there as zero, and returns
uninitialised memory for a damaged DEFLATE block, all without an error: `_check_blocks` finds these.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base import paths as named
from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid
from plumecast.data.crs import import_extra
from plumecast.sources.rasters.raster import (
    Raster,
    check_grid,
    check_size,
    is_ascii_grid,
    read_ascii,
    read_netcdf,
)

EVENT_MAP = "event-ID"
"""Part of the file name of LANDIS-II event maps, which are read with their day-of-fire maps."""

_SUFFIXES = {".asc", ".tif", ".tiff", ".img", ".nc", ".nc4"}

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

WIDTH, HEIGHT, BITS, COMPRESSION, SAMPLES, ROWS, PLANAR = 256, 257, 258, 259, 277, 278, 284
STRIP_OFFSETS, STRIP_BYTES, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES = (
    273, 279, 322, 323, 324, 325,
)  # fmt: skip
NODATA = 42113
_NEEDED = {
    WIDTH, HEIGHT, BITS, COMPRESSION, SAMPLES, ROWS, PLANAR, STRIP_OFFSETS, STRIP_BYTES,
    TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_BYTES,
}  # fmt: skip
_TYPES = {1: "B", 3: "H", 4: "I", 16: "Q"}  # unsigned integers
_PLAIN, _DEFLATE = 1, (8, 32946)  # values of COMPRESSION

Tags = dict[int, tuple[int, ...]]


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
        raster = read_netcdf(path, variable)
    elif is_ascii_grid(magic):
        raster = read_ascii(path)
    else:
        raster = read_geotiff(path)
    check_grid(path, raster.grid)
    return raster


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
                    _check_blocks(where)
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
        unit = file.units[0] or file.tags(1).get("units") or file.tags().get("units") or ""
        wkt = crs and crs.to_wkt()
    ny, nx = values.shape
    north_up = at.e < 0
    bottom = at.f + ny * at.e if north_up else at.f
    grid = Grid(at.c, bottom, at.a, abs(at.e), nx, ny)
    return Raster(values[::-1] if north_up else values, grid, wkt, nodata, unit)


def _band(path: Path, file: Any) -> Array:
    """The values of the only band, NaN where the file masks them."""
    scale, offset = file.scales[0], file.offsets[0]
    if np.dtype(file.dtypes[0]).kind not in "iuf":
        raise PlumecastError(f"{path}: values of type {file.dtypes[0]}; write them as float32")
    if scale != 1.0 or offset != 0.0:
        raise PlumecastError(
            f"{path}: values with a scale ({scale:g}) and an offset ({offset:g}); write the "
            "arrival times themselves (gdal_translate -unscale)"
        )
    values = file.read(1).astype(np.float64)
    if any(flag.name == "per_dataset" for flag in file.mask_flag_enums[0]):
        values[file.read_masks(1) == 0] = np.nan
    return values


def _check_blocks(path: str | Path) -> None:
    """Raise if blocks are missing, too short or, if they are DEFLATE, damaged."""
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        try:
            _check_layout(data, _directory(data))
        except (PlumecastError, struct.error, zlib.error, KeyError, ZeroDivisionError) as error:
            what = error if isinstance(error, PlumecastError) else "its directory is incomplete"
            what = "a block cannot be decompressed" if isinstance(error, zlib.error) else what
            raise PlumecastError(
                f"{path}: not a readable raster: damaged GeoTIFF, {what}; write it again"
            ) from error


def _directory(data: mmap.mmap) -> Tags:
    """The entries of the first directory that state the layout of the blocks."""
    order = "<" if data[:2] == b"II" else ">"
    large = data[2:4] in (b"+\0", b"\0+")
    place, number, entry = ("Q", "Q", "HHQ") if large else ("I", "H", "HHI")
    (start,) = struct.unpack_from(order + place, data, 8 if large else 4)
    (count,) = struct.unpack_from(order + number, data, start)
    size, inline = (20, 8) if large else (12, 4)
    first = start + struct.calcsize(order + number)
    tags: Tags = {}
    for at in range(first, first + size * min(count, 4096), size):
        tag, kind, length = struct.unpack_from(order + entry, data, at)
        where = at + size - inline
        if tag == NODATA and length > inline:
            (where,) = struct.unpack_from(order + place, data, where)
        if tag == NODATA and not data[where : where + min(length, 64)].isascii():
            raise PlumecastError("its missing value is no text")  # GDAL would have none
        if tag not in _NEEDED:
            continue
        if tag in tags or kind not in _TYPES or length > len(data):
            raise PlumecastError(f"its directory states tag {tag} twice or in no number")
        layout = f"{order}{length}{_TYPES[kind]}"
        if struct.calcsize(layout) > inline:
            (where,) = struct.unpack_from(order + place, data, where)
        tags[tag] = struct.unpack_from(layout, data, where)
    return tags


def _check_layout(data: mmap.mmap, tags: Tags) -> None:
    """Raise unless every block is there with as many bytes as its pixels need."""
    width, height, planar = tags[WIDTH][0], tags[HEIGHT][0], tags.get(PLANAR, (1,))[0]
    samples = tags.get(SAMPLES, (1,))[0]
    tiled = TILE_OFFSETS in tags
    rows = tags[TILE_HEIGHT][0] if tiled else min(tags.get(ROWS, (height,))[0], height)
    columns = tags[TILE_WIDTH][0] if tiled else width
    offsets = tags[TILE_OFFSETS if tiled else STRIP_OFFSETS]
    lengths = tags[TILE_BYTES if tiled else STRIP_BYTES]
    down, across = math.ceil(height / rows), math.ceil(width / columns)
    expected = down * across * (samples if planar == 2 else 1)
    if not len(offsets) == len(lengths) == expected:
        raise PlumecastError(
            f"its directory lists {len(offsets)} blocks with {len(lengths)} sizes, but "
            f"{height} × {width} cells need {expected}"
        )
    bits = tags[BITS][0] * (1 if planar == 2 else samples)
    for index, (start, length) in enumerate(zip(offsets, lengths, strict=True)):
        if start == 0 and length == 0:  # a sparse file: no value in this block
            continue
        if start + length > len(data):
            raise PlumecastError(f"block {index} ends beyond the end of the file")
        lines = rows if tiled else min(rows, height - (index % down) * rows)
        needed = lines * math.ceil(columns * bits / 8)
        held = _bytes_held(data[start : start + length], tags.get(COMPRESSION, (1,))[0], needed)
        if held < needed:
            raise PlumecastError(f"block {index} has {held} bytes instead of {needed}")


def _bytes_held(block: bytes, compression: int, needed: int) -> int:
    """Bytes of a block once decompressed; `needed` for compressions that are not looked into."""
    if compression == _PLAIN:
        return len(block)
    if compression not in _DEFLATE:
        return needed
    stream = zlib.decompressobj()
    held = len(stream.decompress(block, needed))
    stream.decompress(stream.unconsumed_tail, 1)
    if not stream.eof:  # where the checksum is
        raise PlumecastError("a block is cut off")
    return held
