"""Check that the blocks of a TIFF hold what its directory says.

GDAL guesses where a directory contradicts itself, reads blocks that are not there as zero, and
returns uninitialised memory for a DEFLATE block that is damaged, all without an error.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from pathlib import Path

from plumecast.base.errors import PlumecastError

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


def check_blocks(path: str | Path) -> None:
    """Raise if blocks are missing, too short or, if they are DEFLATE, damaged."""
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        try:
            _check(data, _directory(data))
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


def _check(data: mmap.mmap, tags: Tags) -> None:
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
