"""The wind frame, in which the wind of every snapshot blows the same way. Arrays only, no labels.

If winds differ between fires, plumes are similar only after fields are rotated so that the wind
blows the same way, and perhaps scaled so that it carries smoke equally far. Fields are rotated into
the frame, predicted there and rotated back, by bilinear interpolation about the centre of the grid.
The grid of the frame, the canvas, contains the whole rotated grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, assembled, clip, like

STRETCH = 2.0
"""Largest factor by which fields are enlarged or reduced."""


@dataclass(frozen=True, slots=True)
class WindFrame:
    """Map grid and wind canvas; the wind blows along +x on the canvas."""

    grid: tuple[int, int]
    canvas: tuple[int, int]
    spacing: tuple[float, float]  # of the map grid along y and x; negative if an axis descends
    speed: float | None  # wind speed at which fields keep their scale; None: rotation only

    def to_wind(self, fields: Array, wind: Array) -> Array:
        """(M, *grid) → (M, *canvas); `wind` (M, 2) is its vector towards east and north."""
        return self._resample(fields, wind, self.grid, self.canvas, inverse=False)

    def to_map(self, fields: Array, wind: Array) -> Array:
        """(M, T, *canvas) → (M, T, *grid)."""
        return self._resample(fields, wind, self.canvas, self.grid, inverse=True)

    def _resample(
        self,
        fields: Array,
        wind: Array,
        source: tuple[int, int],
        goal: tuple[int, int],
        *,
        inverse: bool,
    ) -> Array:
        if np.shape(wind) != (fields.shape[0], 2):
            raise PlumecastError(
                f"the wind has shape {np.shape(wind)}, not ({fields.shape[0]}, 2); give one vector "
                "per snapshot"
            )
        cell = min(map(abs, self.spacing))
        own = self.spacing if inverse else (cell, cell)
        other = (cell, cell) if inverse else self.spacing
        axes = [_centred(n, d) for n, d in zip(goal, own, strict=True)]
        y, x = (like(values, fields) for values in np.meshgrid(*axes, indexing="ij"))

        def rotated(number: int, east: float, north: float) -> Array:
            cos, sin, factor = self._rotation(east, north)
            # (source_x, source_y): the points of the source grid that fall on the goal's cells.
            if inverse:
                source_x, source_y = (cos * x + sin * y) * factor, (cos * y - sin * x) * factor
            else:
                source_x, source_y = (cos * x - sin * y) / factor, (sin * x + cos * y) / factor
            rows = source_y / other[0] + 0.5 * (source[0] - 1)
            columns = source_x / other[1] + 0.5 * (source[1] - 1)
            return _bilinear(fields[number : number + 1, ...], rows, columns)

        winds = np.asarray(wind, dtype=np.float64).tolist()
        parts = ((np.array([i]), rotated(i, *vector)) for i, vector in enumerate(winds))
        return assembled(parts, (*fields.shape[:-2], *goal), fields)

    def _rotation(self, east: float, north: float) -> tuple[float, float, float]:
        """Cosine and sine of the direction of the wind, and the scale factor; 1, 0, 1 if calm."""
        strength = float(np.hypot(east, north))
        if strength == 0.0:
            return 1.0, 0.0, 1.0
        factor = 1.0
        if self.speed is not None:
            factor = float(np.clip(self.speed / strength, 1.0 / STRETCH, STRETCH))
        return east / strength, north / strength, factor


def fit_wind_frame(
    grid: tuple[int, ...], spacing: tuple[float, float], wind: Array, *, stretch: bool
) -> WindFrame:
    """A frame whose canvas contains the whole grid under every rotation and scaling."""
    if len(grid) != 2:
        raise PlumecastError(f"a wind frame needs fields on a grid (y, x), got shape {grid}")
    speed = float(np.median(np.hypot(*np.asarray(wind, dtype=np.float64).T))) if stretch else None
    across = np.hypot(grid[0] * spacing[0], grid[1] * spacing[1]) / min(map(abs, spacing))
    cells = int(np.ceil(across * (STRETCH if stretch else 1.0)))
    # The difference to the grid is even, so that without rotation cells coincide with cells.
    canvas = (cells + (cells - grid[0]) % 2, cells + (cells - grid[1]) % 2)
    return WindFrame((grid[0], grid[1]), canvas, spacing, speed)


def _centred(count: int, spacing: float) -> Array:
    return (np.arange(count) - 0.5 * (count - 1)) * spacing


def _bilinear(field: Array, rows: Array, columns: Array) -> Array:
    """(…, *source) fields at the fractional indices (*goal); zero outside the grid."""
    xp = array_namespace(field)
    height, width = field.shape[-2:]
    flat = xp.reshape(field, (*field.shape[:-2], height * width))
    top, left = xp.floor(rows), xp.floor(columns)
    out: Array = 0.0
    for down in (0.0, 1.0):
        for right in (0.0, 1.0):
            i, j = top + down, left + right
            inside = (i >= 0.0) & (i < height) & (j >= 0.0) & (j < width)
            share = (1.0 - xp.abs(rows - i)) * (1.0 - xp.abs(columns - j))
            share = share * xp.astype(inside, share.dtype)
            place = clip(i, 0.0, height - 1.0) * width + clip(j, 0.0, width - 1.0)
            cells = xp.take(flat, xp.reshape(xp.astype(place, xp.int64), (-1,)), axis=-1)
            out = out + xp.reshape(cells, (*field.shape[:-2], *rows.shape)) * share
    return out
