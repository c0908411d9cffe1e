"""The weather and the fuel of labelled snapshots for the physics of an operator."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.checkpoints import LOCAL_HOUR as IGNITION_LOCAL_HOUR
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import (
    HEIGHT,
    SMOKE,
    SNAPSHOT,
    TABLE,
    WEATHER_HOUR,
)
from plumecast.compute.arrays import Array
from plumecast.data.checks.checkpoints import checkpoint_interval
from plumecast.data.checks.weather import check_weather_covers
from plumecast.data.clock import LABELS, Histories
from plumecast.data.conditions.covariates import WIND, read_scalar, wind_vector
from plumecast.data.conditions.fuels import read_fuel_maps
from plumecast.data.conditions.weather import (
    STATE_WEATHER,
    WEATHER_NAMES,
    has_weather,
    read_weather_rows,
)
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
from plumecast.surrogate.ranges import snapshot_hours


def weather_known(data: xr.Dataset) -> bool:
    """Whether fires can be carried: hours are known, and hourly weather or at least a mean wind."""
    return "hours" in data.variables and (
        has_weather(data) or all(name in data.variables for name in WIND)
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
    `sources.weather`. Constants that were chosen for this profile do not suit others: with `kind`
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
    east, north = (np.broadcast_to(wind[:, part, None], depth.shape) for part in (0, 1))
    u, v = extended_profile((east, north), SURFACE, local=local, depth=depth)
    return WeatherSeries(hours, heights, u, v, depth, until)


def extended_profile(
    wind: tuple[Array, Array], height: float, *, local: Array, depth: Array
) -> tuple[Array, Array]:
    """(M, H) winds at one height → (M, H, Z) at HEIGHTS, by the default profile.

    `local` (H,) are hours of the day and `depth` (M, H) boundary layers. As `complete_profile` of
    `sources.weather`: a power law up to 300 m, and a turning across the boundary layer.
    """
    (east, north), heights = wind, np.asarray(HEIGHTS)
    known, at = (np.clip(z, SURFACE, POWER_LAW_TOP) for z in (height, heights))
    growth = (at / known) ** shear_exponent(local)[:, None]  # (H, Z)
    top = np.maximum(depth, TURNING_DEPTH)[..., None]
    lower = np.clip(np.minimum(height, heights), SURFACE, top)
    turn = np.deg2rad(VEER) * (np.clip(heights, SURFACE, top) - lower) / top
    u = growth * (np.cos(turn) * east[..., None] + np.sin(turn) * north[..., None])
    v = growth * (np.cos(turn) * north[..., None] - np.sin(turn) * east[..., None])
    return u, v


U, V, DEPTH = WEATHER_NAMES


def complete_weather(data: xr.Dataset) -> xr.Dataset:
    """Snapshots whose hourly weather is complete; a warning says what was filled in.

    A boundary layer that is missing is that of the hour of the day, and winds at one height, or at
    several below `POWER_LAW_TOP`, are extended by the default profile. Without hourly winds
    nothing is filled in.
    """
    if not all(name in data.variables and WEATHER_HOUR in data[name].dims for name in (U, V)):
        return data
    said = []
    lead = [dim for dim in data[U].dims if dim not in (WEATHER_HOUR, HEIGHT)]
    dims = (*lead, WEATHER_HOUR)
    known_hour = data.attrs.get(IGNITION_LOCAL_HOUR)
    local = float(LOCAL_HOUR if known_hour is None else known_hour) + data[WEATHER_HOUR].values
    if DEPTH not in data.variables:
        sizes = [data.sizes[dim] for dim in dims]
        depth = np.broadcast_to(default_depth(local), sizes).astype(np.float32)
        data = data.assign({DEPTH: (dims, depth, TABLE[DEPTH].attrs)})
        start = "assumed" if known_hour is None else "of ignition"
        said.append(
            f"no '{DEPTH}': taken from the hour of the day ({local[0]:g} h local time {start}), "
            f"{depth.min():.0f} to {depth.max():.0f} m"
        )
    levels = [HEIGHT in data[name].dims for name in (U, V)]
    if levels[0] != levels[1]:
        with_one = (U, V)[levels.index(True)]
        raise PlumecastError(
            f"'{with_one}' has heights and the other wind has none; give both at the same heights"
        )
    if levels[0] and HEIGHT not in data.variables:
        raise PlumecastError(f"the winds have no coordinate '{HEIGHT}'; add their heights in m")
    if not levels[0]:
        height = float(data[HEIGHT].values.item()) if HEIGHT in data.variables else SURFACE
        winds = data.drop_vars(HEIGHT, errors="ignore")
        data = winds.assign({name: winds[name].expand_dims({HEIGHT: [height]}) for name in (U, V)})
    heights = data[HEIGHT].values.astype(np.float64)
    if heights.size and heights[-1] < POWER_LAW_TOP and (np.diff(heights) > 0.0).all():
        data = _extended(data, local)
        known = f"{'at' if heights.size == 1 else 'up to'} {heights[-1]:g} m"
        said.append(f"winds {known} alone: extended upwards by the default profile")
    if said:
        warnings.warn(f"the weather has {'; '.join(said)}", CompletedWeather, stacklevel=3)
    return data


def _extended(data: xr.Dataset, local: Array) -> xr.Dataset:
    """Winds of some heights that rise, with those of the default profile below and above."""
    heights = data[HEIGHT].values.astype(np.float64)
    parts = xr.broadcast(data[U], data[V], data[DEPTH].astype(np.float64))
    lead = [dim for dim in parts[0].dims if dim not in (WEATHER_HOUR, HEIGHT)]
    dims = (*lead, WEATHER_HOUR, HEIGHT)
    sizes = [parts[0].sizes[dim] for dim in lead]
    u, v, depth = (
        part.transpose(*dims).values.astype(np.float64).reshape(-1, local.size, heights.size)
        for part in parts
    )
    below, above = (
        extended_profile((u[..., k], v[..., k]), heights[k], local=local, depth=depth[..., k])
        for k in (0, -1)
    )
    low, high = (np.asarray(HEIGHTS) < heights[0]), (np.asarray(HEIGHTS) > heights[-1])
    axis = np.concatenate([np.asarray(HEIGHTS)[low], heights, np.asarray(HEIGHTS)[high]])
    made = {
        name: np.concatenate([first[..., low], own, last[..., high]], axis=-1)
        for name, own, first, last in zip((U, V), (u, v), below, above, strict=True)
    }
    return (
        data.drop_vars([U, V, HEIGHT])
        .assign(
            {
                name: (dims, wind.astype(np.float32).reshape(*sizes, local.size, axis.size),
                       TABLE[name].attrs)
                for name, wind in made.items()
            }
        )
        .assign_coords({HEIGHT: (HEIGHT, axis, TABLE[HEIGHT].attrs)})
    )  # fmt: skip


class CompletedWeather(PlumecastWarning):
    """Parts of a weather were missing and were filled in."""


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
