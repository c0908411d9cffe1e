"""The ground of simulated fires: the user's rasters, or the synthetic landscape."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.ndimage import distance_transform_edt

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Field, Mask
from plumecast.data.crs import crs_of
from plumecast.physics.fuels import NB9, Codes, fuel_codes
from plumecast.simulator.atmosphere import STEERING_STRENGTH, check_steering
from plumecast.simulator.fire import BLOCK
from plumecast.simulator.landscape import Landscape
from plumecast.sources.rasters.files import open_geotiff


@dataclass(frozen=True, slots=True)
class Ground:
    """The ground of simulated fires: rasters of the user's or the synthetic landscape.

    `dem` and `fuels` are GeoTIFFs of elevation and of Scott & Burgan fuels that replace the
    synthetic landscape; the snapshots keep their CRS and coordinates. With `bare_where_missing`,
    missing cells become bare ground. `steering` is how strongly terrain turns the wind along its
    valleys, from 0 (not at all); the default is 1.2. The wind along a straight deep valley gains
    steering / 2 times its speed; the wind across it loses as much.
    """

    dem: str | Path | None = None
    fuels: str | Path | None = None
    bare_where_missing: bool = False
    steering: float | None = None

    @property
    def strength(self) -> float:
        """Strength of the steering; the default if none was given."""
        strength = STEERING_STRENGTH if self.steering is None else float(self.steering)
        check_steering(strength)
        return strength

    def landscape(self) -> Landscape | None:
        """The landscape of the rasters; None for the synthetic one.

        Rows in the north and columns in the east that do not fill a smoke cell are cut off.
        """
        if (self.dem is None) != (self.fuels is None):
            raise PlumecastError("a landscape needs both an elevation and a fuel raster; give both")
        if self.dem is None or self.fuels is None:
            return None
        whole = read_landscape(self.dem, self.fuels, bare_where_missing=self.bare_where_missing)
        rows, columns = (size - size % BLOCK for size in whole.shape)
        return replace(
            whole, elevation=whole.elevation[:rows, :columns], fuel=whole.fuel[:rows, :columns]
        )

    def record(self) -> dict[str, Any]:
        """The settings that a store records."""
        return {
            "dem": _recorded(self.dem),
            "fuels": _recorded(self.fuels),
            "bare_where_missing": self.bare_where_missing,
            "steering": self.strength,
        }


SYNTHETIC = Ground()
"""The synthetic landscape with the default steering."""


def in_plane_of(like: xr.Dataset, landscape: Landscape) -> Landscape:
    """The landscape or, if the grid of `like` has no CRS, the landscape without its own.

    Versions up to 0.2 dropped the CRS of the rasters and counted y and x from their south-west
    corner. Their stores are continued, and their surrogates used, in these coordinates.
    """
    if crs_of(like) is not None:
        return landscape
    return replace(landscape, corner=(0.0, 0.0), crs=None)


def _recorded(path: str | Path | None) -> str | None:
    """Name and hash of a raster, so that other content under the same name is another landscape."""
    if path is None:
        return None
    if not Path(path).is_file():
        raise PlumecastError(f"{path} does not exist or is not a file")
    return f"{Path(path).name} sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:20]}"


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
