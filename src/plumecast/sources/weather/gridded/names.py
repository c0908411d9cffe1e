"""Variables of weather files by CF standard name and by the names of models, with their units."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.sources.weather.options import Options
from plumecast.sources.weather.units import LENGTHS, length_label, speed_label, speed_unit

STANDARD_GRAVITY = 9.80665
"""Geopotential over geopotential height, m s⁻² (WMO, ERA5)."""

_GEOPOTENTIAL_UNITS = {"m2s-2", "m**2s**-2", "m^2s^-2", "m2/s2", "m^2/s^2", "jkg-1", "m2s^-2"}


class Part(Enum):
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


_SURFACE_WINDS = {*Part.EASTWARD_10M.value[1], *Part.NORTHWARD_10M.value[1]}


def find_part(data: xr.Dataset, part: Part) -> xr.DataArray | None:
    """The variable of a kind; None if there is none. Names of 10 m winds are never a profile."""
    standard, names, _ = part.value
    for name in names:
        if name in data.variables and name not in data.dims:
            found: xr.DataArray = data[name]
            return found
    for key in data.data_vars:
        if data[key].attrs.get("standard_name") in standard and str(key) not in _SURFACE_WINDS:
            named: xr.DataArray = data[key]
            return named
    return None


def require_part(data: xr.Dataset, part: Part, path: Path) -> xr.DataArray:
    """The variable of a kind; raises if there is none."""
    found = find_part(data, part)
    if found is None:
        have = ", ".join(map(str, data.data_vars)) or "no variables"
        names = ", ".join(part.value[1][:4])
        raise PlumecastError(
            f"{path}: {part.value[2]} is missing; expected e.g. {names}, found {have}"
        )
    return found


def wind_unit(variable: xr.DataArray, path: Path, options: Options) -> str:
    """Unit of a wind, from its attribute or as stated."""
    label = str(variable.attrs.get("units", ""))
    found = speed_label(label)
    if found is None and label:
        raise PlumecastError(
            f"{path}: {variable.name} has the unit {label!r}, which is no speed; convert it to m/s"
        )
    return speed_unit(path, found, options.speed_unit, str(variable.name))


def height_metres(variable: xr.DataArray, path: Path) -> Array:
    """Values in m of a height, or of a geopotential divided by `STANDARD_GRAVITY`."""
    label = str(variable.attrs.get("units", "")).strip()
    values = np.asarray(variable.values, dtype=np.float64)
    if label.replace(" ", "").replace(".", "").lower() in _GEOPOTENTIAL_UNITS:
        return values / STANDARD_GRAVITY
    unit = length_label(label)
    if unit is None:
        stated = f"the unit {label!r}" if label else "no unit"
        raise PlumecastError(
            f"{path}: {variable.name} has {stated}; give m, or m2 s-2 for a geopotential"
        )
    return values * LENGTHS[unit]
