"""One frame: time since ignition on the fire grid, column-mean smoke in the air. Arrays only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plumecast.base.constants import GRAVITY, M2_PER_ACRE
from plumecast.compute.arrays import Array
from plumecast.sources import regrid
from plumecast.sources.column import actual_temperature, column_mean, mass_concentration
from plumecast.sources.wrf.units import MICROGRAMS

UNWRITTEN = 1e30
"""NetCDF fill values lie beyond, physics far below."""

_THETA_BASE = 300.0  # K, subtracted from potential temperature in T


@dataclass(frozen=True, slots=True)
class Layout:
    """The smoke grid (ny, nx) of dx × dy metres; each cell holds refine_y × refine_x fire cells."""

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
        """The valid n·sr of the (n + 1)·sr rows and columns that WRF stores."""
        return fire_field[: self.ny * self.refine_y, : self.nx * self.refine_x]

    def to_smoke_grid(self, fire_field: Array, aggregate: str) -> Array:
        """Mean or maximum over the fire cells of each smoke cell."""
        block = regrid.block_mean if aggregate == "mean" else regrid.block_max
        return block(fire_field, self.refine_y, self.refine_x)


class FireState(NamedTuple):
    """The fire at one time, on the fire grid: which cells burned, and when each began to."""

    seconds: float
    burned: Array  # (rows, columns), LFN < 0
    arrival: Array  # (n,) of the burned cells in order, s since the simulation's start


class LevelSet(NamedTuple):
    """The level set at one time, and the arrival times that it and those before it tell."""

    seconds: float
    level: Array  # LFN
    arrival: Array  # s; ∞ where unburned


def fire_age(state: FireState) -> Array:
    """max(t − arrival, 0) where burned, else 0, hours; a cell just lit may lie in the future."""
    age = np.zeros(state.burned.shape, dtype=state.arrival.dtype)
    age[state.burned] = np.maximum(state.seconds - state.arrival, 0.0) / 3600.0
    return age


def advance_arrival(before: LevelSet | None, level: Array, seconds: float) -> LevelSet:
    """Arrival times from LFN alone: where it crosses zero between two frames, linear in time.

    t = t₀ + (t₁ − t₀) L₀ / (L₀ − L₁) for cells with L₀ ≥ 0 > L₁; t₁ where nothing came before;
    ∞ where unburned. Once set, an arrival stays.
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
    """Cells that became unburned, and burned cells whose arrival moved by more than `seconds`."""
    still = state.burned[before.burned]
    again = before.burned[state.burned]
    shift = np.abs(state.arrival[again] - before.arrival[still])
    return int(np.count_nonzero(~still)), int(np.count_nonzero(shift > seconds))


def smoke_column(read: Callable[[str], Array], smoke: str, unit: str) -> tuple[Array, Array]:
    """Column-mean concentration (ny, nx), µg m⁻³, and the column's depth (ny, nx), m.

    Layer depths are differences of (PH + PHB)/g; a mixing ratio is multiplied by the air density
    p/(R Tₐ) with p = P + PB and θ = T + 300 K. Negative values are set to 0. The file's float32 is
    kept, good to 1e-6: PH and PHB are differenced before they are added, because a difference of
    two stored numbers is rounded once, while their sum would lose what the difference needs.
    `read` gives a variable by its name; each is asked for once and let go, which bounds memory.
    """
    mass, per = unit.split("/")
    depth = np.diff(read("PH"), axis=0)
    depth += np.diff(read("PHB"), axis=0)
    depth /= GRAVITY
    with np.errstate(all="ignore"):  # unwritten columns are refused by the caller
        amount = np.maximum(read(smoke), 0.0)
        amount *= MICROGRAMS[mass]
        if per == "kg":
            pressure = read("P") + read("PB")
            temperature = actual_temperature(read("T") + _THETA_BASE, pressure)
            amount = mass_concentration(amount, pressure, temperature)
        return column_mean(amount, depth), depth.sum(axis=0)
