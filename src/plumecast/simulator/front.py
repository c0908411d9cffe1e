"""Arrival times of a fire on the fire grid, in hours since ignition, with a wind that changes.

Fire spreads from each cell as an ellipse that depends on its fuel, slope and local wind; `march`
computes arrival times from these ellipses. A grid cannot resolve the first growth from a point, so
the solution starts from exact times: inside the ignition cell fuel and slope are uniform, and the
burned set is the Minkowski sum of the ellipses of all winds so far. A finer grid around the
ignition continues the solution until the front is wide enough for the fire grid. Fire passes
between cells that share an edge or a corner, but not through a corner between two unburnable cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.compute.arrays import Field
from plumecast.physics.fuels import FUEL_CODES, Moisture, fuel_name
from plumecast.simulator import compiled
from plumecast.simulator.march import march
from plumecast.simulator.spread import (
    CellProperties,
    front_speed,
    metric_in_wind,
    spread_coefficients,
)

if TYPE_CHECKING:
    from plumecast.simulator.landscape import Landscape


Ignition: TypeAlias = tuple[int, int] | Sequence[tuple[int, int]]
"""The row and column of the cell that ignites, or of every cell of a line."""

WIND_STEP_HOURS = 0.5
"""Longest time step with a constant wind, h."""

REFINEMENT = 5  # fine cells per cell of the fire grid; odd, so that cell centres coincide
REFINED_RADIUS = 12  # half width of the fine grid, in cells of the fire grid
EXACT_RADIUS = 4.0  # radius of the exact times, in fine cells
FRONT_NORMALS = 720  # directions in which the exact front is computed


def arrival_times(
    landscape: Landscape,
    moisture: Moisture,
    wind_hours: npt.ArrayLike,
    wind_u: npt.ArrayLike,
    wind_v: npt.ArrayLike,
    *,
    ignition: Ignition,
    until_hours: float,
    steering: npt.NDArray[np.float32] | None = None,
    grown_until: float | None = None,
) -> Field:
    """Hours from ignition to arrival, (ny, nx); inf if the fire does not arrive by `until_hours`.

    The 10 m wind has components u towards east and v towards north, m s⁻¹. It is linear between the
    times `wind_hours` (hours since ignition) and constant before and after them. If `steering`
    (ny, nx, 2, 2) is given, the local wind is steering[row, column] @ (u, v). Of several ignited
    cells, which all ignite at hour 0, the first fire to arrive counts. The first growth, on the
    finer grid, is computed up to `grown_until` (default `until_hours`): two fires with the same
    `grown_until` are equal up to the earlier of their ends.
    """
    ground = _ground(landscape, moisture, steering)
    cells = ignited_cells(ignition)
    ny, nx = ground.fuel.shape
    for row, column in cells:
        where = f"ignition {(row, column)} lies"
        if not (0 <= row < ny and 0 <= column < nx):
            raise PlumecastError(
                f"{where} outside the grid of {ny} rows by {nx} columns; choose a cell of "
                "ignition_mask(landscape)"
            )
        code = int(ground.fuel[row, column])
        if ground.coefficients[code, 0] <= 0.0:
            raise PlumecastError(
                f"{where} on {fuel_name(code)} ({code}), which does not burn at this moisture; "
                "choose a cell of ignition_mask(landscape)"
            )
    edges, winds = wind_steps(wind_hours, wind_u, wind_v, until_hours)
    growth = wind_steps(wind_hours, wind_u, wind_v, grown_until or until_hours)
    seed_time, seed_normal = _first_times(ground, cells[0], *growth)
    for cell in cells[1:]:
        time, normal = _first_times(ground, cell, *growth)
        earlier = time < seed_time
        seed_time = np.where(earlier, time, seed_time)
        seed_normal = np.where(earlier[..., np.newaxis], normal, seed_normal)
    arrival, _ = march(ground, seed_time, seed_normal, edges, winds)
    return np.asarray(arrival)


def ignited_cells(ignition: Ignition) -> list[tuple[int, int]]:
    """The cells (row, column) that ignite: one, or several of a line."""
    if not len(ignition):
        raise PlumecastError("ignition is empty; give a cell (row, column), or a list of cells")
    if isinstance(ignition[0], tuple):
        return list(ignition)  # type: ignore[arg-type]
    return [ignition]  # type: ignore[list-item]


def wind_steps(
    wind_hours: npt.ArrayLike, wind_u: npt.ArrayLike, wind_v: npt.ArrayLike, until_hours: float
) -> tuple[Field, Field]:
    """Edges (K + 1,) in h and winds (K, 2) in m s⁻¹ of time steps with constant wind.

    A step lasts at most `WIND_STEP_HOURS` and has the wind at its middle. Consecutive steps with
    the same wind are merged.
    """
    hours, u, v = (np.atleast_1d(np.asarray(x, dtype=float)) for x in (wind_hours, wind_u, wind_v))
    if not (hours.ndim == 1 and hours.shape == u.shape == v.shape):
        raise PlumecastError(
            f"wind_hours, wind_u and wind_v must be series of one length, got {hours.shape}, "
            f"{u.shape} and {v.shape}"
        )
    if not (np.isfinite([hours, u, v]).all() and (np.diff(hours) > 0.0).all()):
        raise PlumecastError(
            "wind_hours must increase, and wind_u and wind_v must be finite; sort the series by "
            "time and fill its gaps"
        )
    if not (math.isfinite(until_hours) and until_hours > 0.0):
        raise ArgumentError("until_hours", until_hours, problem="must be positive and finite")
    inside = hours[(hours > 0.0) & (hours < until_hours)]
    coarse = np.concatenate([[0.0], inside, [float(until_hours)]])
    parts = np.maximum(np.ceil(np.diff(coarse) / WIND_STEP_HOURS - 1e-9), 1).astype(int)
    pieces = [
        np.linspace(start, end, n, endpoint=False)
        for start, end, n in zip(coarse[:-1], coarse[1:], parts, strict=True)
    ]
    edges = np.concatenate([*pieces, [float(until_hours)]])
    middle = 0.5 * (edges[1:] + edges[:-1])
    winds = np.stack([np.interp(middle, hours, u), np.interp(middle, hours, v)], axis=1)
    change = np.concatenate([[True], (np.diff(winds, axis=0) != 0.0).any(axis=1)])
    return edges[np.append(change, True)], winds[change]


def _ground(
    landscape: Landscape, moisture: Moisture, steering: npt.NDArray[np.float32] | None
) -> CellProperties:
    """Properties of every cell from which its spread ellipse is computed."""
    shape = landscape.fuel.shape
    if steering is None:
        steering = np.zeros((0, 0, 2, 2), dtype=np.float32)
    elif steering.shape != (*shape, 2, 2):
        raise PlumecastError(f"steering has shape {steering.shape}, expected {(*shape, 2, 2)}")
    codes = np.array(sorted(FUEL_CODES.values()))
    coefficients = np.zeros((256, 6))
    coefficients[codes] = np.stack(spread_coefficients(codes, moisture), axis=1)
    slope_x, slope_y = landscape.slope
    return CellProperties(
        np.ascontiguousarray(landscape.fuel, dtype=np.int16),
        np.ascontiguousarray(slope_x, dtype=np.float32),
        np.ascontiguousarray(slope_y, dtype=np.float32),
        np.ascontiguousarray(steering, dtype=np.float32),
        coefficients,
        60.0 / landscape.cell,
    )


def _first_times(
    ground: CellProperties, ignition: tuple[int, int], edges: Field, winds: Field
) -> tuple[Field, Field]:
    """Arrival times and front normals near the ignition, from the finer grid; inf elsewhere."""
    rows, columns = (
        slice(max(centre - REFINED_RADIUS, 0), min(centre + REFINED_RADIUS + 1, size))
        for centre, size in zip(ignition, ground.fuel.shape, strict=True)
    )
    fine = _refined(ground, rows, columns)
    centre = tuple(
        (i - part.start) * REFINEMENT + REFINEMENT // 2
        for i, part in zip(ignition, (rows, columns), strict=True)
    )
    time, normal = march(
        fine, *_exact_times(fine, (centre[0], centre[1]), edges, winds), edges, winds
    )
    seed_time = np.full(ground.fuel.shape, np.inf)
    seed_normal = np.zeros((*ground.fuel.shape, 2))
    centres = slice(REFINEMENT // 2, None, REFINEMENT)
    seed_time[rows, columns] = time[centres, centres]
    seed_normal[rows, columns] = normal[centres, centres]
    # Fire may reach the rim of the finer grid sooner from outside, so its times are not used there.
    dy, dx = np.ogrid[: ground.fuel.shape[0], : ground.fuel.shape[1]]
    far = (dy - ignition[0]) ** 2 + (dx - ignition[1]) ** 2 > (0.75 * REFINED_RADIUS) ** 2
    seed_time[far] = np.inf
    return seed_time, seed_normal


def _refined(ground: CellProperties, rows: slice, columns: slice) -> CellProperties:
    """Part of the ground, with every cell divided into REFINEMENT² equal cells."""

    def repeated(field: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return field[rows, columns].repeat(REFINEMENT, axis=0).repeat(REFINEMENT, axis=1)

    return ground._replace(
        fuel=repeated(ground.fuel),
        slope_x=repeated(ground.slope_x),
        slope_y=repeated(ground.slope_y),
        steering=repeated(ground.steering) if ground.steering.size else ground.steering,
        cells_per_hour=ground.cells_per_hour * REFINEMENT,
    )


@compiled(nogil=True)  # other threads, such as a server's, go on
def _exact_times(
    ground: CellProperties, centre: tuple[int, int], edges: Field, winds: Field
) -> tuple[Field, Field]:
    """Exact arrival times around `centre`, where the ground is that of the centre.

    The burned set at time t has the support function h(n, t) = ∫ H(n) dt. A point d is reached at
    the earliest t with h(n, t) ≥ n·d for all directions n.
    """
    ny, nx = ground.fuel.shape
    time, normal = np.full((ny, nx), np.inf), np.zeros((ny, nx, 2))
    steps = winds.shape[0]
    angle = np.arange(FRONT_NORMALS) * (2.0 * math.pi / FRONT_NORMALS)
    normal_x, normal_y = np.cos(angle), np.sin(angle)
    speed = np.empty((FRONT_NORMALS, steps))
    for k in range(steps):
        r, gx, gy = metric_in_wind(ground, centre[0], centre[1], winds[k])
        for j in range(FRONT_NORMALS):
            speed[j, k] = front_speed(r, gx, gy, normal_x[j], normal_y[j])
    reach = int(EXACT_RADIUS)
    fuel = ground.fuel[centre]
    for row in range(max(centre[0] - reach, 0), min(centre[0] + reach + 1, ny)):
        for column in range(max(centre[1] - reach, 0), min(centre[1] + reach + 1, nx)):
            x, y = float(column - centre[1]), float(row - centre[0])
            if x * x + y * y > EXACT_RADIUS**2 or ground.fuel[row, column] != fuel:
                continue
            last, chosen = 0.0, 0
            for j in range(FRONT_NORMALS):
                t = _time_to_cover(normal_x[j] * x + normal_y[j] * y, speed[j], edges)
                if t > last:
                    last, chosen = t, j
            time[row, column] = last
            normal[row, column] = normal_x[chosen], normal_y[chosen]
    return time, normal


@compiled()
def _time_to_cover(distance: float, speed: Field, edges: Field) -> float:
    """Time at which ∫ speed dt reaches `distance`; inf if not by the last edge."""
    for k in range(speed.size):
        duration = edges[k + 1] - edges[k]
        if distance <= speed[k] * duration:
            return float(edges[k] + max(distance, 0.0) / speed[k])
        distance -= speed[k] * duration
    return np.inf
