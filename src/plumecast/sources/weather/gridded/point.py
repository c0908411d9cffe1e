"""One column of a gridded file: the point nearest to a place, or the mean of the domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.sources.weather.options import Options

_LATITUDES = ("latitude", "lat", "XLAT", "gridlat_0")
_LONGITUDES = ("longitude", "lon", "XLONG", "gridlon_0")
_HORIZONTAL = (*_LATITUDES, *_LONGITUDES, "y", "x", "south_north", "west_east", "ygrid_0",
               "xgrid_0")  # fmt: skip
_SPACINGS = 1.0  # a place may be this many grid spacings from the nearest point


def at_point(data: xr.Dataset, path: Path, options: Options) -> tuple[xr.Dataset, str]:
    """The file without horizontal dimensions, and which point or mean was taken."""
    single = [name for name, size in data.sizes.items() if size == 1 and name not in _HORIZONTAL]
    data = data.squeeze([name for name in single if not _is_time_or_level(str(name))], drop=True)
    dims = [str(name) for name in data.dims if name in _HORIZONTAL]
    if not dims:
        return data, ""
    if options.latitude is None or options.longitude is None:
        size = int(np.prod([data.sizes[name] for name in dims]))
        numeric = data[[n for n in data.data_vars if data[n].dtype.kind in "fiu"]]
        mean = numeric.mean(dims, keep_attrs=True, skipna=False)
        return mean, f"mean of {size} grid points" if size > 1 else ""
    lat, lon = _find(data, _LATITUDES, path), _find(data, _LONGITUDES, path)
    index = _nearest(lat, lon, options.latitude, options.longitude, path)
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
        raise PlumecastError(
            f"{path}: latitude={latitude:g}, longitude={longitude:g} lies outside the file, which "
            f"has {grid_lat.min():g} to {grid_lat.max():g} N, {grid_lon.min():g} to "
            f"{grid_lon.max():g} E; extract the weather of the fire's place"
        )
    return {name: int(number) for name, number in zip(dims, best, strict=True)}


def _spacing(lat: Array, east: Array) -> float:
    """Largest distance between neighbours, degree; 1 for a single point."""
    steps = [
        float(np.hypot(np.diff(lat, axis=axis), np.diff(east, axis=axis)).max())
        for axis in (0, 1)
        if lat.shape[axis] > 1
    ]
    return max(steps, default=1.0)
