"""NetCDF extracts of reanalyses and weather models: profiles on pressure levels or heights.

Variables are found by their CF standard name, then by the names that ERA5, HRRR and WRF tools use.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.sources.weather.checks import LOWEST_HEIGHT, Sounding, place
from plumecast.sources.weather.default import SURFACE
from plumecast.sources.weather.gridded.names import (
    Part,
    find_part,
    height_metres,
    require_part,
    wind_unit,
)
from plumecast.sources.weather.gridded.point import at_point
from plumecast.sources.weather.options import Options
from plumecast.sources.weather.series import Origin, Series
from plumecast.sources.weather.times import hours_since, parse_ignition
from plumecast.sources.weather.units import SPEEDS, components

_TIMES = ("time", "valid_time", "Time", "XTIME", "t", "hour", "weather_hour")


def read_netcdf(data: xr.Dataset, path: Path, options: Options) -> tuple[list[Series], Origin]:
    """The soundings of a file at one point or as the mean of its domain."""
    data, where_note = at_point(data, path, options)
    u, v, wind_note = _wind(data, path, options)
    time = _time_dim(u, path)
    level = _level_dim(u, time, path)
    hours, local = _hours(data, time, path, options)
    order = (time, level)
    winds = [part.transpose(*order).values.astype(np.float64) for part in (u, v)]
    height, height_note = _heights(data, (time, level), u, path, options)
    surface = _surface_wind(data, time, path, options)
    depth = _depth(data, time, path)
    soundings = [
        _sounding(
            path,
            float(hour),
            (height[n], winds[0][n], winds[1][n]),
            None if surface is None else (surface[0][n], surface[1][n]),
            np.nan if depth is None else float(depth[n]),
        )
        for n, hour in enumerate(hours)
    ]
    before = [n for n, hour in enumerate(hours) if hour <= 0.0]
    kept = soundings[before[-1] :] if before else soundings
    notes = {"": "; ".join(part for part in (where_note, height_note, wind_note) if part)}
    return [Series(kept, None, local)], Origin(path, "netcdf", notes)


def _wind(data: xr.Dataset, path: Path, options: Options) -> tuple[xr.DataArray, xr.DataArray, str]:
    """(u, v) in m s⁻¹ with a level dimension, and what was done to them."""
    u, v = (find_part(data, part) for part in (Part.EASTWARD, Part.NORTHWARD))
    if u is not None and v is not None:
        scale = SPEEDS[wind_unit(u, path, options)]
        along = "winds along the grid of the file" if "x_wind" in str(u.attrs) else ""
        return scale * u, scale * v, along
    speed = require_part(data, Part.SPEED, path)
    scale = SPEEDS[wind_unit(speed, path, options)]
    direction, turn, note = find_part(data, Part.FROM), 0.0, ""
    if direction is None:
        direction, turn = require_part(data, Part.TO, path), 180.0
        note = f"{direction.name} says where the wind blows to; turned by 180 degrees"
    values = direction.values
    if np.nanmin(values) < 0.0 or np.nanmax(values) > 360.0:
        bad = float(values[(values < 0.0) | (values > 360.0)].flat[0])
        raise PlumecastError(
            f"{path}: {direction.name} {bad:g}; give degrees from 0 to 360 (270 is a west wind)"
        )
    direction = direction.transpose(*speed.dims)
    u, v = components(speed.values * scale, direction.values + turn)
    return speed.copy(data=u), speed.copy(data=v), note


def _time_dim(wind: xr.DataArray, path: Path) -> str:
    for name in (*_TIMES, *map(str, wind.dims)):
        if name in wind.dims and (name in _TIMES or np.issubdtype(wind[name].dtype, np.datetime64)):
            return name
    raise PlumecastError(
        f"{path}: no time among the dimensions {wind.dims} of {wind.name}; keep the time dimension"
    )


def _level_dim(wind: xr.DataArray, time: str, path: Path) -> str:
    others = [str(name) for name in wind.dims if name != time]
    if len(others) != 1:
        raise PlumecastError(
            f"{path}: {wind.name} has dimensions {wind.dims}; expected time, level and, optionally,"
            " latitude and longitude or y and x"
        )
    return others[0]


def _hours(data: xr.Dataset, time: str, path: Path, options: Options) -> tuple[Array, float | None]:
    """Hours since ignition, and the local solar time at ignition where it is known."""
    if time not in data.coords and "valid_time" not in data.coords:
        raise PlumecastError(f"{path}: the dimension {time} has no times; keep its coordinate")
    stamps = data["valid_time" if "valid_time" in data.coords else time].values
    if not np.issubdtype(stamps.dtype, np.datetime64):
        if str(data[time].attrs.get("units", "")) not in ("h", "hour", "hours", "hr"):
            raise PlumecastError(
                f"{path}: {time} is neither a date nor hours since ignition (units 'h')"
            )
        return np.asarray(stamps, dtype=np.float64), options.local_hour
    ignition = parse_ignition(options.ignition, path, "the file has dates")
    hours = hours_since(np.atleast_1d(stamps), ignition, path)
    local = options.local_hour
    if local is None and options.longitude is not None:
        utc = ignition.hour + ignition.minute / 60.0
        local = (utc + options.longitude / 15.0) % 24.0
    return hours, local


def _heights(
    data: xr.Dataset, dims: tuple[str, str], wind: xr.DataArray, path: Path, options: Options
) -> tuple[Array, str]:
    """Heights above ground (time, level) in m, and how they were found."""
    time, level = dims
    shape = (wind.sizes[time], wind.sizes[level])
    above_sea = find_part(data, Part.GEOPOTENTIAL)
    if above_sea is None:
        coordinate = data[level] if level in data.coords else None
        if coordinate is None or not _is_height(coordinate):
            raise PlumecastError(
                f"{path}: no geopotential or geopotential height beside {wind.name}, and {level} "
                "is no height above ground in m; add z, gh, zg or HGT"
            )
        metres = height_metres(coordinate, path)
        return np.broadcast_to(metres, shape), ""
    metres = height_metres(above_sea, path)
    values = above_sea.copy(data=metres)
    if level not in values.dims:
        raise PlumecastError(
            f"{path}: {above_sea.name} has dimensions {above_sea.dims}, without {level}; give the "
            "geopotential of every level"
        )
    if time in values.dims:
        full = values.transpose(time, level).values
    else:
        full = np.broadcast_to(values.values, shape)
    ground, note = _ground(data, time, path, options)
    return full - np.reshape(ground, (-1, 1)), note


def _is_height(coordinate: xr.DataArray) -> bool:
    return str(coordinate.attrs.get("units", "")).strip() in ("m", "metre", "meter", "metres")


def _ground(data: xr.Dataset, time: str, path: Path, options: Options) -> tuple[Array, str]:
    """Height of the ground above sea level, m: stated, or of the model's terrain."""
    if options.elevation is not None:
        return np.array([options.elevation]), f"ground at {options.elevation:g} m, as stated"
    surface = find_part(data, Part.TERRAIN)
    if surface is None:
        raise PlumecastError(
            f"{path}: heights count from sea level, and the height of the ground is not in the "
            "file; state elevation in m"
        )
    metres = np.asarray(height_metres(surface, path), dtype=np.float64)
    if time not in surface.dims:
        metres = np.array([float(metres.mean())])
    return metres, f"ground at {float(metres.mean()):.0f} m, from {surface.name}"


