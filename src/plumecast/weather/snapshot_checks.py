"""Checks of the weather of snapshots: axes, hours, and winds and depths that can be true.

A snapshot needs the weather up to its own hour; later hours may hold any value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import Finding
from plumecast.base.names import (
    ALOFT_WIND_LIMIT,
    HEIGHT,
    SNAPSHOT,
    SURFACE_LAYER,
    SURFACE_WIND_LIMIT,
    WEATHER,
    WEATHER_AXES,
    WEATHER_HOUR,
    WEATHER_NAMES,
)
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks

LATE_START = 1.0
"""The first hour of a weather may be this much after ignition, h; its wind is used until then. The
weather of snapshots may end as much before the last of them."""

CHECK_UNIT = "check its unit, which may be knots, mph or km/h"
"""What to do about a wind that is too fast."""

HOURS_TOLERANCE = 0.01  # h; hours of fires are rounded, and counted from a second
_BLOCK = 256  # snapshots read at once
_U, _V, _DEPTH = WEATHER_NAMES


def check_weather_axes(snapshots: xr.Dataset) -> None:
    """Raise unless the weather, where there is one, is complete, labelled, and covers the fires.

    Only axes and labels are read.
    """
    if not _has_all_parts(snapshots):
        return
    for entry in (*WEATHER, *WEATHER_AXES):
        if entry.name not in snapshots.variables:
            continue  # a boundary layer is filled in where smoke is carried, with a warning
        array = snapshots[entry.name]
        if array.dims != entry.dims:
            raise PlumecastError(
                f"'{entry.name}' has dimensions {array.dims}, expected {entry.dims}"
            )
        if array.dtype.kind not in "fiu":
            raise PlumecastError(f"'{entry.name}' holds {array.dtype}, not numbers")
    check_weather_covers(snapshots, _until(snapshots))


def _has_all_parts(data: xr.Dataset) -> bool:
    """Whether there is a weather; raises if a part of it is missing, but for the boundary layer."""
    parts = [entry.name for entry in WEATHER if entry.name in data.variables]
    needed = [entry.name for entry in (*WEATHER, *WEATHER_AXES) if entry.name != _DEPTH]
    for name in needed if parts else ():
        if name not in data.variables:
            raise PlumecastError(
                f"there is '{parts[0]}', but no '{name}'; a weather has "
                f"{', '.join(one.name for one in (*WEATHER, *WEATHER_AXES))}"
            )
    return bool(parts)


def check_weather_covers(data: xr.Dataset, until: Array | None) -> None:
    """Raise unless a weather has all parts, axes that rise, and the hours `until` (M,) of fires."""
    if not _has_all_parts(data):
        return
    _check_axis(data, HEIGHT, "m")
    _check_axis(data, WEATHER_HOUR, "h")
    lowest = float(data[HEIGHT].values[0])
    if lowest <= 0.0:
        raise PlumecastError(
            f"'{HEIGHT}' begins at {lowest:g} m; heights are above ground, give them above 0 m"
        )
    axis = data[WEATHER_HOUR].values.astype(np.float64)
    if axis[0] > LATE_START:
        raise PlumecastError(
            f"the weather begins {axis[0]:g} h after ignition ('{WEATHER_HOUR}'); add the hours "
            "from 0 on"
        )
    if until is None or not until.size:
        return
    last = int(np.argmax(until))
    if until[last] > axis[-1] + LATE_START:
        raise PlumecastError(
            f"{_who(data, last)} lasts until {until[last]:g} h, but the weather ends at "
            f"{axis[-1]:g} h ('{WEATHER_HOUR}'); add the hours up to {np.ceil(until[last]):g}"
        )


def _check_axis(snapshots: xr.Dataset, name: str, unit: str) -> None:
    values = snapshots[name].values.astype(np.float64)
    if not values.size:
        raise PlumecastError(f"'{name}' is empty; give the weather at one {unit} or more")
    if not np.isfinite(values).all():
        raise PlumecastError(f"'{name}' holds NaN or infinite values; fill them in")
    falls = np.flatnonzero(np.diff(values) <= 0.0)
    if falls.size:
        before, after = values[falls[0]], values[falls[0] + 1]
        raise PlumecastError(
            f"'{name}' must increase, but {after:g} {unit} follows {before:g} {unit}; sort the "
            "weather and give each once"
        )


def _until(snapshots: xr.Dataset) -> Array | None:
    """(M,) hour of each snapshot; None if it is not known."""
    hours = snapshots.variables.get("hours")
    if hours is None or hours.dims != (SNAPSHOT,) or hours.dtype.kind not in "fiu":
        return None
    values: Array = hours.values.astype(np.float64)
    return np.where(np.isfinite(values), values, 0.0)  # other hours are refused elsewhere


def _who(snapshots: xr.Dataset, row: int) -> str:
    fires = snapshots.variables.get("fire_id")
    if fires is None or fires.dims != (SNAPSHOT,):
        return f"snapshot {row}"
    return f"fire '{fires.values[row]}'"


class _Problem(NamedTuple):
    row: int
    text: str


def check_weather_values(snapshots: xr.Dataset) -> None:
    """Raise at the first wind or depth, up to its snapshot's hour, that cannot be true."""
    for problem in _problems(snapshots):
        raise PlumecastError(f"the weather of {_who(snapshots, problem.row)}: {problem.text}")


