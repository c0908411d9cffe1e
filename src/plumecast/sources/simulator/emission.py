"""Smoke and heat emission of a fire, from its arrival times and fuels.

Behind the front the fuel mass decays exponentially with the fuel's burn-out time T, as in WRF-Fire
(Mandel, Beezley and Kochanski 2011, Geosci. Model Dev. 4, 591). The front needs a time D to cross a
cell and ignites the cell at a constant rate meanwhile, so that by time t

    burned(t) = w/D ∫ from a to min(t, a + D) of (1 − exp(−(t − s) / T)) ds,   a = arrival − D/2,

where w is the load consumed at the given moisture. The emission of a time interval is the exact
difference of this function, so the emission summed over all time is `SMOKE_YIELD` times the fuel
consumed. Duff, logs and crowns are not part of the surface fuel models and do not burn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plumecast.base.errors import PlumecastError
from plumecast.sources.fuels.table import fuel_table
from plumecast.sources.simulator.compiled import compiled
from plumecast.sources.simulator.fields import Codes, Field
from plumecast.sources.simulator.spread.rothermel import Moisture

SMOKE_YIELD = 0.02
"""Smoke per fuel consumed, kg/kg: WRF-Chem's default, used by the paper."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Mean emission rate of every smoke cell in equal time intervals."""

    hours: Field  # (n + 1,) edges of the intervals, since ignition
    smoke: Field  # (n, ny, nx) kg s⁻¹
    heat: Field  # (n, ny, nx) W

    @property
    def seconds(self) -> float:
        """Length of an interval, s."""
        return float(self.hours[1] - self.hours[0]) * 3600.0

    @property
    def total_smoke(self) -> float:
        """Smoke emitted by all cells in all intervals, kg."""
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
    """Fuel consumed for each fuel code, (256,) kg m⁻²; 0 for ground that does not burn.

    The consumed share of each dead class is `moisture_damping` of its own moisture. Live fuel has
    the share of the 1 h fuel, which dries and ignites it.
    """
    table = fuel_table()
    extinction = np.where(table.burnable, table.extinction_moisture, 1.0)[:, np.newaxis]
    dead = np.array([moisture.dead_1h, moisture.dead_10h, moisture.dead_100h])
    share = moisture_damping(dead / extinction)
    return np.asarray((table.load * share[:, [0, 1, 2, 0, 0]]).sum(axis=1))


def emission(
    arrival: Field, fuel: Codes, *, moisture: Moisture, hours: Field, cell: float,
    block: int,
) -> Emission:  # fmt: skip
    """Smoke and heat emission of a fire on the smoke grid.

    `arrival` (ny·block, nx·block) is in hours, inf where unburned; `fuel` has the fuel codes;
    `hours` (n + 1,) are the equally spaced edges of the intervals; `cell` is the size of a fire
    cell in m. A smoke cell has `block`² fire cells. Fuel that burns after the last hour is left
    out.
    """
    if arrival.shape[0] % block or arrival.shape[1] % block:
        raise PlumecastError(
            f"a fire grid of {arrival.shape} cells does not divide into blocks of {block}; "
            "crop it to a multiple of the block"
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


@compiled(error_model="numpy")
def _burn(
    arrival: Field, fuel: Codes, mass: Field, heat_content: Field, burnout: Field,
    step: float, block: int, burned: Field, heat: Field,
) -> None:  # fmt: skip
    """Add the burned mass (kg) and heat (J) of each fire cell to its smoke cell; times in h."""
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


@compiled(error_model="numpy")
def crossing_time(arrival: Field, j: int, i: int) -> float:
    """Time that the front needs to cross a cell, h: |∇arrival| · Δx with upwind differences.

    At the ignition no neighbour burns earlier; there it is the time to the next neighbour.
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


@compiled(error_model="numpy")
def burned_share(age: float, crossing: float, burnout: float) -> float:
    """Share of a cell's consumed fuel that has burned a time `age` after the front entered it."""
    if age <= 0.0:
        return 0.0
    if crossing < 1e-3 * burnout:  # instant ignition; the formulas below would lose precision
        share = 1.0 - np.exp(-age / burnout)
    elif age < crossing:
        share = (age - burnout * (1.0 - np.exp(-age / burnout))) / crossing
    else:
        left = np.exp(-(age - crossing) / burnout) - np.exp(-age / burnout)
        share = 1.0 - burnout / crossing * left
    # A remainder at rounding level burns now, so that the sum over all time is exact.
    return share if share < 1.0 - 1e-15 else 1.0
