"""Coordinate systems of fires and target grids, and the overlap of their cells."""

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

_MAX_OUTSIDE = 1e-3  # share of the burned area that may lie outside the target grid


class RasterFire(NamedTuple):
    """Burned cells of one fire and their arrival times."""

    fire_id: str
    path: Path
    cells: Array  # (n,) flat index into the grid
    arrival: Array  # (n,) hours since the earliest arrival
    grid: Grid
    crs: Any


class TargetGrid(NamedTuple):
    """Grid of the result, its CRS, and its geographic coordinates if known."""

    grid: Grid
    crs: Any
    coords: dict[str, Any]

    def grid_mapping(self) -> dict[str, Any]:
        """CF grid mapping of the CRS; empty if there is none."""
        if self.crs is None:
            return {}
        if isinstance(self.crs, dict):
            return dict(self.crs)
        return dict(as_crs(self.crs, "like").to_cf())


def target_grid(like: xr.Dataset | xr.DataArray) -> TargetGrid:
    """Grid, CRS, latitude and longitude of a template with cell centres y and x."""
    if "x" not in like.coords or "y" not in like.coords:
        raise PlumecastError(
            f"like has no coordinates y and x; found {', '.join(map(str, like.coords))}. Give a "
            "dataset with cell centres y and x"
        )
    grid = regrid.grid_from_centres(like["x"].values, like["y"].values, "like")
    scalars = like.variables.values() if isinstance(like, xr.Dataset) else like.coords.values()
    mappings = [v.attrs for v in scalars if {"grid_mapping_name", "crs_wkt"} & set(v.attrs)]
    kept = {name: like[name].variable for name in ("lat", "lon") if name in like.coords}
    return TargetGrid(grid, dict(mappings[0]) if mappings else like.attrs.get("crs"), kept)


def overlap(fire: RasterFire, target: TargetGrid, *, local: bool) -> regrid.Weights:
    """Overlap of the burned cells with the target cells; the fire must lie inside the target grid.

    `local` means that the fire already has the coordinates of the target grid.
    """
    if local or (fire.crs is None and target.crs is None):
        weights = regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    elif fire.crs is None:
        raise PlumecastError(
            f"{fire.path}: no CRS, and the grid of `like` has one; state crs "
            '("local" if the file already uses the coordinates of that grid)'
        )
    elif target.crs is None:
        raise PlumecastError(
            f"{fire.path}: has a CRS, the grid of `like` has none; "
            'crs="local" uses the coordinates of the file unchanged'
        )
    else:
        weights = _projected_overlap(fire, target)
    if weights.outside > _MAX_OUTSIDE:
        raise PlumecastError(
            f"{fire.path}: {weights.outside:.1%} of the burned area is outside the grid of `like` "
            f"(x {target.grid.x[0]:g} … {target.grid.x[-1]:g}, "
            f"y {target.grid.y[0]:g} … {target.grid.y[-1]:g}); check the CRS and the grid"
        )
    return weights


def _projected_overlap(fire: RasterFire, target: TargetGrid) -> regrid.Weights:
    """Overlap of a fire and a target grid that each have a CRS; reprojects if the CRS differ."""
    source, goal = as_crs(fire.crs, fire.path), as_crs(target.crs, fire.path)
    if same_crs(source, goal):
        return regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    pyproj = import_extra("pyproj", fire.path)
    move = pyproj.Transformer.from_crs(source, goal, always_xy=True).transform
    try:
        return regrid.projected_weights(fire.grid, target.grid, fire.cells, to_target=move)
    except PlumecastError as error:
        raise PlumecastError(f"{fire.path}: {error}") from error


def cell_areas(fire: RasterFire) -> Array:
    """Area of each burned cell in m²; on the sphere if the grid is in degrees."""
    if fire.crs is None:
        return np.full(fire.cells.size, fire.grid.cell_area)
    crs = as_crs(fire.crs, fire.path)
    if crs.is_geographic:
        return regrid.spherical_cell_area(fire.grid, fire.cells)
    metres = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
    return np.full(fire.cells.size, fire.grid.cell_area * metres**2)


def as_crs(raw: Any, path: Path | str) -> Any:
    """pyproj CRS from a CF grid mapping or anything else that pyproj accepts."""
    pyproj = import_extra("pyproj", path)
    try:
        return pyproj.CRS.from_cf(raw) if isinstance(raw, dict) else pyproj.CRS(raw)
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise PlumecastError(
            f"{path}: unknown CRS {str(raw)[:60]!r}; give a code such as EPSG:5070"
        ) from error


def same_crs(one: Any, two: Any) -> bool:
    """Whether two pyproj CRS describe the same plane; the order of axes may differ."""
    return bool(one.equals(two, ignore_axis_order=True))


def import_extra(name: str, path: Path | str) -> Any:
    """Import a library of the `raster` extra; the error says how to install it."""
    return require(name, "raster", f"{path}: this file")
