"""Checks of a weather. Each error names the file, the fire, the hour and the value."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import (
    HEIGHT,
    SURFACE_LAYER,
    SURFACE_WIND_LIMIT,
    WEATHER,
    WEATHER_HOUR,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.weather.snapshot_checks import (
    CHECK_UNIT,
    LATE_START,
    impossible_weather,
    needed_hours,
)

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

_TOLERANCE = 1e-6  # h; hours in tables are rounded decimals


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
            f"mean, a storm; {CHECK_UNIT}",
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
            advice = CHECK_UNIT if speed > 0.0 else "give a speed of 0 or more"
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
