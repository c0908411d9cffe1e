"""A raster of Scott and Burgan fuels (FBFM40, e.g. from LANDFIRE) → fuel load on a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.physics.fuels import fuel_codes, fuel_table
from plumecast.sources.rasters.files import read_raster
from plumecast.sources.rasters.georeference import RasterFire, cell_overlap, target_grid
from plumecast.sources.rasters.raster import Raster

COVERED = 0.5
"""Share of a grid cell that known fuels must cover for its load to be known."""

_TOGETHER = 500_000  # raster cells whose overlap is computed at a time, to limit memory


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