def _surface_wind(
    data: xr.Dataset, time: str, path: Path, options: Options
) -> tuple[Array, Array] | None:
    """10 m wind (time,), or None."""
    u, v = (find_part(data, part) for part in (Part.EASTWARD_10M, Part.NORTHWARD_10M))
    if u is None or v is None or u.dims != (time,) or v.dims != (time,):
        return None
    scale = SPEEDS[wind_unit(u, path, options)]
    return scale * u.values, scale * v.values


def _depth(data: xr.Dataset, time: str, path: Path) -> Array | None:
    depth = find_part(data, Part.DEPTH)
    if depth is None:
        return None
    if depth.dims != (time,):
        raise PlumecastError(f"{path}: {depth.name} has dimensions {depth.dims}; expected {time}")
    return height_metres(depth, path)


def _sounding(
    path: Path,
    hour: float,
    profile: tuple[Array, Array, Array],
    surface: tuple[float, float] | None,
    depth: float,
) -> Sounding:
    """Levels above ground in order of height, with the 10 m wind below them.

    Levels below the ground, or below 10 m where there is a 10 m wind, are left out: pressure levels
    under a mountain hold extrapolated winds.
    """
    height, u, v = profile
    if not np.isfinite(height).all():
        raise PlumecastError(f"{place(path, None, hour)}a height is not a number (NaN)")
    lowest = LOWEST_HEIGHT if surface is None else SURFACE * 1.01
    above = np.flatnonzero(height >= lowest)
    order = above[np.argsort(height[above], kind="stable")]
    height, u, v = height[order], u[order], v[order]
    if surface is not None:
        height = np.append(SURFACE, height)
        u, v = np.append(surface[0], u), np.append(surface[1], v)
    if not height.size:
        raise PlumecastError(
            f"{place(path, None, hour)}all levels are below the ground; check elevation"
        )
    return Sounding(hour, height, u, v, depth)
