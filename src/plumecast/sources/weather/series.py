"""Soundings at any hours and heights → hourly weather at fixed heights, labelled; its mean wind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr

from plumecast.base.names import HEIGHT, IGNITION_TIME, TABLE, WEATHER_HOUR
from plumecast.compute.arrays import Array
from plumecast.sources.weather.checks import (
    FIRE_DIM,
    WEATHER_END,
    Sounding,
    check_soundings,
    each_fire,
    fire_end,
    soundings_of,
)
from plumecast.sources.weather.default import (
    HEIGHTS,
    LOCAL_HOUR,
    NIGHT_DEPTH,
    Rules,
    complete_profile,
    default_depth,
)


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


class Hourly(dict[str, Array]):
    """wind_u, wind_v (hour, height) and boundary_layer_depth (hour) of one fire."""


def hourly_dataset(series: Sequence[Series], rules: Rules, origin: Origin) -> xr.Dataset:
    """Hourly weather of one fire, or of several along `fire`.

    Winds are linear in time between the soundings. The first sounding is used from ignition on if
    it is up to an hour late. Fires may end at different hours, which `weather_end` records; after
    its end, and to complete its last hour, a fire keeps its last wind.
    """
    for one in series:
        check_soundings(origin.source, one.fire, one.soundings)
    ends = [one.soundings[-1].hour for one in series]
    times = np.arange(np.ceil(max(ends) - 1e-9) + 1.0)
    fires = [_hourly(one, times, rules) for one in series]
    lacking = [one.fire or "" for one in series if not _knows_depth(one)]
    notes = {**origin.notes, "boundary_layer_depth": _depth_note(lacking, series, rules)}
    several = len(series) > 1 or series[0].fire is not None
    if not several:
        return label_weather(times, fires[0], end=ends[0], origin=_with(origin, notes))
    stacked = Hourly({name: np.stack([one[name] for one in fires]) for name in fires[0]})
    return label_weather(
        times,
        stacked,
        end=np.array(ends),
        origin=_with(origin, notes),
        fires=[str(one.fire) for one in series],
    )


def is_hourly(weather: xr.Dataset) -> bool:
    """Whether a weather has the hours and heights that snapshots are stored with."""
    hours = weather[WEATHER_HOUR].values
    return np.array_equal(weather[HEIGHT].values, HEIGHTS) and np.array_equal(
        hours, np.arange(hours.size)
    )


def to_series(weather: xr.Dataset, source: object) -> tuple[list[Series], Origin]:
    """The soundings of a weather that has other hours or heights."""
    series = [
        Series(list(soundings_of(one, fire_end(one))), fire) for fire, one in each_fire(weather)
    ]
    return series, Origin(source, "weather", {"": str(weather.attrs.get("weather_comment", ""))})


def label_weather(
    times: Array,
    values: Mapping[str, Array],
    *,
    end: Array,
    origin: Origin,
    fires: Sequence[str] | None = None,
    heights: Sequence[float] = HEIGHTS,
) -> xr.Dataset:
    """A Dataset with CF attributes; with `fires`, the arrays have a leading dimension `fire`.

    `origin.notes` become the attribute `comment` of the variables they name, and
    `weather_comment` of the Dataset under the name "".
    """
    lead = () if fires is None else (FIRE_DIM,)
    dims = {"boundary_layer_depth": (*lead, WEATHER_HOUR)}
    variables = {
        name: (
            dims.get(name, (*lead, WEATHER_HOUR, HEIGHT)),
            array,
            {
                **TABLE[name].attrs,
                **({"comment": origin.notes[name]} if origin.notes.get(name) else {}),
            },
        )
        for name, array in values.items()
    }
    coordinates = {
        WEATHER_HOUR: (WEATHER_HOUR, np.asarray(times, float), TABLE[WEATHER_HOUR].attrs),
        HEIGHT: (HEIGHT, np.array(heights, float), {**TABLE[HEIGHT].attrs, "positive": "up"}),
        WEATHER_END: (
            lead,
            end,
            {"units": "h", "long_name": "hour since ignition up to which the weather is known"},
        ),
    }
    if fires is not None:
        coordinates["fire_id"] = (FIRE_DIM, np.array(fires, dtype=object), TABLE["fire_id"].attrs)
    attributes = {
        "Conventions": "CF-1.11",
        "weather_source": str(origin.source),
        "weather_kind": origin.kind,
    }
    if origin.notes.get(""):
        attributes["weather_comment"] = origin.notes[""]
    if origin.ignition is not None:
        attributes[IGNITION_TIME] = origin.ignition
    return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def _with(origin: Origin, notes: Mapping[str, str]) -> Origin:
    return replace(origin, notes=notes)


def _hourly(series: Series, times: Array, rules: Rules) -> Hourly:
    at_ignition = LOCAL_HOUR if series.local_hour is None else series.local_hour
    soundings = _at_each(series.soundings, times)
    hours = np.array([sounding.hour for sounding in soundings])
    depths = _depths(series, hours, at_ignition, rules)
    profiles = np.array(
        [
            complete_profile(
                (sounding.height, sounding.u, sounding.v),
                HEIGHTS,
                local_hour=at_ignition + sounding.hour,
                depth=float(depth),
                veer=rules.veer,
            )
            for sounding, depth in zip(soundings, depths, strict=True)
        ]
    )
    u, v = (
        np.stack([np.interp(times, hours, column) for column in profiles[:, part].T], axis=1)
        for part in (0, 1)
    )
    depth = _depths(series, times, at_ignition, rules)
    return Hourly(wind_u=u, wind_v=v, boundary_layer_depth=depth)


def _at_each(known: Sequence[Sounding], times: Array) -> Sequence[Sounding]:
    """Soundings at these hours, if all have the same heights: each hour has a default profile.

    Winds are linear in between; before the first and after the last one they are held.
    """
    if any(not np.array_equal(one.height, known[0].height) for one in known):
        return known
    hours = np.array([one.hour for one in known])
    u, v = (
        np.stack([np.interp(times, hours, column) for column in np.transpose(part)], axis=1)
        for part in ([one.u for one in known], [one.v for one in known])
    )
    return [
        Sounding(hour, known[0].height, *winds)
        for hour, *winds in zip(times.tolist(), u, v, strict=True)
    ]


def _knows_depth(series: Series) -> bool:
    return any(np.isfinite(sounding.depth) for sounding in series.soundings)


def _depths(series: Series, times: Array, at_ignition: float, rules: Rules) -> Array:
    """Depth at `times`: linear between the known ones, or the default cycle."""
    known = [(s.hour, s.depth) for s in series.soundings if np.isfinite(s.depth)]
    if not known:
        return default_depth(at_ignition + times, rules.day_depth)
    hours, depths = np.array(known).T
    return np.interp(times, hours, depths)


def _depth_note(lacking: Sequence[str], series: Sequence[Series], rules: Rules) -> str:
    if not lacking:
        return "from the source"
    at = series[0].local_hour
    start = f"{LOCAL_HOUR:g} h assumed" if at is None else f"{at:.4g} h"
    which = f" for fires {', '.join(lacking)}" if len(lacking) < len(series) else ""
    return (
        f"default cycle{which}: {NIGHT_DEPTH:g} m at night, {rules.day_depth:g} m at 15 h local "
        f"time (local time at ignition: {start})"
    )


def mean_wind(hours: Array, u: Array, v: Array, at: Array) -> tuple[Array, Array]:
    """Mean of hourly winds (H,) from ignition to each hour of `at` (n,).

    Returns the mean of the speeds, m s⁻¹, and the direction that the mean vector comes from,
    degrees, both by the trapezoidal rule, as the simulator's. At hour 0 they are those of ignition.
    """
    means = [_mean(hours, u, v, float(hour)) for hour in at]
    speed, east, north = np.array(means).reshape(-1, 3).T
    return speed, (np.rad2deg(np.arctan2(east, north)) + 180.0) % 360.0


def _mean(hours: Array, u: Array, v: Array, until: float) -> tuple[float, float, float]:
    times = np.append(hours[(hours >= 0.0) & (hours < until)], until)
    east, north = (np.interp(times, hours, part) for part in (u, v))
    parts = (np.hypot(east, north), east, north)
    if times.size == 1:
        return float(parts[0][0]), float(east[0]), float(north[0])
    length = until - times[0]
    speed, mean_u, mean_v = (float(np.trapezoid(part, times)) / length for part in parts)
    return speed, mean_u, mean_v
