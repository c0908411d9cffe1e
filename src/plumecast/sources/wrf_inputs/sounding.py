"""`input_sounding` of an ideal WRF run from the weather of a fire at ignition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumecast.base.constants import GRAVITY
from plumecast.compute.arrays import Array
from plumecast.sources.wrf_inputs.domain import TOP
from plumecast.weather.profile import complete_profile

SURFACE_PRESSURE = 1000.0  # hPa
MIXED_TEMPERATURE = 302.0
"""Potential temperature of the boundary layer, K: a dry summer day."""

INVERSION = 2.0
"""Rise of the potential temperature across the top of the boundary layer, K."""

INVERSION_DEPTH = 100.0
"""Depth of the layer in which it rises, m."""

STABILITY = 1.6e-4
"""N² of the free troposphere where it is not known, s⁻²: 5 K per km."""

SHALLOWEST = 100.0
"""Least depth of the boundary layer in a sounding, m."""

VAPOUR = 4.0
"""Water vapour at the ground, g kg⁻¹; it falls with the height `VAPOUR_HEIGHT`."""

VAPOUR_HEIGHT = 2500.0

ABOVE_WEATHER = (9000.0, TOP + 500.0)
"""Levels above the stored weather, m; WRF needs a sounding beyond its top."""


class Profile(NamedTuple):
    """The weather of a fire at one hour."""

    height: Array  # (n,) m above ground
    u: Array  # (n,) m s⁻¹ towards east
    v: Array
    depth: float  # of the boundary layer, m


def potential_temperature(height: Array, depth: float, stability: float = STABILITY) -> Array:
    """θ(z) in K: mixed up to the boundary layer's top h, an inversion, then a constant gradient.

    θ = θ₀ for z ≤ h, then θ₀ + Δθ (z − h)/d over the d = `INVERSION_DEPTH` of the inversion, and
    θ₀ + Δθ + (z − h − d) N² θ₀ / g above.
    """
    above = np.maximum(height - depth, 0.0)
    gradient = stability * MIXED_TEMPERATURE / GRAVITY
    rise = INVERSION * np.minimum(above / INVERSION_DEPTH, 1.0)
    return MIXED_TEMPERATURE + rise + gradient * np.maximum(above - INVERSION_DEPTH, 0.0)


def sounding_table(weather: Profile, stability: float = STABILITY) -> Array:
    """(level, 5) of height m, θ K, vapour g kg⁻¹, u and v m s⁻¹.

    The levels are those of the weather, the two edges of the inversion, and `ABOVE_WEATHER`, where
    the wind is that of the highest level of the weather. Between levels winds are linear in ln z.
    """
    depth = max(weather.depth, SHALLOWEST)
    edges = (depth, depth + INVERSION_DEPTH)
    heights = np.unique(np.round([*weather.height, *edges, *ABOVE_WEATHER], 1))
    wind = (weather.height, weather.u, weather.v)
    u, v = complete_profile(wind, heights, local_hour=12.0, depth=depth, veer=0.0)
    theta = potential_temperature(heights, depth, stability)
    return np.stack([heights, theta, VAPOUR * np.exp(-heights / VAPOUR_HEIGHT), u, v], axis=1)


def input_sounding(table: Array) -> str:
    """Text of `input_sounding`: surface pressure (hPa), θ and vapour, then one line per level."""
    lines = [f"{SURFACE_PRESSURE:.1f} {table[0, 1]:.2f} {VAPOUR:.2f}"]
    lines += [f"{z:.1f} {theta:.3f} {q:.4f} {u:.3f} {v:.3f}" for z, theta, q, u, v in table]
    return "\n".join(lines) + "\n"
