"""The weather and the fuel of labelled snapshots for the physics of an operator."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT, WEATHER_HOUR, WIND
from plumecast.compute.arrays import Array
from plumecast.data.clock import LABELS, Histories, checkpoint_interval
from plumecast.data.covariates import read_fuel_maps, read_scalar, wind_vector
from plumecast.operators.carried.release import FireHistory, FuelLoads, WeatherSeries
from plumecast.surrogate.ranges import snapshot_hours
from plumecast.weather.profile import HEIGHTS, LOCAL_HOUR, SURFACE, default_depth, extend_profile
from plumecast.weather.snapshots import (
    STATE_WEATHER,
    CompletedWeather,
    check_weather_covers,
    complete_weather,
    has_weather,
    read_weather_rows,
)


def note_constant_wind(data: xr.Dataset, trained: str | None) -> None:
    """Warn where fires have a mean wind alone, and those of training had an hourly weather."""
    if trained == HOURLY and WEATHER_HOUR not in data.dims:
        warnings.warn(
            "the wind of these fires is taken as constant since ignition, with the default profile "
            "above 10 m and the default boundary layer; an hourly weather is better",
            CompletedWeather,
            stacklevel=4,
        )


LONGEST = 8784.0
"""Hours of a leap year; no fire is carried for longer with a constant wind."""

HOURLY, MEAN_WIND = "hourly", "mean wind"
"""What the training fires of a surrogate with carried smoke had."""


def weather_series(
    data: xr.Dataset, sizes: Mapping[Hashable, int] | None = None, *, kind: str = HOURLY
) -> WeatherSeries:
    """The weather of every row; raises if it is unknown.

    Where only a mean wind is known, it is constant in time, with the default profile of
    `weather.profile`. Constants that were chosen for this profile do not suit others: with `kind`
    "mean wind" the mean is used even where hourly weather is known.
    """
    until = snapshot_hours(data, sizes)
    data = complete_weather(data)
    if until is None:
        raise PlumecastError(
            "this surrogate carries smoke by the weather, for which it needs the coordinate "
            "'hours' of every snapshot"
        )
    check_weather_covers(data, until if kind == HOURLY else None)
    if has_weather(data) and kind == HOURLY:
        return WeatherSeries(**read_weather_rows(data, sizes), until=until)
    missing = [name for name in WIND if name not in data.variables]
    if missing:
        raise PlumecastError(
            "this surrogate was trained with the weather of every fire, which these fires lack; "
            f"{STATE_WEATHER}"
        )
    wind = wind_vector(*(read_scalar(data, name, sizes) for name in WIND))
    return constant_series(wind, until)


def constant_series(wind: Array, until: Array) -> WeatherSeries:
    """(M, 2) mean 10 m winds as weather with the default profile and boundary layer."""
    if (longest := float(np.max(until, initial=0.0))) > LONGEST:
        raise PlumecastError(
            f"{longest:g} h since ignition are more than the {LONGEST:g} h over which smoke is "
            "carried; check the unit of the hours, or predict fewer"
        )
    hours = np.arange(np.ceil(float(np.max(until, initial=1.0))) + 1.0)
    heights, local = np.asarray(HEIGHTS), LOCAL_HOUR + hours
    depth = np.broadcast_to(default_depth(local), (until.size, hours.size))
    east, north = (np.broadcast_to(wind[:, part, None], depth.shape)[..., None] for part in (0, 1))
    u, v = extend_profile(
        (east, north), SURFACE, heights, local_hour=local[:, None], depth=depth[..., None]
    )
    return WeatherSeries(hours, heights, u, v, depth, until)


def fuel_loads(
    data: xr.Dataset, grid: Sequence[Hashable], sizes: Mapping[Hashable, int] | None = None
) -> FuelLoads | None:
    """The fuel load of every row on the dimensions `grid`; None where it is unknown."""
    found = read_fuel_maps(data, grid, sizes)
    return None if found is None else FuelLoads(*found)


def fire_history(
    data: xr.Dataset, fire: Array, grid: Sequence[Hashable] = ("y", "x")
) -> FireHistory | None:
    """What tells when the fires of (M, ny, nx) snapshots burned; None if these are not labelled.

    It is what `data.clock` finds in the snapshots of each fire, also in later ones: what burned by
    an hour is one function of time. Otherwise a snapshot has its own map.
    """
    count, known = fire.shape[0], set(LABELS) <= set(data.variables)
    if not known or len(fire.shape) != 3 or data.sizes.get(SNAPSHOT) != count:
        return None
    try:
        told = Histories.of(data, fire, grid)
    except (PlumecastError, ValueError):
        return None
    every = told.of_every()
    made = np.full((count, max(1, *(own.size for own in every))), -1, dtype=np.int64)
    for row, numbers in enumerate(every):
        own = numbers if numbers.size else np.array([row])
        if own[0] >= count:  # shares up to the hour of the snapshot
            own = own[: 1 + (told.times[own] < told.hours[row]).sum()]
        made[row, -own.size :] = own
    made = made[:, made.max(axis=0) >= 0]
    return FireHistory(told if len(told.places) else fire, told.times, made, count)


def frame_interval(data: xr.Dataset) -> float:
    """Hours between the frames that smoke is a sum over; raises if they are unknown."""
    interval = checkpoint_interval(data)
    if interval is None or not interval > 0.0:
        raise PlumecastError(
            "the hours between the frames that smoke is a sum over are not recorded, and those "
            "between snapshots differ, so that smoke cannot be carried to the same frames; set "
            f"the attribute '{INTERVAL}' of '{SMOKE}', or use physics 'none'"
        )
    return interval
