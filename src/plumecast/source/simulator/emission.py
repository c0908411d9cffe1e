"""From arrival times to smoke and heat: what burns, when, and how much of it becomes smoke.

Behind the front the fuel mass decays exponentially with the fuel's burn-out time T,

    burned by time t = w (1 − exp(−(t − arrival) / T)),

as in WRF-Fire (Mandel, Beezley and Kochanski 2011, Geosci. Model Dev. 4, 591), w being the load
consumed at the given moisture. Time intervals take the exact difference of this function, so the
emission summed over all time is `SMOKE_YIELD` times the fuel consumed. Duff, logs and crowns are
not part of the surface fuel models and do not burn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from plumecast.errors import PlumecastError
from plumecast.source.simulator.fuels import fuel_table
from plumecast.source.simulator.spread import Moisture

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
    return Emission(hours, burned * (SMOKE_YIELD / (3600.0 * step)), heat / (3600.0 * step))


@njit(cache=True, error_model="numpy")
def _burn(
    arrival: Field, fuel: npt.NDArray[np.int16], mass: Field, heat_content: Field, burnout: Field,
    step: float, block: int, burned: Field, heat: Field,
) -> None:  # fmt: skip
    """Add each fire cell's burned mass, kg, and heat, J, to its block's intervals; times in h."""
    for j in range(arrival.shape[0]):
        for i in range(arrival.shape[1]):
            code = fuel[j, i]
            if not arrival[j, i] < step * burned.shape[0] or mass[code] == 0.0:
                continue
            n = max(int(arrival[j, i] // step), 0)
            remaining = np.exp(-max(n * step - arrival[j, i], 0.0) / burnout[code])
            while n < burned.shape[0] and remaining > 0.0:
                after = np.exp(-((n + 1) * step - arrival[j, i]) / burnout[code])
                # Less than 1e-15 of the mass is beyond rounding: end here rather than underflow.
                after = after if after > 1e-15 else 0.0
                amount = mass[code] * (remaining - after)
                burned[n, j // block, i // block] += amount
                heat[n, j // block, i // block] += amount * heat_content[code]
                remaining = after
                n += 1
