"""The wind frame, in which the wind of every snapshot blows the same way. Arrays only, no labels.

If winds differ between fires, plumes are similar only after fields are rotated so that the wind
blows the same way, and perhaps scaled so that it carries smoke equally far. Fields are rotated into
the frame, predicted there and rotated back, by bilinear interpolation about the centre of the grid.
The grid of the frame, the canvas, contains the whole rotated grid.

`in_frame` gives a family its snapshots: targets encoded, smoke carried, fields in the frame,
computed when their rows are read, or all at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    assembled,
    clip,
    is_numpy_array,
    like,
    to_numpy,
)
from plumecast.compute.blocks import field_blocks, row_blocks
from plumecast.compute.resources import Budget
from plumecast.operators.carried.transport import ColumnTransport
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.targets import Targets, encode_outputs

STRETCH = 2.0
"""Largest factor by which fields are enlarged or reduced."""

HOST_POINTS, DEVICE_POINTS = 30_000, 32_000_000
"""Cells that are interpolated at a time, on the host and on a GPU. Each needs about 100 bytes."""


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
        winds = np.asarray(wind, dtype=np.float64)
        most = HOST_POINTS if is_numpy_array(fields) else DEVICE_POINTS
        blocks = row_blocks(fields.shape[0], most // math.prod(goal))

        def rotated(rows: slice) -> Array:
            there = self._places(like(winds[rows], fields), source, goal, inverse=inverse)
            return _bilinear(fields[rows, ...], *there)

        parts = ((np.arange(rows.start, rows.stop), rotated(rows)) for rows in blocks)
        return assembled(parts, (*fields.shape[:-2], *goal), fields)

    def _places(
        self, wind: Array, source: tuple[int, int], goal: tuple[int, int], *, inverse: bool
    ) -> tuple[Array, Array]:
        """(B, *goal) fractional rows and columns of the source grid that fall on the goal's cells.

        The goal's cells are rotated by the (B, 2) winds about the centre of the grid.
        """
        cell = min(map(abs, self.spacing))
        own = self.spacing if inverse else (cell, cell)
        other = (cell, cell) if inverse else self.spacing
        axes = [_centred(n, d) for n, d in zip(goal, own, strict=True)]
        y, x = like(axes[0][:, None], wind), like(axes[1][None, :], wind)
        cos, sin, factor = (part[:, None, None] for part in self._rotations(wind))
        if inverse:
            scale = factor
            sin = -sin
        else:
            scale = 1.0 / factor
        # Every term depends on the row or on the column alone; only their sums are full fields.
        by_row, by_column = scale / other[0], scale / other[1]
        rows = (cos * by_row) * y + (0.5 * (source[0] - 1) + (sin * by_row) * x)
        columns = (cos * by_column) * x + (0.5 * (source[1] - 1) - (sin * by_column) * y)
        return rows, columns

    def _rotations(self, wind: Array) -> tuple[Array, Array, Array]:
        """(B,) cosines and sines of the directions of winds, and scales; 1, 0, 1 if calm."""
        xp = array_namespace(wind)
        east, north = wind[:, 0], wind[:, 1]
        strength = xp.sqrt(east**2 + north**2)
        calm = strength == 0.0
        one = xp.ones_like(strength)
        known = xp.where(calm, one, strength)
        factor = one
        if self.speed is not None:
            factor = xp.where(calm, one, clip(self.speed / known, 1.0 / STRETCH, STRETCH))
        return xp.where(calm, one, east / known), north / known, factor


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


def _bilinear(fields: Array, rows: Array, columns: Array) -> Array:
    """(B, …, *source) fields at the fractional indices (B, *goal); zero outside the grid.

    A border of zeros is added, so that a point outside lies between cells of the border.
    """
    xp = array_namespace(fields)
    height, width = fields.shape[-2:]
    framed = xp.reshape(_bordered(fields), (-1,))
    top, down = _cell_and_share(rows, height, fields.dtype)
    left, right = _cell_and_share(columns, width, fields.dtype)
    size = (height + 2) * (width + 2)
    kinds = math.prod(fields.shape[1:-2])
    first = like(np.arange(fields.shape[0]) * (kinds * size), rows, rows.dtype)[:, None, None]
    # In float64 as the indices are: integers up to 2⁵³ are exact.
    corner = xp.reshape(xp.astype(top * (width + 2) + left + first, xp.int64), (-1,))

    def at(offset: int) -> Array:
        return xp.reshape(xp.take(framed, corner + offset, axis=0), rows.shape)

    def kind(number: int) -> Array:
        here = number * size
        upper, lower = at(here), at(here + width + 2)
        upper = upper + right * (at(here + 1) - upper)
        lower = lower + right * (at(here + width + 3) - lower)
        return upper + down * (lower - upper)

    if fields.ndim == 3:
        return kind(0)
    made = xp.stack([kind(number) for number in range(kinds)], axis=1)
    return xp.reshape(made, (*fields.shape[:-2], *rows.shape[1:]))


def _cell_and_share(places: Array, count: int, dtype: Any) -> tuple[Array, Array]:
    """Index of the cell before a place, in a grid with a border, and the share of the next cell."""
    xp = array_namespace(places)
    inside = clip(places, -1.0, float(count))
    before = clip(xp.floor(inside), -1.0, count - 1.0)
    return before + 1.0, xp.astype(inside - before, dtype, copy=False)


def _bordered(fields: Array) -> Array:
    """(…, ny, nx) → (…, ny + 2, nx + 2), with zeros around the grid."""
    xp = array_namespace(fields)
    row = xp.zeros_like(fields[..., :1, :])
    tall = xp.concat([row, fields, row], axis=-2)
    column = xp.zeros_like(tall[..., :1])
    return xp.concat([column, tall, column], axis=-1)


@dataclass(frozen=True, slots=True)
class EncodedFields:
    """Fields of snapshots that are encoded as targets and rotated into a frame when they are read.

    Indexing by rows gives an array, (B, *grid), or (B, T, *grid) for targets.
    """

    source: Array  # (M, *grid) or (M, K, *grid), or an object that gives it when indexed by rows
    grid: tuple[int, ...]
    encode: tuple[Targets, ...] = ()  # of every output
    frame: WindFrame | None = None
    wind: Array | None = None  # (M, 2)

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, *grid) or (M, T, *grid)."""
        kinds = (sum(len(own.names) for own in self.encode),) if self.encode else ()
        grid = self.grid if self.frame is None else self.frame.canvas
        return (self.source.shape[0], *kinds, *grid)

    def __getitem__(self, rows: Array | slice) -> Array:
        values = self.source[rows]
        if self.encode:
            values = encode_outputs(self.encode, values)
        if self.frame is None or self.wind is None:
            return values
        return self.frame.to_wind(values, self.wind[rows])

    def in_memory(self) -> Array:
        """All fields in one array, for a fit that reads them several times."""
        if not self.encode and self.frame is None:
            return self.source[:]
        out = np.empty(self.shape, dtype=np.float32)
        for rows in field_blocks(self):
            out[rows] = self[rows]
        return out


