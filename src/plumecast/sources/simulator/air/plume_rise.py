"""Plume rise: height to which the heat of a fire lifts its smoke, and the vertical profile."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumecast.sources.simulator.fields import Field

RADIATIVE_FRACTION = 0.146
"""Share of the heat of combustion that is radiated: 1 MJ of fire radiative energy per 0.368 kg of
fuel (Wooster et al. 2005, J. Geophys. Res. 110, D24311) of 18.6 MJ/kg."""

LOFTED_SHARE = 0.75
"""Share of the smoke released in the upper half of the plume. The rest comes from smouldering and
the flanks and is released in the lower half."""


def injection_height(heat: npt.ArrayLike, boundary_layer_depth: float, stability: float) -> Field:
    """Height of the plume top above ground, m, from the heat release of a smoke cell, W.

    H = α H_abl + β (P_f / P_f0)^γ exp(−δ N² / N₀²) with α = 0.24, β = 170 m, γ = 0.35, δ = 0.6,
    P_f0 = 1 MW, N₀² = 2.5·10⁻⁴ s⁻² (Sofiev et al. 2012, Atmos. Chem. Phys. 12, 1995). P_f is the
    fire radiative power, `RADIATIVE_FRACTION` of the heat, and `stability` is N² of the free
    troposphere, s⁻². Each cell has its own plume; neighbouring plumes do not merge.
    """
    power = RADIATIVE_FRACTION * np.asarray(heat, dtype=float) / 1.0e6
    lift = 170.0 * power**0.35 * np.exp(-0.6 * stability / 2.5e-4)
    return np.asarray(0.24 * boundary_layer_depth + lift)


def injection_profile(height: Field, edges: Field) -> Field:
    """Shares of the smoke of n plumes of `height` in the layers between `edges`, (n, L).

    Rows sum to 1. The profile is uniform in each half of the plume, with `LOFTED_SHARE` in the
    upper half. A plume higher than the highest edge ends there.
    """
    top = np.minimum(height, edges[-1])[:, np.newaxis]
    lower = (1.0 - LOFTED_SHARE) * edges / (0.5 * top)
    upper = 1.0 - LOFTED_SHARE + LOFTED_SHARE * (edges - 0.5 * top) / (0.5 * top)
    below = np.clip(np.where(edges < 0.5 * top, lower, upper), 0.0, 1.0)
    return np.diff(below, axis=1)
