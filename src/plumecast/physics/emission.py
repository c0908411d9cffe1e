"""Fuel that a fire consumes, and when it burns.

Behind the front the fuel mass decays exponentially with the fuel's burn-out time T, as in WRF-Fire
(Mandel, Beezley and Kochanski 2011, Geosci. Model Dev. 4, 591). The front needs a time D to cross a
cell and ignites the cell at a constant rate meanwhile, so that by time t

    burned(t) = w/D ∫ from a to min(t, a + D) of (1 − exp(−(t − s) / T)) ds,   a = arrival − D/2,

where w is the load consumed at the given moisture. Duff, logs and crowns are not part of the
surface fuel models and do not burn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Field
from plumecast.physics.fuels import Moisture, fuel_table

SMOKE_YIELD = 0.02
"""Smoke per fuel consumed, kg/kg: WRF-Chem's default, used by the paper."""


def damping_polynomial(ratio: float) -> float:
    """η = 1 − 2.59 r + 5.11 r² − 3.52 r³ of r = moisture / moisture of extinction below 1.

    Rothermel (1972), INT-RP-115, equation 29. A plain function of numbers or arrays, which the
    simulator compiles.
    """
    return 1.0 - 2.59 * ratio + 5.11 * ratio**2 - 3.52 * ratio**3


def moisture_damping(ratio: npt.ArrayLike) -> Field:
    """η of `damping_polynomial`, and 0 for r ≥ 1.

    The heat per area of a flaming front is the reaction intensity, which η scales, times a
    residence time that does not depend on moisture (Anderson 1969), so η is also the share of the
    fuel that the front consumes.

    >>> moisture_damping([0.0, 1.0, 2.0]).tolist()
    [1.0, 0.0, 0.0]
    """
    r = np.clip(np.asarray(ratio, dtype=float), 0.0, 1.0)
    return np.where(r < 1.0, damping_polynomial(r), 0.0)


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


def burned_share(age: float, crossing: float, burnout: float) -> float:
    """Share of a cell's consumed fuel that has burned a time `age` after the front entered it.

    burned(t) / w of the module with t − a = `age`, D = `crossing` and T = `burnout`, in one unit. A
    plain function, which the simulator compiles.
    """
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
