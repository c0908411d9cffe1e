"""Weather that the user states: one for all fires, or a file with the weather of every fire."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import HEIGHT, IGNITION_TIME, SNAPSHOT, TABLE, WEATHER_HOUR
from plumecast.compute.arrays import Array
from plumecast.data.conditions.covariates import WIND
from plumecast.data.conditions.weather import SOURCE_ATTRIBUTES, WEATHER_NAMES, without_weather
from plumecast.data.split import group_rows
from plumecast.sources.weather import (
    check_covers,
    check_fires,
    check_weather,
    read_weather,
)
from plumecast.sources.weather.checks import each_fire
from plumecast.sources.weather.default import SURFACE
from plumecast.sources.weather.series import mean_wind


@dataclass(frozen=True, slots=True)
class Weather:
    """A weather of `read_weather` or `constant_weather`: one for all fires, or one of each."""

    source: str  # the file, for messages
    data: xr.Dataset

    def check_fires(self, names: Collection[str]) -> None:
        """Raise if the weather is for other fires, or lacks one of these."""
        check_fires(self.data, names, self.source)


WeatherGiven: TypeAlias = Weather | xr.Dataset | str | Path
"""A weather of `read_weather` or `constant_weather`, or a file for `read_weather`."""


def as_weather(weather: WeatherGiven) -> Weather:
    """Check the weather that was given, or read its file."""
    if isinstance(weather, Weather):
        return weather
    if isinstance(weather, xr.Dataset):
        source = str(weather.attrs.get("weather_source", "the weather"))
        check_weather(weather, source)
        return Weather(source, weather)
    return Weather(str(weather), read_weather(weather))


def with_weather(snapshots: xr.Dataset, weather: WeatherGiven) -> xr.Dataset:
    """Snapshots with the hourly weather of their fires and the mean winds that follow from it.

    `weather` is a result of `read_weather` or `constant_weather`, or the path of a file that needs
    no options. A weather of several fires is matched by `fire_id`; another one is that of all
    fires. `wind_speed` and `wind_from_direction` become the mean 10 m wind from ignition to the
    snapshot. Weather and winds that the snapshots have are replaced. Raises if the weather ends
    before a fire does, or is for other fires.
    """
    given = as_weather(weather)
    names, hours = _labels(snapshots)
    given.check_fires(set(names.tolist()))
    last = {str(names[rows][0]): float(hours[rows].max()) for rows in group_rows(names)}
    check_covers(given.data, last, given.source)
    times = np.arange(max(1.0, np.ceil(max(last.values()))) + 1.0)
    values: dict[str, Array] = {}
    winds = np.empty((2, names.size))
    for fire, one in each_fire(given.data):
        hourly = {name: _at(one, name, times) for name in WEATHER_NAMES}
        own = np.arange(names.size) if fire is None else np.flatnonzero(names == fire)
        values = _placed(hourly, own, names.size, values)
        u, v = (hourly[name][:, _surface(one)] for name in WEATHER_NAMES[:2])
        winds[:, own] = mean_wind(times, u, v, hours[own])
    labelled = without_weather(snapshots).assign_coords(
        {
            WEATHER_HOUR: (WEATHER_HOUR, times, TABLE[WEATHER_HOUR].attrs),
            HEIGHT: (HEIGHT, given.data[HEIGHT].values, given.data[HEIGHT].attrs),
            **{
                name: (SNAPSHOT, row, TABLE[name].attrs)
                for name, row in zip(WIND, winds, strict=True)
            },
        }
    )
    made = labelled.assign(
        {name: (TABLE[name].dims, values[name], _attributes(given.data, name)) for name in values}
    )
    if IGNITION_TIME in given.data.attrs and IGNITION_TIME not in made.variables:
        started = np.full(names.size, given.data.attrs[IGNITION_TIME])
        made = made.assign_coords({IGNITION_TIME: (SNAPSHOT, started, TABLE[IGNITION_TIME].attrs)})
    known = {key: given.data.attrs[key] for key in SOURCE_ATTRIBUTES if key in given.data.attrs}
    return made.assign_attrs(known)


def _labels(snapshots: xr.Dataset) -> tuple[Array, Array]:
    """Names and hours of the snapshots."""
    for name in ("fire_id", "hours"):
        if name not in snapshots.variables:
            raise PlumecastError(
                f"the snapshots have no coordinate '{name}', which their weather needs; add it"
            )
    return snapshots.fire_id.values.astype(str), snapshots.hours.values.astype(np.float64)


def _placed(
    hourly: dict[str, Array], own: Array, count: int, values: dict[str, Array]
) -> dict[str, Array]:
    """`values` of all snapshots with those of one fire; one weather of all takes no memory."""
    if own.size == count:
        return {name: np.broadcast_to(one, (count, *one.shape)) for name, one in hourly.items()}
    for name, one in hourly.items():
        values.setdefault(name, np.empty((count, *one.shape), np.float32))[own] = one
    return values


def _surface(weather: xr.Dataset) -> int:
    """Index of the height of the surface wind."""
    return int(np.argmin(np.abs(weather[HEIGHT].values - SURFACE)))


def _at(weather: xr.Dataset, name: str, times: Array) -> Array:
    """Values at `times` (h), linear between the hours; the last value beyond the last hour."""
    own = weather[WEATHER_HOUR].values
    columns = weather[name].values.reshape(own.size, -1)
    found = np.stack([np.interp(times, own, column) for column in columns.T], axis=1)
    found = found.astype(np.float32)
    return found.reshape(times.size, *weather[name].shape[1:])


def _attributes(weather: xr.Dataset, name: str) -> dict[str, str]:
    comment = weather[name].attrs.get("comment")
    return {**TABLE[name].attrs, **({"comment": comment} if comment else {})}
