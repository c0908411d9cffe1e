"""Where a fire lies: its coordinate system, the target's grid, and how its cells overlap it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.extras import require
from plumecast.compute.arrays import Array
from plumecast.sources import regrid
from plumecast.sources.regrid import Grid

_OUTSIDE = 1e-3  # share of the burned area that may lie beyond the surrogate's grid


class Fire(NamedTuple):
    """Burned cells of one fire, and when each burned, in hours since the first."""

    fire_id: str
    path: Path
    cells: Array  # (n,) flat index into the grid
    arrival: Array  # (n,)
    grid: Grid
    crs: Any


class Target(NamedTuple):
    """The grid of the result, its CRS, and the coordinates that come with it."""

    grid: Grid
    crs: Any
    coords: dict[str, Any]

    def grid_mapping(self) -> dict[str, Any]:
        """CF's description of the CRS; empty where it is not known."""
        if self.crs is None:
            return {}
        if isinstance(self.crs, dict):
            return dict(self.crs)
        return dict(as_crs(self.crs, "like").to_cf())


def target_of(like: xr.Dataset | xr.DataArray) -> Target:
    """Grid, CRS and geography of a template with y, x (cell centres)."""
    if "x" not in like.coords or "y" not in like.coords:
        raise PlumecastError(
            f"like has no coordinates y and x; found {', '.join(map(str, like.coords))}"
        )
    grid = regrid.grid_from_centres(like["x"].values, like["y"].values, "like")
    scalars = like.variables.values() if isinstance(like, xr.Dataset) else like.coords.values()
    mappings = [v.attrs for v in scalars if {"grid_mapping_name", "crs_wkt"} & set(v.attrs)]
    kept = {name: like[name].variable for name in ("lat", "lon") if name in like.coords}
    return Target(grid, dict(mappings[0]) if mappings else like.attrs.get("crs"), kept)


def overlap(fire: Fire, target: Target, *, local: bool) -> regrid.Weights:
    """Overlap of the burned cells with the target's cells; they must lie inside it.

    `local` says that the fire's coordinates are already those of the target.
    """
    if local or (fire.crs is None and target.crs is None):
        weights = regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    elif fire.crs is None:
        raise PlumecastError(
            f"{fire.path}: no CRS, and the grid of `like` has one; state crs "
            '("local" if the coordinates are already those of the grid)'
        )
    elif target.crs is None:
        raise PlumecastError(
            f"{fire.path}: has a CRS, the grid of `like` has none; "
            'crs="local" takes the coordinates as they are'
        )
    else:
        weights = _reprojected(fire, target)
    if weights.outside > _OUTSIDE:
        raise PlumecastError(
            f"{fire.path}: {weights.outside:.1%} of the burned area is outside the grid of `like` "
            f"(x {target.grid.x[0]:g} … {target.grid.x[-1]:g}, "
            f"y {target.grid.y[0]:g} … {target.grid.y[-1]:g})"
        )
    return weights


def _reprojected(fire: Fire, target: Target) -> regrid.Weights:
    source, goal = as_crs(fire.crs, fire.path), as_crs(target.crs, fire.path)
    if same_crs(source, goal):
        return regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    pyproj = import_extra("pyproj", fire.path)
    move = pyproj.Transformer.from_crs(source, goal, always_xy=True).transform
    try:
        return regrid.projected_weights(fire.grid, target.grid, fire.cells, to_target=move)
    except PlumecastError as error:
        raise PlumecastError(f"{fire.path}: {error}") from error


def cell_areas(fire: Fire) -> Array:
    """Area of each burned cell, m²: on the sphere for a grid in degrees."""
    if fire.crs is None:
        return np.full(fire.cells.size, fire.grid.cell_area)
    crs = as_crs(fire.crs, fire.path)
    if crs.is_geographic:
        return regrid.spherical_cell_area(fire.grid, fire.cells)
    metres = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
    return np.full(fire.cells.size, fire.grid.cell_area * metres**2)


def as_crs(raw: Any, path: Path | str) -> Any:
    """A pyproj CRS from a CF grid mapping, or anything else pyproj reads."""
    pyproj = import_extra("pyproj", path)
    try:
        return pyproj.CRS.from_cf(raw) if isinstance(raw, dict) else pyproj.CRS(raw)
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise PlumecastError(f"{path}: unknown CRS {str(raw)[:60]!r}") from error


def same_crs(one: Any, two: Any) -> bool:
    """Whether two pyproj CRS mean the same plane."""
    return bool(one.equals(two, ignore_axis_order=True))


def import_extra(name: str, path: Path | str) -> Any:
    """A library of the `raster` extra, or an error that says how to get it."""
    return require(name, "raster", f"{path}: this file")
