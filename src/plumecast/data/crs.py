"""Coordinate reference systems of snapshots: CF grid mappings and pyproj."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError, require
from plumecast.compute.arrays import Array


def crs_of(like: xr.Dataset | xr.DataArray) -> Any:
    """CF grid mapping of a data set, or its attribute `crs`; None if it has neither."""
    return grid_mapping(like) or like.attrs.get("crs")


def grid_mapping(fields: xr.Dataset | xr.DataArray) -> dict[str, Any] | None:
    """The CF attributes of the coordinate reference system; None if it is unknown."""
    named = fields.variables if isinstance(fields, xr.Dataset) else fields.coords
    return next((dict(item.attrs) for item in named.values() if is_mapping(item)), None)


def is_mapping(item: xr.DataArray | xr.Variable) -> bool:
    """Whether a variable describes a coordinate reference system."""
    return bool({"grid_mapping_name", "crs_wkt"} & set(item.attrs))


def as_crs(raw: Any, path: Path | str) -> Any:
    """pyproj CRS from a CF grid mapping or anything else that pyproj accepts."""
    pyproj = import_extra("pyproj", path)
    try:
        return pyproj.CRS.from_cf(raw) if isinstance(raw, dict) else pyproj.CRS(raw)
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise PlumecastError(
            f"{path}: unknown CRS {str(raw)[:60]!r}; give a code such as EPSG:5070"
        ) from error


def crs_name(crs: Any) -> str:
    """Name of a pyproj CRS, with its code if it has one: "NAD83 / Conus Albers (EPSG:5070)"."""
    code = crs.to_authority()
    return f"{crs.name} ({':'.join(code)})" if code else str(crs.name)


def in_metres(crs: Any) -> Any:
    """The projected pyproj CRS itself or, if its axes are in another unit, the same in metres."""
    while crs.is_compound or crs.is_bound:  # the horizontal part
        crs = crs.sub_crs_list[0] if crs.is_compound else crs.source_crs
    if all(axis.unit_conversion_factor == 1.0 for axis in crs.axis_info):
        return crs
    described = crs.to_json_dict()
    for axis in described["coordinate_system"]["axis"]:
        axis["unit"] = "metre"
    for code in ("id", "ids"):  # those of the CRS in the other unit
        described.pop(code, None)
    return type(crs).from_json_dict(described | {"name": f"{crs.name}, in metres"})


def latitude_longitude(crs: Any, y: Array, x: Array) -> tuple[Array, Array]:
    """Latitude and longitude, (ny, nx) degrees to 1 cm, of the points of a grid in a pyproj CRS.

    They are on the datum of the CRS. The last digits, which vary between versions of PROJ, are
    rounded away: a store refuses fires on another grid.
    """
    pyproj = import_extra("pyproj", "the grid")
    move = pyproj.Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True).transform
    lon, lat = move(*np.meshgrid(x, y))
    return np.round(lat, 7), np.round(lon, 7)


def same_crs(one: Any, two: Any) -> bool:
    """Whether two pyproj CRS describe the same plane; the order of axes may differ."""
    return bool(one.equals(two, ignore_axis_order=True))


def import_extra(name: str, path: Path | str) -> Any:
    """Import a library of the `raster` extra; the error says how to install it."""
    return require(name, "raster", f"{path}: this file")
