"""Weather as a Dataset: hourly, from soundings at any hours and heights, or one wind of a fire.

Each error of a check names the file, the fire, the hour and the value.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import (
    HEIGHT,
    IGNITION_TIME,
    SNAPSHOT,
    SURFACE_LAYER,
    SURFACE_WIND_LIMIT,
    TABLE,
    WEATHER,
    WEATHER_HOUR,
    WEATHER_NAMES,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.physics.air import NIGHT_DEPTH
from plumecast.weather.options import GRID, TRUE, DefaultProfile
from plumecast.weather.profile import HEIGHTS, LOCAL_HOUR, complete_profile, default_depth
from plumecast.weather.snapshots import CHECK_UNIT, LATE_START, impossible_weather

FIRE_DIM = "fire"
"""Dimension of the fires in a weather of several fires; `fire_id` has their names."""

WEATHER_END = "weather_end"
"""Coordinate: the hour since ignition up to which the weather of a fire is known."""

NORTH = "wind_north"
"""Attribute of a weather: whether its winds count from true north or, as those of snapshots and of
weathers without the attribute, from the north of the grid."""

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


@dataclass(frozen=True, slots=True)
class Series:
    """The soundings of one fire in time order."""

    soundings: Sequence[Sounding]
    fire: str | None = None
    local_hour: float | None = None  # local solar time at ignition; None: the default

    @property
    def at_ignition(self) -> float:
        """Local solar time at ignition."""
        return LOCAL_HOUR if self.local_hour is None else self.local_hour

    @property
    def depths(self) -> list[tuple[float, float]]:
        """(hour, depth of the boundary layer) where it is known."""
        return [(one.hour, one.depth) for one in self.soundings if np.isfinite(one.depth)]

    def depth_at(self, times: Array, profile: DefaultProfile) -> Array:
        """Depth at `times`: linear between those that are known, or the default cycle."""
        if not self.depths:
            return default_depth(self.at_ignition + times, profile.day_depth)
        return np.interp(times, *np.array(self.depths).T)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a weather comes from, for its attributes and for messages."""

    source: object
    kind: str
    notes: Mapping[str, str] = field(default_factory=dict)
    ignition: str | None = None  # local time that hours are counted from, where it has a year
    north: str = GRID  # that its directions count from

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the weather; those that say nothing are left out."""
        attributes = {
            "Conventions": "CF-1.11",
            "weather_source": str(self.source),
            "weather_kind": self.kind,
            NORTH: TRUE if self.north == TRUE else "",
            "weather_comment": self.notes.get("", ""),
            IGNITION_TIME: self.ignition or "",
        }
        return {name: text for name, text in attributes.items() if text}


def from_ignition(soundings: Sequence[Sounding]) -> Sequence[Sounding]:
    """Those from the last one at or before ignition on; the hours before it are not used."""
    before = [number for number, sounding in enumerate(soundings) if sounding.hour <= 0.0]
    return soundings[before[-1] :] if before else soundings


def hourly_dataset(series: Sequence[Series], origin: Origin, profile: DefaultProfile) -> xr.Dataset:
    """Hourly weather of one fire, or of several along `fire`.

    Winds are linear in time between the soundings. The first sounding is used from ignition on if
    it is up to an hour late. Fires may end at different hours, which `weather_end` records; after
    its end, and to complete its last hour, a fire keeps its last wind. `origin.notes` become the
    attribute `comment` of the variables they name, and `weather_comment` of the Dataset under "".
    """
    for one in series:
        _check_soundings(origin.source, one.fire, one.soundings)
    ends = [one.soundings[-1].hour for one in series]
    times = np.arange(np.ceil(max(ends) - 1e-9) + 1.0)
    fires = [_hourly(one, times, profile) for one in series]
    notes = {**origin.notes, "boundary_layer_depth": _depth_note(series, profile)}
    several = len(series) > 1 or series[0].fire is not None
    lead = (FIRE_DIM,) if several else ()
    variables = {}
    for name in WEATHER_NAMES:
        comment = {"comment": notes[name]} if notes.get(name) else {}
        values = np.stack([fire[name] for fire in fires]) if several else fires[0][name]
        dims = [dim for dim in TABLE[name].dims if dim != SNAPSHOT]
        variables[name] = ((*lead, *dims), values, {**TABLE[name].attrs, **comment})
    coordinates = {
        WEATHER_HOUR: (WEATHER_HOUR, times, TABLE[WEATHER_HOUR].attrs),
        HEIGHT: (HEIGHT, np.array(HEIGHTS), {**TABLE[HEIGHT].attrs, "positive": "up"}),
        WEATHER_END: (
            lead,
            np.array(ends) if several else ends[0],
            {"units": "h", "long_name": "hour since ignition up to which the weather is known"},
        ),
        **_fire_names([str(one.fire) for one in series] if several else None),
    }
    return xr.Dataset(variables, coords=coordinates, attrs=origin.attributes)


def fire_winds(
    speed: Array, direction: Array, origin: Origin, fires: Sequence[str] | None = None
) -> xr.Dataset:
    """A weather without hours: one wind at 10 m, or one for each of `fires`, for the whole fire.

    Where smoke is carried it is completed by the default profile. It stands for the mean wind since
    ignition, so that fires get it as their mean wind, and no hourly weather.
    """
    lead = () if fires is None else (FIRE_DIM,)
    winds = {
        name: (lead, np.asarray(values, dtype=np.float64), TABLE[name].attrs)
        for name, values in zip(WIND, (speed, direction), strict=True)
    }
    weather = xr.Dataset(winds, coords=_fire_names(fires), attrs=origin.attributes)
    check_weather(weather, origin.source)
    return weather


def as_hourly(weather: xr.Dataset, source: object) -> xr.Dataset:
    """A checked weather at the hours and heights that snapshots are stored with."""
    check_weather(weather, source)
    if not is_hourly(weather):
        return weather
    hours = weather[WEATHER_HOUR].values
    has_heights = np.array_equal(weather[HEIGHT].values, HEIGHTS)
    if has_heights and np.array_equal(hours, np.arange(hours.size)):
        return weather
    series = [
        Series(_soundings_of(one, float(one.get(WEATHER_END, hours[-1]))), fire)
        for fire, one in each_fire(weather)
    ]
    note = {"": str(weather.attrs.get("weather_comment", ""))}
    origin = Origin(source, "weather", note, north=str(weather.attrs.get(NORTH, GRID)))
    return hourly_dataset(series, origin, DefaultProfile())


def _fire_names(fires: Sequence[str] | None) -> dict[str, Any]:
    if fires is None:
        return {}
    return {"fire_id": (FIRE_DIM, np.array(fires, dtype=object), TABLE["fire_id"].attrs)}


def _hourly(series: Series, times: Array, profile: DefaultProfile) -> dict[str, Array]:
    """wind_u, wind_v (hour, height) and boundary_layer_depth (hour) of one fire."""
    soundings = _at_each(series.soundings, times)
    hours = np.array([sounding.hour for sounding in soundings])
    profiles = [
        complete_profile(
            (sounding.height, sounding.u, sounding.v),
            HEIGHTS,
            local_hour=series.at_ignition + sounding.hour,
            depth=float(depth),
            veer=profile.veer,
        )
        for sounding, depth in zip(soundings, series.depth_at(hours, profile), strict=True)
    ]
    u, v = (interpolated(times, hours, [part[k] for part in profiles]) for k in (0, 1))
    depth = series.depth_at(times, profile)
    return {"wind_u": u, "wind_v": v, "boundary_layer_depth": depth}


def interpolated(times: Array, hours: Array, values: Array) -> Array:
    """(time, …) values at `times` from (hour, …) ones, linear in between and held beyond."""
    return np.stack([np.interp(times, hours, column) for column in np.transpose(values)], axis=1)


def _at_each(soundings: Sequence[Sounding], times: Array) -> Sequence[Sounding]:
    """Soundings at these hours, if all have the same heights: each hour has a default profile."""
    height = soundings[0].height
    if any(not np.array_equal(one.height, height) for one in soundings):
        return soundings
    hours = np.array([one.hour for one in soundings])
    u = interpolated(times, hours, [one.u for one in soundings])
    v = interpolated(times, hours, [one.v for one in soundings])
    return [
        Sounding(hour, height, *winds) for hour, *winds in zip(times.tolist(), u, v, strict=True)
    ]


def _depth_note(series: Sequence[Series], profile: DefaultProfile) -> str:
    lacking = [one.fire or "" for one in series if not one.depths]
    if not lacking:
        return "from the source"
    at = series[0].local_hour
    start = f"{LOCAL_HOUR:g} h assumed" if at is None else f"{at:.4g} h"
    which = f" for fires {', '.join(lacking)}" if len(lacking) < len(series) else ""
    return (
        f"default cycle{which}: {NIGHT_DEPTH:g} m at night, {profile.day_depth:g} m at 15 h local "
        f"time (local time at ignition: {start})"
    )


def is_hourly(weather: xr.Dataset) -> bool:
    """Whether a weather has hours; otherwise it is one wind for the whole fire."""
    return WEATHER_HOUR in weather.dims


def fires_of(weather: xr.Dataset) -> list[str]:
    """Names of the fires in a weather; none if it is one weather for any fire."""
    return weather["fire_id"].values.astype(str).tolist() if FIRE_DIM in weather.dims else []


def each_fire(weather: xr.Dataset) -> list[tuple[str | None, xr.Dataset]]:
    """Every fire of a weather with its name; the name is None if there is one for any fire."""
    names = fires_of(weather)
    if not names:
        return [(None, weather)]
    return [(name, weather.isel({FIRE_DIM: n})) for n, name in enumerate(names)]


def _soundings_of(weather: xr.Dataset, end: float = np.inf) -> list[Sounding]:
    """The soundings of the weather of one fire, up to `end` and, if it is between, at `end`."""
    hours = weather[WEATHER_HOUR].values.tolist()
    rows = zip(hours, *(weather[name].values for name in WEATHER_NAMES), strict=True)
    soundings = [
        Sounding(hour, weather[HEIGHT].values, u, v, float(depth)) for hour, u, v, depth in rows
    ]
    inside = [sounding for sounding in soundings if sounding.hour <= end]
    if len(inside) < len(soundings) and inside[-1].hour < end:
        inside.append(soundings[len(inside)]._replace(hour=end))
    return inside


# -- checks


def place(source: object, fire: str | None = None) -> str:
    """ "file: fire 'a': " for messages."""
    return f"{source}: fire '{fire}': " if fire else f"{source}: "


def _check_soundings(source: object, fire: str | None, soundings: Sequence[Sounding]) -> None:
    """Raise unless hours and heights increase and every number can be a wind."""
    where = place(source, fire)
    if not soundings:
        raise PlumecastError(f"{where}no wind at any hour; is the file complete?")
    for sounding in soundings:
        _check_sounding(where, sounding)
    _check_hours(where, [sounding.hour for sounding in soundings])
    near = [float(np.hypot(s.u[0], s.v[0])) for s in soundings if s.height[0] <= SURFACE_LAYER]
    if near and np.mean(near) > DOUBTFUL_MEAN:
        warnings.warn(
            f"{where}the wind near the ground is {np.mean(near):.0f} m/s in the mean, a storm; "
            f"{CHECK_UNIT}",
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
    for before, after in pairwise(height.tolist()):
        if after <= before:
            raise PlumecastError(
                f"{where}heights must increase, but {after:g} m follows {before:g} m at hour "
                f"{sounding.hour:g}; sort the heights of an hour and give each once"
            )
    depth = 1.0 if np.isnan(sounding.depth) else sounding.depth
    winds = [np.reshape(wind, (1, 1, -1)) for wind in (sounding.u, sounding.v)]
    needed, hour = np.ones((1, 1), dtype=bool), np.array([sounding.hour])
    for _, text in impossible_weather(height, [*winds, np.array([[depth]])], needed, hour):
        raise PlumecastError(f"{where}{text}")


def _check_hours(where: str, hours: Sequence[float]) -> None:
    for before, after in pairwise(hours):
        if not after > before:
            raise PlumecastError(
                f"{where}hours must increase, but {after:g} h follows {before:g} h; sort the hours "
                "and give each once"
            )
        if after - before > MAX_GAP and after > 0.0:
            raise PlumecastError(
                f"{where}no wind between {before:g} h and {after:g} h, more than {MAX_GAP:g} h; "
                "add the hours between"
            )
    if hours[0] > LATE_START + _TOLERANCE:
        raise PlumecastError(
            f"{where}the weather begins {hours[0]:g} h after ignition; add the hours from 0 on, or "
            "check the ignition time"
        )
    if hours[-1] < 0.0:
        raise PlumecastError(
            f"{where}the weather ends {-hours[-1]:g} h before ignition; check the ignition time"
        )


def check_weather(weather: xr.Dataset, source: object = "weather") -> None:
    """Raise unless a Dataset has the names, axes and numbers of a weather."""
    hourly = is_hourly(weather) or not set(WIND) <= set(weather.variables)
    names = {name: TABLE[name].dims[1:] for name in WIND}
    if hourly:
        names = {entry.name: entry.dims[1:] for entry in WEATHER}
    for name, dims in names.items():
        if name not in weather.variables:
            raise PlumecastError(f"{source}: '{name}' is missing; is it a weather?")
        if weather[name].dims not in (dims, (FIRE_DIM, *dims)):
            raise PlumecastError(
                f"{source}: {name} has dimensions {weather[name].dims}; expected {dims} or "
                f"{(FIRE_DIM, *dims)}"
            )
    if not hourly:
        _check_winds(weather, source)
        return
    for fire, one in each_fire(weather):
        unknown = np.isnan(one["boundary_layer_depth"].values)
        if unknown.any():
            hour = float(weather[WEATHER_HOUR][int(np.argmax(unknown))])
            raise PlumecastError(
                f"{place(source, fire)}boundary_layer_depth is not a number (NaN) at hour {hour:g}"
            )
        _check_soundings(source, fire, _soundings_of(one))


def _check_winds(weather: xr.Dataset, source: object) -> None:
    """Raise unless the winds of fires that have no hours can be true."""
    names: list[str | None] = [*fires_of(weather)] or [None]
    speeds, directions = (np.ravel(weather[name].values).tolist() for name in WIND)
    for fire, speed, direction in zip(names, speeds, directions, strict=True):
        if not 0.0 <= speed <= SURFACE_WIND_LIMIT:
            advice = CHECK_UNIT if speed > 0.0 else "give a speed of 0 or more"
            raise PlumecastError(f"{place(source, fire)}a wind of {speed:g} m/s; {advice}")
        check_direction(place(source, fire), direction)


def check_direction(where: str, direction: float) -> None:
    """Raise unless a direction is one that a wind can come from."""
    if not 0.0 <= direction <= 360.0:
        raise PlumecastError(
            f"{where}wind direction {direction:g}; give the direction that it comes from, 0 to 360 "
            "degrees (270 is a west wind)"
        )


def check_covers(
    weather: xr.Dataset, hours: float | Mapping[str, float], source: object | None = None
) -> None:
    """Raise if a weather ends before a fire does; one wind for the whole fire does not end.

    `hours` is the last hour since ignition of all fires, or of each by `fire_id`.
    """
    if not is_hourly(weather):
        return
    where = weather.attrs.get("weather_source", "weather") if source is None else source
    ends = weather[WEATHER_END] if WEATHER_END in weather.coords else weather[WEATHER_HOUR][-1]
    names: list[str | None] = [*fires_of(weather)] or [None]
    ends_of = dict(zip(names, np.ravel(ends).tolist(), strict=True))
    lasts: dict[str | None, float] = {}
    if isinstance(hours, Mapping):
        check_fires(weather, list(hours), where)
        lasts |= {name: float(last) for name, last in hours.items()}
    else:
        lasts |= dict.fromkeys(ends_of, float(hours))
    for name, last in lasts.items():
        end = ends_of[name] if name in ends_of else ends_of[None]
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
    where = weather.attrs.get("weather_source", "weather") if source is None else source
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
