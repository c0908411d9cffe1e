"""Arrival times cell by cell: the eikonal equation |∇T + g| = r under wind that changes.

r and g are the metric of the fire (see `metric`); rays run along ∇T + g. Each cell is reached
through one of the eight octants between a neighbour along an axis and one along a diagonal, by a
planar front (limited second-order differences, as in Sethian 1999) or else by the ray from one of
the two, in its own metric; cells are visited from a first-in-first-out queue until none improves
(Jeong and Whitaker 2008).

When the wind changes at time t the front stays where it is and only its speed changes: along a
planar front the time left scales with the normal speed, T − t → (T − t) / H(∇T), with H of the new
wind. The cells on both sides of the front are scaled so; those behind it then hold the time at
which it would have passed in the present wind. A cell ahead keeps one label per quadrant, each
scaled with its own front, so that a turning wind finds the side from which the cell burns first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from plumecast.sources.simulator.spread.metric import Ground, front_speed, metric_in_wind

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

PAD = 2
"""Unburnable rim around the grid, as wide as the difference stencil."""

MAX_CORRECTION = 0.15
"""Largest second-order correction, relative to the time a ray takes along the same step.

Beyond it the front has a kink. Without a limit gusty winds make fires a few per cent too large,
with a tighter one long ellipses come out too small (uniform ground, against the exact solution).
"""

SQRT2 = math.sqrt(2.0)
NEVER = -1.0  # number of the wind of a cell not yet seen
CLOSED, OPEN, GIVEN, BURNED = 0, 1, 2, 3  # unburnable, unburned, unburned but known, burned

# Octants that a burned cell feeds: offset to the cell beyond it (two columns), the direction in
# which the fire moves there (two), and whether the octant lies along x rather than along y.
OCTANTS = np.array(
    [(sx, 0, sx, sy, 1) for sx in (1, -1) for sy in (1, -1)]
    + [(0, sy, sx, sy, 0) for sx in (1, -1) for sy in (1, -1)]
    + [(sx, sy, sx, sy, along_x) for sx in (1, -1) for sy in (1, -1) for along_x in (1, 0)]
)


class Cells(NamedTuple):
    """State of every cell of the padded, flattened grid of n cells."""

    width: int  # cells per padded row
    time: Array  # (n,) arrival if the present wind had always blown, h
    normal: Array  # (n, 2) its gradient where burned
    arrival: Array  # (n,) true arrival of burned cells, h
    metric: Array  # (n, 4) r, g_x, g_y in h per cell, and the number of the wind they hold for
    label: Array  # (n, 4, 3) time and gradient of the front from each quadrant
    ray: npt.NDArray[np.bool_]  # (n, 4) whether the label is a single ray, not a planar front
    status: npt.NDArray[np.int8]  # (n,) CLOSED, OPEN, GIVEN or BURNED
    queued: npt.NDArray[np.bool_]  # (n,)


@njit(cache=True)
def march(
    ground: Ground, seed_time: Array, seed_normal: Array, edges: Array, winds: Array
) -> tuple[Array, Array]:
    """(arrival h, direction of ∇T) of shapes (ny, nx) and (ny, nx, 2); arrival inf if unburned.

    `seed_time` (ny, nx) holds the cells whose arrival is given, inf elsewhere, and `seed_normal`
    the direction in which the fire passes them; the 10 m wind `winds[k]` (m s⁻¹) blows from
    `edges[k]` to `edges[k + 1]` (h).
    """
    cells = _start(ground, seed_time, seed_normal)
    queue = np.empty(cells.time.size, dtype=np.int64)
    band = np.empty(cells.time.size, dtype=np.int64)
    in_band = 0
    for i in range(cells.time.size):
        if cells.status[i] == GIVEN:
            band[in_band] = i
            in_band += 1
    for k in range(winds.shape[0]):
        if k > 0:
            in_band = _turn(ground, cells, band, in_band, edges[k], winds[k], k)
        in_band = _spread(ground, cells, queue, band, in_band, edges[k], edges[k + 1], winds[k], k)
        if _burn(ground, cells, band, in_band, edges[k + 1], winds[k], k) == 0:
            break
    return _unpadded(ground, cells)


@njit(cache=True)
def _start(ground: Ground, seed_time: Array, seed_normal: Array) -> Cells:
    ny, nx = ground.fuel.shape
    n = (ny + 2 * PAD) * (nx + 2 * PAD)
    cells = Cells(
        nx + 2 * PAD, np.full(n, np.inf), np.zeros((n, 2)), np.full(n, np.inf),
        np.full((n, 4), NEVER), np.empty((n, 4, 3)), np.empty((n, 4), np.bool_),
        np.full(n, CLOSED, np.int8), np.zeros(n, np.bool_),
    )  # fmt: skip
    for row in range(ny):
        for column in range(nx):
            i = (row + PAD) * cells.width + column + PAD
            if ground.coefficients[ground.fuel[row, column], 0] > 0.0:
                cells.status[i] = OPEN
            if seed_time[row, column] < np.inf:
                cells.status[i] = GIVEN
                cells.time[i] = seed_time[row, column]
                cells.normal[i, 0] = seed_normal[row, column, 0]
                cells.normal[i, 1] = seed_normal[row, column, 1]
    return cells


@njit(cache=True)
def _unpadded(ground: Ground, cells: Cells) -> tuple[Array, Array]:
    ny, nx = ground.fuel.shape
    arrival, normal = np.empty((ny, nx)), np.empty((ny, nx, 2))
    for row in range(ny):
        for column in range(nx):
            i = (row + PAD) * cells.width + column + PAD
            arrival[row, column] = cells.arrival[i]
            normal[row, column, 0] = cells.normal[i, 0]
            normal[row, column, 1] = cells.normal[i, 1]
    return arrival, normal


@njit(cache=True)
def _refresh(ground: Ground, cells: Cells, i: int, wind: Array, k: int) -> None:
    """Bring the metric of a cell up to wind number k; a cell not seen before has no labels."""
    if cells.metric[i, 3] == k:
        return
    if cells.metric[i, 3] == NEVER:
        cells.label[i, :, 0] = np.inf
    r, gx, gy = metric_in_wind(ground, i // cells.width - PAD, i % cells.width - PAD, wind)
    cells.metric[i, 0] = r
    cells.metric[i, 1] = gx
    cells.metric[i, 2] = gy
    cells.metric[i, 3] = k


@njit(cache=True)
def _spread(
    ground: Ground,
    cells: Cells,
    queue: Indices,
    band: Indices,
    in_band: int,
    now: float,
    end: float,
    wind: Array,
    k: int,
) -> int:
    """Let the fire run from `now` to `end` in wind number k; returns the new length of the band."""
    waiting = 0
    for j in range(in_band):
        i = band[j]
        if cells.status[i] != BURNED and cells.time[i] <= end:
            queue[waiting] = i
            cells.queued[i] = True
            waiting += 1
    first = 0
    while waiting > 0:
        i = queue[first]
        first = first + 1 if first + 1 < queue.size else 0
        waiting -= 1
        cells.queued[i] = False
        for octant in range(OCTANTS.shape[0]):
            z = i + OCTANTS[octant, 0] + OCTANTS[octant, 1] * cells.width
            if cells.status[z] != OPEN:
                continue
            before = cells.time[z]
            _refresh(ground, cells, z, wind, k)
            _improve(cells, z, OCTANTS[octant, 2], OCTANTS[octant, 3], OCTANTS[octant, 4], now)
            if not cells.time[z] < before:
                continue
            if before == np.inf:
                band[in_band] = z
                in_band += 1
            if cells.time[z] <= end and not cells.queued[z]:
                last = first + waiting
                queue[last if last < queue.size else last - queue.size] = z
                cells.queued[z] = True
                waiting += 1
    return in_band


@njit(cache=True)
def _improve(cells: Cells, z: int, sx: int, sy: int, along_x: int, now: float) -> None:
    """Recompute the arrival at z of fire that moves towards (sx, sy) through one octant.

    The neighbour along the axis is `a`, that along the diagonal `d`; fire does not squeeze between
    two unburnable cells that touch at a corner.
    """
    r, gx, gy = cells.metric[z, 0], sx * cells.metric[z, 1], sy * cells.metric[z, 2]
    ga, gb = (gx, gy) if along_x else (gy, gx)
    up = sy * cells.width
    axis, diagonal = (sx if along_x else up), sx + up
    a1, d1 = cells.time[z - axis], cells.time[z - diagonal]
    if min(a1, d1) >= cells.time[z]:
        return
    if cells.status[z - sx] == CLOSED and cells.status[z - up] == CLOSED:
        d1 = np.inf
    along, slant = r - ga, SQRT2 * r - ga - gb  # hours of a ray along the axis, the diagonal
    time, pa, pb = np.inf, 0.0, 0.0
    if a1 < np.inf and d1 < np.inf:
        a2, d2 = cells.time[z - 2 * axis], cells.time[z - 2 * diagonal]
        if a2 < np.inf and d2 < np.inf:
            a, d = 2.0 * a1 - 0.5 * a2, 2.0 * d1 - 0.5 * d2
            time, pa, pb = _planar_front(1.5, a, d, r, ga, gb)
            bent_a = abs(time - 2.0 * a1 + a2) > 2.0 * MAX_CORRECTION * along
            bent_d = abs(time - 2.0 * d1 + d2) > 2.0 * MAX_CORRECTION * slant
            time = np.inf if bent_a or bent_d else time
        if time == np.inf:
            time, pa, pb = _planar_front(1.0, a1, d1, r, ga, gb)
    ray = time == np.inf
    if ray and a1 + along <= d1 + slant:
        time, pa, pb = a1 + along, r - ga, -gb
    elif ray:
        time, pa, pb = d1 + slant, r / SQRT2 - ga, r / SQRT2 - gb
    time = max(time, now)
    quadrant = (sx + 1) + (sy + 1) // 2
    if time < cells.label[z, quadrant, 0]:
        px, py = (pa, pb) if along_x else (pb, pa)
        cells.label[z, quadrant, 0] = time
        cells.label[z, quadrant, 1] = sx * px
        cells.label[z, quadrant, 2] = sy * py
        cells.ray[z, quadrant] = ray
        if time < cells.time[z] - 1e-5 * (r - math.sqrt(gx * gx + gy * gy)):
            cells.time[z] = time


@njit(cache=True)
def _planar_front(
    alpha: float, a: float, d: float, r: float, ga: float, gb: float
) -> tuple[float, float, float]:
    """(T, ∂T along the axis, ∂T across) with ∂T along axis and diagonal α T − a and α T − d.

    inf if the ray ∇T + g does not come through the octant.
    """
    across = a - d + gb
    if across < 0.0 or SQRT2 * across > r:
        return np.inf, 0.0, 0.0
    along = math.sqrt(r * r - across * across)
    return (a - ga + along) / alpha, along - ga, across - gb


@njit(cache=True)
def _burn(
    ground: Ground, cells: Cells, band: Indices, in_band: int, end: float, wind: Array, k: int
) -> int:
    """Record the arrival of the cells reached by `end`; returns how many of the band are left."""
    left = 0
    for j in range(in_band):
        i = band[j]
        if cells.status[i] == BURNED:
            continue
        if cells.time[i] > end:
            left += 1
            continue
        if cells.status[i] == OPEN:
            first = np.argmin(cells.label[i, :, 0])
            cells.normal[i, 0] = cells.label[i, first, 1]
            cells.normal[i, 1] = cells.label[i, first, 2]
        cells.status[i] = BURNED
        cells.arrival[i] = cells.time[i]
        _refresh(ground, cells, i, wind, k)
        _pace(cells, i)
    return left


@njit(cache=True)
def _pace(cells: Cells, i: int) -> float:
    """Scale the gradient of a burned cell to its metric; returns the factor."""
    r, gx, gy = cells.metric[i, 0], cells.metric[i, 1], cells.metric[i, 2]
    pace = 1.0 / front_speed(r, gx, gy, cells.normal[i, 0], cells.normal[i, 1])
    cells.normal[i, 0] *= pace
    cells.normal[i, 1] *= pace
    return pace


@njit(cache=True)
def _turn(
    ground: Ground, cells: Cells, band: Indices, in_band: int, now: float, wind: Array, k: int
) -> int:
    """Scale the times near the front to wind number k; forgets the burned cells far behind it."""
    kept = 0
    for j in range(in_band):
        i = band[j]
        if cells.status[i] == BURNED and not _near_unburned(cells, i):
            continue
        band[kept] = i
        kept += 1
        if cells.status[i] == GIVEN:
            continue
        r, gx, gy = cells.metric[i, 0], cells.metric[i, 1], cells.metric[i, 2]
        _refresh(ground, cells, i, wind, k)
        if cells.status[i] == BURNED:
            cells.time[i] = now + (cells.time[i] - now) * _pace(cells, i)
            continue
        cells.time[i] = np.inf
        for q in range(4):
            if cells.label[i, q, 0] < np.inf:
                _turn_label(cells, i, q, now, r, gx, gy)
                cells.time[i] = min(cells.time[i], cells.label[i, q, 0])
    return kept


@njit(cache=True)
def _turn_label(
    cells: Cells, i: int, q: int, now: float, old_r: float, old_gx: float, old_gy: float
) -> None:
    """Scale one label: a planar front with its normal speed, a ray with the speed along it."""
    r, gx, gy = cells.metric[i, 0], cells.metric[i, 1], cells.metric[i, 2]
    px, py = cells.label[i, q, 1], cells.label[i, q, 2]
    if cells.ray[i, q]:
        x, y = (px + old_gx) / old_r, (py + old_gy) / old_r
        pace = (r - gx * x - gy * y) / (px * x + py * y)
        px, py = r * x - gx, r * y - gy
    else:
        pace = 1.0 / front_speed(r, gx, gy, px, py)
        px, py = pace * px, pace * py
    cells.label[i, q, 0] = now + (cells.label[i, q, 0] - now) * pace
    cells.label[i, q, 1] = px
    cells.label[i, q, 2] = py


@njit(cache=True)
def _near_unburned(cells: Cells, i: int) -> bool:
    """Whether the stencil of an unburned cell holds cell i."""
    w = cells.width
    for step in (1, -1, w, -w, w + 1, w - 1, 1 - w, -w - 1):
        if cells.status[i + step] == OPEN or cells.status[i + 2 * step] == OPEN:
            return True
    return False
