"""Plume rise: height to which the heat of a fire lifts its smoke, and the vertical profile."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Array, Field, array_namespace, like

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
