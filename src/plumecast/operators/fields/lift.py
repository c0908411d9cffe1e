"""Pointwise functions of the input that make smoke nearly linear in it. Arrays only, no labels.

Smoke is close to a sum over burned cells of a nonlinear function of each cell's age (the time since
it ignited). A lift maps the age to several fields, the *parts*, whose linear combinations
approximate such functions. Every field is also multiplied by scalars of the fire, the *products*,
and by covariates. One field times one scalar is a *channel*. Every part is zero where nothing
burned, so that all channels of an empty fire are zero.

Fields are stored with the grid first, (*grid, B) for B snapshots. A lift adds a last axis, and the
Fourier transform (`spectral.transform`) then needs no transposition.
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
    "age-bins": "hat functions of the age, whose knots are quantiles of the ages in training",
    "saturating": "1 − exp(−age / s) for three time scales s",
    "position": "1 where burned, times the coordinate along every axis",
}
"""Parts of a lift."""

PRODUCTS = {
    "hours": "the largest age of the fire",
    "hours-squared": "its square",
    "day": "sine and cosine of the largest age, with a period of 24 hours",
    "area": "the number of burned cells",
}
"""Scalars of a fire that multiply the fields."""

SATURATION = (0.1, 0.3, 1.0)
"""Time scales of the saturating functions, relative to the largest age in training."""

DAY = 24.0
"""Period in hours: wind and mixing follow the time of day, if all fires start at the same hour."""

AGE_VALUES = 2_000_000
LEAST_ROWS = 64
"""The knots are computed from snapshots with about AGE_VALUES values in total, but from at least
LEAST_ROWS snapshots; more would hardly change them."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Parts times products and covariates; every channel has a root mean square of 1."""

    parts: tuple[str, ...]
    products: tuple[str, ...]
    knots: Array  # (K,), ages where the hat functions peak; the first is 0
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
        """(*grid, B) ages and (B, P) covariates → (B, S, H) factors of every field."""
        scalars = _scalars(fire, self.products, self.duration, self.extent, covariates)
        if scalars.shape[1] != self.scales.shape[0]:
            expected = self.scales.shape[0] - 1 - product_count(self.products)
            raise PlumecastError(
                f"this lift takes {expected} covariates, "
                f"got {0 if covariates is None else covariates.shape[1]}; pass those of training"
            )
        return scalars[:, :, None] / like(self.scales, scalars, scalars.dtype)

    def __call__(self, fire: Array, covariates: Array | None = None) -> Array:
        """(M, *grid) ages → (M, C, *grid) float32 channels."""
        xp = array_namespace(fire)
        grid_first = xp.moveaxis(xp.astype(fire, xp.float32, copy=False), 0, -1)
        fields = self.fields(grid_first)[..., None, :] * self.factors(grid_first, covariates)
        flat = xp.reshape(fields, (*fields.shape[:-2], -1))
        return contiguous(xp.moveaxis(flat, (-2, -1), (0, 1)))


def product_count(products: Sequence[str]) -> int:
    """Number of scalars of the products; "day" has two."""
    return len(products) + ("day" in products)


def check_lift(parts: Sequence[str], products: Sequence[str]) -> None:
    """Raise for an unknown name, and for a lift without parts."""
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
    """Fit the knots and scales of a lift to (M, *grid) ages on the host.

    `fire` is an array or an object that gives one when indexed by rows. The knots are quantiles of
    the ages of burned cells, so that the bins contain similar numbers of cells.
    """
    check_lift(parts, products)
    duration, extent = _extremes(fire)
    if not duration > 0.0:
        raise PlumecastError(
            "no training snapshot has a burned cell; check the input variable and the filters"
        )
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
    """Quantiles of the ages; empty if no sampled snapshot has a burned cell."""
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
    """Ages of burned cells, from a sample of the snapshots if there are many."""
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
    """Coordinate from −1 to 1 along every axis of the grid, broadcastable to (*grid, B)."""
    places = []
    for axis in range(fire.ndim - 1):
        count = fire.shape[axis]
        along = like(np.linspace(-1.0, 1.0, count), fire, fire.dtype)
        shape = [1] * fire.ndim
        shape[axis] = count
        places.append(array_namespace(fire).reshape(along, tuple(shape)))
    return places


def _hats(fire: Array, knots: Array) -> list[Array]:
    """Hat functions on all knots but the first; the last stays at 1 beyond its knot.

    They span the piecewise-linear functions of the age on these knots that vanish at 0.
    """
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
            phase = (2.0 * math.pi / DAY) * xp.max(fire, axis=axes)
            columns += [xp.sin(phase), xp.cos(phase)]
        else:
            columns.append(xp.sum(burned, axis=axes) / extent)
    scalars = xp.stack(columns, axis=-1)
    if covariates is None or covariates.shape[1] == 0:
        return scalars
    return xp.concat([scalars, like(covariates, fire, fire.dtype)], axis=1)
