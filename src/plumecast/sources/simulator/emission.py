"""From arrival times to smoke and heat: what burns, when, and how much of it becomes smoke.

Behind the front the fuel mass decays exponentially with the fuel's burn-out time T, as in WRF-Fire
(Mandel, Beezley and Kochanski 2011, Geosci. Model Dev. 4, 591). The front needs a time D to cross a
cell, during which it ignites the cell evenly, so that by time t

    burned(t) = w/D ∫ from a to min(t, a + D) of (1 − exp(−(t − s) / T)) ds,   a = arrival − D/2,

w being the load consumed at the given moisture. Time intervals take the exact difference of this
function, so the emission summed over all time is `SMOKE_YIELD` times the fuel consumed. Duff, logs
and crowns are not part of the surface fuel models and do not burn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from plumecast.base.errors import PlumecastError
from plumecast.sources.simulator.land.fuels import fuel_table
from plumecast.sources.simulator.spread.rothermel import Moisture

Field: TypeAlias = npt.NDArray[np.float64]

SMOKE_YIELD = 0.02
"""Smoke per fuel consumed, kg/kg: WRF-Chem's default, used by the paper."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Mean emission of every smoke cell over equal intervals of time."""

    hours: Field  # (n + 1,) ends of the intervals since ignition
    smoke: Field  # (n, ny, nx) kg s⁻¹
    heat: Field  # (n, ny, nx) W

    @property
    def seconds(self) -> float:
        """Length of an interval, s."""
        return float(self.hours[1] - self.hours[0]) * 3600.0

    @property
    def total_smoke(self) -> float:
        """Smoke of all cells and intervals, kg."""
        return float(self.smoke.sum()) * self.seconds


def moisture_damping(ratio: npt.ArrayLike) -> Field:
    """η = 1 − 2.59 r + 5.11 r² − 3.52 r³ of r = moisture / moisture of extinction, 0 for r ≥ 1.

    Rothermel (1972), INT-RP-115, equation 29. The heat per area of a flaming front is the reaction
    intensity, which η scales, times a residence time that does not depend on moisture (Anderson
    1969), so η is also the share of the fuel that the front consumes.
    """
    r = np.clip(np.asarray(ratio, dtype=float), 0.0, 1.0)
    return np.where(r < 1.0, 1.0 - 2.59 * r + 5.11 * r**2 - 3.52 * r**3, 0.0)


def consumed_load(moisture: Moisture) -> Field:
    """Fuel consumed by code, (256,) kg m⁻²; 0 for ground that does not burn.

    Each dead class burns to the share `moisture_damping` of its own moisture; live fuel to that of
    the 1 h fuel, which dries and ignites it.
    """
    table = fuel_table()
    extinction = np.where(table.burnable, table.extinction_moisture, 1.0)[:, np.newaxis]
    dead = np.array([moisture.dead_1h, moisture.dead_10h, moisture.dead_100h])
    share = moisture_damping(dead / extinction)
    return np.asarray((table.load * share[:, [0, 1, 2, 0, 0]]).sum(axis=1))


def emission(
    arrival: Field, fuel: npt.NDArray[np.int16], *, moisture: Moisture, hours: Field, cell: float,
    block: int,
) -> Emission:  # fmt: skip
    """Smoke and heat of a fire on the smoke grid.

    `arrival` (ny·block, nx·block) hours, inf where unburned; `fuel` codes; `hours` (n + 1,) equally
    spaced ends of the intervals; `cell` m of the fire grid; a smoke cell is `block`² fire cells.
    What burns after the last hour is not emitted.
    """
    if arrival.shape[0] % block or arrival.shape[1] % block:
        raise PlumecastError(
            f"a fire grid of {arrival.shape} cells does not divide into blocks of {block}; "
            "crop it to a multiple"
        )
    table = fuel_table()
    load = consumed_load(moisture)
    step = float(hours[1] - hours[0])
    shape = (hours.size - 1, arrival.shape[0] // block, arrival.shape[1] // block)
    burned, heat = np.zeros(shape), np.zeros(shape)
    _burn(
        arrival - hours[0], fuel, load * cell**2, table.heat_content, table.burnout_time / 3600.0,
        step, block, burned, heat,
    )  # fmt: skip
    burned *= SMOKE_YIELD / (3600.0 * step)
    heat /= 3600.0 * step
    return Emission(hours, burned, heat)


@njit(cache=True, error_model="numpy")
def _burn(
    arrival: Field, fuel: npt.NDArray[np.int16], mass: Field, heat_content: Field, burnout: Field,
    step: float, block: int, burned: Field, heat: Field,
) -> None:  # fmt: skip
    """Add each fire cell's burned mass, kg, and heat, J, to its block's intervals; times in h."""
    for j in range(arrival.shape[0]):
        for i in range(arrival.shape[1]):
            code = fuel[j, i]
            if not arrival[j, i] < np.inf or mass[code] == 0.0:
                continue
            crossing = crossing_time(arrival, j, i)
            start = max(arrival[j, i] - 0.5 * crossing, 0.0)
            n, before = int(start // step), 0.0
            while n < burned.shape[0] and before < 1.0:
                after = burned_share((n + 1) * step - start, crossing, burnout[code])
                amount = mass[code] * (after - before)
                burned[n, j // block, i // block] += amount
                heat[n, j // block, i // block] += amount * heat_content[code]
                before = after
                n += 1


@njit(cache=True, error_model="numpy")
def crossing_time(arrival: Field, j: int, i: int) -> float:
    """Time the front needs to cross a cell, h: |∇arrival| · Δx towards where the fire came from.

    At the ignition, where no neighbour is earlier, the time to reach the next cell.
    """
    here = arrival[j, i]
    west = arrival[j, i - 1] if i > 0 else np.inf
    east = arrival[j, i + 1] if i + 1 < arrival.shape[1] else np.inf
    south = arrival[j - 1, i] if j > 0 else np.inf
    north = arrival[j + 1, i] if j + 1 < arrival.shape[0] else np.inf
    first_x, first_y = min(west, east), min(south, north)
    if first_x < here or first_y < here:
        return math.hypot(max(here - first_x, 0.0), max(here - first_y, 0.0))
    first = min(first_x, first_y)
    return first - here if first < np.inf else 0.0


@njit(cache=True, error_model="numpy")
def burned_share(age: float, crossing: float, burnout: float) -> float:
    """Share of a cell's consumed fuel that has burned `age` after the front entered it."""
    if age <= 0.0:
        return 0.0
    if crossing < 1e-3 * burnout:  # at once; the closed form below would cancel
        share = 1.0 - np.exp(-age / burnout)
    elif age < crossing:
        share = (age - burnout * (1.0 - np.exp(-age / burnout))) / crossing
    else:
        left = np.exp(-(age - crossing) / burnout) - np.exp(-age / burnout)
        share = 1.0 - burnout / crossing * left
    # What is left beyond rounding burns now: the sum over all time is exact.
    return share if share < 1.0 - 1e-15 else 1.0
