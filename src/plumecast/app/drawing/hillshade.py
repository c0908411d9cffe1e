"""Hillshade of the ground below a map, from a digital elevation model or from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from plumecast.base.errors import PlumecastError
from plumecast.compute.regrid import Grid
from plumecast.data.crs import as_crs, import_extra, same_crs
from plumecast.sources.rasters.files import read_raster

LONGEST = 600  # pixels of the longer side
_SUN_FROM, _SUN_HEIGHT = 315.0, 45.0  # degrees, as maps have it
_LEAST_INSIDE = 0.01  # share of the grid that an elevation model must cover


def shade(heights: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """Brightness (0 to 1) of a surface (ny, nx) in m, south row first, lit from the north-west.

    cos i = cos z + sin z (−∂h/∂x sin a − ∂h/∂y cos a), divided by √(1 + |∇h|²), with the sun at
    the zenith angle z and the azimuth a. Flat ground has cos z. Steep relief is not clipped, and
    gentle relief is raised so that the steepest tenth of the slopes is about 1 in 2.
    """
    slope_y, slope_x = np.gradient(heights, dy, dx)
    steep = float(np.nanpercentile(np.hypot(slope_x, slope_y), 90)) if heights.size else 0.0
    raised = max(1.0, 0.5 / steep) if steep > 0.0 else 1.0
    slope_x, slope_y = raised * slope_x, raised * slope_y
    azimuth, zenith = np.radians(_SUN_FROM), np.radians(90.0 - _SUN_HEIGHT)
    # The slope faces the sun where the ground falls towards it.
    facing = -(slope_x * np.sin(azimuth) + slope_y * np.cos(azimuth))
    light = (np.cos(zenith) + np.sin(zenith) * facing) / np.sqrt(1.0 + slope_x**2 + slope_y**2)
    clipped: np.ndarray = np.clip(light, 0.0, 1.0)
    return clipped


def resample(path: str | Path, grid: Grid, crs: Any) -> tuple[np.ndarray, float, float]:
    """Heights of an elevation model on the plane of a grid: (ny, nx), and the size of pixels.

    Interpolated linearly at the pixels of a picture of the grid; NaN outside the model.
    """
    raster = read_raster(Path(path))
    if raster.crs is not None and crs is None:
        raise PlumecastError(
            f"{path}: has a coordinate system, the grid of the fires has none, so that its place "
            "is unknown; leave dem out"
        )
    shape, x, y = _pixels(grid)
    across, up = np.meshgrid(x, y)
    if raster.crs is not None and not same_crs(as_crs(raster.crs, path), as_crs(crs, path)):
        move = import_extra("pyproj", path).Transformer.from_crs(
            as_crs(crs, path), as_crs(raster.crs, path), always_xy=True
        )
        across, up = move.transform(across, up)
    own = raster.grid
    values = np.asarray(raster.values, dtype=np.float64)
    if raster.nodata is not None:
        values = np.where(values == raster.nodata, np.nan, values)
    places = [(up - own.bottom) / own.dy - 0.5, (across - own.left) / own.dx - 0.5]
    heights: np.ndarray = map_coordinates(values, places, order=1, mode="constant", cval=np.nan)
    if np.isfinite(heights).mean() < _LEAST_INSIDE:
        raise PlumecastError(
            f"{path}: the elevation model does not cover the grid of the fires; give another dem"
        )
    return heights, grid.nx * grid.dx / shape[1], grid.ny * grid.dy / shape[0]


def _pixels(grid: Grid) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
    """Shape of the picture of a grid, and x and y of the centres of its pixels."""
    width, height = grid.nx * grid.dx, grid.ny * grid.dy
    size = max(width, height) / LONGEST
    nx, ny = max(2, round(width / size)), max(2, round(height / size))
    x = grid.left + (np.arange(nx) + 0.5) * width / nx
    y = grid.bottom + (np.arange(ny) + 0.5) * height / ny
    return (ny, nx), x, y


def relief(heights: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """RGBA picture (ny, nx, 4), north up: light grey relief, transparent where it is unknown."""
    light = shade(np.where(np.isfinite(heights), heights, np.nan), dx, dy)
    grey = np.where(np.isfinite(light), 130.0 + 125.0 * light, 0.0).astype(np.uint8)
    opaque = np.where(np.isfinite(light), 255, 0).astype(np.uint8)
    return np.stack([grey, grey, grey, opaque], axis=2)[::-1]
