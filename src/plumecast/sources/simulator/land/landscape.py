"""Terrain and fuel on the fire grid, synthetic or from the user's rasters.

Row 0 is the south edge and column 0 the west edge: y increases with the row, x with the column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.ndimage import (
    distance_transform_edt,
    gaussian_filter,
)

from plumecast.base.errors import PlumecastError
from plumecast.sources.fuels.table import FUEL_CODES, NB9, fuel_codes, fuel_table
from plumecast.sources.rasters.geotiff import open_geotiff
from plumecast.sources.simulator.fields import Codes, Field, Mask
from plumecast.sources.simulator.land.synthesis import disturbed, synthetic_fuels, synthetic_terrain


@dataclass(frozen=True, eq=False)
class Landscape:
    """Elevation and Scott and Burgan fuel codes on square cells."""

    elevation: Field  # (ny, nx) m
    fuel: Codes  # (ny, nx) fuel code
    cell: float  # side of a cell, m
    corner: tuple[float, float] = (0.0, 0.0)  # x and y of the south-west corner, m
    crs: str | None = None  # of x and y, e.g. "EPSG:5070"; None if the ground is on no map

    def __post_init__(self) -> None:
        if self.elevation.ndim != 2 or self.elevation.shape != self.fuel.shape:
            raise PlumecastError(
                f"elevation has shape {self.elevation.shape} and fuel {self.fuel.shape}; "
                "both must be (rows, columns) of one grid"
            )
        if not self.cell > 0.0:
            raise PlumecastError(f"cell={self.cell:g} m must be positive")
        if not np.isfinite(self.elevation).all():
            holes = int((~np.isfinite(self.elevation)).sum())
            raise PlumecastError(
                f"elevation has {holes} cells without a value; fill them, e.g. by interpolation"
            )
        object.__setattr__(self, "fuel", fuel_codes(self.fuel))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.fuel.shape[0], self.fuel.shape[1]

    @cached_property
    def slope(self) -> tuple[Field, Field]:
        """(∂z/∂x, ∂z/∂y), rise over run towards east and north, by central differences."""
        east = np.asarray(np.gradient(self.elevation, self.cell, axis=1))
        north = np.asarray(np.gradient(self.elevation, self.cell, axis=0))
        return east, north

    @property
    def burnable(self) -> Mask:
        """Cells whose fuel can burn."""
        return np.asarray(fuel_table().burnable[self.fuel])


def synthetic_landscape(
    seed: int, shape: tuple[int, int] = (800, 1000), cell: float = 300.0, year: int = 0
) -> Landscape:
    """Synthetic valley between mountain ranges; `year` changes the fuels but not the terrain."""
    if min(shape) < 20:
        raise PlumecastError(f"shape={shape} is too small for a landscape; use 20 cells or more")
    ground = np.random.default_rng([seed, 0])
    elevation = synthetic_terrain(ground, shape, cell)
    fuel = synthetic_fuels(ground, elevation, cell)
    fuel = disturbed(np.random.default_rng([seed, 1, year]), fuel, cell)
    return Landscape(elevation, fuel, cell)


def square_block_mean(field: Field, factor: int) -> Field:
    """Mean over blocks of factor × factor cells in the last two axes, (…, ny, nx)."""
    *rest, ny, nx = field.shape
    if factor < 1 or ny % factor or nx % factor:
        raise PlumecastError(
            f"a grid of {ny} by {nx} cells has no blocks of {factor} by {factor}; crop it to a "
            "multiple of the block"
        )
    blocks = field.reshape(*rest, ny // factor, factor, nx // factor, factor)
    return np.asarray(blocks.mean(axis=(-3, -1)))


def ignition_mask(landscape: Landscape, *, margin: float = 30_000.0) -> Mask:
    """Cells where fires may ignite, (ny, nx): burnable, forested mountains away from the edge.

    The distance to the edge is at least `margin` metres, or 15 % of the shorter side on a small
    grid. Forested means that most of the fuel around the cell is shrub or timber. Mountains are the
    higher half of the burnable ground.
    """
    ny, nx = landscape.shape
    rim = int(min(margin / landscape.cell, 0.15 * min(ny, nx)))
    inside = np.zeros((ny, nx), dtype=bool)
    inside[rim : ny - rim, rim : nx - rim] = True
    burnable = landscape.burnable
    woody = burnable & (landscape.fuel >= FUEL_CODES["SH1"])
    forested = gaussian_filter(woody.astype(float), sigma=2.0) > 0.5
    height = landscape.elevation[burnable]
    mountains = landscape.elevation >= (np.median(height) if height.size else np.inf)
    return np.asarray(burnable & forested & mountains & inside)


def read_landscape(
    dem: str | Path,
    fbfm40: str | Path,
    cell: float | None = None,
    *,
    bare_where_missing: bool = False,
) -> Landscape:
    """Landscape from a DEM (m) and an FBFM40 raster on one projected grid, e.g. from LANDFIRE.

    `cell` (m) aggregates to coarser cells, with the mean elevation and the most frequent fuel of
    the raster cells inside; incomplete cells at the north and east edges are cut off. A raster cell
    without a value raises an error. With `bare_where_missing`, cells without a fuel become bare
    ground (NB9) at the nearest known elevation; such cells occur in the corners of a reprojected
    tile. The landscape keeps the CRS and the corner of the rasters.
    """
    elevation, grid = _read_band(dem)
    fuel, fuel_grid = _read_band(fbfm40)
    if grid != fuel_grid:
        raise PlumecastError(
            f"{dem} ({grid}) and {fbfm40} ({fuel_grid}) must share one grid and CRS; warp one of "
            "them to the other"
        )
    unmapped = np.ma.getmaskarray(fuel)
    sunk = np.ma.getmaskarray(elevation)
    if bare_where_missing and not unmapped.all():
        fuel = np.ma.asarray(fuel.filled(NB9))
        elevation = np.ma.masked_array(_fill_from_nearest(elevation.data, sunk), sunk & ~unmapped)
    for path, band in ((dem, elevation), (fbfm40, fuel)):
        holes = int(np.ma.getmaskarray(band).sum())
        if holes:
            raise PlumecastError(
                f"{path} has {holes} of {band.size} cells without a value; fill them, or pass "
                "bare_where_missing=True where the fuel is missing"
            )
    height, codes = np.asarray(elevation, dtype=float), fuel_codes(np.asarray(fuel))
    if cell is None or np.isclose(cell, grid.cell):
        ground = Landscape(height, codes, grid.cell)
    else:
        ground = _coarsen(height, codes, grid.cell, float(cell))
    return replace(ground, corner=grid.corner, crs=grid.crs)


class _RasterGrid(NamedTuple):
    """Grid of a raster: CRS, size, lower left corner and cell size, in metres."""

    crs: str
    shape: tuple[int, int]
    corner: tuple[float, float]
    cell: float

    def __str__(self) -> str:
        rows, columns = self.shape
        x, y = self.corner
        return f"{self.crs}, {rows} by {columns} cells of {self.cell:g} m from ({x:g}, {y:g})"


def _read_band(path: str | Path) -> tuple[np.ma.MaskedArray[Any, Any], _RasterGrid]:
    """First band with row 0 in the south and missing values masked, and its grid."""
    with open_geotiff(path) as source:
        band, crs, to_map = source.read(1, masked=True), source.crs, source.transform
    if crs is None or not crs.is_projected:
        raise PlumecastError(
            f"{path} has CRS {crs}; reproject it to a projected CRS, e.g. EPSG:5070"
        )
    if to_map.b or to_map.d or not np.isclose(to_map.a, abs(to_map.e)):
        raise PlumecastError(
            f"{path} has rotated or rectangular cells; resample it to square cells"
        )
    if np.issubdtype(band.dtype, np.floating):
        band = np.ma.masked_invalid(band)
    unit = float(crs.linear_units_factor[1])
    south = to_map.f + min(to_map.e * band.shape[0], 0.0)
    corner = (round(to_map.c * unit, 3), round(south * unit, 3))
    grid = _RasterGrid(crs.to_string(), band.shape, corner, round(float(to_map.a) * unit, 6))
    return (band[::-1] if to_map.e < 0.0 else band), grid


def _fill_from_nearest(field: npt.NDArray[Any], holes: Mask) -> npt.NDArray[Any]:
    """The field, with each cell in `holes` filled by the nearest value outside them."""
    if not holes.any() or holes.all():
        return field
    rows, columns = distance_transform_edt(holes, return_distances=False, return_indices=True)
    return np.asarray(field[rows, columns])


def _coarsen(elevation: Field, fuel: Codes, native: float, cell: float) -> Landscape:
    """Aggregate from cells of `native` m to `cell` m."""
    if cell < native:
        raise PlumecastError(
            f"cell={cell:g} m is finer than the {native:g} m of the rasters; give a larger cell"
        )
    ny, nx = (int(size * native / cell + 1e-9) for size in fuel.shape)
    if min(ny, nx) < 1:
        raise PlumecastError(
            f"rasters of {fuel.shape} cells of {native:g} m are smaller than one cell of "
            f"cell={cell:g} m; give a smaller cell"
        )
    row, column = (((np.arange(size) + 0.5) * native / cell).astype(int) for size in fuel.shape)
    inside = np.ix_(row < ny, column < nx)
    target = (row[row < ny, None] * nx + column[None, column < nx]).ravel()

    def total(values: npt.NDArray[Any]) -> Field:
        weights = values[inside].ravel().astype(float)
        sums = np.bincount(target, weights=weights, minlength=ny * nx)
        return np.asarray(sums, dtype=float).reshape(ny, nx)

    present = np.unique(fuel)
    most = np.argmax([total(fuel == code) for code in present], axis=0)
    mean = total(elevation) / total(np.ones(fuel.shape))
    return Landscape(mean, present[most], cell)
