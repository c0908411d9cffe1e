"""Checks of weathers and of the weather of snapshots; errors name fire, hour, height and value.

A snapshot needs the weather up to its own hour; later hours may hold any value.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.constants import ALOFT_WIND_LIMIT, SURFACE_LAYER, SURFACE_WIND_LIMIT
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.findings import Finding
from plumecast.base.names import (
    HEIGHT,
    SNAPSHOT,
    WEATHER,
    WEATHER_AXES,
    WEATHER_HOUR,
    WEATHER_NAMES,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks

FIRE_DIM = "fire"
"""Dimension of the fires in a weather of several fires; `fire_id` has their names."""

WEATHER_END = "weather_end"
"""Coordinate: the hour since ignition up to which the weather of a fire is known."""

DOUBTFUL_MEAN = 25.0
"""A mean speed near the ground above this, m s⁻¹, gives a warning: a storm for the whole fire."""

LOWEST_HEIGHT = 1.0
"""Winds below this height above ground, m, are refused."""

MAX_GAP = 12.0
"""Longest time between two hours of a source, h; a longer gap would hide a cycle of the day."""

LATE_START = 1.0
"""The first hour of a weather may be this much after ignition, h; its wind is used until then. The
weather of snapshots may end as much before the last of them."""

_TOLERANCE = 1e-6  # h; hours in tables are rounded decimals
_HOURS_TOLERANCE = 0.01  # h; hours of fires are rounded, and counted from a second
_BLOCK = 256  # snapshots read at once
_U, _V, _DEPTH = WEATHER_NAMES
_UNITS = "check its unit, which may be knots, mph or km/h"


class Sounding(NamedTuple):
    """Wind profile at one hour since ignition."""

    hour: float
    height: Array  # (n,) m above ground, increasing
    u: Array  # (n,) m s⁻¹ towards east
    v: Array  # (n,) towards north
    depth: float = np.nan  # of the boundary layer, m; NaN if not known


def place(source: object, fire: str | None = None) -> str:
    """ "file: fire 'a': " for messages."""
    return f"{source}: fire '{fire}': " if fire else f"{source}: "


def check_soundings(source: object, fire: str | None, soundings: Sequence[Sounding]) -> None:
    """Raise unless hours and heights increase and every number can be a wind."""
    if not soundings:
        raise PlumecastError(f"{place(source, fire)}no wind at any hour; is the file complete?")
    for sounding in soundings:
        _check_sounding(place(source, fire), sounding)
    _check_hours(source, fire, [sounding.hour for sounding in soundings])
    near = [float(np.hypot(s.u[0], s.v[0])) for s in soundings if s.height[0] <= SURFACE_LAYER]
    if near and np.mean(near) > DOUBTFUL_MEAN:
        warnings.warn(
            f"{place(source, fire)}the wind near the ground is {np.mean(near):.0f} m/s in the "
            f"mean, a storm; {_UNITS}",
            PlumecastWarning,
            stacklevel=2,
        )


def _check_sounding(where: str, sounding: Sounding) -> None:
    height = np.asarray(sounding.height, dtype=float)
    wrong = ~(np.isfinite(height) & (height >= LOWEST_HEIGHT))
    if wrong.any():
        raise PlumecastError(
            f"{where}height {height[wrong][0]:g} m at hour {sounding.hour:g}; give heights above "
            f"ground of {LOWEST_HEIGHT:g} m or more"
        )
    falls = np.flatnonzero(np.diff(height) <= 0.0)
    if falls.size:
        before, after = height[falls[0]], height[falls[0] + 1]
        raise PlumecastError(
            f"{where}heights must increase, but {after:g} m follows {before:g} m at hour "
            f"{sounding.hour:g}; sort the heights of an hour and give each once"
        )
    depth = 1.0 if np.isnan(sounding.depth) else sounding.depth
    part = [np.reshape(wind, (1, 1, -1)) for wind in (sounding.u, sounding.v)]
    axis = np.array([sounding.hour])
    for _, text in impossible_weather(
        height, [*part, np.array([[depth]])], needed_hours(axis, None, 1), axis
    ):
        raise PlumecastError(f"{where}{text}")


def _check_hours(source: object, fire: str | None, hours: Sequence[float]) -> None:
    for before, after in pairwise(hours):
        if not after > before:
            raise PlumecastError(
                f"{place(source, fire)}hours must increase, but {after:g} h follows {before:g} h; "
                "sort the hours and give each once"
            )
        if after - before > MAX_GAP and after > 0.0:
            raise PlumecastError(
                f"{place(source, fire)}no wind between {before:g} h and {after:g} h, more than "
                f"{MAX_GAP:g} h; add the hours between"
            )
    if hours[0] > LATE_START + _TOLERANCE:
        raise PlumecastError(
            f"{place(source, fire)}the weather begins {hours[0]:g} h after ignition; add the hours "
            "from 0 on, or check the ignition time"
        )
    if hours[-1] < 0.0:
        raise PlumecastError(
            f"{place(source, fire)}the weather ends {-hours[-1]:g} h before ignition; check the "
            "ignition time"
        )


def is_hourly(weather: xr.Dataset) -> bool:
    """Whether a weather has hours; otherwise it is one wind for the whole fire."""
    return WEATHER_HOUR in weather.dims


def check_weather(weather: xr.Dataset, source: object = "weather") -> None:
    """Raise unless a Dataset has the names, axes and numbers of a weather."""
    if not is_hourly(weather) and set(WIND) <= set(weather.variables):
        _check_winds(weather, source)
        return
    for entry in WEATHER:
        axes = tuple(name for name in entry.dims if name in (WEATHER_HOUR, HEIGHT))
        if entry.name not in weather.variables:
            raise PlumecastError(f"{source}: '{entry.name}' is missing; is it a weather?")
        if weather[entry.name].dims not in (axes, (FIRE_DIM, *axes)):
            raise PlumecastError(
                f"{source}: {entry.name} has dimensions {weather[entry.name].dims}; expected "
                f"{axes} or {(FIRE_DIM, *axes)}"
            )
    for fire, one in each_fire(weather):
        depth = one["boundary_layer_depth"].values
        if np.isnan(depth).any():
            hour = float(weather[WEATHER_HOUR][int(np.argmax(np.isnan(depth)))])
            raise PlumecastError(
                f"{place(source, fire)}boundary_layer_depth is not a number (NaN) at hour {hour:g}"
            )
        check_soundings(source, fire, soundings_of(one))


def _check_winds(weather: xr.Dataset, source: object) -> None:
    """Raise unless the winds of fires that have no hours can be true."""
    for name in WIND:
        if weather[name].dims not in ((), (FIRE_DIM,)):
            raise PlumecastError(
                f"{source}: {name} has dimensions {weather[name].dims}; expected one wind, or one "
                f"along {FIRE_DIM!r}"
            )
    names: list[str | None] = [*fires_of(weather)] or [None]
    speeds, directions = (np.ravel(weather[name].values).tolist() for name in WIND)
    for fire, speed, direction in zip(names, speeds, directions, strict=True):
        if not 0.0 <= speed <= SURFACE_WIND_LIMIT:
            advice = _UNITS if speed > 0.0 else "give a speed of 0 or more"
            raise PlumecastError(f"{place(source, fire)}a wind of {speed:g} m/s; {advice}")
        if not 0.0 <= direction <= 360.0:
            raise PlumecastError(
                f"{place(source, fire)}a wind from {direction:g} degrees; give the direction that "
                "it comes from, 0 to 360 (270 is a west wind)"
            )


def check_covers(
    weather: xr.Dataset, hours: float | Mapping[str, float], source: object | None = None
) -> None:
    """Raise if a weather ends before a fire does; one wind for the whole fire does not end.

    `hours` is the last hour since ignition of all fires, or of each by `fire_id`.
    """
    where = source if source is not None else weather.attrs.get("weather_source", "weather")
    if not is_hourly(weather):
        return
    ends = (
        weather[WEATHER_END].values
        if WEATHER_END in weather.coords
        else weather[WEATHER_HOUR].values[-1]
    )
    names: list[str | None] = [*fires_of(weather)]
    last_hours = dict(zip(names or [None], np.ravel(ends).tolist(), strict=True))
    needed: Mapping[str | None, float]
    if isinstance(hours, Mapping):
        check_fires(weather, list(hours), where)
        needed = {name: float(hours[name]) for name in hours}
    else:
        needed = {name: float(hours) for name in last_hours}
    for name, last in needed.items():
        end = last_hours[name] if name in last_hours else last_hours[None]
        if last > end + _TOLERANCE:
            raise PlumecastError(
                f"{place(where, name)}the weather ends at {end:g} h, but the fire lasts until "
                f"{last:g} h; add the hours up to {np.ceil(last):g}"
            )


def check_fires(
    weather: xr.Dataset, fire_ids: Collection[str], source: object | None = None
) -> None:
    """Raise if a weather of several fires lacks one of these; a single weather is for all fires."""
    names = fires_of(weather)
    missing = sorted(set(fire_ids) - set(names))
    if not names or not missing:
        return
    where = source if source is not None else weather.attrs.get("weather_source", "weather")
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    if len(missing) == len(set(fire_ids)):
        raise PlumecastError(
            f"{where}: the weather is for other fires; it has {shown}, but the first of these "
            f"fires is '{missing[0]}'; use these names as fire_id"
        )
    raise PlumecastError(
        f"{where}: no weather for fire '{missing[0]}' ({len(missing)} of {len(set(fire_ids))} "
        f"fires are missing; it has {shown}); add the hours of every fire"
    )


def fires_of(weather: xr.Dataset) -> list[str]:
    """Names of the fires in a weather; none if it is one weather for any fire."""
    return weather["fire_id"].values.astype(str).tolist() if FIRE_DIM in weather.dims else []


def fire_end(weather: xr.Dataset) -> float:
    """Hour up to which the weather of one fire is known."""
    has_end = WEATHER_END in weather.coords
    return float(weather[WEATHER_END] if has_end else weather[WEATHER_HOUR][-1])


def soundings_of(weather: xr.Dataset, end: float = np.inf) -> list[Sounding]:
    """The soundings of the weather of one fire, up to `end` and, if it is between, at `end`."""
    rows = zip(
        weather[WEATHER_HOUR].values,
        weather["wind_u"].values,
        weather["wind_v"].values,
        weather["boundary_layer_depth"].values,
        strict=True,
    )
    soundings = [
        Sounding(float(hour), weather[HEIGHT].values, u, v, float(depth))
        for hour, u, v, depth in rows
    ]
    inside = [sounding for sounding in soundings if sounding.hour <= end]
    if len(inside) < len(soundings) and inside[-1].hour < end:
        inside.append(soundings[len(inside)]._replace(hour=end))
    return inside


def each_fire(weather: xr.Dataset) -> list[tuple[str | None, xr.Dataset]]:
    """Every fire of a weather with its name; the name is None if there is one for any fire."""
    names = fires_of(weather)
    if not names:
        return [(None, weather)]
    return [(name, weather.isel({FIRE_DIM: n})) for n, name in enumerate(names)]


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
    last = np.searchsorted(axis, until - _HOURS_TOLERANCE)
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
            yield row, f"{speed[row, hour, level]:.4g} m/s {place} is no wind; {_UNITS}"
        else:
            hour = int(np.argmax(shallow[row]))
            value = f"{depth[row, hour]:g} m at hour {axis[hour]:g}"
            yield row, f"'{_DEPTH}' is {value}; give a depth above 0 m"
