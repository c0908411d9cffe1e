"""NetCDF extracts of reanalyses and weather models: profiles on pressure levels or heights.

Variables are found by their CF standard name, then by the names that ERA5, HRRR and WRF tools use.
One column is read: the grid point nearest to a place, or the mean of the domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.units import factor, unit_named
from plumecast.compute.arrays import Array
from plumecast.weather.options import GRID, Options, hours_since, parse_ignition
from plumecast.weather.profile import SURFACE, components
from plumecast.weather.series import (
    LOWEST_HEIGHT,
    Origin,
    Series,
    Sounding,
    check_direction,
    from_ignition,
)

_TIMES = ("time", "valid_time", "Time", "XTIME", "t", "hour", "weather_hour")
_LATITUDES = ("latitude", "lat", "XLAT", "gridlat_0")
_LONGITUDES = ("longitude", "lon", "XLONG", "gridlon_0")
_HORIZONTAL = (*_LATITUDES, *_LONGITUDES, "y", "x", "south_north", "west_east", "ygrid_0",
               "xgrid_0")  # fmt: skip
_TIME_OR_LEVEL = ("time", "hour", "level", "lev", "isobaric", "pressure", "plev", "height")
_ALONG = "winds along the grid of the file"

STANDARD_GRAVITY = 9.80665
"""Geopotential over geopotential height, m s⁻² (WMO, ERA5)."""

_METRES = ("m", "metre", "meter", "metres")
_GEOPOTENTIAL_UNITS = {"m2s-2", "m**2s**-2", "m^2s^-2", "m2/s2", "m^2/s^2", "jkg-1", "m2s^-2"}

# The variables: (standard names, names, what it is).
# fmt: off
_U = (("eastward_wind", "x_wind"),
      ("u", "U", "ua", "UGRD", "ugrd", "uwnd", "u_component_of_wind", "wind_u"), "the wind u")
_V = (("northward_wind", "y_wind"),
      ("v", "V", "va", "VGRD", "vgrd", "vwnd", "v_component_of_wind", "wind_v"), "the wind v")
_SPEED = ("wind_speed",), ("speed", "wind_speed", "ws"), "u and v or a wind speed"
_FROM = (("wind_from_direction",), ("wind_from_direction", "wind_direction", "wdir"),
         "the direction the wind comes from")
_TO = ("wind_to_direction",), ("wind_to_direction",), "the direction of the wind"
_U_10M = (), ("u10", "10u", "U10", "UGRD_10maboveground", "u10m", "uas"), "u at 10 m"
_V_10M = (), ("v10", "10v", "V10", "VGRD_10maboveground", "v10m", "vas"), "v at 10 m"
_HEIGHT = (("geopotential_height", "geopotential", "altitude"),
           ("z", "gh", "zg", "HGT", "hgt", "geopotential"), "the height")
_TERRAIN = (("surface_altitude", "surface_geopotential"),
            ("surface_geopotential", "orog", "oro", "orography", "zs", "z_surface", "terrain",
             "HGT_surface", "surface_altitude"), "the height of the ground")
_DEPTH = (("atmosphere_boundary_layer_thickness",),
          ("blh", "HPBL", "hpbl", "PBLH", "pblh", "boundary_layer_height", "boundary_layer_depth"),
          "the depth of the boundary layer")
# fmt: on
_Kind = tuple[tuple[str, ...], tuple[str, ...], str]


def read_netcdf(data: xr.Dataset, path: Path, options: Options) -> tuple[list[Series], Origin]:
    """The soundings of a file at one point or as the mean of its domain."""
    data, where_note = _column(data, path, options)
    file = _File(data, path, options)
    u, v, wind_note = file.wind()
    time, level = file.dims(u)
    hours, local = file.hours(time)
    winds = [part.transpose(time, level).values.astype(np.float64) for part in (u, v)]
    height, height_note = file.heights(time, level, u)
    surface = file.surface_wind(time)
    depth = file.depth(time)
    soundings = []
    for n, hour in enumerate(hours):
        at = np.nan if depth is None else float(depth[n])
        profile = Sounding(float(hour), height[n], winds[0][n], winds[1][n], at)
        lowest = None if surface is None else (surface[0][n], surface[1][n])
        soundings.append(_sounding(path, profile, lowest))
    notes = {"": "; ".join(part for part in (where_note, height_note, wind_note) if part)}
    north = GRID if wind_note == _ALONG else options.north
    series = Series(from_ignition(soundings), None, local)
    return [series], Origin(path, "netcdf", notes, north=north)


@dataclass(frozen=True, slots=True)
class _File:
    """A file without horizontal dimensions, and what the user says about it."""

    data: xr.Dataset
    path: Path
    options: Options

    def part(self, kind: _Kind) -> xr.DataArray | None:
        """The variable of a kind; None if there is none. 10 m winds are never a profile."""
        standard, names, _ = kind
        for name in names:
            if name in self.data.variables and name not in self.data.dims:
                return self.data[name]
        for key in self.data.data_vars:
            is_standard = self.data[key].attrs.get("standard_name") in standard
            if is_standard and key not in {*_U_10M[1], *_V_10M[1]}:
                return self.data[key]
        return None

    def required(self, kind: _Kind) -> xr.DataArray:
        """The variable of a kind; raises if there is none."""
        variable = self.part(kind)
        if variable is None:
            have = ", ".join(map(str, self.data.data_vars)) or "no variables"
            raise PlumecastError(
                f"{self.path}: {kind[2]} is missing; expected e.g. {', '.join(kind[1][:4])}, found "
                f"{have}"
            )
        return variable

    def to_metres_per_second(self, wind: xr.DataArray) -> float:
        """The factor of a wind, from its unit or that of the options."""
        label = str(wind.attrs.get("units", ""))
        unit = unit_named(label, "speed")
        if unit is None and label:
            raise PlumecastError(
                f"{self.path}: {wind.name} has the unit {label!r}, which is no speed; convert it "
                "to m/s"
            )
        return factor(self.options.speed_unit_of(self.path, unit, str(wind.name)), "speed")

    def metres(self, variable: xr.DataArray) -> Array:
        """Values in m of a height, or of a geopotential divided by `STANDARD_GRAVITY`."""
        label = str(variable.attrs.get("units", "")).strip()
        values = np.asarray(variable.values, dtype=np.float64)
        if label.replace(" ", "").replace(".", "").lower() in _GEOPOTENTIAL_UNITS:
            return values / STANDARD_GRAVITY
        unit = unit_named(label, "length")
        if unit is None:
            unit_text = f"the unit {label!r}" if label else "no unit"
            raise PlumecastError(
                f"{self.path}: {variable.name} has {unit_text}; give m, or m2 s-2 for a "
                "geopotential"
            )
        return values * factor(unit, "length")

    def wind(self) -> tuple[xr.DataArray, xr.DataArray, str]:
        """(u, v) in m s⁻¹ with a level dimension, and what was done to them."""
        u, v = self.part(_U), self.part(_V)
        if u is not None and v is not None:
            scale = self.to_metres_per_second(u)
            return scale * u, scale * v, _ALONG if "x_wind" in str(u.attrs) else ""
        speed = self.required(_SPEED)
        scale = self.to_metres_per_second(speed)
        direction, turn, note = self.part(_FROM), 0.0, ""
        if direction is None:
            direction, turn = self.required(_TO), 180.0
            note = f"{direction.name} says where the wind blows to; turned by 180 degrees"
        values = direction.transpose(*speed.dims).values
        for wrong in values[(values < 0.0) | (values > 360.0)].tolist():
            check_direction(f"{self.path}: {direction.name}: ", wrong)
        u, v = components(speed.values * scale, values + turn)
        return speed.copy(data=u), speed.copy(data=v), note

    def dims(self, wind: xr.DataArray) -> tuple[str, str]:
        """The dimensions of time and level."""
        dims = [str(name) for name in wind.dims]
        times = [name for name in _TIMES if name in dims]
        times += [name for name in dims if np.issubdtype(wind[name].dtype, np.datetime64)]
        if not times:
            raise PlumecastError(
                f"{self.path}: no time among the dimensions {wind.dims} of {wind.name}; keep the "
                "time dimension"
            )
        levels = [name for name in dims if name != times[0]]
        if len(levels) != 1:
            raise PlumecastError(
                f"{self.path}: {wind.name} has dimensions {wind.dims}; expected time, level and, "
                "optionally, latitude and longitude or y and x"
            )
        return times[0], levels[0]

    def hours(self, time: str) -> tuple[Array, float | None]:
        """Hours since ignition, and the local solar time at ignition where it is known."""
        data, options = self.data, self.options
        if time not in data.coords and "valid_time" not in data.coords:
            raise PlumecastError(
                f"{self.path}: the dimension {time} has no times; keep its coordinate"
            )
        stamps = data["valid_time" if "valid_time" in data.coords else time].values
        if not np.issubdtype(stamps.dtype, np.datetime64):
            if str(data[time].attrs.get("units", "")) not in ("h", "hour", "hours", "hr"):
                raise PlumecastError(
                    f"{self.path}: {time} is neither a date nor hours since ignition (units 'h')"
                )
            return np.asarray(stamps, dtype=np.float64), options.profile.local_hour
        ignition = parse_ignition(options.ignition, self.path, "the file has dates")
        hours = hours_since(np.atleast_1d(stamps), ignition, self.path)
        local = options.profile.local_hour
        if local is None and options.site.longitude is not None:
            utc = ignition.hour + ignition.minute / 60.0
            local = (utc + options.site.longitude / 15.0) % 24.0
        return hours, local

    def heights(self, time: str, level: str, wind: xr.DataArray) -> tuple[Array, str]:
        """Heights above ground (time, level) in m, and how they were found."""
        shape = (wind.sizes[time], wind.sizes[level])
        above_sea = self.part(_HEIGHT)
        if above_sea is None:
            axis = self.data.coords.get(level)
            if axis is None or str(axis.attrs.get("units", "")).strip() not in _METRES:
                raise PlumecastError(
                    f"{self.path}: no geopotential or geopotential height beside {wind.name}, and "
                    f"{level} is no height above ground in m; add z, gh, zg or HGT"
                )
            return np.broadcast_to(self.metres(axis), shape), ""
        heights = above_sea.copy(data=self.metres(above_sea))
        if level not in heights.dims:
            raise PlumecastError(
                f"{self.path}: {above_sea.name} has dimensions {above_sea.dims}, without {level}; "
                "give the geopotential of every level"
            )
        if time in heights.dims:
            heights = heights.transpose(time, level)
        ground, note = self.ground(time)
        return np.broadcast_to(heights.values, shape) - np.reshape(ground, (-1, 1)), note

    def ground(self, time: str) -> tuple[Array, str]:
        """Height of the ground above sea level, m: stated, or of the model's terrain."""
        elevation = self.options.site.elevation
        if elevation is not None:
            return np.array([elevation]), f"ground at {elevation:g} m, as stated"
        surface = self.part(_TERRAIN)
        if surface is None:
            raise ArgumentError(
                "elevation", None, f"{self.path}: heights count from sea level, and the height of "
                "the ground is not in the file; give it in m"
            )  # fmt: skip
        metres = self.metres(surface)
        if time not in surface.dims:
            metres = np.array([float(metres.mean())])
        return metres, f"ground at {float(metres.mean()):.0f} m, from {surface.name}"

    def surface_wind(self, time: str) -> tuple[Array, Array] | None:
        """10 m wind (time,), or None."""
        u, v = self.part(_U_10M), self.part(_V_10M)
        if u is None or v is None or u.dims != (time,) or v.dims != (time,):
            return None
        scale = self.to_metres_per_second(u)
        return scale * u.values, scale * v.values

    def depth(self, time: str) -> Array | None:
        """Depth of the boundary layer (time,), m, or None."""
        depth = self.part(_DEPTH)
        if depth is not None and depth.dims != (time,):
            raise PlumecastError(
                f"{self.path}: {depth.name} has dimensions {depth.dims}; expected {time}"
            )
        return None if depth is None else self.metres(depth)


