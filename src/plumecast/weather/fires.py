"""Give fires their weather: winds turned to their grid, and the mean winds since ignition."""

from __future__ import annotations

from collections.abc import Mapping
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
from plumecast.weather.options import TRUE
from plumecast.weather.profile import mean_wind, surface_wind
from plumecast.weather.read import WeatherLike, as_weather, winds_as_weather
from plumecast.weather.series import (
    NORTH,
    check_covers,
    check_fires,
    each_fire,
    fires_of,
    interpolated,
    is_hourly,
)
from plumecast.weather.snapshots import SOURCE_ATTRIBUTES, assign_mean_winds, without_weather

SAME_NORTH = 0.1
"""Where the north of a grid varies by no more than this, degrees, that of its centre is taken."""


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
        hourly = {name: _values_at(one, name, times) for name in WEATHER_NAMES if rows.size}
        for angle in np.unique(angles[rows]):
            same = rows[angles[rows] == angle]
            turned = _turned(hourly, float(angle))
            values = _placed(turned, same, hours.size, values)
            u, v = (surface_wind(one[HEIGHT].values, turned[name]) for name in WEATHER_NAMES[:2])
            winds[:, same] = mean_wind(times, u, v, hours[same])
    made = assign_mean_winds(without_weather(snapshots), winds).assign_coords(
        {
            WEATHER_HOUR: (WEATHER_HOUR, times, TABLE[WEATHER_HOUR].attrs),
            HEIGHT: (HEIGHT, weather[HEIGHT].values, weather[HEIGHT].attrs),
        }
    )
    for name, part in values.items():
        comment = {key: text for key, text in weather[name].attrs.items() if key == "comment"}
        made = made.assign({name: (TABLE[name].dims, part, {**TABLE[name].attrs, **comment})})
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
    return assign_mean_winds(without_weather(snapshots), winds)


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


def _values_at(weather: xr.Dataset, name: str, times: Array) -> Array:
    """Values at `times` (h), linear between the hours; the last value beyond the last hour."""
    hours, values = weather[WEATHER_HOUR].values, weather[name].values
    at = interpolated(times, hours, values.reshape(hours.size, -1))
    return at.astype(np.float32).reshape(times.size, *values.shape[1:])


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
