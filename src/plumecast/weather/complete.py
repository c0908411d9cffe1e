"""Complete the weather of snapshots: a missing boundary layer, and winds at a few heights alone."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR as IGNITION_LOCAL_HOUR
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import HEIGHT, TABLE, WEATHER_HOUR, WEATHER_NAMES
from plumecast.compute.arrays import Array
from plumecast.weather.profile import (
    HEIGHTS,
    LOCAL_HOUR,
    POWER_LAW_TOP,
    SURFACE,
    default_depth,
    extend_profile,
)

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
        reach = f"{'at' if heights.size == 1 else 'up to'} {heights[-1]:g} m"
        said.append(f"winds {reach} alone: extended upwards by the default profile")
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
        extend_profile(
            (u[..., [k]], v[..., [k]]),
            heights[k],
            HEIGHTS,
            local_hour=local[:, None],
            depth=depth[..., [k]],
        )
        for k in (0, -1)
    )
    low, high = (np.asarray(HEIGHTS) < heights[0]), (np.asarray(HEIGHTS) > heights[-1])
    axis = np.concatenate([np.asarray(HEIGHTS)[low], heights, np.asarray(HEIGHTS)[high]])
    made = {
        name: np.concatenate([first[..., low], part, last[..., high]], axis=-1)
        for name, part, first, last in zip((U, V), (u, v), below, above, strict=True)
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
