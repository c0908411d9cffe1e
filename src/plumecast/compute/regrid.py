"""Aggregation from one grid to another, by blocks or by overlapping area. Arrays only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array

AGGREGATES = ("mean", "max")

_SPACING_TOLERANCE = 1e-3  # relative to a cell; coordinates are often float32
_OVERLAP_TOLERANCE = 1e-9  # smaller overlaps, relative to a cell, are rounding errors
_POINTS_PER_CHUNK = 5_000_000  # sample points projected at a time, to limit memory
_MAX_POINTS = 40  # sample points along each side of a source cell

Projection = Callable[[Array, Array], tuple[Array, Array]]
"""(x, y) in one map plane → (x, y) in another; not finite where a point has no image."""


def unknown_aggregate(name: str) -> str:
    """Error message for an `aggregate` that is not one of `AGGREGATES`."""
    return f"aggregate={name!r} is unknown; choose one of {', '.join(AGGREGATES)}"


def block_mean(field: Array, rows: int, columns: int) -> Array:
    """(ny·rows, nx·columns) → (ny, nx), the mean of each block, summed in float64.

    >>> block_mean(np.array([[0.0, 2.0], [4.0, 6.0]]), 2, 2)
    array([[3.]])
    """
    ny, nx = field.shape[0] // rows, field.shape[1] // columns
    # Summing the rows first, over whole grid lines, is three times faster than both axes at once.
    strips = field.reshape(ny, rows, nx * columns).sum(axis=1, dtype=np.float64)
    return strips.reshape(ny, nx, columns).sum(axis=2) / (rows * columns)


def block_max(field: Array, rows: int, columns: int) -> Array:
    """(ny·rows, nx·columns) → (ny, nx), the maximum of each block."""
    ny, nx = field.shape[0] // rows, field.shape[1] // columns
    strips = field.reshape(ny, rows, nx * columns).max(axis=1)
    return strips.reshape(ny, nx, columns).max(axis=2)


@dataclass(frozen=True, slots=True)
class Grid:
    """Evenly spaced cells; `left` and `bottom` are outer edges, and y increases with the row."""

    left: float
    bottom: float
    dx: float
    dy: float
    nx: int
    ny: int

    @property
    def x(self) -> Array:
        """Cell centres, (nx,)."""
        return self.left + (np.arange(self.nx) + 0.5) * self.dx

    @property
    def y(self) -> Array:
        """Cell centres, (ny,)."""
        return self.bottom + (np.arange(self.ny) + 0.5) * self.dy

    @property
    def cell_area(self) -> float:
        """dx · dy, in the square of the coordinates' unit."""
        return self.dx * self.dy


def grid_from_centres(x: Array, y: Array, name: str) -> Grid:
    """Grid with cell centres x (nx,) and y (ny,): increasing, evenly spaced, at least two each.

    `name` appears in error messages.

    >>> grid_from_centres(np.array([5.0, 15.0]), np.array([1.0, 3.0, 5.0]), "example")
    Grid(left=0.0, bottom=0.0, dx=10.0, dy=2.0, nx=2, ny=3)
    """
    dx, dy = _spacing(x, f"{name}: x"), _spacing(y, f"{name}: y")
    return Grid(float(x[0]) - dx / 2, float(y[0]) - dy / 2, dx, dy, x.size, y.size)


def _spacing(centres: Array, name: str) -> float:
    if centres.ndim != 1 or centres.size < 2:
        raise PlumecastError(f"{name} has shape {centres.shape}; give at least two cell centres")
    step = float(centres[-1] - centres[0]) / float(centres.size - 1)
    even = np.abs(np.diff(centres) - step).max() <= _SPACING_TOLERANCE * step
    if not (0 < step < np.inf and even):  # false for NaN
        raise PlumecastError(f"{name} is not evenly spaced and increasing; resample it first")
    return step


@dataclass(frozen=True, slots=True)
class Weights:
    """Overlap of n source cells with a target grid, one entry per pair of overlapping cells."""

    target: Array  # (p,) flat target index
    source: Array  # (p,) index into the n source cells
    share: Array  # (p,) overlap area / target cell area
    cells: int  # number of target cells
    outside: float  # share of the source area outside the target grid

    def mean(self, values: Array) -> Array:
        """Area-weighted mean over each target cell, (n,) → (cells,); uncovered area counts as 0.

        Σ mean · target cell area = Σ value · source cell area if nothing lies outside.
        """
        return np.bincount(self.target, self.share * values[self.source], minlength=self.cells)

    def first(self, arrival: Array) -> Weights:
        """Those of whole target cells that take the earliest value (n,) of the cells in them."""
        order = np.lexsort((arrival[self.source], self.target))
        target, place = np.unique(self.target[order], return_index=True)
        source = self.source[order][place]
        return Weights(target, source, np.ones(target.size), self.cells, self.outside)

    def max(self, values: Array) -> Array:
        """Largest value ≥ 0 that overlaps each target cell, (n,) → (cells,); 0 without overlap."""
        out = np.zeros(self.cells)
        np.maximum.at(out, self.target, values[self.source])
        return out


def overlap_weights(source: Grid, target: Grid, cells: Array) -> Weights:
    """Exact share of each target cell that each source cell covers; both grids in one plane.

    `cells` (n,) are flat source indices.
    """
    rows, columns = np.divmod(cells, source.nx)
    below, left = source.bottom + rows * source.dy, source.left + columns * source.dx
    # Only cells that meet the target grid, so that the pairs are at most a few per target cell.
    near = np.flatnonzero(
        (below + source.dy >= target.bottom)
        & (below <= target.bottom + target.ny * target.dy)
        & (left + source.dx >= target.left)
        & (left <= target.left + target.nx * target.dx)
    )
    y_index, y_length = _axis_overlap(below[near], source.dy, (target.bottom, target.dy, target.ny))
    x_index, x_length = _axis_overlap(left[near], source.dx, (target.left, target.dx, target.nx))
    index = y_index[:, :, None] * target.nx + x_index[:, None, :]
    area = y_length[:, :, None] * x_length[:, None, :]
    total = cells.size * source.cell_area
    return _weights(index, area, target=target, source=near, total=total)


