"""The weather and the fuel of labelled snapshots for the physics of an operator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE
from plumecast.compute.arrays import Array, is_numpy_array
from plumecast.data.conditions.covariates import WIND, read_scalar, wind_vector
from plumecast.data.conditions.fuels import read_fuel_maps
from plumecast.data.conditions.weather import STATE_WEATHER, has_weather, read_weather_rows
from plumecast.operators.physics.fuels import FuelLoads
from plumecast.operators.physics.release import FireHistory
from plumecast.operators.physics.weather import WeatherSeries
from plumecast.sources.weather.default import (
    HEIGHTS,
    LOCAL_HOUR,
    POWER_LAW_TOP,
    SURFACE,
    TURNING_DEPTH,
    VEER,
    default_depth,
    shear_exponent,
)
from plumecast.surrogate.covered.ranges import snapshot_hours


def weather_known(data: xr.Dataset) -> bool:
    """Whether fires can be carried: hours are known, and hourly weather or at least a mean wind."""
    return "hours" in data.variables and (
        has_weather(data) or all(name in data.variables for name in WIND)
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
    `sources.weather`. Constants that were chosen for this profile do not suit others: with `kind`
    "mean wind" the mean is used even where hourly weather is known.
    """
    until = snapshot_hours(data, sizes)
    if until is None:
        raise PlumecastError(
            "this surrogate carries smoke by the weather, for which it needs the coordinate "
            "'hours' of every snapshot"
        )
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
    heights = np.asarray(HEIGHTS)
    local = LOCAL_HOUR + hours
    depth = default_depth(local)
    exponent = shear_exponent(local)[:, None]
    growth = (np.clip(heights, SURFACE, POWER_LAW_TOP) / SURFACE) ** exponent  # (H, Z)
    top = np.maximum(depth, TURNING_DEPTH)[:, None]
    turn = np.deg2rad(VEER) * (np.clip(heights, SURFACE, top) - SURFACE) / top
    east, north = (wind[:, part, None, None] for part in (0, 1))
    u = growth * (np.cos(turn) * east + np.sin(turn) * north)
    v = growth * (np.cos(turn) * north - np.sin(turn) * east)
    return WeatherSeries(
        hours, heights, u, v, np.broadcast_to(depth, (until.size, depth.size)), until
    )


def fuel_loads(
    data: xr.Dataset, grid: Sequence[Hashable], sizes: Mapping[Hashable, int] | None = None
) -> FuelLoads | None:
    """The fuel load of every row on the dimensions `grid`; None where it is unknown."""
    found = read_fuel_maps(data, grid, sizes)
    return None if found is None else FuelLoads(*found)


GROWTH_TOLERANCE = 0.1
"""Ages of one fire may fall, or grow faster than time, by this share of the time between two
snapshots: WRF moves arrival times a little. More means that two fires have one name."""


def fire_history(data: xr.Dataset, fire: Array) -> FireHistory | None:
    """The snapshots (M, ny, nx) of every fire up to its own hour; None if they are not labelled.

    Snapshots that cannot be of one fire, with the same hour or with ages that do not grow with
    time, stand alone.
    """
    if not {"fire_id", "hours"} <= set(data.variables) or len(fire.shape) != 3:
        return None
    try:
        names = read_scalar(data, "fire_id", None)
        hours = read_scalar(data, "hours", None).astype(np.float64)
    except (PlumecastError, ValueError):
        return None
    if hours.shape != (fire.shape[0],) or names.shape != hours.shape:
        return None
    order = np.lexsort((hours, names.astype(str)))
    starts = np.flatnonzero(np.r_[True, names[order][1:] != names[order][:-1]])
    runs = [_one_fire(rows, hours, fire) for rows in np.split(order, starts[1:])]
    rows = np.full((order.size, max((len(run) for run in runs), default=1)), -1, dtype=np.int64)
    rows[:, -1] = np.arange(order.size)
    for run in runs:
        for place, row in enumerate(run):
            rows[row, -place - 1 :] = run[: place + 1]
    return FireHistory(fire, hours, rows)


def _one_fire(rows: Array, hours: Array, fire: Array) -> Array:
    """Rows, ascending in time, that can be snapshots of one fire; none if they cannot."""
    gaps = np.diff(hours[rows])
    if (gaps <= 0.0).any():
        return rows[:0]
    if is_numpy_array(fire):  # stored fires were checked when they were written
        for before, after, gap in zip(rows[:-1], rows[1:], gaps, strict=True):
            grown = fire[after] - fire[before]
            slack = GROWTH_TOLERANCE * gap
            if grown.min() < -slack or grown.max() > gap + slack:
                return rows[:0]
    return rows


def checkpoint_interval(data: xr.Dataset) -> float:
    """Hours between the checkpoints that smoke is summed over; 1 if it is not recorded."""
    interval = recorded_interval(data[SMOKE].attrs) if SMOKE in data.variables else None
    return 1.0 if interval is None or not interval > 0.0 else interval
