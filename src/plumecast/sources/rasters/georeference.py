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

_MAX_OUTSIDE = 1e-3  # share of the burned area that may lie outside the target grid

COVERED = 0.5
"""Share of a grid cell that known fuels must cover for its load to be known."""

_TOGETHER = 500_000  # raster cells whose overlap is computed at a time, to limit memory


class RasterFire(NamedTuple):
    """Burned cells of one fire and their arrival times.

    `local` means that its coordinates are those of the target grid, whatever its CRS; a fire
    without a CRS is assumed to have them.
    """

    fire_id: str
    path: Path
    cells: Array  # (n,) flat index into the grid
    arrival: Array  # (n,) hours since the earliest arrival
    grid: Grid
    crs: Any
    local: bool = False


class TargetGrid(NamedTuple):
    """Grid of the result, its CRS, and its geographic coordinates if known."""

    grid: Grid
    crs: Any
    coords: dict[str, Any]

    def grid_mapping(self) -> dict[str, Any]:
        """CF grid mapping of the CRS; empty if there is none."""
        if self.crs is None or isinstance(self.crs, dict):
            return dict(self.crs or {})
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


def overlap(fire: RasterFire, target: TargetGrid) -> regrid.Weights:
    """Overlap of the burned cells with the target cells; the fire must lie inside their grid."""
    weights = cell_overlap(fire, target)
    if weights.outside > _MAX_OUTSIDE:
        raise _outside(fire, target, weights.outside)
    return weights


def cell_overlap(cells: RasterFire, target: TargetGrid) -> regrid.Weights:
    """`overlap` of cells that may lie outside the target grid; reprojects if the CRS differ."""
    if cells.crs is not None and target.crs is None and not cells.local:
        raise PlumecastError(
            f"{cells.path}: has a CRS, the target grid has none; the CRS 'local' uses the "
            "coordinates of the file unchanged"
        )
    move = _transformer(cells, target)
    if move is None:
        return regrid.overlap_weights(cells.grid, target.grid, cells.cells)
    try:
        return regrid.projected_weights(
            cells.grid, target.grid, cells.cells, to_target=move.transform
        )
    except PlumecastError as error:
        raise PlumecastError(f"{cells.path}: {error}") from error


def looks_like_degrees(grid: Grid) -> bool:
    """Whether coordinates are within those of a globe, with cells below one."""
    top, right = grid.bottom + grid.ny * grid.dy, grid.left + grid.nx * grid.dx
    on_globe = -180.5 <= grid.left <= right <= 360.5 and -90.5 <= grid.bottom <= top <= 90.5
    return on_globe and max(grid.dx, grid.dy) < 1.0


def assumed_crs(fire: RasterFire, target: TargetGrid) -> str | None:
    """Name of the target grid's CRS if the fire has none and is assumed to have it."""
    if fire.local or fire.crs is not None or target.crs is None:
        return None
    return crs_name(as_crs(target.crs, fire.path))


def _outside(fire: RasterFire, target: TargetGrid, share: float) -> PlumecastError:
    """The error for a fire outside the target grid, with the extents of both."""
    rows, columns = np.divmod(fire.cells, fire.grid.nx)
    burned = _box(fire.grid, columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    move = _transformer(fire, target)
    if move is not None:
        burned = move.transform_bounds(*burned)
    whole = _box(target.grid, 0, 0, target.grid.nx, target.grid.ny)
    at, on = (
        f"x {left:.7g} … {right:.7g}, y {bottom:.7g} … {top:.7g}"
        for left, bottom, right, top in (burned, whole)
    )
    where = (
        f"{share:.1%} of the burned area is outside the target grid: the fire is at {at}, the grid "
        f"at {on}"
    )
    assumed = assumed_crs(fire, target)
    if assumed is None:
        return PlumecastError(f"{fire.path}: {where}; check the CRS and the grid")
    start = f"{fire.path}: no CRS, and with that of the target grid, {assumed}, "
    return ArgumentError("crs", None, f"{start}{where}; give the CRS of the file, EPSG:…")


def _box(
    grid: Grid, west: float, south: float, east: float, north: float
) -> tuple[float, float, float, float]:
    """Left, bottom, right and top edge of a range of cells."""
    return (
        grid.left + grid.dx * west,
        grid.bottom + grid.dy * south,
        grid.left + grid.dx * east,
        grid.bottom + grid.dy * north,
    )


def _transformer(fire: RasterFire, target: TargetGrid) -> Any:
    """pyproj Transformer from the fire's plane to the target's; None if they are the same."""
    if fire.local or fire.crs is None or target.crs is None:
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
    if not crs.is_geographic:
        metres = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
        return np.full(fire.cells.size, fire.grid.cell_area * metres**2)
    grid = fire.grid
    top, width = grid.bottom + grid.ny * grid.dy, grid.nx * grid.dx
    slack = 1e-6 + grid.dy / 2  # some grids have a cell centre at the pole
    if grid.bottom < -90.0 - slack or top > 90.0 + slack or width > 360.0 + grid.dx:
        raise PlumecastError(
            f"{fire.path}: latitude {grid.bottom:g} … {top:g} and {width:g} degrees of longitude, "
            "but its CRS is in degrees; correct its header or its CRS"
        )
    return regrid.spherical_cell_area(grid, fire.cells)


def read_fuel_load(path: str | Path, like: xr.Dataset, *, crs: Any = None) -> Array:
    """(ny, nx) total surface load on the grid of `like`, kg m⁻²: the area mean of the fuel models.

    L = Σ a_i l_i / Σ a_i over the raster cells i that overlap a grid cell by the area a_i. It is
    NaN where cells with a known fuel cover less than COVERED of the grid cell, and 0 where nothing
    burns. `crs` is the CRS of a file that has none; "local" uses its coordinates unchanged.
    """
    path = Path(path)
    raster = read_raster(path)
    values = raster.values.ravel()
    has_fuel = np.isfinite(values)
    if raster.nodata is not None:
        has_fuel &= values != raster.nodata
    cells = np.flatnonzero(has_fuel)
    if not cells.size:
        raise PlumecastError(f"{path}: no cell has a fuel, all values are nodata; give another")
    try:
        load = fuel_table().total_load[fuel_codes(values[cells])]
    except PlumecastError as error:
        raise PlumecastError(f"{path}: {error}") from error
    target, local = target_grid(like), crs == "local"
    plane = crs if raster.crs is None and not local else raster.crs
    total, area = np.zeros((2, target.grid.ny * target.grid.nx))
    for part in row_blocks(cells.size, _TOGETHER):
        some = RasterFire(path.stem, path, cells[part], load[part], raster.grid, plane, local)
        weights = cell_overlap(some, target)
        total += weights.mean(load[part])
        area += weights.mean(np.ones(load[part].size))
    covered = area >= COVERED
    grid = target.grid
    if not covered.any():
        raise PlumecastError(
            f"{path} covers no cell of the grid (x from {grid.left:.7g}, y from {grid.bottom:.7g}, "
            f"{grid.ny} × {grid.nx} cells of {grid.dx:g} m); check the CRS, or give a raster of "
            "this region"
        )
    mean = np.where(covered, total / np.where(covered, area, 1.0), np.nan)
    return mean.reshape(grid.ny, grid.nx).astype(np.float32)
