"""The weather of snapshots: given to them, read from them, and the mean winds that follow from it.

The contract: hourly `wind_u`, `wind_v` (snapshot, weather_hour, height) and `boundary_layer_depth`
(snapshot, weather_hour), or only the mean wind since ignition. Directions count from the north of
the snapshots' grid; winds that count from true north are turned when they are given to fires.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.deprecated import deprecate
from plumecast.base.errors import PlumecastError
from plumecast.base.names import (
    FIRE,
    HEIGHT,
    IGNITION_TIME,
    SNAPSHOT,
    TABLE,
    WEATHER_HOUR,
    WEATHER_NAMES,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.weather.checks import (
    check_covers,
    check_fires,
    each_fire,
    fires_of,
    is_hourly,
)
from plumecast.weather.options import TRUE
from plumecast.weather.profile import SURFACE, mean_wind, surface_wind
from plumecast.weather.read import WeatherLike, as_weather, winds_as_weather
from plumecast.weather.series import NORTH
from plumecast.weather.snapshot_checks import HOURS_TOLERANCE, impossible_weather, needed_hours

_SHORT = ("u", "v", "depth")
_BLOCK = 256  # snapshots read at once

SOURCE_ATTRIBUTES = ("weather_source", "weather_kind", "weather_comment")
"""Attributes of snapshots that say where a weather comes from and what was filled in."""

STATE_WEATHER = (
    "give --weather FILE (a table, a FARSITE stream or a NetCDF extract) or one wind, --weather "
    "'12 mph from SW', to ingest, predict or ensemble (in Python: pc.weather.with_weather)"
)
"""The next step for a user whose fires have no weather or no wind."""

SAME_NORTH = 0.1
"""Where the north of a grid varies by no more than this, degrees, that of its centre is taken."""


def has_weather(data: xr.Dataset) -> bool:
    """Whether snapshots have hourly weather."""
    return all(name in data.variables for name in WEATHER_NAMES)


def with_weather(snapshots: xr.Dataset, weather: WeatherLike) -> xr.Dataset:
    """Snapshots with the weather of their fires, in place of the one that they have.

    An hourly weather adds its winds and boundary layers, and the mean 10 m winds from ignition to
    each snapshot. One wind for a whole fire becomes its mean wind since ignition; where smoke is
    carried, it is completed by the default profile and boundary layer. Winds that count from true
    north are turned to the grid of the snapshots, by the convergence of its projection at the fire.

    Parameters
    ----------
    snapshots : Dataset
        Snapshots with `fire_id` and, for an hourly weather, `hours`.
    weather : Dataset, path, pair or text
        A result of `read_weather` or `constant_weather`; the path of a file that needs no options;
        a wind for all fires as (speed, direction it comes from), such as ``(6.0, 240.0)`` in m/s
        and degrees or ``("12 mph", "SW")``, or as text such as ``"12 mph from SW"``. A weather of
        several fires is matched by `fire_id`; another one is that of all fires.

    Raises
    ------
    PlumecastError
        If the weather ends before a fire does, or is for other fires.
    """
    weather = as_weather(weather)
    source = weather.attrs.get("weather_source")
    angles = _north_angles(snapshots) if weather.attrs.get(NORTH) == TRUE else np.zeros(1)
    angles = np.broadcast_to(angles, snapshots.sizes[SNAPSHOT])
    rows_of = _rows_of_fires(snapshots, weather)
    check_fires(weather, rows_of, source)
    if not is_hourly(weather):
        return _with_winds(snapshots, weather, rows_of, angles)
    hours = snapshots["hours"].values.astype(np.float64)
    lasts = {name: float(hours[rows].max()) for name, rows in rows_of.items()}
    check_covers(weather, lasts, source)
    times = np.arange(max(1.0, np.ceil(max(lasts.values()))) + 1.0)
    values: dict[str, Array] = {}
    winds = np.empty((2, hours.size))
    for fire, one in each_fire(weather):
        rows = np.arange(hours.size) if fire is None else rows_of.get(fire, np.empty(0, np.intp))
        hourly = {name: _at(one, name, times) for name in WEATHER_NAMES if rows.size}
        for angle in np.unique(angles[rows]):
            same = rows[angles[rows] == angle]
            turned = _turned(hourly, float(angle))
            values = _placed(turned, same, hours.size, values)
            u, v = (surface_wind(one[HEIGHT].values, turned[name]) for name in WEATHER_NAMES[:2])
            winds[:, same] = mean_wind(times, u, v, hours[same])
    made = _with_mean_winds(without_weather(snapshots), winds).assign_coords(
        {
            WEATHER_HOUR: (WEATHER_HOUR, times, TABLE[WEATHER_HOUR].attrs),
            HEIGHT: (HEIGHT, weather[HEIGHT].values, weather[HEIGHT].attrs),
        }
    )
    made = made.assign(
        {name: (TABLE[name].dims, values[name], _attributes(weather, name)) for name in values}
    )
    if IGNITION_TIME in weather.attrs and IGNITION_TIME not in made.variables:
        started = np.full(hours.size, weather.attrs[IGNITION_TIME])
        made = made.assign_coords({IGNITION_TIME: (SNAPSHOT, started, TABLE[IGNITION_TIME].attrs)})
    kept = {key: weather.attrs[key] for key in SOURCE_ATTRIBUTES if key in weather.attrs}
    return made.assign_attrs(kept)


def with_winds(snapshots: xr.Dataset, winds: str | Path | tuple[float, float]) -> xr.Dataset:
    """Deprecated: `with_weather`, which takes a wind or a table of winds too."""
    deprecate("with_winds(fires, winds)", "with_weather(fires, winds)")
    return with_weather(snapshots, winds_as_weather(winds))


def _with_winds(
    snapshots: xr.Dataset, weather: xr.Dataset, rows_of: Mapping[str, Array], angles: Array
) -> xr.Dataset:
    """Snapshots with one wind for each fire, whose directions turn by `angles` (M,)."""
    winds = np.empty((2, snapshots.sizes[SNAPSHOT]))
    fire_winds = np.stack([np.atleast_1d(weather[name].values) for name in WIND])
    winds[:] = fire_winds[:, :1]
    for number, fire in enumerate(fires_of(weather)):
        winds[:, rows_of.get(fire, [])] = fire_winds[:, [number]]
    winds[1] = np.where(angles == 0.0, winds[1], (winds[1] + angles) % 360.0)
    return _with_mean_winds(without_weather(snapshots), winds)


def _with_mean_winds(snapshots: xr.Dataset, winds: Array) -> xr.Dataset:
    """Snapshots with (2, M) speeds and directions as their mean winds since ignition."""
    return snapshots.assign_coords(
        {name: (SNAPSHOT, row, TABLE[name].attrs) for name, row in zip(WIND, winds, strict=True)}
    )


def _rows_of_fires(snapshots: xr.Dataset, weather: xr.Dataset) -> dict[str, Array]:
    """The rows of every fire; raises if the snapshots lack what their weather needs."""
    needed = {
        "fire_id": bool(fires_of(weather)) or is_hourly(weather),
        "hours": is_hourly(weather),
    }
    for name, is_needed in needed.items():
        if is_needed and name not in snapshots.variables:
            raise PlumecastError(
                f"the snapshots have no coordinate '{name}', which their weather needs; add it"
            )
    if not any(needed.values()):
        return {}
    names, fire = np.unique(snapshots["fire_id"].values.astype(str), return_inverse=True)
    order = np.argsort(fire, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(fire, minlength=names.size))[:-1])
    return dict(zip(names.tolist(), rows, strict=True))


def _turned(hourly: Mapping[str, Array], angle: float) -> Mapping[str, Array]:
    """Winds whose directions are `angle` degrees larger."""
    if angle == 0.0:
        return hourly
    u, v, depth = (hourly[name] for name in WEATHER_NAMES)
    cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    turned = (cosine * u + sine * v, cosine * v - sine * u)
    parts = (*(wind.astype(np.float32) for wind in turned), depth)
    return dict(zip(WEATHER_NAMES, parts, strict=True))


def _placed(
    hourly: Mapping[str, Array], rows: Array, count: int, values: dict[str, Array]
) -> dict[str, Array]:
    """`values` of all snapshots with those of one fire; one weather of all takes no memory."""
    if rows.size == count:
        return {name: np.broadcast_to(one, (count, *one.shape)) for name, one in hourly.items()}
    for name, one in hourly.items():
        values.setdefault(name, np.empty((count, *one.shape), np.float32))[rows] = one
    return values


def _at(weather: xr.Dataset, name: str, times: Array) -> Array:
    """Values at `times` (h), linear between the hours; the last value beyond the last hour."""
    hours = weather[WEATHER_HOUR].values
    columns = weather[name].values.reshape(hours.size, -1)
    values = np.stack([np.interp(times, hours, column) for column in columns.T], axis=1)
    return values.astype(np.float32).reshape(times.size, *weather[name].shape[1:])


def _attributes(weather: xr.Dataset, name: str) -> dict[str, str]:
    comment = weather[name].attrs.get("comment")
    return {**TABLE[name].attrs, **({"comment": comment} if comment else {})}


def true_north(grid: xr.Dataset) -> Array | None:
    """(ny, nx) direction of true north on a projected grid, degrees clockwise from its y axis.

    This is the meridian convergence of the projection, from the longitudes of the cells: the step
    (dx, dy) along which the longitude λ stays is (−∂λ/∂y, ∂λ/∂x). None where the grid has no
    longitudes in degrees.
    """
    if not {"lat", "lon", "y", "x"} <= set(grid.variables) or min(grid["lon"].shape) < 2:
        return None
    lon = grid["lon"]
    if lon.dims != ("y", "x") or not str(lon.attrs.get("units", "")).startswith("degree"):
        return None
    degrees = np.unwrap(np.unwrap(lon.values.astype(np.float64), 180.0, 0, period=360.0), 180.0, 1,
                        period=360.0)  # fmt: skip
    along_y, along_x = np.gradient(degrees, grid["y"].values, grid["x"].values)
    return np.asarray(np.rad2deg(np.arctan2(-along_y, along_x)))


def _north_angles(snapshots: xr.Dataset) -> Array:
    """(M,) or (1,) `true_north` where each fire began; 0 where it is not known."""
    north = true_north(snapshots)
    if north is None:
        return np.zeros(1)
    if np.ptp(north) <= SAME_NORTH or not {FIRE, "fire_id"} <= set(snapshots.variables):
        return np.array([north[north.shape[0] // 2, north.shape[1] // 2]])
    names, first, fire = np.unique(
        snapshots["fire_id"].values.astype(str), return_index=True, return_inverse=True
    )
    angles = np.empty(names.size)
    for number, row in enumerate(first.tolist()):
        burned = snapshots[FIRE].isel({SNAPSHOT: row}).transpose("y", "x").values
        angles[number] = north[np.unravel_index(int(np.argmax(burned)), north.shape)]
    return np.asarray(angles[fire])


def with_mean_winds(snapshots: xr.Dataset) -> xr.Dataset:
    """Snapshots with the mean 10 m winds of their weather, if they have one and no such winds.

    Nothing is derived from a weather whose lowest wind is above 10 m, or without the hours of the
    snapshots.
    """
    has_winds = any(name in snapshots.variables for name in WIND)
    needed = has_weather(snapshots) and "hours" in snapshots.variables
    if has_winds or not needed or snapshots[HEIGHT].values[0] > SURFACE:
        return snapshots
    rows = row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK)
    parts = [_mean_winds(snapshots.isel({SNAPSHOT: part})) for part in rows]
    return _with_mean_winds(snapshots, np.concatenate(parts, axis=1))


def _mean_winds(snapshots: xr.Dataset) -> Array:
    """(2, M) mean speeds and directions that the wind came from, in degrees."""
    weather = _read_rows(snapshots, {SNAPSHOT: snapshots.sizes[SNAPSHOT]})
    u, v = (surface_wind(weather["heights"], weather[name]) for name in ("u", "v"))
    until = snapshots["hours"].values[:, None]
    winds = [mean_wind(weather["hours"], u[m], v[m], until[m]) for m in range(until.size)]
    return np.array(winds, dtype=np.float64).reshape(-1, 2).T


def on_weather_hours(fire: xr.Dataset, hours: Array) -> xr.Dataset:
    """The fire with its weather on the hours of another one, of a store for instance.

    Hours that the fire does not reach may be dropped or added, the latter with the last values. A
    fire whose weather has other hours, or that lasts longer than `hours`, is returned as it is.
    """
    if not has_weather(fire) or np.array_equal(fire[WEATHER_HOUR].values, hours):
        return fire
    fire_hours = fire[WEATHER_HOUR].values
    shared = min(fire_hours.size, hours.size)
    lasts = float(fire["hours"].max()) if "hours" in fire.variables else float(fire_hours[-1])
    if not np.array_equal(fire_hours[:shared], hours[:shared]) or lasts > (
        hours[shared - 1] + HOURS_TOLERANCE
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
    weather = _read_rows(data, rows)
    axis = weather["hours"]
    until = _rows(data, "hours", rows) if "hours" in data.variables else None
    needed = needed_hours(axis, until, weather["depth"].shape[0])
    part = [weather[short] for short in _SHORT]
    for row, text in impossible_weather(weather["heights"], part, needed, axis):
        raise PlumecastError(f"the weather of {_who(data, row)}: {text}")
    return weather


def _read_rows(data: xr.Dataset, rows: Mapping[Hashable, int]) -> dict[str, Array]:
    """The arrays of `read_weather_rows`, with NaN where a needed value is missing."""
    weather: dict[str, Array] = {
        "hours": data[WEATHER_HOUR].values.astype(np.float64),
        "heights": data[HEIGHT].values.astype(np.float64),
    }
    until = _rows(data, "hours", rows) if "hours" in data.variables else None
    for short, name in zip(_SHORT, WEATHER_NAMES, strict=True):
        values = _rows(data, name, rows)
        weather[short] = values if until is None else _fill_later(values, weather["hours"], until)
    return weather


def _fill_later(values: Array, hours: Array, until: Array) -> Array:
    """(M, H, …) values, with those missing after the hour (M,) of a row as the last before."""
    missing = ~np.isfinite(values)
    if not missing.any():
        return values
    last = np.minimum(np.searchsorted(hours, until - HOURS_TOLERANCE), hours.size - 1)
    kept = np.minimum(np.arange(hours.size), last[:, None])
    held = values[np.arange(values.shape[0])[:, None], kept]
    return np.where(missing, held, values)


def _rows(data: xr.Dataset, name: str, rows: Mapping[Hashable, int]) -> Array:
    variable = data[name].variable
    axes = [dim for dim in (WEATHER_HOUR, HEIGHT) if dim in variable.dims]
    beyond = [str(dim) for dim in variable.dims if dim not in rows and dim not in axes]
    if beyond:
        raise PlumecastError(
            f"'{name}' has dimension '{beyond[0]}', which the fires lack; give one weather per fire"
        )
    ones = xr.Variable(list(rows), np.empty(list(rows.values())))
    (wide, _) = xr.broadcast(xr.DataArray(variable), xr.DataArray(ones))
    values = wide.transpose(*rows, *axes).values
    shaped: Array = values.reshape(-1, *(variable.sizes[dim] for dim in axes)).astype(np.float64)
    return shaped


def _who(data: xr.Dataset, row: int) -> str:
    if "fire_id" in data.variables and data["fire_id"].dims == (SNAPSHOT,):
        return f"fire '{data['fire_id'].values[row]}'"
    return f"row {row}"
