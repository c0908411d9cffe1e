"""Fields of one frame (time since ignition, column-mean smoke, 10 m wind) and its map projection.

Arrays only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from plumecast.base.names import GRAVITY, M2_PER_ACRE
from plumecast.compute import regrid
from plumecast.compute.arrays import Array
from plumecast.physics.air import actual_temperature, column_mean, mass_concentration
from plumecast.sources.wrf.options import micrograms
from plumecast.weather.profile import direction_from

_THETA_BASE = 300.0  # K; WRF stores T = potential temperature − 300 K

PROJECTIONS = (1, 2, 3)
"""MAP_PROJ of Lambert conformal, polar stereographic and Mercator: those of `map_plane`."""

EARTH_RADIUS = 6_370_000.0
"""Radius of WRF's sphere, m."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Smoke grid (ny, nx) with cells of dx × dy m, each of refine_y × refine_x fire cells."""

    ny: int
    nx: int
    refine_y: int
    refine_x: int
    dx: float
    dy: float

    @property
    def fire_cell_acres(self) -> float:
        """Area of one fire cell, acres."""
        return self.dx * self.dy / (self.refine_x * self.refine_y) / M2_PER_ACRE

    def cut_padding(self, fire_field: Array) -> Array:
        """The n·sr valid rows and columns of the (n + 1)·sr that WRF stores."""
        return fire_field[: self.ny * self.refine_y, : self.nx * self.refine_x]

    def to_smoke_grid(self, fire_field: Array, aggregate: str) -> Array:
        """Mean or maximum over the fire cells of each smoke cell."""
        block = regrid.block_mean if aggregate == "mean" else regrid.block_max
        return block(fire_field, self.refine_y, self.refine_x)


class FireState(NamedTuple):
    """Burned cells and their arrival times at one time, on the fire grid."""

    seconds: float
    burned: Array  # (rows, columns), LFN < 0
    arrival: Array  # (n,) of the burned cells in row order, s since the start of the simulation


class LayerMeans(NamedTuple):
    """Means of the layers of a frame over the domain, (layers,) each, upwards."""

    depth: Array  # m
    depth_extremes: tuple[float, float]  # of any cell
    pressure_extremes: tuple[float, float] | None = None
    pressure: Array | None = None  # Pa; None if the smoke is a concentration
    temperature: Array | None = None  # K


class Amount(NamedTuple):
    """Smoke or a tracer of one frame, (ny, nx) µg m⁻³ each."""

    mean: Array  # of the column
    lowest: Array  # of the lowest layer


class Columns(NamedTuple):
    """Smoke and tracers of a frame by their variables, and what they were computed from."""

    amounts: dict[str, Amount]
    depth: Array  # (ny, nx) m
    layers: LayerMeans


class LevelSet(NamedTuple):
    """Level set at one time, and the arrival times derived from it and from earlier level sets."""

    seconds: float
    level: Array  # LFN
    arrival: Array  # s; ∞ where unburned


def fire_age(state: FireState) -> Array:
    """max(t − arrival, 0) in hours where burned, else 0; a new cell may arrive after the frame."""
    age = np.zeros(state.burned.shape, dtype=state.arrival.dtype)
    age[state.burned] = np.maximum(state.seconds - state.arrival, 0.0) / 3600.0
    return age


def advance_arrival(before: LevelSet | None, level: Array, seconds: float) -> LevelSet:
    """Arrival times from LFN alone: the zero crossing between two frames, linear in time.

    t = t₀ + (t₁ − t₀) L₀ / (L₀ − L₁) for cells with L₀ ≥ 0 > L₁; t₁ in the first frame; ∞ where
    unburned. Later frames do not change an arrival time.
    """
    if before is None:
        return LevelSet(seconds, level, np.where(level < 0, seconds, np.inf))
    new = (level < 0) & np.isinf(before.arrival)
    arrival = before.arrival.copy()
    ahead = np.maximum(before.level[new], 0.0).astype(np.float64)
    share = ahead / (ahead - level[new])
    arrival[new] = before.seconds + (seconds - before.seconds) * share
    return LevelSet(seconds, level, arrival)


def changed_cells(before: FireState, state: FireState, seconds: float) -> tuple[int, int]:
    """Counts of cells that became unburned, and whose arrival changed by more than `seconds`."""
    still = state.burned[before.burned]
    again = before.burned[state.burned]
    shift = np.abs(state.arrival[again] - before.arrival[still])
    return int(np.count_nonzero(~still)), int(np.count_nonzero(shift > seconds))


def smoke_columns(read: Callable[[str], Array], units: Mapping[str, str]) -> Columns:
    """Concentrations of variables with these units, column depth and the means of the layers.

    Layer depths are differences of (PH + PHB)/g. A mixing ratio is multiplied by the air density
    p/(R Tₐ) with p = P + PB and θ = T + 300 K. Negative values are set to 0. The computation keeps
    the file's float32, with errors below 1e-6. PH and PHB are differenced before they are added:
    the difference of two stored numbers is rounded once, whereas rounding the large sum first would
    lose the digits that the difference needs. `read` returns a variable by name; each is read once
    and released, which limits memory.
    """
    depth = np.diff(read("PH"), axis=0)
    depth += np.diff(read("PHB"), axis=0)
    depth /= GRAVITY
    with np.errstate(all="ignore"):  # the caller rejects implausible air
        layers = LayerMeans(depth.mean(axis=(1, 2)), (float(depth.min()), float(depth.max())))
        factors = {name: micrograms(unit) for name, unit in units.items()}
        pressure = temperature = None
        if any(per == "kg" for _, per in factors.values()):
            pressure = read("P") + read("PB")
            temperature = actual_temperature(read("T") + _THETA_BASE, pressure)
            layers = layers._replace(
                pressure_extremes=(float(pressure.min()), float(pressure.max())),
                pressure=pressure.mean(axis=(1, 2)),
                temperature=temperature.mean(axis=(1, 2)),
            )
        amounts = {}
        for name, (factor, per) in factors.items():
            amount = np.maximum(read(name), 0.0)
            amount *= factor
            if per == "kg":
                amount = mass_concentration(amount, pressure, temperature)
            amounts[name] = Amount(column_mean(amount, depth), amount[0].copy())
        return Columns(amounts, depth.sum(axis=0), layers)


