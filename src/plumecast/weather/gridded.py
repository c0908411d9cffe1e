"""NetCDF extracts of reanalyses and weather models: profiles on pressure levels or heights.

Variables are found by their CF standard name, then by the names that ERA5, HRRR and WRF tools use.
One column is read: the grid point nearest to a place, or the mean of the domain.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.units import factor, unit_named
from plumecast.compute.arrays import Array
from plumecast.weather.checks import LOWEST_HEIGHT, Sounding
from plumecast.weather.options import GRID, Options, hours_since, parse_ignition
from plumecast.weather.profile import SURFACE, components
from plumecast.weather.series import Origin, Series

_TIMES = ("time", "valid_time", "Time", "XTIME", "t", "hour", "weather_hour")
_LATITUDES = ("latitude", "lat", "XLAT", "gridlat_0")
_LONGITUDES = ("longitude", "lon", "XLONG", "gridlon_0")
_HORIZONTAL = (*_LATITUDES, *_LONGITUDES, "y", "x", "south_north", "west_east", "ygrid_0",
               "xgrid_0")  # fmt: skip
_ALONG = "winds along the grid of the file"
_SPACINGS = 1.0  # a place may be this many grid spacings from the nearest point

STANDARD_GRAVITY = 9.80665
"""Geopotential over geopotential height, m s⁻² (WMO, ERA5)."""

_GEOPOTENTIAL_UNITS = {"m2s-2", "m**2s**-2", "m^2s^-2", "m2/s2", "m^2/s^2", "jkg-1", "m2s^-2"}


class _Kind(Enum):
    """One kind of variable: (standard names, names, what it is)."""

    EASTWARD = (("eastward_wind", "x_wind"), ("u", "U", "ua", "UGRD", "ugrd", "uwnd",
                "u_component_of_wind", "wind_u"), "the wind u")  # fmt: skip
    NORTHWARD = (("northward_wind", "y_wind"), ("v", "V", "va", "VGRD", "vgrd", "vwnd",
                 "v_component_of_wind", "wind_v"), "the wind v")  # fmt: skip
    SPEED = (("wind_speed",), ("speed", "wind_speed", "ws"), "u and v or a wind speed")
    FROM = (("wind_from_direction",), ("wind_from_direction", "wind_direction", "wdir"),
            "the direction the wind comes from")  # fmt: skip
    TO = (("wind_to_direction",), ("wind_to_direction",), "the direction of the wind")
    EASTWARD_10M = ((), ("u10", "10u", "U10", "UGRD_10maboveground", "u10m", "uas"), "u at 10 m")
    NORTHWARD_10M = ((), ("v10", "10v", "V10", "VGRD_10maboveground", "v10m", "vas"), "v at 10 m")
    GEOPOTENTIAL = (("geopotential_height", "geopotential", "altitude"),
                    ("z", "gh", "zg", "HGT", "hgt", "geopotential"), "the height")  # fmt: skip
    TERRAIN = (("surface_altitude", "surface_geopotential"),
               ("surface_geopotential", "orog", "oro", "orography", "zs", "z_surface", "terrain",
                "HGT_surface", "surface_altitude"), "the height of the ground")  # fmt: skip
    DEPTH = (("atmosphere_boundary_layer_thickness",),
             ("blh", "HPBL", "hpbl", "PBLH", "pblh", "boundary_layer_height",
              "boundary_layer_depth"), "the depth of the boundary layer")  # fmt: skip


_SURFACE_WINDS = {*_Kind.EASTWARD_10M.value[1], *_Kind.NORTHWARD_10M.value[1]}


def read_netcdf(data: xr.Dataset, path: Path, options: Options) -> tuple[list[Series], Origin]:
    """The soundings of a file at one point or as the mean of its domain."""
    data, where_note = _column(data, path, options)
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
    north = GRID if wind_note == _ALONG else options.north
    return [Series(kept, None, local)], Origin(path, "netcdf", notes, north=north)


def _wind(data: xr.Dataset, path: Path, options: Options) -> tuple[xr.DataArray, xr.DataArray, str]:
    """(u, v) in m s⁻¹ with a level dimension, and what was done to them."""
    u, v = (_part(data, part) for part in (_Kind.EASTWARD, _Kind.NORTHWARD))
    if u is not None and v is not None:
        scale = _wind_factor(u, path, options)
        return scale * u, scale * v, _ALONG if "x_wind" in str(u.attrs) else ""
    speed = _required(data, _Kind.SPEED, path)
    scale = _wind_factor(speed, path, options)
    direction, turn, note = _part(data, _Kind.FROM), 0.0, ""
    if direction is None:
        direction, turn = _required(data, _Kind.TO, path), 180.0
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
        return np.asarray(stamps, dtype=np.float64), options.profile.local_hour
    ignition = parse_ignition(options.ignition, path, "the file has dates")
    hours = hours_since(np.atleast_1d(stamps), ignition, path)
    local = options.profile.local_hour
    if local is None and options.site.longitude is not None:
        utc = ignition.hour + ignition.minute / 60.0
        local = (utc + options.site.longitude / 15.0) % 24.0
    return hours, local


def _heights(
    data: xr.Dataset, dims: tuple[str, str], wind: xr.DataArray, path: Path, options: Options
) -> tuple[Array, str]:
    """Heights above ground (time, level) in m, and how they were found."""
    time, level = dims
    shape = (wind.sizes[time], wind.sizes[level])
    above_sea = _part(data, _Kind.GEOPOTENTIAL)
    if above_sea is None:
        coordinate = data[level] if level in data.coords else None
        if coordinate is None or not _is_height(coordinate):
            raise PlumecastError(
                f"{path}: no geopotential or geopotential height beside {wind.name}, and {level} "
                "is no height above ground in m; add z, gh, zg or HGT"
            )
        metres = _metres(coordinate, path)
        return np.broadcast_to(metres, shape), ""
    metres = _metres(above_sea, path)
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
    if options.site.elevation is not None:
        note = f"ground at {options.site.elevation:g} m, as stated"
        return np.array([options.site.elevation]), note
    surface = _part(data, _Kind.TERRAIN)
    if surface is None:
        raise ArgumentError(
            "elevation", None, f"{path}: heights count from sea level, and the height of the "
            "ground is not in the file; give it in m"
        )  # fmt: skip
    metres = np.asarray(_metres(surface, path), dtype=np.float64)
    if time not in surface.dims:
        metres = np.array([float(metres.mean())])
    return metres, f"ground at {float(metres.mean()):.0f} m, from {surface.name}"


def _surface_wind(
    data: xr.Dataset, time: str, path: Path, options: Options
) -> tuple[Array, Array] | None:
    """10 m wind (time,), or None."""
    u, v = (_part(data, part) for part in (_Kind.EASTWARD_10M, _Kind.NORTHWARD_10M))
    if u is None or v is None or u.dims != (time,) or v.dims != (time,):
        return None
    scale = _wind_factor(u, path, options)
    return scale * u.values, scale * v.values


def _depth(data: xr.Dataset, time: str, path: Path) -> Array | None:
    depth = _part(data, _Kind.DEPTH)
    if depth is None:
        return None
    if depth.dims != (time,):
        raise PlumecastError(f"{path}: {depth.name} has dimensions {depth.dims}; expected {time}")
    return _metres(depth, path)


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
        raise PlumecastError(f"{path}: a height at hour {hour:g} is not a number (NaN)")
    lowest = LOWEST_HEIGHT if surface is None else SURFACE * 1.01
    above = np.flatnonzero(height >= lowest)
    order = above[np.argsort(height[above], kind="stable")]
    height, u, v = height[order], u[order], v[order]
    if surface is not None:
        height = np.append(SURFACE, height)
        u, v = np.append(surface[0], u), np.append(surface[1], v)
    if not height.size:
        raise PlumecastError(
            f"{path}: all levels at hour {hour:g} are below the ground; check its elevation"
        )
    return Sounding(hour, height, u, v, depth)


def _part(data: xr.Dataset, kind: _Kind) -> xr.DataArray | None:
    """The variable of a kind; None if there is none. Names of 10 m winds are never a profile."""
    standard, names, _ = kind.value
    for name in names:
        if name in data.variables and name not in data.dims:
            variable: xr.DataArray = data[name]
            return variable
    for key in data.data_vars:
        if data[key].attrs.get("standard_name") in standard and str(key) not in _SURFACE_WINDS:
            named: xr.DataArray = data[key]
            return named
    return None


def _required(data: xr.Dataset, kind: _Kind, path: Path) -> xr.DataArray:
    """The variable of a kind; raises if there is none."""
    variable = _part(data, kind)
    if variable is None:
        have = ", ".join(map(str, data.data_vars)) or "no variables"
        names = ", ".join(kind.value[1][:4])
        raise PlumecastError(
            f"{path}: {kind.value[2]} is missing; expected e.g. {names}, found {have}"
        )
    return variable


def _wind_factor(variable: xr.DataArray, path: Path, options: Options) -> float:
    """Factor of a wind to m s⁻¹, from its unit or that of the options."""
    label = str(variable.attrs.get("units", ""))
    unit = unit_named(label, "speed")
    if unit is None and label:
        raise PlumecastError(
            f"{path}: {variable.name} has the unit {label!r}, which is no speed; convert it to m/s"
        )
    return factor(options.speed_unit_of(path, unit, str(variable.name)), "speed")


def _metres(variable: xr.DataArray, path: Path) -> Array:
    """Values in m of a height, or of a geopotential divided by `STANDARD_GRAVITY`."""
    label = str(variable.attrs.get("units", "")).strip()
    values = np.asarray(variable.values, dtype=np.float64)
    if label.replace(" ", "").replace(".", "").lower() in _GEOPOTENTIAL_UNITS:
        return values / STANDARD_GRAVITY
    unit = unit_named(label, "length")
    if unit is None:
        unit_text = f"the unit {label!r}" if label else "no unit"
        raise PlumecastError(
            f"{path}: {variable.name} has {unit_text}; give m, or m2 s-2 for a geopotential"
        )
    return values * factor(unit, "length")


def _column(data: xr.Dataset, path: Path, options: Options) -> tuple[xr.Dataset, str]:
    """The file without horizontal dimensions, and which point or mean was taken."""
    single = [name for name, size in data.sizes.items() if size == 1 and name not in _HORIZONTAL]
    data = data.squeeze([name for name in single if not _is_time_or_level(str(name))], drop=True)
    dims = [str(name) for name in data.dims if name in _HORIZONTAL]
    if not dims:
        return data, ""
    if options.site.latitude is None or options.site.longitude is None:
        size = int(np.prod([data.sizes[name] for name in dims]))
        numeric = data[[n for n in data.data_vars if data[n].dtype.kind in "fiu"]]
        mean = numeric.mean(dims, keep_attrs=True, skipna=False)
        return mean, f"mean of {size} grid points" if size > 1 else ""
    lat, lon = _find(data, _LATITUDES, path), _find(data, _LONGITUDES, path)
    index = _nearest(lat, lon, options.site.latitude, options.site.longitude, path)
    place = data.isel(index)
    near = float(place[lat.name]), float(place[lon.name])
    return place, f"grid point {near[0]:.3f} N, {near[1]:.3f} E"


def _is_time_or_level(name: str) -> bool:
    """Dimensions that stay although a file has one time or one level."""
    words = ("time", "hour", "level", "lev", "isobaric", "pressure", "plev", "height")
    return any(word in name.lower() for word in words)


def _find(data: xr.Dataset, names: tuple[str, ...], path: Path) -> xr.DataArray:
    for name in names:
        if name in data.variables:
            return data[name]
    raise PlumecastError(
        f"{path}: no {names[0]} in the file; leave out latitude and longitude to take the mean of "
        "the domain"
    )


def _nearest(
    lat: xr.DataArray, lon: xr.DataArray, latitude: float, longitude: float, path: Path
) -> dict[str, int]:
    """Index of the grid point nearest to a place; raises if the place is outside the grid."""
    if lat.ndim == 1:
        grid_lat, grid_lon = np.meshgrid(lat.values, lon.values, indexing="ij")
        dims = (*map(str, lat.dims), *map(str, lon.dims))
    else:
        grid_lat, grid_lon = np.broadcast_arrays(lat.values, lon.values)
        dims = tuple(map(str, lat.dims))
    if len(dims) != 2:
        raise PlumecastError(f"{path}: latitude has dimensions {lat.dims}; expected two at most")
    east = (grid_lon - longitude + 180.0) % 360.0 - 180.0
    distance = np.hypot(grid_lat - latitude, east * np.cos(np.deg2rad(latitude)))
    best = np.unravel_index(int(np.argmin(distance)), distance.shape)
    spacing = _spacing(grid_lat, east * np.cos(np.deg2rad(latitude)))
    if distance[best] > _SPACINGS * spacing:
        raise ArgumentError(
            "latitude", latitude, f"with longitude {longitude:g} it lies outside {path}, which has "
            f"{grid_lat.min():g} to {grid_lat.max():g} N, {grid_lon.min():g} to "
            f"{grid_lon.max():g} E; extract the weather of the fire's place"
        )  # fmt: skip
    return {name: int(number) for name, number in zip(dims, best, strict=True)}


def _spacing(lat: Array, east: Array) -> float:
    """Largest distance between neighbours, degree; 1 for a single point."""
    steps = [
        float(np.hypot(np.diff(lat, axis=axis), np.diff(east, axis=axis)).max())
        for axis in (0, 1)
        if lat.shape[axis] > 1
    ]
    return max(steps, default=1.0)
