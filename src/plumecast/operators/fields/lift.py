"""Pointwise functions of the input that make smoke nearly linear in it. Arrays only, no labels.

Smoke is close to a sum over burned cells of something nonlinear in each cell's age. A lift turns
the age into fields, its parts, whose linear combinations are the functions one wants; every field
is also multiplied by scalars of the fire, the products, and by covariates. What counts as one
channel is one field times one scalar. Every part is zero where nothing burned, so an empty fire
has no channels.

Fields are held grid first, (*grid, B) for B snapshots: a lift adds a last axis, and the Fourier
transform of `fourier` then needs no transposition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, clip, contiguous, like
from plumecast.compute.blocks import VALUES, field_blocks, row_blocks, sampled_rows

PARTS = {
    "identity": "the age itself",
    "burned": "1 where burned",
    "age-bins": "hat functions of the age, on quantiles of the ages that occur",
    "saturating": "1 − exp(−age / s) for three times s",
    "position": "1 where burned, times the place along every axis",
}
"""Fields a lift can have."""

PRODUCTS = {
    "hours": "the largest age of the fire",
    "hours-squared": "its square",
    "day": "sine and cosine of the largest age, once around in 24 hours",
    "area": "the number of burned cells",
}
"""Scalars of a fire that multiply the fields."""

SATURATION = (0.1, 0.3, 1.0)
"""Times of the saturating functions, relative to the largest age in training."""

DAY = 24.0
"""Hours of a day: wind and mixing follow the hour, where fires begin at the same one."""

AGE_VALUES = 2_000_000
"""Values of the snapshots whose ages give the knots of the bins; more would not move them."""

LEAST_ROWS = 64
"""… and of at least so many snapshots."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Named parts times named products and covariates, each channel of unit root mean square."""

    parts: tuple[str, ...]
    products: tuple[str, ...]
    knots: Array  # (K,), ages where the hat functions peak, the first 0
    duration: float  # largest age in training
    extent: float  # largest number of burned cells in training
    scales: Array  # (S, H), root mean square of factor s times field h in training

    @property
    def channels(self) -> int:
        """Number of channels C = S · H."""
        return int(self.scales.shape[0] * self.scales.shape[1])

    def fields(self, fire: Array) -> Array:
        """(*grid, B) ages → (*grid, B, H)."""
        return _fields(fire, self.parts, self.knots, self.duration)

    def factors(self, fire: Array, covariates: Array | None = None) -> Array:
        """(*grid, B) ages and (B, P) covariates → (B, S, H), what multiplies every field."""
        scalars = _scalars(fire, self.products, self.duration, self.extent, covariates)
        if scalars.shape[1] != self.scales.shape[0]:
            expected = self.scales.shape[0] - 1 - product_count(self.products)
            raise PlumecastError(
                f"this lift takes {expected} covariates, "
                f"got {0 if covariates is None else covariates.shape[1]}"
            )
        return scalars[:, :, None] / like(self.scales, scalars, scalars.dtype)

    def __call__(self, fire: Array, covariates: Array | None = None) -> Array:
        """(M, *grid) ages → (M, C, *grid) float32 channels, fields times factors."""
        xp = array_namespace(fire)
        grid_first = xp.moveaxis(xp.astype(fire, xp.float32, copy=False), 0, -1)
        fields = self.fields(grid_first)[..., None, :] * self.factors(grid_first, covariates)
        flat = xp.reshape(fields, (*fields.shape[:-2], -1))
        return contiguous(xp.moveaxis(flat, (-2, -1), (0, 1)))


def product_count(products: Sequence[str]) -> int:
    """Number of scalars that products stand for."""
    return len(products) + ("day" in products)


def check_lift(parts: Sequence[str], products: Sequence[str]) -> None:
    """Raise for a name that is unknown, and for a lift without fields."""
    for kind, names, known in (("lift", parts, PARTS), ("product", products, PRODUCTS)):
        for name in names:
            if name not in known:
                raise PlumecastError(f"{kind} '{name}' is unknown; choose from {', '.join(known)}")
    if not parts:
        raise PlumecastError(f"a lift needs at least one part of {', '.join(PARTS)}")