def domain_wind(u: Array, v: Array) -> tuple[float, float] | None:
    """Domain mean of the 10 m wind (ny, nx) along x and y; None if it was not computed yet.

    WRF computes U10 and V10 in its first time step: before it, all are exactly 0.
    """
    both = np.stack([u, v]).astype(np.float64)
    if not both.any():
        return None
    mean_u, mean_v = both.mean(axis=(1, 2))
    return float(mean_u), float(mean_v)


def mean_winds(winds: Sequence[tuple[float, float] | None]) -> tuple[Array, Array] | None:
    """Mean wind of the frames so far: speed in m s⁻¹ and the direction it comes from in degrees.

    The speed is the mean of the speeds and the direction that of the mean vector, as in the
    simulator. Frames without a wind are left out; those before the first wind get that wind. None
    if no frame has a wind.
    """
    frames = [number for number, wind in enumerate(winds) if wind is not None]
    if not frames:
        return None
    u, v = np.array([wind for wind in winds if wind is not None]).T
    speed = np.cumsum(np.hypot(u, v)) / np.arange(1, len(frames) + 1)
    direction = direction_from(np.cumsum(u), np.cumsum(v))
    latest = np.maximum(np.searchsorted(frames, np.arange(len(winds)), side="right") - 1, 0)
    return speed[latest], direction[latest]


def map_plane(
    attributes: Mapping[str, Any], lat: float, lon: float
) -> tuple[dict[str, Any], tuple[float, float]]:
    """CF grid mapping of a WRF projection, and the coordinates in m of one point in degrees.

    MAP_PROJ 1 is Lambert conformal, 2 polar stereographic, 3 Mercator, on a sphere of 6370 km. Any
    other projection has no plane in metres and gives an empty mapping.
    """
    if float(attributes["MAP_PROJ"]) not in PROJECTIONS:
        return {}, (0.0, 0.0)
    first, second, meridian = (float(attributes[n]) for n in ("TRUELAT1", "TRUELAT2", "STAND_LON"))
    turn = np.radians(_wrap(lon - meridian))
    mapping: dict[str, Any] = {"standard_parallel": first, "earth_radius": EARTH_RADIUS}
    match int(attributes["MAP_PROJ"]):
        case 1:
            origin = float(attributes["MOAD_CEN_LAT"])
            mapping |= {
                "grid_mapping_name": "lambert_conformal_conic",
                "standard_parallel": [first, second],
                "longitude_of_central_meridian": meridian,
                "latitude_of_projection_origin": origin,
            }
            x, y = _lambert(lat, turn, parallels=(first, second), origin=origin)
        case 2:
            side = 1.0 if first >= 0 else -1.0
            mapping |= {
                "grid_mapping_name": "polar_stereographic",
                "straight_vertical_longitude_from_pole": meridian,
                "latitude_of_projection_origin": 90.0 * side,
            }
            radius = EARTH_RADIUS * (1 + np.sin(np.radians(abs(first)))) / _stretch(side * lat)
            x, y = radius * np.sin(turn), -side * radius * np.cos(turn)
        case 3:
            mapping |= {
                "grid_mapping_name": "mercator",
                "longitude_of_projection_origin": meridian,
            }
            scale = EARTH_RADIUS * np.cos(np.radians(first))
            x, y = scale * turn, scale * np.log(_stretch(lat))
    return mapping, (float(x), float(y))


def _lambert(
    lat: float, turn: float, *, parallels: tuple[float, float], origin: float
) -> tuple[float, float]:
    """Spherical Lambert conformal plane, m, with (0, 0) at the latitude `origin`.

    `turn` is the longitude from the central meridian in radians, the others are in degrees.
    """
    first, second = np.radians(parallels)
    narrow, wide = (_stretch(parallel) for parallel in parallels)
    cone = np.sin(first)
    if not np.isclose(first, second):
        cone = np.log(np.cos(first) / np.cos(second)) / np.log(wide / narrow)
    scale = EARTH_RADIUS * np.cos(first) * narrow**cone / cone
    radius = scale / _stretch(lat) ** cone
    top = scale / _stretch(origin) ** cone
    return radius * np.sin(cone * turn), top - radius * np.cos(cone * turn)


def _stretch(latitude: float) -> float:
    """tan(π/4 + φ/2) of a latitude φ in degrees."""
    return float(np.tan(np.pi / 4 + np.radians(latitude) / 2))


def _wrap(degrees: float) -> float:
    """The equivalent angle in [−180, 180)."""
    return (degrees + 180.0) % 360.0 - 180.0
