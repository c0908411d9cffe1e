"""One raster in memory, and the limits of size and place that every file must keep to."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid

MOST_CELLS = 2**28
"""Cells of the largest raster that is read: 2 GiB in double precision."""

_ALWAYS_READ = 2**20  # cells that are read however small the file is
_CELLS_PER_BYTE = 4096  # of a compressed or sparse file; no real one has as many
_SMALLEST_CELL, _LARGEST_CELL = 1e-7, 1e6  # in degrees, metres or feet
_FARTHEST = 2e8  # beyond the circumference of the Earth in feet
_FINEST = 1e-10  # cell size relative to the coordinates, so that neighbouring centres differ


class Raster(NamedTuple):
    """Values (ny, nx) of one file, south row first, and their grid."""

    values: Array
    grid: Grid
    crs: Any  # anything that pyproj accepts, or None
    nodata: float | None


def check_size(
    path: str | Path, rows: int, columns: int, *, cells_per_byte: float = _CELLS_PER_BYTE
) -> None:
    """Raise before memory is allocated if a header states sizes that the file cannot have.

    A file holds at most `cells_per_byte` cells per byte.
    """
    if rows < 1 or columns < 1:
        raise PlumecastError(
            f"{path}: its header says {rows} rows and {columns} columns; write the file again"
        )
    cells, size = rows * columns, Path(path).stat().st_size
    if cells > MOST_CELLS:
        raise PlumecastError(
            f"{path}: its header says {rows} × {columns} cells, more than the {MOST_CELLS} that "
            "are read; crop or coarsen it"
        )
    compressed = cells_per_byte >= 1.0
    if cells > cells_per_byte * size and not (compressed and cells <= _ALWAYS_READ):
        raise PlumecastError(
            f"{path}: its header says {rows} × {columns} cells, more than its {size} bytes can "
            "hold; write the file again"
        )


def check_grid(path: str | Path, grid: Grid) -> None:
    """Raise if the cells of a raster have no size, or lie nowhere on Earth."""
    for name, size in (("x", grid.dx), ("y", grid.dy)):
        if not _SMALLEST_CELL <= size <= _LARGEST_CELL:
            raise PlumecastError(
                f"{path}: cell size {size:g} along {name} is not within {_SMALLEST_CELL:g} … "
                f"{_LARGEST_CELL:g}; correct its header"
            )
    spans = {"x": (grid.left, grid.dx, grid.nx), "y": (grid.bottom, grid.dy, grid.ny)}
    for name, (start, size, count) in spans.items():
        end = start + size * count
        farthest = max(abs(start), abs(end))
        if not math.isfinite(end) or farthest > _FARTHEST:
            raise PlumecastError(
                f"{path}: {name} from {start:g} to {end:g} is nowhere on Earth; correct its header"
            )
        if size < _FINEST * farthest:
            raise PlumecastError(
                f"{path}: cells of {size:g} cannot be told apart at {name} = {end:g}; correct its "
                "header"
            )
