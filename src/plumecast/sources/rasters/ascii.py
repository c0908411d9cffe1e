"""Esri ASCII grids: `key value` lines, then rows of values from north to south."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid
from plumecast.sources.rasters.raster import Raster, check_size

KEYS = {"ncols", "nrows", "xllcorner", "xllcenter", "yllcorner", "yllcenter", "cellsize",
        "nodata_value"}  # fmt: skip
"""Of the header, in lower case."""

_PER_BYTE = 0.5  # a value is a digit and a space; the last one may lack the space
_LONGEST_PROJECTION = 100_000  # bytes of a .prj file


def is_ascii_grid(beginning: bytes) -> bool:
    """Whether the first bytes of a file are those of an ASCII grid."""
    return beginning.lstrip()[:5].lower() in (b"ncols", b"nrows")


class _Header(NamedTuple):
    entries: dict[str, float]
    rows: int
    columns: int
    lines: int  # of the file that it takes

    def corner(self, axis: str) -> float:
        """Outer edge of the first cell along x or y."""
        corner, centre = self.entries.get(f"{axis}llcorner"), self.entries.get(f"{axis}llcenter")
        if (corner is None) == (centre is None):
            raise PlumecastError(f"give either {axis}llcorner or {axis}llcenter")
        return corner if corner is not None else centre - self.entries["cellsize"] / 2  # type: ignore[operator]


def read_ascii(path: Path) -> Raster:
    """Read an ASCII grid; its CRS is in the .prj file beside it, if there is one."""
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    try:
        header = _header(lines)
        left, bottom, size = header.corner("x"), header.corner("y"), header.entries["cellsize"]
        check_size(path, header.rows, header.columns, cells_per_byte=_PER_BYTE * 1.01)
        values = _values(lines[header.lines :], header)
    except PlumecastError as error:
        if str(error).startswith(str(path)):
            raise
        raise PlumecastError(f"{path}: not a readable ASCII grid: {error}") from error
    grid = Grid(left, bottom, size, size, header.columns, header.rows)
    return Raster(values[::-1], grid, _projection(path), header.entries.get("nodata_value"))


def _header(lines: list[str]) -> _Header:
    """The lines that begin with a known key; blank ones are passed over."""
    entries: dict[str, float] = {}
    used = 0
    for used, line in enumerate(lines):  # noqa: B007
        key, *rest = line.split() or [""]
        if not key:
            continue
        if key.lower() not in KEYS:
            break
        if key.lower() in entries:
            raise PlumecastError(f"{key} is stated twice; keep one line")
        entries[key.lower()] = _number(key, rest)
    for key in ("ncols", "nrows", "cellsize"):
        if key not in entries:
            raise PlumecastError(f"its header has no {key}; add it")
    return _Header(entries, _count(entries, "nrows"), _count(entries, "ncols"), used)


def _number(key: str, words: list[str]) -> float:
    text = " ".join(words)
    try:
        return float(text.replace("_", " "))  # Python would read 1_0 as 10
    except ValueError:
        raise PlumecastError(f"{key} is {text[:40]!r}; write one number") from None


def _count(entries: dict[str, float], key: str) -> int:
    value = entries[key]
    if not math.isfinite(value) or value != int(value) or value < 1:
        raise PlumecastError(f"{key} is {value:g}; write a whole number above 0")
    return int(value)


def _values(lines: list[str], header: _Header) -> Array:
    words = " ".join(lines).split()
    if len(words) != header.rows * header.columns:
        raise PlumecastError(
            f"{len(words)} values, but its header says {header.rows} × {header.columns}; write it "
            "again"
        )
    odd = next((word for word in words if "_" in word or "\0" in word), None)
    if odd is not None:
        raise PlumecastError(f"{odd[:40]!r} is no number; write it again")
    try:
        return np.array(words, dtype=np.float64).reshape(header.rows, header.columns)
    except ValueError as error:
        raise PlumecastError(f"{error}; write it again") from None


def _projection(path: Path) -> str | None:
    """The text of the .prj file; None if there is none."""
    beside = path.with_suffix(".prj")
    if not beside.is_file():
        return None
    try:
        if beside.stat().st_size > _LONGEST_PROJECTION:
            raise PlumecastError(f"{beside}: too long for a CRS; remove it and give crs=EPSG:…")
        return beside.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        raise PlumecastError(
            f"{beside}: not readable text; remove it and give crs=EPSG:…"
        ) from None
