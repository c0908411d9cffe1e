"""Coordinate systems of rasters and target grids, the overlap of their cells, and fuel loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.compute import regrid
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.compute.regrid import Grid
from plumecast.data.crs import as_crs, crs_name, crs_of, import_extra, same_crs
from plumecast.physics.fuels import fuel_codes, fuel_table
from plumecast.sources.rasters.files import read_raster
from plumecast.sources.rasters.raster import Raster

_MAX_OUTSIDE = 1e-3  # share of the burned area that may lie outside the target grid

COVERED = 0.5
"""Share of a grid cell that known fuels must cover for its load to be known."""

_TOGETHER = 500_000  # raster cells whose overlap is computed at a time, to limit memory


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
    kept = {name: like[name].variable for name in ("lat", "lon") if name in like.coords}
    return TargetGrid(grid, crs_of(like), kept)


def overlap(fire: RasterFire, target: TargetGrid, *, local: bool) -> regrid.Weights:
    """Overlap of the burned cells with the target cells; the fire must lie inside the target grid.

    `local` means that the fire already has the coordinates of the target grid. A fire without a CRS
    is assumed to have them.
    """
    weights = cell_overlap(fire, target, local=local)
    if weights.outside > _MAX_OUTSIDE:
        raise _outside(fire, target, weights.outside, local=local)
    return weights


def cell_overlap(cells: RasterFire, target: TargetGrid, *, local: bool) -> regrid.Weights:
    """`overlap` of cells that may lie outside the target grid."""
    if local or cells.crs is None:
        return regrid.overlap_weights(cells.grid, target.grid, cells.cells)
    if target.crs is None:
        raise PlumecastError(
            f"{cells.path}: has a CRS, the target grid has none; the CRS 'local' uses the "
            "coordinates of the file unchanged"
        )
    return _projected_overlap(cells, target)


def assumed_crs(fire: RasterFire, target: TargetGrid, *, local: bool) -> str | None:
    """Name of the target grid's CRS if the fire has none and is assumed to have it."""
    if local or fire.crs is not None or target.crs is None:
        return None
    return crs_name(as_crs(target.crs, fire.path))


def _outside(fire: RasterFire, target: TargetGrid, share: float, *, local: bool) -> PlumecastError:
    """The error for a fire outside the target grid, with the extents of both."""
    grid = target.grid
    whole = (grid.left, grid.bottom, grid.left + grid.nx * grid.dx, grid.bottom + grid.ny * grid.dy)
    burned = _burned_box(fire)
    move = None if local else _transformer(fire, target)
    if move is not None:
        burned = move.transform_bounds(*burned)
    where = (
        f"{share:.1%} of the burned area is outside the target grid: the fire is at "
        f"{_extent(burned)}, the grid at {_extent(whole)}"
    )
    assumed = assumed_crs(fire, target, local=local)
    if assumed is None:
        return PlumecastError(f"{fire.path}: {where}; check the CRS and the grid")
    start = f"{fire.path}: no CRS, and with that of the target grid, {assumed}, "
    return ArgumentError("crs", None, f"{start}{where}; give the CRS of the file, EPSG:…")


def _burned_box(fire: RasterFire) -> tuple[float, float, float, float]:
    """Left, bottom, right and top edge of the burned cells, in the coordinates of the file."""
    rows, columns = np.divmod(fire.cells, fire.grid.nx)
    x = fire.grid.left + fire.grid.dx * np.array([columns.min(), columns.max() + 1])
    y = fire.grid.bottom + fire.grid.dy * np.array([rows.min(), rows.max() + 1])
    return float(x[0]), float(y[0]), float(x[1]), float(y[1])


def _extent(box: tuple[float, float, float, float]) -> str:
    left, bottom, right, top = box
    return f"x {left:.7g} … {right:.7g}, y {bottom:.7g} … {top:.7g}"


