"""Weather as a Dataset: hourly, from soundings at any hours and heights, or one wind of a fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.names import (
    HEIGHT,
    IGNITION_TIME,
    SNAPSHOT,
    TABLE,
    WEATHER_HOUR,
    WEATHER_NAMES,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.physics.air import NIGHT_DEPTH
from plumecast.weather.checks import (
    FIRE_DIM,
    WEATHER_END,
    Sounding,
    check_soundings,
    check_weather,
    each_fire,
    is_hourly,
    soundings_of,
)
from plumecast.weather.options import GRID, TRUE, DefaultProfile
from plumecast.weather.profile import (
    HEIGHTS,
    LOCAL_HOUR,
    complete_profile,
    default_depth,
)

NORTH = "wind_north"
"""Attribute of a weather: whether its winds count from true north or, as those of snapshots and of
weathers without the attribute, from the north of the grid."""


@dataclass(frozen=True, slots=True)
class Series:
    """The soundings of one fire in time order."""

    soundings: Sequence[Sounding]
    fire: str | None = None
    local_hour: float | None = None  # local solar time at ignition; None: the default


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a weather comes from, for its attributes and for messages."""

    source: object
    kind: str
    notes: Mapping[str, str] = field(default_factory=dict)
    ignition: str | None = None  # local time that hours are counted from, where it has a year
    north: str = GRID  # that its directions count from


def hourly_dataset(series: Sequence[Series], origin: Origin, profile: DefaultProfile) -> xr.Dataset:
    """Hourly weather of one fire, or of several along `fire`.

    Winds are linear in time between the soundings. The first sounding is used from ignition on if
    it is up to an hour late. Fires may end at different hours, which `weather_end` records; after
    its end, and to complete its last hour, a fire keeps its last wind. `origin.notes` become the
    attribute `comment` of the variables they name, and `weather_comment` of the Dataset under "".
    """
    for one in series:
        check_soundings(origin.source, one.fire, one.soundings)
    ends = [one.soundings[-1].hour for one in series]
    times = np.arange(np.ceil(max(ends) - 1e-9) + 1.0)
    fires = [_hourly(one, times, profile) for one in series]
    lacking = [one.fire or "" for one in series if not _knows_depth(one)]
    notes = {**origin.notes, "boundary_layer_depth": _depth_note(lacking, series, profile)}
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
    return xr.Dataset(variables, coords=coordinates, attrs=_attributes(origin))


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
    weather = xr.Dataset(winds, coords=_fire_names(fires), attrs=_attributes(origin))
    check_weather(weather, origin.source)
    return weather


def as_hourly(weather: xr.Dataset, source: object) -> xr.Dataset:
    """A checked weather at the hours and heights that snapshots are stored with."""
    check_weather(weather, source)
    if not is_hourly(weather):
        return weather
    hours = weather[WEATHER_HOUR].values
    if np.array_equal(weather[HEIGHT].values, HEIGHTS) and np.array_equal(
        hours, np.arange(hours.size)
    ):
        return weather
    series = [Series(soundings_of(one, _fire_end(one)), fire) for fire, one in each_fire(weather)]
    note = {"": str(weather.attrs.get("weather_comment", ""))}
    origin = Origin(source, "weather", note, north=str(weather.attrs.get(NORTH, GRID)))
    return hourly_dataset(series, origin, DefaultProfile())


def _fire_end(weather: xr.Dataset) -> float:
    """Hour up to which the weather of one fire is known."""
    has_end = WEATHER_END in weather.coords
    return float(weather[WEATHER_END] if has_end else weather[WEATHER_HOUR][-1])


def _fire_names(fires: Sequence[str] | None) -> dict[str, Any]:
    if fires is None:
        return {}
    return {"fire_id": (FIRE_DIM, np.array(fires, dtype=object), TABLE["fire_id"].attrs)}


def _attributes(origin: Origin) -> dict[str, str]:
    attributes = {
        "Conventions": "CF-1.11",
        "weather_source": str(origin.source),
        "weather_kind": origin.kind,
    }
    if origin.north == TRUE:
        attributes[NORTH] = TRUE
    if origin.notes.get(""):
        attributes["weather_comment"] = origin.notes[""]
    if origin.ignition is not None:
        attributes[IGNITION_TIME] = origin.ignition
    return attributes


def _hourly(series: Series, times: Array, profile: DefaultProfile) -> dict[str, Array]:
    """wind_u, wind_v (hour, height) and boundary_layer_depth (hour) of one fire."""
    at_ignition = LOCAL_HOUR if series.local_hour is None else series.local_hour
    soundings = _at_each(series.soundings, times)
    hours = np.array([sounding.hour for sounding in soundings])
    depths = _depths(series, hours, at_ignition, profile)
    profiles = np.array(
        [
            complete_profile(
                (sounding.height, sounding.u, sounding.v),
                HEIGHTS,
                local_hour=at_ignition + sounding.hour,
                depth=float(depth),
                veer=profile.veer,
            )
            for sounding, depth in zip(soundings, depths, strict=True)
        ]
    )
    u, v = (
        np.stack([np.interp(times, hours, column) for column in profiles[:, part].T], axis=1)
        for part in (0, 1)
    )
    depth = _depths(series, times, at_ignition, profile)
    return {"wind_u": u, "wind_v": v, "boundary_layer_depth": depth}


def _at_each(soundings: Sequence[Sounding], times: Array) -> Sequence[Sounding]:
    """Soundings at these hours, if all have the same heights: each hour has a default profile.

    Winds are linear in between; before the first and after the last one they are held.
    """
    if any(not np.array_equal(one.height, soundings[0].height) for one in soundings):
        return soundings
    hours = np.array([one.hour for one in soundings])
    u, v = (
        np.stack([np.interp(times, hours, column) for column in np.transpose(part)], axis=1)
        for part in ([one.u for one in soundings], [one.v for one in soundings])
    )
    return [
        Sounding(hour, soundings[0].height, *winds)
        for hour, *winds in zip(times.tolist(), u, v, strict=True)
    ]


def _knows_depth(series: Series) -> bool:
    return any(np.isfinite(sounding.depth) for sounding in series.soundings)


def _depths(series: Series, times: Array, at_ignition: float, profile: DefaultProfile) -> Array:
    """Depth at `times`: linear between the known ones, or the default cycle."""
    of_hours = [(s.hour, s.depth) for s in series.soundings if np.isfinite(s.depth)]
    if not of_hours:
        return default_depth(at_ignition + times, profile.day_depth)
    hours, depths = np.array(of_hours).T
    return np.interp(times, hours, depths)


def _depth_note(lacking: Sequence[str], series: Sequence[Series], profile: DefaultProfile) -> str:
    if not lacking:
        return "from the source"
    at = series[0].local_hour
    start = f"{LOCAL_HOUR:g} h assumed" if at is None else f"{at:.4g} h"
    which = f" for fires {', '.join(lacking)}" if len(lacking) < len(series) else ""
    return (
        f"default cycle{which}: {NIGHT_DEPTH:g} m at night, {profile.day_depth:g} m at 15 h local "
        f"time (local time at ignition: {start})"
    )