def fit_lift(
    fire: Array,
    parts: Sequence[str] = ("age-bins", "burned"),
    products: Sequence[str] = ("hours",),
    *,
    bins: int = 3,
    covariates: Array | None = None,
) -> Lift:
    """A lift for (M, *grid) ages on the host, an array or what gives one of some rows; the knots of
    the bins are quantiles of the ages that occur, so that the bins are filled alike."""
    check_lift(parts, products)
    duration, extent = _extremes(fire)
    if not duration > 0.0:
        raise PlumecastError("no training snapshot has a burned cell: there is nothing to lift")
    shares = np.linspace(1.0, 0.1, bins)[:0:-1]
    knots = np.unique(np.concatenate([[0.0], _quantiles(_ages(fire), shares), [duration]]))
    size: Array = 0.0
    for rows in field_blocks(fire):
        block = np.moveaxis(fire[rows], 0, -1).astype(np.float32)
        own = None if covariates is None else covariates[rows]
        squares = np.square(_fields(block, tuple(parts), knots, duration))
        energy = squares.sum(axis=tuple(range(block.ndim - 1)), dtype=np.float64)
        scalars = _scalars(block, tuple(products), duration, extent, own)
        size = size + np.square(scalars, dtype=np.float64).T @ energy
    scales = np.sqrt(size / math.prod(fire.shape))
    return Lift(
        tuple(parts), tuple(products), knots, duration, extent, np.where(scales > 0.0, scales, 1.0)
    )


def _quantiles(ages: Array, shares: Array) -> Array:
    """None of no ages: nearly all snapshots may be empty."""
    return np.quantile(ages, shares) if ages.size else np.empty(0)


def _extremes(fire: Array) -> tuple[float, float]:
    """The largest age, and the largest number of burned cells of a snapshot."""
    oldest, most = 0.0, 0
    for rows in field_blocks(fire):
        block = fire[rows]
        oldest = max(oldest, float(block.max()))
        cells = np.count_nonzero(block > 0.0, axis=tuple(range(1, block.ndim)))
        most = max(most, int(cells.max()))
    return oldest, float(most)


def _ages(fire: Array) -> Array:
    """Ages of burned cells, of some snapshots where there are many."""
    cells = math.prod(fire.shape[1:])
    rows = sampled_rows(fire.shape[0], max(LEAST_ROWS, AGE_VALUES // cells))
    found = []
    for part in row_blocks(rows.size, VALUES // cells):
        block = fire[rows[part]]
        found.append(block[block > 0.0])
    return np.concatenate(found)


def _fields(fire: Array, parts: tuple[str, ...], knots: Array, duration: float) -> Array:
    xp = array_namespace(fire)
    burned = xp.astype(fire > 0.0, fire.dtype)
    out: list[Array] = []
    for part in parts:
        if part == "identity":
            out.append(fire / duration)
        elif part == "burned":
            out.append(burned)
        elif part == "age-bins":
            out += _hats(fire, knots)
        elif part == "saturating":
            ages = xp.clip(fire, 0.0, None)
            out += [1.0 - xp.exp(-ages / (share * duration)) for share in SATURATION]
        else:
            out += [burned * place for place in _places(fire)]
    return xp.stack(out, axis=-1)


def _places(fire: Array) -> list[Array]:
    """For every axis of the grid, the place on it from −1 to 1, shaped to multiply (*grid, B)."""
    places = []
    for axis in range(fire.ndim - 1):
        count = fire.shape[axis]
        along = like(np.linspace(-1.0, 1.0, count), fire, fire.dtype)
        shape = [1] * fire.ndim
        shape[axis] = count
        places.append(array_namespace(fire).reshape(along, tuple(shape)))
    return places


def _hats(fire: Array, knots: Array) -> list[Array]:
    """Hat functions on the knots but the first: their span holds every piecewise-linear function
    of the age that vanishes at 0; the last stays at 1 beyond its knot."""
    starts, widths = (like(part, fire, fire.dtype) for part in (knots[:-1], knots[1:] - knots[:-1]))
    ramps = [clip((fire - starts[i]) / widths[i], 0.0, 1.0) for i in range(int(starts.shape[0]))]
    return [*(rise - fall for rise, fall in itertools.pairwise(ramps)), ramps[-1]]


def _scalars(
    fire: Array,
    products: tuple[str, ...],
    duration: float,
    extent: float,
    covariates: Array | None,
) -> Array:
    """(B, S): one, the products, the covariates."""
    xp = array_namespace(fire)
    axes = tuple(range(fire.ndim - 1))
    burned = xp.astype(fire > 0.0, fire.dtype)
    columns = [xp.ones_like(fire[(*[0] * (fire.ndim - 1), ...)])]
    for product in products:
        if product == "hours":
            columns.append(xp.max(fire, axis=axes) / duration)
        elif product == "hours-squared":
            columns.append((xp.max(fire, axis=axes) / duration) ** 2)
        elif product == "day":
            turn = (2.0 * math.pi / DAY) * xp.max(fire, axis=axes)
            columns += [xp.sin(turn), xp.cos(turn)]
        else:
            columns.append(xp.sum(burned, axis=axes) / extent)
    scalars = xp.stack(columns, axis=-1)
    if covariates is None or covariates.shape[1] == 0:
        return scalars
    return xp.concat([scalars, like(covariates, fire, fire.dtype)], axis=1)