def _projected_overlap(fire: RasterFire, target: TargetGrid) -> regrid.Weights:
    """Overlap of a fire and a target grid that each have a CRS; reprojects if the CRS differ."""
    move = _transformer(fire, target)
    if move is None:
        return regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    try:
        return regrid.projected_weights(
            fire.grid, target.grid, fire.cells, to_target=move.transform
        )
    except PlumecastError as error:
        raise PlumecastError(f"{fire.path}: {error}") from error


def _transformer(fire: RasterFire, target: TargetGrid) -> Any:
    """pyproj Transformer from the fire's plane to the target's; None if they are the same."""
    if fire.crs is None or target.crs is None:
        return None
    source, goal = as_crs(fire.crs, fire.path), as_crs(target.crs, fire.path)
    if same_crs(source, goal):
        return None
    return import_extra("pyproj", fire.path).Transformer.from_crs(source, goal, always_xy=True)


def cell_areas(fire: RasterFire) -> Array:
    """Area of each burned cell in m²; on the sphere if the grid is in degrees."""
    if fire.crs is None:
        return np.full(fire.cells.size, fire.grid.cell_area)
    crs = as_crs(fire.crs, fire.path)
    if crs.is_geographic:
        _check_degrees(fire)
        return regrid.spherical_cell_area(fire.grid, fire.cells)
    metres = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
    return np.full(fire.cells.size, fire.grid.cell_area * metres**2)


def _check_degrees(fire: RasterFire) -> None:
    """Raise if a grid in degrees reaches beyond the poles or more than once around the Earth."""
    grid = fire.grid
    top, width = grid.bottom + grid.ny * grid.dy, grid.nx * grid.dx
    slack = 1e-6 + grid.dy / 2  # some grids have a cell centre at the pole
    if grid.bottom < -90.0 - slack or top > 90.0 + slack or width > 360.0 + grid.dx:
        raise PlumecastError(
            f"{fire.path}: latitude {grid.bottom:g} … {top:g} and {width:g} degrees of longitude, "
            "but its CRS is in degrees; correct its header or its CRS"
        )


def read_fuel_load(path: str | Path, like: xr.Dataset, *, crs: Any = None) -> Array:
    """(ny, nx) total surface load on the grid of `like`, kg m⁻²: the area mean of the fuel models.

    L = Σ a_i l_i / Σ a_i over the raster cells i that overlap a grid cell by the area a_i. It is
    NaN where cells with a known fuel cover less than COVERED of the grid cell, and 0 where nothing
    burns. `crs` is the CRS of a file that has none; "local" uses its coordinates unchanged.
    """
    path = Path(path)
    raster = read_raster(path)
    load, cells = _loads(path, raster)
    target = target_grid(like)
    local = crs == "local"
    plane = crs if raster.crs is None and not local else raster.crs
    total, area = np.zeros((2, target.grid.ny * target.grid.nx))
    for part in row_blocks(cells.size, _TOGETHER):
        some = RasterFire(path.stem, path, cells[part], load[part], raster.grid, plane)
        weights = cell_overlap(some, target, local=local)
        total += weights.mean(load[part])
        area += weights.mean(np.ones(load[part].size))
    known = area >= COVERED
    if not known.any():
        grid = target.grid
        raise PlumecastError(
            f"{path} covers no cell of the grid (x from {grid.left:.7g}, y from {grid.bottom:.7g}, "
            f"{grid.ny} × {grid.nx} cells of {grid.dx:g} m); check the CRS, or give a raster of "
            "this region"
        )
    mean = np.where(known, total / np.where(known, area, 1.0), np.nan)
    return mean.reshape(target.grid.ny, target.grid.nx).astype(np.float32)


def _loads(path: Path, raster: Raster) -> tuple[Array, Array]:
    """(n,) loads of the raster cells whose fuel is known, and their flat indices."""
    values = raster.values.ravel()
    known = np.isfinite(values)
    if raster.nodata is not None:
        known &= values != raster.nodata
    cells = np.flatnonzero(known)
    if not cells.size:
        raise PlumecastError(f"{path}: no cell has a fuel, all values are nodata; give another")
    try:
        codes = fuel_codes(values[cells])
    except PlumecastError as error:
        raise PlumecastError(f"{path}: {error}") from error
    return fuel_table().total_load[codes], cells
