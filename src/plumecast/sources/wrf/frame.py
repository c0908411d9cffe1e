"""Fields of one frame: time since ignition, column-mean smoke, 10 m wind. Arrays only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plumecast.base.constants import GRAVITY, M2_PER_ACRE
from plumecast.compute.arrays import Array
from plumecast.sources import regrid
from plumecast.sources.column import actual_temperature, column_mean, mass_concentration
from plumecast.sources.wrf.units import MICROGRAMS

FILL_VALUE_LIMIT = 1e30
"""Larger magnitudes are NetCDF fill values: the data were not written."""

_THETA_BASE = 300.0  # K; WRF stores T = potential temperature − 300 K


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


def smoke_column(read: Callable[[str], Array], smoke: str, unit: str) -> tuple[Array, Array]:
    """Column-mean concentration in µg m⁻³ and column depth in m, both (ny, nx).

    Layer depths are differences of (PH + PHB)/g. A mixing ratio is multiplied by the air density
    p/(R Tₐ) with p = P + PB and θ = T + 300 K. Negative values are set to 0. The computation keeps
    the file's float32, with errors below 1e-6. PH and PHB are differenced before they are added:
    the difference of two stored numbers is rounded once, whereas rounding the large sum first would
    lose the digits that the difference needs. `read` returns a variable by name; each is read once
    and released, which limits memory.
    """
    mass, per = unit.split("/")
    depth = np.diff(read("PH"), axis=0)
    depth += np.diff(read("PHB"), axis=0)
    depth /= GRAVITY
    with np.errstate(all="ignore"):  # the caller rejects unwritten columns
        amount = np.maximum(read(smoke), 0.0)
        amount *= MICROGRAMS[mass]
        if per == "kg":
            pressure = read("P") + read("PB")
            temperature = actual_temperature(read("T") + _THETA_BASE, pressure)
            amount = mass_concentration(amount, pressure, temperature)
        return column_mean(amount, depth), depth.sum(axis=0)


def domain_wind(u: Array, v: Array) -> tuple[float, float] | None:
    """Domain mean of the 10 m wind (ny, nx) along x and y; None if it was not written.

    WRF computes U10 and V10 in its first time step: before it, all are exactly 0.
    """
    both = np.stack([u, v]).astype(np.float64)
    if not (np.abs(both) < FILL_VALUE_LIMIT).all() or not both.any():
        return None
    mean_u, mean_v = both.mean(axis=(1, 2))
    return float(mean_u), float(mean_v)


def mean_winds(winds: Sequence[tuple[float, float] | None]) -> tuple[Array, Array] | None:
    """Mean wind of the frames so far: speed in m s⁻¹ and the direction it comes from in degrees.

    The speed is the mean of the speeds and the direction that of the mean vector, as in the
    simulator. Frames without a wind are left out; those before the first wind get that wind. None
    if no frame has a wind.
    """
    known = [number for number, wind in enumerate(winds) if wind is not None]
    if not known:
        return None
    u, v = np.array([wind for wind in winds if wind is not None]).T
    speed = np.cumsum(np.hypot(u, v)) / np.arange(1, len(known) + 1)
    towards = np.arctan2(np.cumsum(u), np.cumsum(v))
    direction = (np.rad2deg(towards) + 180.0) % 360.0
    latest = np.maximum(np.searchsorted(known, np.arange(len(winds)), side="right") - 1, 0)
    return speed[latest], direction[latest]