def projected_weights(
    source: Grid, target: Grid, cells: Array, *, to_target: Projection
) -> Weights:
    """`overlap_weights` between two map planes, from s × s sample points in each source cell.

    Each cell keeps its area in the target plane, computed from its projected corners. Its points
    share that area equally, so the integral of f over the plane is preserved to rounding. Only the
    split between neighbouring target cells is approximate: the error of a point is at most half a
    sub-cell. s is chosen such that a sub-cell is at most 1/20 of a target cell wide. The limit
    s ≤ 40 makes this coarser if source cells are larger than two target cells.
    """
    rows, columns = np.divmod(cells, source.nx)
    # Corners (n, 4), counter-clockwise in the source plane.
    x, y = to_target(
        source.left + (columns[:, None] + np.array([0, 1, 1, 0])) * source.dx,
        source.bottom + (rows[:, None] + np.array([0, 0, 1, 1])) * source.dy,
    )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise PlumecastError(
            "burned cells have no image in the coordinate system of the target grid; check the CRS"
        )
    # Half the cross product of the diagonals.
    cross = (x[:, 2] - x[:, 0]) * (y[:, 3] - y[:, 1]) - (x[:, 3] - x[:, 1]) * (y[:, 2] - y[:, 0])
    area = 0.5 * np.abs(cross)
    widest = max(np.ptp(x, axis=1).max() / target.dx, np.ptp(y, axis=1).max() / target.dy)
    points = int(np.clip(np.ceil(20 * widest), 2, _MAX_POINTS))
    near = np.flatnonzero(
        _is_near(x, target.left, target.nx * target.dx)
        & _is_near(y, target.bottom, target.ny * target.dy)
    )
    size = max(1, _POINTS_PER_CHUNK // points**2)
    parts = [
        _target_cells(source, target, cells[chunk], to_target=to_target, points=points)
        for chunk in (near[start : start + size] for start in range(0, near.size, size))
    ]
    index = np.concatenate([np.empty((0, points**2), dtype=np.intp), *parts])
    share = np.where(index >= 0, area[near, None] / points**2, 0.0)
    index, share = np.maximum(index, 0)[:, None, :], share[:, None, :]
    return _weights(index, share, target=target, source=near, total=float(area.sum()))


def _is_near(corners: Array, start: float, length: float) -> Array:
    """(n,) cells with corners (n, 4) along one axis that may meet an interval.

    The edges of a projected cell may bulge; a margin of its own width allows for that.
    """
    low, high = corners.min(axis=1), corners.max(axis=1)
    margin = high - low
    return (high + margin >= start) & (low - margin <= start + length)


def spherical_cell_area(grid: Grid, cells: Array) -> Array:
    """R² Δλ (sin φ₂ − sin φ₁) in m² for cells (n,) of a grid in degrees; R = 6371008.8 m (mean)."""
    south = grid.bottom + (cells // grid.nx) * grid.dy
    band = np.sin(np.radians(south + grid.dy)) - np.sin(np.radians(south))
    return 6_371_008.8**2 * np.radians(grid.dx) * band


def _axis_overlap(
    start: Array, length: float, axis: tuple[float, float, int]
) -> tuple[Array, Array]:
    """Target indices and overlap lengths, both (n, m), of the intervals [start, start + length]."""
    origin, step, count = axis
    first = np.floor((start - origin) / step + _OVERLAP_TOLERANCE).clip(min=0.0).astype(np.intp)
    index = first[:, None] + np.arange(min(int(np.ceil(length / step)) + 1, count))
    low = np.maximum(start[:, None], origin + index * step)
    high = np.minimum(start[:, None] + length, origin + (index + 1) * step)
    inside = (index >= 0) & (index < count) & (high - low > _OVERLAP_TOLERANCE * min(length, step))
    return np.where(inside, index, 0), np.where(inside, high - low, 0.0)


def _weights(index: Array, area: Array, *, target: Grid, source: Array, total: float) -> Weights:
    """Weights from target indices (n, a, b) and overlap areas that broadcast to that shape.

    `source` (n,) are the source cells of the first axis; those that are left out lie outside.
    """
    area = np.broadcast_to(area, index.shape)
    kept = area > 0
    return Weights(
        target=index[kept],
        source=np.broadcast_to(source[:, None, None], index.shape)[kept],
        share=area[kept] / target.cell_area,
        cells=target.ny * target.nx,
        outside=max(0.0, 1.0 - float(area.sum()) / total),
    )


def _target_cells(
    source: Grid, target: Grid, cells: Array, *, to_target: Projection, points: int
) -> Array:
    """Target cell of each of the points × points samples of a cell, (n, points²); −1 outside."""
    rows, columns = np.divmod(cells, source.nx)
    offset = (np.arange(points) + 0.5) / points
    offset_y, offset_x = (part.ravel() for part in np.meshgrid(offset, offset, indexing="ij"))
    x, y = to_target(
        source.left + (columns[:, None] + offset_x) * source.dx,
        source.bottom + (rows[:, None] + offset_y) * source.dy,
    )
    column = np.floor((x - target.left) / target.dx)
    row = np.floor((y - target.bottom) / target.dy)
    inside = (column >= 0) & (column < target.nx) & (row >= 0) & (row < target.ny)
    return np.where(inside, row * target.nx + column, -1).astype(np.intp)
