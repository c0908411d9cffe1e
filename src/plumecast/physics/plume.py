"""Emission and plume rise: what a fire consumes, when, and how high its heat lifts the smoke.

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

from plumecast.compute.arrays import Array, Field, array_namespace, like
from plumecast.physics.fuels import Moisture, fuel_table

HEAT_OF_COMBUSTION = 18.6
"""Heat of combustion of vegetation, MJ kg⁻¹ (Wooster et al. 2005)."""

RADIATIVE_FRACTION = 0.146
"""Share of the heat of combustion that is radiated: 1 MJ of fire radiative energy per 0.368 kg of
fuel (Wooster et al. 2005, J. Geophys. Res. 110, D24311) of `HEAT_OF_COMBUSTION`."""

RISE_EXPONENT = 0.35
"""γ: how the lift grows with the fire radiative power."""

LOFTED_SHARE = 0.75
"""Share of the smoke released in the upper half of the plume. The rest comes from smouldering and
the flanks and is released in the lower half."""


def plume_top(boundary_layer_depth: Array, lift: Array) -> Array:
    """Height of the plume top above ground, H = α H_abl + `plume_lift`, m, with α = 0.24.

    Sofiev et al. (2012), Atmos. Chem. Phys. 12, 1995. Each cell has its own plume; neighbouring
    plumes do not merge.
    """
    return 0.24 * boundary_layer_depth + lift


def plume_lift(radiative_power: npt.ArrayLike, stability: float) -> Field:
    """Lift by the heat of a fire, β (P_f / P_f0)^γ exp(−δ N² / N₀²), m.

    β = 170 m, γ = 0.35, δ = 0.6, P_f0 = 1 MW and N₀² = 2.5·10⁻⁴ s⁻² (Sofiev et al. 2012).
    `radiative_power` P_f is in MW; `stability` is N² of the free troposphere, s⁻².
    """
    power = np.asarray(radiative_power, dtype=float)
    return np.asarray(170.0 * power**RISE_EXPONENT * np.exp(-0.6 * stability / 2.5e-4))


def mean_plume_lift(radiative_power: Array, weight: Array, stability: float) -> Array:
    """Mean of `plume_lift` over the last two axes, weighted by `weight` ≥ 0; 0 without any weight.

    The lift is proportional to P_f^γ, so that the power enters by its weighted mean alone.
    """
    xp = array_namespace(weight)
    total = xp.sum(weight, axis=(-2, -1))
    raised = xp.clip(radiative_power, 0.0, None) ** RISE_EXPONENT
    lift = xp.sum(weight * raised, axis=(-2, -1)) * float(plume_lift(1.0, stability))
    return lift / xp.where(total > 0.0, total, xp.ones_like(total))


def injection_profile(top: Array, edges: npt.ArrayLike) -> Array:
    """Shares of the smoke of plumes with these tops (…) in the L layers between `edges`, (…, L).

    Shares sum to 1. The profile is uniform in each half of the plume, with `LOFTED_SHARE` in the
    upper half. A plume higher than the highest edge ends there.
    """
    xp = array_namespace(top)
    bounds = like(np.asarray(edges), top, top.dtype)
    height = xp.clip(top, None, float(bounds[-1]))[..., None]
    lower = (1.0 - LOFTED_SHARE) * 2.0 * bounds / height
    upper = 1.0 + LOFTED_SHARE * 2.0 * (bounds / height - 1.0)
    below = xp.clip(xp.where(bounds < 0.5 * height, lower, upper), 0.0, 1.0)
    return below[..., 1:] - below[..., :-1]


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
