"""The weather of snapshots: hourly winds and boundary layers as arrays, one row per snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import HEIGHT, SNAPSHOT, TABLE, WEATHER, WEATHER_HOUR
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.data.checks.weather import impossible_weather, needed_hours
from plumecast.data.conditions.covariates import WIND, read_scalar

WEATHER_NAMES = tuple(entry.name for entry in WEATHER)

SURFACE = 10.0
"""Height of the scalar winds, m."""

_SHORT = ("u", "v", "depth")
_SHORTEST = 1e-3  # h; a snapshot at ignition has the wind of that time
_HOURS_TOLERANCE = 0.01  # h; hours of fires are rounded, and counted from a second
_BLOCK = 256  # snapshots read at once

SOURCE_ATTRIBUTES = ("weather_source", "weather_kind", "weather_comment")
"""Attributes of snapshots that say where a stated weather comes from and what was filled in."""

STATE_WEATHER = (
    "give --weather FILE (a table, a FARSITE stream or a NetCDF extract) to ingest, predict or "
    "ensemble, or a constant wind with --wind-speed and --wind-from (in Python: pc.with_weather)"
)
"""The next step for a user whose fires have no weather."""


def has_weather(data: xr.Dataset) -> bool:
    """Whether snapshots have hourly weather."""
    return all(name in data.variables for name in WEATHER_NAMES)


def with_mean_winds(snapshots: xr.Dataset) -> xr.Dataset:
    """Snapshots with the scalar winds of their weather, if they have a weather and no such winds.

    The speed is the mean of the 10 m speeds from ignition to the snapshot's hour and the direction
    that of the mean vector, both by the trapezoidal rule on the hourly winds. Nothing is derived
    from a weather whose lowest wind is above 10 m, or without the hours of the snapshots.
    """
    derived = [TABLE[name] for name in WIND]
    known = any(entry.name in snapshots.variables for entry in derived)
    needed = has_weather(snapshots) and "hours" in snapshots.variables
    if known or not needed or snapshots[HEIGHT].values[0] > SURFACE:
        return snapshots
    rows = row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK)
    parts = [_mean_winds(snapshots.isel({SNAPSHOT: part})) for part in rows]
    values = zip(*parts, strict=True)
    return snapshots.assign_coords(
        {
            entry.name: (SNAPSHOT, np.concatenate(list(part)), entry.attrs)
            for entry, part in zip(derived, values, strict=True)
        }
    )


def _mean_winds(snapshots: xr.Dataset) -> tuple[Array, Array]:
    """(M,) mean speed and direction that the wind came from, in degrees."""
    weather = _read_rows(snapshots, {SNAPSHOT: snapshots.sizes[SNAPSHOT]})
    levels = np.log(weather["heights"])
    upper = min(max(int(np.searchsorted(levels, np.log(SURFACE))), 1), levels.size - 1)
    winds = []
    for row, until in enumerate(snapshots["hours"].values.tolist()):
        components = (weather[name][row] for name in ("u", "v"))
        u, v = (_at_surface(wind, levels, upper) for wind in components)
        winds.append(mean_wind(weather["hours"], u, v, float(until)))
    speed, direction = np.array(winds, dtype=np.float64).reshape(-1, 2).T
    return speed, direction


def _at_surface(wind: Array, levels: Array, upper: int) -> Array:
    """(H,) wind at 10 m, linear in ln z, from (H, Z) at heights whose first is at most 10 m."""
    known = np.where(np.isfinite(wind), wind, np.nan)
    if levels.size == 1 or levels[upper - 1] == np.log(SURFACE):
        return known[:, max(upper - 1, 0)]
    below, above = levels[upper - 1], levels[upper]
    share = min((np.log(SURFACE) - below) / (above - below), 1.0)
    return np.asarray((1.0 - share) * known[:, upper - 1] + share * known[:, upper])


def mean_wind(hours: Array, u: Array, v: Array, until: float) -> tuple[float, float]:
    """Mean from ignition to `until` of a wind that is linear between the hours (H,).

    Returns the mean speed and the direction, in degrees, that the mean vector comes from.
    """
    last = max(until, _SHORTEST)
    times = np.concatenate([[0.0], hours[(hours > 0.0) & (hours < last)], [last]])
    east, north = (np.interp(times, hours, wind) for wind in (u, v))
    speed = float(np.trapezoid(np.hypot(east, north), times)) / last
    towards = np.arctan2(np.trapezoid(east, times), np.trapezoid(north, times))
    return speed, float((np.rad2deg(towards) + 180.0) % 360.0)


def on_weather_hours(fire: xr.Dataset, hours: Array) -> xr.Dataset:
    """The fire with its weather on the hours of another one, of a store for instance.

    Hours that the fire does not reach may be dropped or added, the latter with the last values. A
    fire whose weather has other hours, or that lasts longer than `hours`, is returned as it is.
    """
    if not has_weather(fire) or np.array_equal(fire[WEATHER_HOUR].values, hours):
        return fire
    own = fire[WEATHER_HOUR].values
    shared = min(own.size, hours.size)
    lasts = float(fire["hours"].max()) if "hours" in fire.variables else float(own[-1])
    if not np.array_equal(own[:shared], hours[:shared]) or lasts > (
        hours[shared - 1] + _HOURS_TOLERANCE
    ):
        return fire
    return _with_hours(fire, hours)


def without_weather(data: xr.Dataset) -> xr.Dataset:
    """Snapshots without hourly weather, its axes and its attributes."""
    kept = data.drop_vars([*WEATHER_NAMES, WEATHER_HOUR, HEIGHT], errors="ignore")
    kept.attrs = {key: value for key, value in data.attrs.items() if key not in SOURCE_ATTRIBUTES}
    return kept


def pad_weather(data: xr.Dataset, last: float) -> xr.Dataset:
    """Snapshots whose weather has the hours 0, 1, … `last`; their last hour is repeated.

    Raises if the weather is longer: its end is not cut off.
    """
    hours = data[WEATHER_HOUR].values
    wanted = np.arange(last + 1.0)
    if np.array_equal(hours, wanted):
        return data
    if not np.array_equal(hours, wanted[: hours.size]):
        raise PlumecastError(
            f"the weather has the hours {hours[0]:g} to {hours[-1]:g}, which are not hourly from 0 "
            f"to at most {last:g}"
        )
    return _with_hours(data, wanted)


def hold_weather(data: xr.Dataset, until: float) -> xr.Dataset:
    """Snapshots whose weather has one more hour, `until`, with the values of the last one."""
    return _with_hours(data, np.append(data[WEATHER_HOUR].values, until))


def _with_hours(data: xr.Dataset, hours: Array) -> xr.Dataset:
    """Snapshots with the first values of their weather, or the last one repeated, at `hours`."""
    axis = data[WEATHER_HOUR]
    chosen = data.isel({WEATHER_HOUR: np.minimum(np.arange(hours.size), axis.size - 1)})
    return chosen.assign_coords({WEATHER_HOUR: (WEATHER_HOUR, hours, axis.attrs)})


def read_weather_rows(
    data: xr.Dataset, sizes: Mapping[Hashable, int] | None = None
) -> dict[str, Array]:
    """Hours (H,), heights (Z,), and per row u, v (M, H, Z) and depth (M, H).

    Rows are all combinations of the dimensions in `sizes`, in C order; by default the snapshots. A
    weather is repeated along the dimensions that it lacks. Missing values after the hour of a
    snapshot, which are not needed, become the last one before.
    """
    rows: dict[Hashable, int] = {}
    rows |= {SNAPSHOT: data.sizes[SNAPSHOT]} if sizes is None else dict(sizes)
    found = _read_rows(data, rows)
    axis = found["hours"]
    until = read_scalar(data, "hours", rows) if "hours" in data.variables else None
    needed = needed_hours(axis, until, found["depth"].shape[0])
    part = [found[short] for short in _SHORT]
    for row, text in impossible_weather(found["heights"], part, needed, axis):
        raise PlumecastError(f"the weather of {_who(data, row)}: {text}")
    return found


def _read_rows(data: xr.Dataset, rows: Mapping[Hashable, int]) -> dict[str, Array]:
    """The arrays of `read_weather_rows`, with NaN where a needed value is missing."""
    found: dict[str, Array] = {
        "hours": data[WEATHER_HOUR].values.astype(np.float64),
        "heights": data[HEIGHT].values.astype(np.float64),
    }
    until = read_scalar(data, "hours", rows) if "hours" in data.variables else None
    for short, name in zip(_SHORT, WEATHER_NAMES, strict=True):
        values = _rows(data, name, rows)
        found[short] = values if until is None else _fill_later(values, found["hours"], until)
    return found


def _fill_later(values: Array, hours: Array, until: Array) -> Array:
    """(M, H, …) values, with those missing after the hour (M,) of a row as the last before."""
    missing = ~np.isfinite(values)
    if not missing.any():
        return values
    last = np.minimum(np.searchsorted(hours, until - _HOURS_TOLERANCE), hours.size - 1)
    kept = np.minimum(np.arange(hours.size), last[:, None])
    held = values[np.arange(values.shape[0])[:, None], kept]
    return np.where(missing, held, values)


def _rows(data: xr.Dataset, name: str, rows: Mapping[Hashable, int]) -> Array:
    variable = data[name].variable
    own = [dim for dim in (WEATHER_HOUR, HEIGHT) if dim in variable.dims]
    beyond = [str(dim) for dim in variable.dims if dim not in rows and dim not in own]
    if beyond:
        raise PlumecastError(
            f"'{name}' has dimension '{beyond[0]}', which the fires lack; give one weather per fire"
        )
    ones = xr.Variable(list(rows), np.empty(list(rows.values())))
    (wide, _) = xr.broadcast(xr.DataArray(variable), xr.DataArray(ones))
    values = wide.transpose(*rows, *own).values
    shaped: Array = values.reshape(-1, *(variable.sizes[dim] for dim in own)).astype(np.float64)
    return shaped


def _who(data: xr.Dataset, row: int) -> str:
    if "fire_id" in data.variables and data["fire_id"].dims == (SNAPSHOT,):
        return f"fire '{data['fire_id'].values[row]}'"
    return f"row {row}"