def weather_findings(snapshots: xr.Dataset) -> Iterator[tuple[str, Finding]]:
    """The first problem in the weather of every fire, by `fire_id`."""
    fires = snapshots.fire_id.values.astype(str)
    seen: set[str] = set()
    for problem in _problems(snapshots):
        fire = str(fires[problem.row])
        if fire not in seen:
            seen.add(fire)
            yield fire, Finding("weather", problem.text)


def _problems(snapshots: xr.Dataset) -> Iterator[_Problem]:
    """At most one problem of each snapshot."""
    if any(entry.name not in snapshots.variables for entry in WEATHER):
        return
    axis = snapshots[WEATHER_HOUR].values.astype(np.float64)
    until = _until(snapshots)
    for rows in row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK):
        try:
            part = [snapshots[entry.name].isel({SNAPSHOT: rows}).values for entry in WEATHER]
        except PlumecastError as error:
            yield _Problem(rows.start, str(error))
            continue
        count = part[0].shape[0]
        needed = needed_hours(axis, None if until is None else until[rows], count)
        for row, text in impossible_weather(snapshots[HEIGHT].values, part, needed, axis):
            yield _Problem(row + rows.start, text)


def needed_hours(axis: Array, until: Array | None, count: int) -> Array:
    """(M, H) hours of the weather that snapshots need: up to the first not before their own."""
    if until is None:
        return np.ones((count, axis.size), dtype=bool)
    last = np.searchsorted(axis, until - HOURS_TOLERANCE)
    return np.asarray(np.arange(axis.size) <= last[:, None])


def impossible_weather(
    heights: Array, part: list[Array], needed: Array, axis: Array
) -> Iterator[tuple[int, str]]:
    """Rows of u, v (M, H, Z) and depth (M, H) that cannot be true where needed, and why."""
    u, v, depth = part
    speed = np.hypot(u, v)
    limit = np.where(heights <= SURFACE_LAYER, SURFACE_WIND_LIMIT, ALOFT_WIND_LIMIT)
    unknown = needed[:, :, None] & ~np.isfinite(speed)
    fast = needed[:, :, None] & (speed > limit)
    shallow = needed & ~((depth > 0.0) & np.isfinite(depth))
    wrong = unknown.any(axis=(1, 2)) | fast.any(axis=(1, 2)) | shallow.any(axis=1)
    for row in np.flatnonzero(wrong).tolist():
        if unknown[row].any():
            hour, level = np.argwhere(unknown[row])[0]
            name, wind = (_U, u) if not np.isfinite(u[row, hour, level]) else (_V, v)
            place = f"at hour {axis[hour]:g}, {heights[level]:g} m"
            yield row, f"'{name}' is {wind[row, hour, level]:g} {place}; fill it in"
        elif fast[row].any():
            hour, level = np.argwhere(fast[row])[0]
            place = f"at hour {axis[hour]:g}, {heights[level]:g} m"
            yield row, f"{speed[row, hour, level]:.4g} m/s {place} is no wind; {CHECK_UNIT}"
        else:
            hour = int(np.argmax(shallow[row]))
            value = f"{depth[row, hour]:g} m at hour {axis[hour]:g}"
            yield row, f"'{_DEPTH}' is {value}; give a depth above 0 m"