def _sounding(path: Path, profile: Sounding, surface: tuple[float, float] | None) -> Sounding:
    """Levels above ground in order of height, with the 10 m wind below them.

    Levels below the ground, or below 10 m where there is a 10 m wind, are left out: pressure levels
    under a mountain hold extrapolated winds.
    """
    hour, height, u, v, depth = profile
    if not np.isfinite(height).all():
        raise PlumecastError(f"{path}: a height at hour {hour:g} is not a number (NaN)")
    above = np.flatnonzero(height >= (LOWEST_HEIGHT if surface is None else SURFACE * 1.01))
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


def _column(data: xr.Dataset, path: Path, options: Options) -> tuple[xr.Dataset, str]:
    """The file without horizontal dimensions, and which point or mean was taken."""
    single = [
        name
        for name, size in data.sizes.items()
        if size == 1
        and name not in _HORIZONTAL
        and not any(word in str(name).lower() for word in _TIME_OR_LEVEL)
    ]
    data = data.squeeze(single, drop=True)
    dims = [name for name in data.dims if name in _HORIZONTAL]
    if not dims:
        return data, ""
    latitude, longitude = options.site.latitude, options.site.longitude
    if latitude is None or longitude is None:
        size = int(np.prod([data.sizes[name] for name in dims]))
        numeric = data[[n for n in data.data_vars if data[n].dtype.kind in "fiu"]]
        mean = numeric.mean(dims, keep_attrs=True, skipna=False)
        return mean, f"mean of {size} grid points" if size > 1 else ""
    axes = []
    for names in (_LATITUDES, _LONGITUDES):
        present = [name for name in names if name in data.variables]
        if not present:
            raise PlumecastError(
                f"{path}: no {names[0]} in the file; leave out latitude and longitude to take the "
                "mean of the domain"
            )
        axes.append(data[present[0]])
    lat, lon = axes
    place = data.isel(_nearest(lat, lon, latitude, longitude, path))
    return place, f"grid point {float(place[lat.name]):.3f} N, {float(place[lon.name]):.3f} E"


