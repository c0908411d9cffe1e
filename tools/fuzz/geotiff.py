"""Damaged GeoTIFFs, and virtual rasters in disguise: read as what their bytes say, or refused.

Another byte in the values is another raster. So the bytes are parsed here a second time, strictly,
and the field that was read must be the one that the file states.
"""

from __future__ import annotations

import random
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import rasterio

from plumecast.sources.rasters import RasterOptions, read_arrival_times
from tools.fuzz.mutations import damage_file, mutate_bytes, mutate_text
from tools.fuzz.rasters import Stated, unburned_to_nan
from tools.fuzz.trials import CHANGED, LEGITIMATE, UNCHANGED, Target

_DISGUISED = 0.15  # share of the trials
_SIZES = {1: "B", 2: "s", 3: "H", 4: "I", 12: "d", 16: "Q"}  # by TIFF type
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _OFFSETS, _ROWS, _COUNTS = 256, 257, 258, 259, 273, 278, 279
_SAMPLES, _PREDICTOR, _FORMAT, _SCALE, _TIE, _NODATA = 277, 317, 339, 33550, 33922, 42113

_VRT = """<VRTDataset rasterXSize="7" rasterYSize="6">
 <GeoTransform> 1000, 30, 0, 5180, 0, -30 </GeoTransform>
 <VRTRasterBand dataType="Float32" band="1" subClass="VRTSourcedRasterBand">
  <SimpleSource>
   <SourceFilename relativeToVRT="0">SOURCE</SourceFilename>
   <SourceBand>1</SourceBand>
  </SimpleSource>
 </VRTRasterBand>
</VRTDataset>
"""
_PREFIXES = ("", "/vsigzip/", "/vsisubfile/0_9999,", "GTIFF_DIR:1:", "/vsicurl/http://127.0.0.1:9/")


def prepare(folder: Path) -> None:
    """One fire in several kinds of GeoTIFF."""
    arrival = np.full((6, 7), -9999.0, dtype=np.float32)
    arrival[1:5, 1:6] = np.arange(20.0).reshape(4, 5) * 7.5
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "big_endian": {"ENDIANNESS": "BIG"},
        "deflate": {"compress": "deflate"},
        "epsg": {"crs": "EPSG:32610"},
        "strips": {"blockysize": 2},
    }
    for name, options in kinds.items():
        with rasterio.open(
            folder / f"{name}.tif", "w", driver="GTiff", height=6, width=7, count=1,
            dtype="float32", nodata=-9999.0, **options,
            transform=rasterio.Affine(30.0, 0.0, 500_000.0, 0.0, -30.0, 4_000_000.0),
        ) as file:  # fmt: skip
            file.write(arrival, 1)
        if parse((folder / f"{name}.tif").read_bytes()) is None:
            raise RuntimeError(f"the second reader does not read {name}.tif")


def parse(data: bytes) -> Stated | None:
    """The raster in the bytes of a classic TIFF of float32 in strips; None if there is none."""
    try:
        order = {b"II*\0": "<", b"MM\0*": ">"}[data[:4]]
        tags = _tags(data, order)
        width, height = tags[_WIDTH][0], tags[_HEIGHT][0]
        rows = tags.get(_ROWS, (height,))[0]  # without the tag, one strip holds the image
        number = (tags[_BITS], tags[_FORMAT], tags.get(_SAMPLES, (1,)), tags.get(_PREDICTOR, (1,)))
        if number != ((32,), (3,), (1,), (1,)) or width * height > 1e6:
            return None
        strips = []
        for start, size in zip(tags[_OFFSETS], tags[_COUNTS], strict=True):
            strip = data[start : start + size]
            if len(strip) != size:
                return None
            strips.append(strip if tags[_COMPRESSION] == (1,) else zlib.decompress(strip))
        if len(strips) != -(-height // rows):
            return None
        values = np.frombuffer(b"".join(strips), order + "f4")[: width * height]
        values = values.reshape(height, width)
        text = b"".join(tags[_NODATA]).split(b"\0")[0] if _NODATA in tags else None
        nodata = float(text) if text else None
        (dx, dy, _), (column, row, _, x, y, _) = tags[_SCALE], tags[_TIE]
    except (KeyError, ValueError, IndexError, struct.error, zlib.error, TypeError):
        return None
    left, top = x - column * dx, y + row * dy
    arrival = unburned_to_nan(values[::-1].astype(np.float64), nodata)
    return Stated(arrival, left, top - height * dy, dx, dy)


def _tags(data: bytes, order: str) -> dict[int, tuple[Any, ...]]:
    """The entries of the first directory."""
    (start,) = struct.unpack_from(order + "I", data, 4)
    (count,) = struct.unpack_from(order + "H", data, start)
    tags: dict[int, tuple[Any, ...]] = {}
    for place in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind, number = struct.unpack_from(order + "HHI", data, place)
        if kind not in _SIZES or number > 10_000:
            continue
        layout = order + (f"{number}s" if kind == 2 else f"{number}{_SIZES[kind]}")
        at = place + 8
        if struct.calcsize(layout) > 4:
            (at,) = struct.unpack_from(order + "I", data, at)
        if at + struct.calcsize(layout) <= len(data):  # a tag beyond the end is as if missing
            tags.setdefault(tag, struct.unpack_from(layout, data, at))
    return tags


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Read a damaged copy, or a virtual raster with the name of a GeoTIFF."""
    path = scratch / "fire.tif"
    if rng.random() < _DISGUISED:
        secret = rng.choice(_PREFIXES) + str(originals / "plain.tif")
        text = _VRT.replace("SOURCE", secret)
        path.write_bytes(rng.choice((b"", b"\n", b"\xef\xbb\xbf", b"II*\0")) + text.encode())
        if rng.random() < 0.7:
            path.write_bytes(mutate_text(text, rng).encode("latin-1", "replace"))
        elif rng.random() < 0.5:
            path.write_bytes(mutate_bytes(text.encode(), rng))
        read_arrival_times(path, RasterOptions(unit="min"))
        return CHANGED, path.read_bytes().decode("latin-1")
    original = originals / f"{rng.choice(sorted(p.stem for p in originals.glob('*.tif')))}.tif"
    path.write_bytes(original.read_bytes())
    damage_file(path, rng)
    if rng.random() < 0.05:
        (scratch / "fire.tif.aux.xml").write_text("<PAMDataset><NoDataValue>0</NoDataValue>")
    read = read_arrival_times(path, RasterOptions(unit="min"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for data, verdict in ((original, UNCHANGED), (path, LEGITIMATE)):
            stated = parse(data.read_bytes())
            if stated is not None and stated.is_in(read):
                return verdict
    return CHANGED, f"{original.name}: {read.time_since_ignition.values.tolist()}"


TARGET = Target("geotiff", prepare, attempt, trials=1500)
