"""Arrival times by cell updates: the eikonal equation |∇T + g| = r with a wind that changes.

r and g are the metric of the fire (see `spread`); rays run along ∇T + g. Fire reaches a cell
through one of eight octants, each between a neighbour along an axis and one along a diagonal. It
arrives with a planar front (second-order differences with a limit, as in Sethian 1999) or else
along the ray from one of the two neighbours, in the metric of the cell. Cells are updated from a
first-in-first-out queue until no arrival time decreases (Jeong and Whitaker 2008).

When the wind changes at time t, the front stays in place and only its speed changes. Along a planar
front the remaining time scales with the normal speed, T − t → (T − t) / H(∇T), with H of the new
wind. This scaling is applied to cells on both sides of the front. Cells behind it then have the
time at which the front would have passed in the present wind. A cell ahead has one label per
quadrant, which is scaled with its own front, so that after a turn of the wind the cell burns from
the quadrant with the earliest arrival.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Field, Mask
from plumecast.simulator import compiled
from plumecast.simulator.spread import CellProperties, front_speed, metric_in_wind

Indices = npt.NDArray[np.int64]

PAD = 2
"""Width of the unburnable rim around the grid, equal to that of the difference stencil."""

MAX_CORRECTION = 0.15
"""Largest second-order correction, relative to the time of a ray along the same step.

