"""Small snapshots with a place on Earth."""

from __future__ import annotations

import pyproj
import xarray as xr

from support.snapshots import make_snapshots

CRS = "EPSG:5070"
LEFT, BOTTOM = -2_100_000.0, 1_900_000.0  # m, northern California


def on_earth(**options: object) -> xr.Dataset:
    """Snapshots of `make_snapshots` in California, with a grid mapping."""
    made = make_snapshots(**options)  # type: ignore[arg-type]
    made = made.assign_coords(
        x=("x", made.x.values + LEFT, made.x.attrs), y=("y", made.y.values + BOTTOM, made.y.attrs)
    )
    mapping = xr.Variable((), 0, pyproj.CRS(CRS).to_cf())
    made = made.assign_coords(crs=mapping)
    for name in ("smoke", "time_since_ignition"):
        made[name].attrs["grid_mapping"] = "crs"
    return made