def _nearest(
    lat: xr.DataArray, lon: xr.DataArray, latitude: float, longitude: float, path: Path
) -> dict[str, int]:
    """Index of the grid point nearest to a place; raises if the place is outside the grid.

    It may be as far from the nearest point as the farthest neighbours are apart.
    """
    if lat.ndim == 1:
        grid_lat, grid_lon = np.meshgrid(lat.values, lon.values, indexing="ij")
        dims = (*map(str, lat.dims), *map(str, lon.dims))
    else:
        grid_lat, grid_lon = np.broadcast_arrays(lat.values, lon.values)
        dims = tuple(map(str, lat.dims))
    if len(dims) != 2:
        raise PlumecastError(f"{path}: latitude has dimensions {lat.dims}; expected two at most")
    east = (grid_lon - longitude + 180.0) % 360.0 - 180.0
    east = east * np.cos(np.deg2rad(latitude))
    distance = np.hypot(grid_lat - latitude, east)
    best = np.unravel_index(int(np.argmin(distance)), distance.shape)
    steps = [
        float(np.hypot(np.diff(grid_lat, axis=axis), np.diff(east, axis=axis)).max())
        for axis in (0, 1)
        if grid_lat.shape[axis] > 1
    ]
    if distance[best] > max(steps, default=1.0):
        raise ArgumentError(
            "latitude", latitude, f"with longitude {longitude:g} it lies outside {path}, which has "
            f"{grid_lat.min():g} to {grid_lat.max():g} N, {grid_lon.min():g} to "
            f"{grid_lon.max():g} E; extract the weather of the fire's place"
        )  # fmt: skip
    return {name: int(number) for name, number in zip(dims, best, strict=True)}
