"""Map projections of WRF: latitude and longitude → metres, and the CF grid mapping."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.sources.wrf.files import Frame, FrameReader
from plumecast.sources.wrf.integrity import number_attribute
from plumecast.sources.wrf.ranges import check_plausible

EARTH_RADIUS = 6_370_000.0
"""Radius of WRF's sphere, m."""


def lambert(
    lat: Array, lon: Array, *, parallels: tuple[float, float], origin: tuple[float, float]
) -> tuple[Array, Array]:
    """Spherical Lambert conformal plane, m; `origin` = (latitude, longitude) of (0, 0), degrees."""
    first, second = np.radians(parallels)
    cone = (
        np.sin(first)
        if np.isclose(first, second)
        else np.log(np.cos(first) / np.cos(second)) / np.log(_stretch(second) / _stretch(first))
    )
    scale = EARTH_RADIUS * np.cos(first) * _stretch(first) ** cone / cone
    radius = scale / _stretch(np.radians(lat)) ** cone
    angle = cone * np.radians(_wrap(lon - origin[1]))
    top = scale / _stretch(np.radians(origin[0])) ** cone
    return radius * np.sin(angle), top - radius * np.cos(angle)


def polar(lat: Array, lon: Array, *, parallel: float, meridian: float) -> tuple[Array, Array]:
    """Spherical polar stereographic plane of the parallel's hemisphere, m; pole at (0, 0)."""
    side = 1.0 if parallel >= 0 else -1.0
    radius = (
        EARTH_RADIUS * (1 + np.sin(np.radians(abs(parallel)))) / _stretch(side * np.radians(lat))
    )
    angle = np.radians(_wrap(lon - meridian))
    return radius * np.sin(angle), -side * radius * np.cos(angle)


def mercator(lat: Array, lon: Array, *, parallel: float, meridian: float) -> tuple[Array, Array]:
    """Spherical Mercator plane true at `parallel`, m; (0, 0) on the equator at `meridian`."""
    scale = EARTH_RADIUS * np.cos(np.radians(parallel))
    return scale * np.radians(_wrap(lon - meridian)), scale * np.log(_stretch(np.radians(lat)))


def map_plane(
    attributes: Mapping[str, Any], lat: float, lon: float
) -> tuple[dict[str, Any], tuple[float, float]]:
    """CF grid mapping of a WRF projection, and the coordinates in m of one point in degrees.

    MAP_PROJ 1 is Lambert conformal, 2 polar stereographic, 3 Mercator, on a sphere of 6370 km. Any
    other projection has no plane in metres and gives an empty mapping.
    """
    first, second, meridian = (float(attributes[n]) for n in ("TRUELAT1", "TRUELAT2", "STAND_LON"))
    mapping: dict[str, Any] = {"standard_parallel": first, "earth_radius": EARTH_RADIUS}
    match int(attributes["MAP_PROJ"]):
        case 1:
            origin = float(attributes["MOAD_CEN_LAT"])
            mapping |= {
                "grid_mapping_name": "lambert_conformal_conic",
                "standard_parallel": [first, second],
                "longitude_of_central_meridian": meridian,
                "latitude_of_projection_origin": origin,
            }
            x, y = lambert(lat, lon, parallels=(first, second), origin=(origin, meridian))
        case 2:
            mapping |= {
                "grid_mapping_name": "polar_stereographic",
                "straight_vertical_longitude_from_pole": meridian,
                "latitude_of_projection_origin": 90.0 if first >= 0 else -90.0,
            }
            x, y = polar(lat, lon, parallel=first, meridian=meridian)
        case 3:
            mapping |= {
                "grid_mapping_name": "mercator",
                "longitude_of_projection_origin": meridian,
            }
            x, y = mercator(lat, lon, parallel=first, meridian=meridian)
        case _:
            return {}, (0.0, 0.0)
    return mapping, (float(x), float(y))


def _stretch(latitude: Array) -> Array:
    """tan(π/4 + φ/2), φ in radians."""
    return np.tan(np.pi / 4 + latitude / 2)


def _wrap(degrees: Array) -> Array:
    """The equivalent angle in [−180, 180)."""
    return (degrees + 180.0) % 360.0 - 180.0


def read_latlon(
    dataset: netCDF4.Dataset, path: Path, reader: FrameReader
) -> tuple[Array, Array] | None:
    """XLAT, XLONG (ny, nx) of a real domain; in idealised runs (MAP_PROJ 0) they are metres."""
    projection = number_attribute(dataset, path, "MAP_PROJ", 0.0)
    if projection == 0.0:
        return None
    first = Frame(0.0, path, 0)
    lat, lon = (
        check_plausible(reader.read(first, name), name, str(first)) for name in ("XLAT", "XLONG")
    )
    names = ("TRUELAT1", "TRUELAT2", "STAND_LON", *(["MOAD_CEN_LAT"] if projection == 1 else []))
    numbers = {name: number_attribute(dataset, path, name) for name in names}
    _, place = map_plane({**numbers, "MAP_PROJ": projection}, float(lat[0, 0]), float(lon[0, 0]))
    if not np.isfinite(place).all():
        stated = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
        raise PlumecastError(f"{path}: the map projection has no place for this domain ({stated})")
    return lat, lon
