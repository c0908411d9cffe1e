"""Winds as arrays: components, means, the wind at 10 m, and the default profile above it.

The default profile and boundary layer are for what a source of weather does not say. The
profile is that of the simulator: a power law up to 300 m, constant speed above, and a turning with
height across the boundary layer, which deepens by day and collapses at night (Stull 1988, An
Introduction to Boundary Layer Meteorology).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Array
from plumecast.physics.air import NIGHT_DEPTH

HEIGHTS = (10.0, 50.0, 200.0, 500.0, 1000.0, 1500.0, 2000.0, 3000.0, 4000.0, 6000.0)
"""Heights above ground at which winds are stored with snapshots, m."""

SURFACE = 10.0
"""Height of the surface wind, m."""

POWER_LAW_TOP = 300.0
"""Height above which the speed of the default profile is constant, m."""

VEER = 15.0
"""Clockwise turning of the wind across the boundary layer, degree (northern hemisphere)."""

DAY_DEPTH = 2500.0
"""Default of the deepest boundary layer of the day, m: middle of the simulator's range."""

TURNING_DEPTH = 500.0
"""Least depth across which the wind turns, m."""

LOCAL_HOUR = 12.0
"""Default of the local solar time at ignition, h, as in the simulator."""

ROUGHNESS = 0.1
"""Roughness length of the log law below 10 m: open ground with scattered obstacles, m."""


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

    Between the given heights, u and v are linear in ln z, and beyond them `extend_profile`
    continues the lowest and the highest wind. A wind known only below 10 m is first brought to 10 m
    by the log law.
    """
    z, u, v = (np.asarray(part, dtype=np.float64) for part in wind)
    if z[-1] < SURFACE:
        ratio = log_law_ratio(float(z[-1]))
        z, u, v = np.append(z, SURFACE), np.append(u, ratio * u[-1]), np.append(v, ratio * v[-1])
    at = np.asarray(heights, dtype=np.float64)
    nearest_height = np.clip(at, z[0], z[-1])
    nearest = [np.interp(np.log(nearest_height), np.log(z), part) for part in (u, v)]
    return extend_profile(
        (nearest[0], nearest[1]), nearest_height, at, local_hour=local_hour, depth=depth, veer=veer
    )


def extend_profile(
    wind: tuple[Array, Array],
    known: npt.ArrayLike,
    heights: npt.ArrayLike,
    *,
    local_hour: npt.ArrayLike,
    depth: npt.ArrayLike,
    veer: float = VEER,
) -> tuple[Array, Array]:
    """(u, v) at `heights` from winds at `known` heights, by the default profile; arrays broadcast.

    The speed follows the power law between 10 and 300 m and is constant above. Upwards, the wind
    turns by `veer` between 10 m and the top of the boundary layer (at least 500 m).
    """
    east, north = wind
    at = np.asarray(heights, dtype=np.float64)
    law, base = (np.clip(z, SURFACE, POWER_LAW_TOP) for z in (at, known))
    growth = (law / base) ** shear_exponent(local_hour)
    top = np.maximum(depth, TURNING_DEPTH)
    above = np.clip(at, SURFACE, top) - np.clip(np.minimum(known, at), SURFACE, top)
    turn = np.deg2rad(veer) * above / top
    u = growth * (np.cos(turn) * east + np.sin(turn) * north)
    v = growth * (np.cos(turn) * north - np.sin(turn) * east)
    return u, v


def components(speed: Array, direction_from: Array) -> tuple[Array, Array]:
    """(u, v) of winds that come from `direction_from`, in degrees clockwise from north."""
    angle = np.deg2rad(direction_from)
    return -speed * np.sin(angle), -speed * np.cos(angle)


def direction_from(u: Array, v: Array) -> Array:
    """Direction that winds (u, v) come from, in degrees clockwise from north, 0 to 360."""
    return (np.rad2deg(np.arctan2(u, v)) + 180.0) % 360.0


def surface_wind(heights: Array, wind: Array) -> Array:
    """(…) wind at 10 m, linear in ln z, from (…, Z) at heights whose first is at most 10 m.

    Values that are not finite, which fires do not need, give NaN.
    """
    finite = np.where(np.isfinite(wind), wind, np.nan)
    levels, surface = np.log(heights), np.log(SURFACE)
    upper = min(max(int(np.searchsorted(levels, surface)), 1), levels.size - 1)
    if levels.size == 1 or levels[upper - 1] == surface:
        return finite[..., max(upper - 1, 0)]
    below, above = levels[upper - 1], levels[upper]
    share = min((surface - below) / (above - below), 1.0)
    return np.asarray((1.0 - share) * finite[..., upper - 1] + share * finite[..., upper])


def mean_wind(hours: Array, u: Array, v: Array, until: Array) -> tuple[Array, Array]:
    """Mean wind from ignition to each hour of `until` (n,), of winds (H,) linear in between.

    Returns (n,) the mean of the speeds, m s⁻¹, and the direction that the mean vector comes from,
    degrees, both by the trapezoidal rule. Before the first hour and after the last one the nearest
    wind is used; at hour 0 the mean is the wind of ignition.
    """
    means = np.empty((3, len(until)))
    for number, hour in enumerate(until):
        last = max(float(hour), _SHORTEST)
        times = np.concatenate([[0.0], hours[(hours > 0.0) & (hours < last)], [last]])
        east, north = (np.interp(times, hours, wind) for wind in (u, v))
        parts = (np.hypot(east, north), east, north)
        means[:, number] = [np.trapezoid(part, times) for part in parts]
        means[0, number] /= last
    return means[0], direction_from(means[1], means[2])


_SHORTEST = 1e-3  # h; a snapshot at ignition has the wind of that time