A larger correction means that the front has a kink. Compared with the exact solution on uniform
ground, fires in gusty winds are a few per cent too large without a limit, and long ellipses are too
small with a tighter one.
"""

SQRT2 = math.sqrt(2.0)
NO_WIND = -1.0  # wind number of a cell without a metric yet
UNBURNABLE, UNBURNED, SEEDED, BURNED = 0, 1, 2, 3  # SEEDED: unburned, with a given arrival time

# Octants through which a cell ignites others: offset (x, y) to the ignited cell, direction (x, y)
# in which the fire moves, and whether the axis of the octant is x (1) or y (0).
OCTANTS = np.array(
    [(sx, 0, sx, sy, 1) for sx in (1, -1) for sy in (1, -1)]
    + [(0, sy, sx, sy, 0) for sx in (1, -1) for sy in (1, -1)]
    + [(sx, sy, sx, sy, along_x) for sx in (1, -1) for sy in (1, -1) for along_x in (1, 0)]
)


class FrontCells(NamedTuple):
    """State of every cell of the padded, flattened grid of n cells."""

    width: int  # cells per padded row
    time: Field  # (n,) arrival time, scaled to the present wind, h
    normal: Field  # (n, 2) gradient of `time` where burned
    arrival: Field  # (n,) actual arrival time of burned cells, h
    metric: Field  # (n, 4) r, g_x, g_y in h per cell, and the number of the wind they belong to
    label: Field  # (n, 4, 3) time and gradient of the front from each quadrant
    ray: Mask  # (n, 4) whether the label belongs to a ray rather than a planar front
    status: npt.NDArray[np.int8]  # (n,) UNBURNABLE, UNBURNED, SEEDED or BURNED
    queued: Mask  # (n,) whether the cell is in the queue


class Step(NamedTuple):
    """A time of constant wind."""

    start: float  # h
    end: float
    wind: Field  # (2,) at 10 m, m s⁻¹
    number: int  # of the wind


def march(
    ground: CellProperties, seed_time: Field, seed_normal: Field, edges: Field, winds: Field
) -> tuple[Field, Field]:
    """Arrival times (ny, nx) in h, inf where unburned, and directions of ∇T (ny, nx, 2).

    `seed_time` (ny, nx) has the given arrival times, inf elsewhere, and `seed_normal` the direction
    of the front there. The 10 m wind is `winds[k]` (m s⁻¹) from `edges[k]` to `edges[k + 1]` (h).
    """
    rows, width = (size + 2 * PAD for size in ground.fuel.shape)
    inside = (slice(PAD, -PAD), slice(PAD, -PAD))
    time, normal = np.full((rows, width), np.inf), np.zeros((rows, width, 2))
    status = np.full((rows, width), UNBURNABLE, np.int8)
    seeded = seed_time < np.inf
    time[inside] = seed_time
    normal[inside] = np.where(seeded[..., np.newaxis], seed_normal, 0.0)
    status[inside] = np.where(ground.coefficients[ground.fuel, 0] > 0.0, UNBURNED, UNBURNABLE)
    status[inside][seeded] = SEEDED
    n = rows * width
    cells = FrontCells(
        width, time.ravel(), normal.reshape(n, 2), np.full(n, np.inf), np.full((n, 4), NO_WIND),
        np.empty((n, 4, 3)), np.empty((n, 4), np.bool_), status.ravel(), np.zeros(n, np.bool_),
    )  # fmt: skip
    _march(ground, cells, edges, winds)
    return cells.arrival.reshape(rows, width)[inside], normal[inside]


@compiled(nogil=True)  # other threads, such as a server's, go on
def _march(ground: CellProperties, cells: FrontCells, edges: Field, winds: Field) -> None:
    """Burn the cells in place; the band is the list of cells near the front."""
    queue = np.empty(cells.time.size, dtype=np.int64)
    band = np.empty(cells.time.size, dtype=np.int64)
    in_band = 0
    for i in range(cells.time.size):
        if cells.status[i] == SEEDED:
            band[in_band] = i
            in_band += 1
    for k in range(winds.shape[0]):
        step = Step(edges[k], edges[k + 1], winds[k], k)
        if k > 0:
            in_band = _change_wind(ground, cells, band, in_band, step)
        in_band = _spread(ground, cells, queue, band, in_band, step)
        if _record_burned(ground, cells, band, in_band, step) == 0:
            break


@compiled()
def _update_metric(ground: CellProperties, cells: FrontCells, i: int, step: Step) -> None:
    """Compute the metric of a cell for the wind of a step; first of all, reset its labels."""
    if cells.metric[i, 3] == step.number:
        return
    if cells.metric[i, 3] == NO_WIND:
        cells.label[i, :, 0] = np.inf
    r, gx, gy = metric_in_wind(ground, i // cells.width - PAD, i % cells.width - PAD, step.wind)
    cells.metric[i, 0] = r
    cells.metric[i, 1] = gx
    cells.metric[i, 2] = gy
    cells.metric[i, 3] = step.number


@compiled()
def _spread(
    ground: CellProperties,
    cells: FrontCells,
    queue: Indices,
    band: Indices,
    in_band: int,
    step: Step,
) -> int:
    """Spread the fire from the start of a step to its end; returns the new band length."""
    waiting = 0
    for j in range(in_band):
        i = band[j]
        if cells.status[i] != BURNED and cells.time[i] <= step.end:
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
            if cells.status[z] != UNBURNED:
                continue
            before = cells.time[z]
            _update_metric(ground, cells, z, step)
            sx, sy, along_x = OCTANTS[octant, 2], OCTANTS[octant, 3], OCTANTS[octant, 4]
            _update_arrival(cells, z, sx, sy, along_x, step.start)
            if not cells.time[z] < before:
                continue
            if before == np.inf:
                band[in_band] = z
                in_band += 1
            if cells.time[z] <= step.end and not cells.queued[z]:
                last = first + waiting
                queue[last if last < queue.size else last - queue.size] = z
                cells.queued[z] = True
                waiting += 1
    return in_band


@compiled()
def _update_arrival(cells: FrontCells, z: int, sx: int, sy: int, along_x: int, now: float) -> None:
    """Update the arrival time at z of fire that moves towards (sx, sy) through one octant.

    `a` is the neighbour along the axis, `d` the one along the diagonal. Fire does not pass between
    two unburnable cells that touch at a corner.
    """
    r, gx, gy = cells.metric[z, 0], sx * cells.metric[z, 1], sy * cells.metric[z, 2]
    ga, gb = (gx, gy) if along_x else (gy, gx)
    up = sy * cells.width
    axis, diagonal = (sx if along_x else up), sx + up
    a1, d1 = cells.time[z - axis], cells.time[z - diagonal]
    if min(a1, d1) >= cells.time[z]:
        return
    if cells.status[z - sx] == UNBURNABLE and cells.status[z - up] == UNBURNABLE:
        d1 = np.inf
    along, slant = r - ga, SQRT2 * r - ga - gb  # hours of a ray along the axis and the diagonal
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


@compiled()
def _planar_front(
    alpha: float, a: float, d: float, r: float, ga: float, gb: float
) -> tuple[float, float, float]:
    """(T, ∂T along the axis, ∂T across it), with differences α T − a along the axis and α T − d
    along the diagonal; T is inf if the ray ∇T + g does not pass through the octant.
    """
    across = a - d + gb
    if across < 0.0 or SQRT2 * across > r:
        return np.inf, 0.0, 0.0
    along = math.sqrt(r * r - across * across)
    return (a - ga + along) / alpha, along - ga, across - gb


@compiled()
def _record_burned(
    ground: CellProperties, cells: FrontCells, band: Indices, in_band: int, step: Step
) -> int:
    """Record the cells that burn in a step; returns the number of unburned cells in the band."""
    left = 0
    for j in range(in_band):
        i = band[j]
        if cells.status[i] == BURNED:
            continue
        if cells.time[i] > step.end:
            left += 1
            continue
        if cells.status[i] == UNBURNED:
            first = np.argmin(cells.label[i, :, 0])
            cells.normal[i, 0] = cells.label[i, first, 1]
            cells.normal[i, 1] = cells.label[i, first, 2]
        cells.status[i] = BURNED
        cells.arrival[i] = cells.time[i]
        _update_metric(ground, cells, i, step)
        _scale_gradient(cells, i)
    return left


@compiled()
def _scale_gradient(cells: FrontCells, i: int) -> float:
    """Scale the gradient of a burned cell to satisfy H(∇T) = 1; returns the factor."""
    r, gx, gy = cells.metric[i, 0], cells.metric[i, 1], cells.metric[i, 2]
    pace = 1.0 / front_speed(r, gx, gy, cells.normal[i, 0], cells.normal[i, 1])
    cells.normal[i, 0] *= pace
    cells.normal[i, 1] *= pace
    return pace


@compiled()
def _change_wind(
    ground: CellProperties, cells: FrontCells, band: Indices, in_band: int, step: Step
) -> int:
    """Scale the times near the front to the wind of a step; drops cells far behind the front."""
    kept = 0
    for j in range(in_band):
        i = band[j]
        if cells.status[i] == BURNED and not _in_unburned_stencil(cells, i):
            continue
        band[kept] = i
        kept += 1
        if cells.status[i] == SEEDED:
            continue
        r, gx, gy = cells.metric[i, 0], cells.metric[i, 1], cells.metric[i, 2]
        _update_metric(ground, cells, i, step)
        if cells.status[i] == BURNED:
            pace = _scale_gradient(cells, i)
            cells.time[i] = step.start + (cells.time[i] - step.start) * pace
            continue
        cells.time[i] = np.inf
        for q in range(4):
            if cells.label[i, q, 0] < np.inf:
                _rescale_label(cells, i, q, step.start, r, gx, gy)
                cells.time[i] = min(cells.time[i], cells.label[i, q, 0])
    return kept


@compiled()
def _rescale_label(
    cells: FrontCells, i: int, q: int, now: float, old_r: float, old_gx: float, old_gy: float
) -> None:
    """Scale one label: a planar front by its normal speed, a ray by the speed along it."""
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


@compiled()
def _in_unburned_stencil(cells: FrontCells, i: int) -> bool:
    """Whether the difference stencil of an unburned cell contains cell i."""
    w = cells.width
    for step in (1, -1, w, -w, w + 1, w - 1, 1 - w, -w - 1):
        if cells.status[i + step] == UNBURNED or cells.status[i + 2 * step] == UNBURNED:
            return True
    return False
