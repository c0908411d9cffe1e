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
from plumecast.compute.blocks import row_blocks
from plumecast.compute.resources import Budget
from plumecast.operators.carried.transport import ColumnTransport
from plumecast.operators.family import ComputedFields, Conditions, TrainingSet, in_memory
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
        return self._resample(fields, wind, inverse=False)

    def to_map(self, fields: Array, wind: Array) -> Array:
        """(M, T, *canvas) → (M, T, *grid)."""
        return self._resample(fields, wind, inverse=True)

    def _resample(self, fields: Array, wind: Array, *, inverse: bool) -> Array:
        if np.shape(wind) != (fields.shape[0], 2):
            raise PlumecastError(
                f"the wind has shape {np.shape(wind)}, not ({fields.shape[0]}, 2); give one vector "
                "per snapshot"
            )
        winds = np.asarray(wind, dtype=np.float64)
        most = HOST_POINTS if is_numpy_array(fields) else DEVICE_POINTS
        goal = self.grid if inverse else self.canvas
        blocks = row_blocks(fields.shape[0], most // math.prod(goal))

        def rotated(rows: slice) -> Array:
            there = self._places(like(winds[rows], fields), inverse=inverse)
            return _bilinear(fields[rows, ...], *there)

        parts = ((np.arange(rows.start, rows.stop), rotated(rows)) for rows in blocks)
        return assembled(parts, (*fields.shape[:-2], *goal), fields)

    def _places(self, wind: Array, *, inverse: bool) -> tuple[Array, Array]:
        """(B, *goal) fractional rows and columns of the source grid that fall on the goal's cells.

        The goal's cells are rotated by the (B, 2) winds about the centre of the grid.
        """
        cell = min(map(abs, self.spacing))
        source, goal, other, own = self.grid, self.canvas, self.spacing, (cell, cell)
        if inverse:
            source, goal, other, own = goal, source, own, other
        y, x = (
            like((np.arange(count) - 0.5 * (count - 1)) * spacing, wind)
            for count, spacing in zip(goal, own, strict=True)
        )
        y, x = y[:, None], x[None, :]
        cos, sin, factor = (part[:, None, None] for part in self._rotations(wind))
        scale, sin = (factor, -sin) if inverse else (1.0 / factor, sin)
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
        divisor = xp.where(calm, one, strength)
        factor = one
        if self.speed is not None:
            factor = xp.where(calm, one, clip(self.speed / divisor, 1.0 / STRETCH, STRETCH))
        return xp.where(calm, one, east / divisor), north / divisor, factor


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


def _bilinear(fields: Array, rows: Array, columns: Array) -> Array:
    """(B, …, *source) fields at the fractional indices (B, *goal); zero outside the grid.

    A border of zeros is added, so that a point outside lies between cells of the border.
    """
    xp = array_namespace(fields)
    height, width = fields.shape[-2:]
    row = xp.zeros_like(fields[..., :1, :])
    tall = xp.concat([row, fields, row], axis=-2)
    column = xp.zeros_like(tall[..., :1])
    framed = xp.reshape(xp.concat([column, tall, column], axis=-1), (-1,))
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


def encoded_fields(
    source: Array,
    grid: tuple[int, ...],
    encode: tuple[Targets, ...] = (),
    frame: WindFrame | None = None,
    wind: Array | None = None,
) -> Array:
    """Fields of snapshots, encoded as targets and rotated into a frame when they are read.

    `source` is (M, *grid), or (M, K, *grid) of K outputs whose targets are `encode`, an array or an
    object that gives one when indexed by rows; `wind` is (M, 2). The result has the rows
    (M, *grid), or (M, T, *grid) of targets.
    """
    if not encode and frame is None:
        return source
    kinds = (sum(len(own.names) for own in encode),) if encode else ()

    def read(rows: Array | slice) -> Array:
        values = encode_outputs(encode, source[rows]) if encode else source[rows]
        return values if frame is None or wind is None else frame.to_wind(values, wind[rows])

    shape = (source.shape[0], *kinds, *(grid if frame is None else frame.canvas))
    return ComputedFields(shape, read)


def carried_fields(
    fire: Array,
    physics: ColumnTransport,
    given: Conditions,
    frame: WindFrame | None,
    put: Callable[[Array], Array] = np.asarray,
) -> ComputedFields:
    """(M, K, *grid) smoke that the weather carries, computed and rotated when it is read.

    The fire is (M, *grid), `given` tells its weather, fuel, history and wind, and `put` copies an
    array to the device that computes.
    """

    def read(rows: Array | slice) -> Array:
        some = given.at(rows).loaded()
        assert some.weather is not None
        carried = physics.smoke(put(fire[rows]), some.weather, some.fuel, some.history)
        if frame is not None and some.wind is not None:
            carried = frame.to_wind(carried, some.wind)
        return to_numpy(carried)

    count, *grid = fire.shape
    shape = (count, len(physics.groups) - 1, *(grid if frame is None else frame.canvas))
    return ComputedFields(shape, read)


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
    stored = in_memory if resources.limit is None else lambda fields, *_: fields
    fire = stored(encoded_fields(training.fire, shape, (), frame, given.wind))
    encoded = stored(encoded_fields(training.targets, shape, targets, frame, given.wind))
    if physics is not None:
        carried = carried_fields(training.fire, physics, given, frame, resources.device.put)
        given = replace(given, physics=stored(carried, CARRIED_ROWS))
    leading = len(targets[0].names)
    framed = replace(training, fire=fire, targets=encoded, given=given, leading=leading)
    if mirrored:
        framed = framed.with_mirrored()
        if resources.limit is None:
            framed = framed.in_memory()
    return framed
