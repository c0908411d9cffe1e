"""Default wind profile and boundary layer, for what a source of weather does not say.

The profile is that of the simulator: a power law up to 300 m, constant speed above, and a turning
with height across the boundary layer, which deepens by day and collapses at night (Stull 1988, An
Introduction to Boundary Layer Meteorology).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Array

HEIGHTS = (10.0, 50.0, 200.0, 500.0, 1000.0, 1500.0, 2000.0, 3000.0, 4000.0, 6000.0)
"""Heights above ground at which winds are stored with snapshots, m."""

SURFACE = 10.0
"""Height of the surface wind, m."""

POWER_LAW_TOP = 300.0
"""Height above which the speed of the default profile is constant, m."""

VEER = 15.0
"""Clockwise turning of the wind across the boundary layer, degree (northern hemisphere)."""

NIGHT_DEPTH = 250.0
"""Depth of the nocturnal boundary layer, m."""

DAY_DEPTH = 2500.0
"""Default of the deepest boundary layer of the day, m: middle of the simulator's range."""

TURNING_DEPTH = 500.0
"""Least depth across which the wind turns, m."""

LOCAL_HOUR = 12.0
"""Default of the local solar time at ignition, h, as in the simulator."""

ROUGHNESS = 0.1
"""Roughness length of the log law below 10 m: open ground with scattered obstacles, m."""


class Rules(NamedTuple):
    """How a wind profile is completed, and the default boundary layer."""

    veer: float = VEER
    day_depth: float = DAY_DEPTH


def daylight(local_hour: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Diurnal cycle, 0 at night and 1 at its peak at 15 h: cos² between 7 h and 23 h.

    The boundary layer grows through the morning, peaks in mid-afternoon and has collapsed by late
    evening (Stull 1988, figure 1.7).
    """
    from_peak = (np.asarray(local_hour, dtype=float) - 15.0 + 12.0) % 24.0 - 12.0
    return np.where(np.abs(from_peak) < 8.0, np.cos(np.pi * from_peak / 16.0) ** 2, 0.0)


def shear_exponent(local_hour: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Exponent of the power law: 0.24 at night, 0.12 in mid-afternoon."""
    return 0.24 - 0.12 * daylight(local_hour)


def default_depth(
    local_hour: npt.ArrayLike, day_depth: float = DAY_DEPTH
) -> npt.NDArray[np.float64]:
    """Depth of the boundary layer, m: `NIGHT_DEPTH` at night, `day_depth` at 15 h."""
    return NIGHT_DEPTH + (day_depth - NIGHT_DEPTH) * daylight(local_hour)


def log_law_ratio(height: float, to: float = SURFACE) -> float:
    """Speed at `to` over speed at `height`: ln(to/z₀) / ln(height/z₀); 1.12 from 20 ft to 10 m."""
    return float(np.log(to / ROUGHNESS) / np.log(height / ROUGHNESS))


def complete_profile(
    wind: tuple[Array, Array, Array],
    heights: npt.ArrayLike,
    *,
    local_hour: float,
    depth: float,
    veer: float,
) -> tuple[Array, Array]:
    """(u, v) at `heights` from a wind (z, u, v) at n ≥ 1 increasing heights z.

    Between the given heights, u and v are linear in ln z. Below the lowest, the speed follows the
    power law and the direction stays. Above the highest, the speed follows the power law up to 300
    m and is constant from there; the wind turns by `veer` between the ground and the top of the
    boundary layer (at least 500 m). A wind known only below 10 m is first brought to 10 m by the
    log law.
    """
    z, u, v = (np.asarray(part, dtype=np.float64) for part in wind)
    if z[-1] < SURFACE:
        ratio = log_law_ratio(float(z[-1]))
        z, u, v = np.append(z, SURFACE), np.append(u, ratio * u[-1]), np.append(v, ratio * v[-1])
    at = np.asarray(heights, dtype=np.float64)
    known = np.clip(at, z[0], z[-1])
    inside_u, inside_v = (np.interp(np.log(known), np.log(z), part) for part in (u, v))
    exponent = float(shear_exponent(local_hour))
    growth = (_power_law(at) / _power_law(known)) ** exponent
    top = max(depth, TURNING_DEPTH)
    above = np.clip(at, SURFACE, top) - np.clip(np.minimum(z[-1], at), SURFACE, top)
    turn = np.deg2rad(veer) * above / top
    return (
        growth * (np.cos(turn) * inside_u + np.sin(turn) * inside_v),
        growth * (np.cos(turn) * inside_v - np.sin(turn) * inside_u),
    )


def _power_law(height: Array) -> Array:
    return np.clip(height, SURFACE, POWER_LAW_TOP) / SURFACE