@dataclass(frozen=True, slots=True)
class CarriedFields:
    """Smoke that the weather carries, computed and rotated into a frame when it is read.

    Indexing by rows gives (B, K, *grid).
    """

    fire: Array  # (M, *grid), an array or an object that gives one when indexed by rows
    physics: ColumnTransport
    given: Conditions  # weather, fuel, history and wind
    frame: WindFrame | None
    put: Callable[[Array], Array]  # copies an array to the device

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, K, *grid)."""
        count, *grid = self.fire.shape
        kinds = len(self.physics.groups) - 1
        return (count, kinds, *(grid if self.frame is None else self.frame.canvas))

    def __getitem__(self, rows: Array | slice) -> Array:
        fire, given = self.put(self.fire[rows]), self.given.at(rows).loaded()
        assert given.weather is not None
        carried = self.physics.smoke(fire, given.weather, given.fuel, given.history)
        if self.frame is not None and given.wind is not None:
            carried = self.frame.to_wind(carried, given.wind)
        return to_numpy(carried)

    def in_memory(self) -> Array:
        """All fields in one array, for a fit that reads them several times."""
        out = np.empty(self.shape, dtype=np.float32)
        for rows in row_blocks(self.shape[0], CARRIED_ROWS):
            out[rows] = self[rows]
        return out


CARRIED_ROWS = 2048
"""Snapshots whose smoke is carried at a time; many, because they are sorted by their hours."""


def in_frame(
    training: TrainingSet,
    targets: tuple[Targets, ...],
    frame: WindFrame | None,
    physics: ColumnTransport | None,
    resources: Budget,
    *,
    mirrored: bool,
) -> TrainingSet:
    """Snapshots on the map as a family sees them: encoded, with physics, in the wind frame.

    Without a limit on memory all fields are arrays; with one they are computed when they are read.
    """
    given, shape = training.given, tuple(int(n) for n in training.fire.shape[1:])
    fire: Array = EncodedFields(training.fire, shape, (), frame, given.wind)
    encoded: Array = EncodedFields(training.targets, shape, targets, frame, given.wind)
    if physics is not None:
        assert given.weather is not None
        carried: Array = CarriedFields(training.fire, physics, given, frame, resources.device.put)
        carried = carried.in_memory() if resources.limit is None else carried
        given = replace(given, physics=carried)
    if resources.limit is None:
        fire, encoded = fire.in_memory(), encoded.in_memory()
    leading = len(targets[0].names)
    framed = replace(training, fire=fire, targets=encoded, given=given, leading=leading)
    if mirrored:
        framed = framed.with_mirrored()
        if resources.limit is None:
            framed = framed.in_memory()
    return framed
