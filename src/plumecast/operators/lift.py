"""Pointwise functions of the input that make smoke nearly linear in it. Arrays only, no labels.

Smoke is close to a sum over burned cells of a nonlinear function of each cell's age (the time since
it ignited). A lift maps the age to several fields, the *parts*, whose linear combinations
approximate such functions. Every field is also multiplied by scalars of the fire, the *products*,
and by covariates. One field times one scalar is a *channel*. Every part is zero where nothing
burned, so that all channels of an empty fire are zero. A new part or product is one function and
one entry of PARTS or PRODUCTS.

Smoke that cheap physics carries makes further channels: the smoke, and ramps of its logarithm. It
spans many powers of ten, and the physics is wrong by a factor that differs between thin and thick
smoke, which a linear map of the ramps corrects. They are zero where the physics has no smoke.

Fields are stored with the grid first, (*grid, B) for B snapshots. A lift adds a last axis, and the
Fourier transform (`spectral.transform`) then needs no transposition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, clip, contiguous, like
from plumecast.compute.blocks import VALUES, field_blocks, row_blocks, sampled_rows

SATURATION = (0.1, 0.3, 1.0)
"""Time scales of the saturating functions, relative to the largest age in training."""

DAY = 24.0
"""Period in hours: wind and mixing follow the time of day, if all fires start at the same hour."""


@dataclass(frozen=True)
class Ages:
    """Ages of B snapshots, and what training knows of ages."""

    fire: Array  # (*grid, B)
    knots: Array  # (K,), ages where the hat functions peak; the first is 0
    duration: float  # largest age in training
    extent: float = 1.0  # largest number of burned cells in training
    kindling: float = 0.0  # age at which a cell counts as burned, in part before; 0: at once

    @cached_property
    def burned(self) -> Array:
        """(*grid, B), 1 where burned."""
        if self.kindling > 0.0:
            return clip(self.fire / self.kindling, 0.0, 1.0)
        return array_namespace(self.fire).astype(self.fire > 0.0, self.fire.dtype)

    @cached_property
    def oldest(self) -> Array:
        """(B,), the largest age of every snapshot."""
        return array_namespace(self.fire).max(self.fire, axis=self.grid_axes)

    @property
    def grid_axes(self) -> tuple[int, ...]:
        """The axes of the grid."""
        return tuple(range(self.fire.ndim - 1))


@dataclass(frozen=True, slots=True)
class Part:
    """One entry of PARTS: how its fields are made, and how many they are."""

    summary: str
    make: Callable[[Ages], list[Array]]  # (*grid, B) each, zero where the input is zero
    count: Callable[[int, int], int] = lambda bins, axes: 1  # of age bins and axes of the grid


@dataclass(frozen=True, slots=True)
class Product:
    """One entry of PRODUCTS: how its scalars are made, and how many they are."""

    summary: str
    make: Callable[[Ages], list[Array]]  # (B,) each
    count: int = 1


def _saturating(ages: Ages) -> list[Array]:
    xp = array_namespace(ages.fire)
    positive = xp.clip(ages.fire, 0.0, None)
    return [1.0 - xp.exp(-positive / (share * ages.duration)) for share in SATURATION]


PARTS = {
    "identity": Part("the age itself", lambda ages: [ages.fire / ages.duration]),
    "burned": Part("1 where burned", lambda ages: [ages.burned]),
    "age-bins": Part(
        "hat functions of the age, whose knots are quantiles of the ages in training",
        lambda ages: _hats(ages.fire, ages.knots),
        count=lambda bins, axes: bins,
    ),
    "saturating": Part(
        "1 − exp(−age / s) for three time scales s",
        _saturating,
        count=lambda bins, axes: len(SATURATION),
    ),
    "position": Part(
        "1 where burned, times the coordinate along every axis",
        lambda ages: [ages.burned * place for place in _places(ages.fire)],
        count=lambda bins, axes: axes,
    ),
    "negative-bins": Part(
        "the hat functions of the age, for inputs below zero",
        lambda ages: _hats(-ages.fire, ages.knots),
        count=lambda bins, axes: bins,
    ),
}
"""Parts of a lift."""


def _day(ages: Ages) -> list[Array]:
    xp = array_namespace(ages.fire)
    phase = (2.0 * math.pi / DAY) * ages.oldest
    return [xp.sin(phase), xp.cos(phase)]


def _area(ages: Ages) -> list[Array]:
    return [array_namespace(ages.fire).sum(ages.burned, axis=ages.grid_axes) / ages.extent]


PRODUCTS = {
    "hours": Product("the largest age of the fire", lambda ages: [ages.oldest / ages.duration]),
    "hours-squared": Product("its square", lambda ages: [(ages.oldest / ages.duration) ** 2]),
    "day": Product("sine and cosine of the largest age, with a period of 24 hours", _day, count=2),
    "area": Product("the number of burned cells", _area),
}
"""Scalars of a fire that multiply the fields."""


def field_count(parts: Sequence[str], bins: int, axes: int = 2) -> int:
    """Number of fields of the parts on a grid with so many axes."""
    return sum(PARTS[part].count(bins, axes) for part in parts)


def product_count(products: Sequence[str]) -> int:
    """Number of scalars of the products; "day" has two."""
    return sum(PRODUCTS[product].count for product in products)


def lifted_fields(ages: Ages, parts: Sequence[str]) -> Array:
    """(*grid, B, H): the fields of all parts."""
    made = [field for part in parts for field in PARTS[part].make(ages)]
    return array_namespace(ages.fire).stack(made, axis=-1)


def lift_scalars(ages: Ages, products: Sequence[str], covariates: Array | None) -> Array:
    """(B, S): one, the products, the covariates."""
    fire = ages.fire
    xp = array_namespace(fire)
    columns = [xp.ones_like(fire[(*[0] * (fire.ndim - 1), ...)])]
    columns += [scalar for product in products for scalar in PRODUCTS[product].make(ages)]
    scalars = xp.stack(columns, axis=-1)
    if covariates is None or covariates.shape[1] == 0:
        return scalars
    return xp.concat([scalars, like(covariates, fire, fire.dtype)], axis=1)


def _places(fire: Array) -> list[Array]:
    """Coordinate from −1 to 1 along every axis of the grid, broadcastable to (*grid, B)."""
    places = []
    for axis, count in enumerate(fire.shape[:-1]):
        along = like(np.linspace(-1.0, 1.0, count), fire, fire.dtype)
        shape = [count if other == axis else 1 for other in range(fire.ndim)]
        places.append(array_namespace(fire).reshape(along, tuple(shape)))
    return places


def _hats(fire: Array, knots: Array) -> list[Array]:
    """Hat functions on all knots but the first; the last stays at 1 beyond its knot.

    They span the piecewise-linear functions of the age on these knots that vanish at 0.
    """
    starts, widths = (like(part, fire, fire.dtype) for part in (knots[:-1], knots[1:] - knots[:-1]))
    ramps = [clip((fire - starts[i]) / widths[i], 0.0, 1.0) for i in range(int(starts.shape[0]))]
    return [*(rise - fall for rise, fall in itertools.pairwise(ramps)), ramps[-1]]


AGE_VALUES = 2_000_000
LEAST_ROWS = 64
"""The knots are computed from snapshots with about AGE_VALUES values in total, but from at least
LEAST_ROWS snapshots; more would hardly change them."""


KINDLING = 0.1
"""Age in h from which on a cell counts as burned beside carried smoke, and in part before, so that
smoke is continuous in time: a cell that has just been reached, or that a rotation has just touched,
adds little."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Parts times products and covariates; every channel has a root mean square of 1."""

    parts: tuple[str, ...]
    products: tuple[str, ...]
    knots: Array  # (K,), ages where the hat functions peak; the first is 0
    duration: float  # largest age in training
    extent: float  # largest number of burned cells in training
    scales: Array  # (S, H), root mean square of factor s times field h in training
    physics: PhysicsChannels | None = None  # further channels, of smoke of cheap physics
    kindling: float = 0.0  # see `Ages`; 0 in older files

    @property
    def channels(self) -> int:
        """Number of channels C = S · H, and those of the physics."""
        own = int(self.scales.shape[0] * self.scales.shape[1])
        return own if self.physics is None else own + self.physics.channels

    def fields(self, fire: Array) -> Array:
        """(*grid, B) ages → (*grid, B, H)."""
        return lifted_fields(self._ages(fire), self.parts)

    def factors(self, fire: Array, covariates: Array | None = None) -> Array:
        """(*grid, B) ages and (B, P) covariates → (B, S, H) factors of every field."""
        scalars = lift_scalars(self._ages(fire), self.products, covariates)
        if scalars.shape[1] != self.scales.shape[0]:
            expected = self.scales.shape[0] - 1 - product_count(self.products)
            raise PlumecastError(
                f"this lift takes {expected} covariates, "
                f"got {0 if covariates is None else covariates.shape[1]}; pass those of training"
            )
        return scalars[:, :, None] / like(self.scales, scalars, scalars.dtype)

    def __call__(
        self, fire: Array, covariates: Array | None = None, physics: Array | None = None
    ) -> Array:
        """(M, *grid) ages and (M, K, *grid) physics → (M, C, *grid) float32 channels."""
        xp = array_namespace(fire)
        grid_first = xp.moveaxis(xp.astype(fire, xp.float32, copy=False), 0, -1)
        fields = self.fields(grid_first)[..., None, :] * self.factors(grid_first, covariates)
        flat = xp.reshape(fields, (*fields.shape[:-2], -1))
        if self.physics is not None:
            flat = xp.concat([flat, self.physics.of(physics)], axis=-1)
        return contiguous(xp.moveaxis(flat, (-2, -1), (0, 1)))

    def _ages(self, fire: Array) -> Ages:
        return Ages(fire, self.knots, self.duration, self.extent, self.kindling)


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
    physics: Array | None = None,
) -> Lift:
    """Fit a lift to (M, *grid) ages, and perhaps (M, K, *grid) physics, on the host.

    `fire` is an array or an object that gives one when indexed by rows. The knots are quantiles of
    the ages of burned cells, so that the bins contain similar numbers of cells.
    """
    check_lift(parts, products)
    duration, extent = _extremes(fire)
    if not duration > 0.0:
        raise PlumecastError(
            "no training snapshot has a burned cell: all inputs are zero; check the input variable "
            "and the filters"
        )
    shares = np.linspace(1.0, 0.1, bins)[:0:-1]
    ages = _sampled_ages(fire)
    inner: Array = np.quantile(ages, shares) if ages.size else []
    knots = np.unique(np.concatenate([[0.0], inner, [duration]]))
    kindling = 0.0 if physics is None else KINDLING
    size: Array = 0.0
    for rows in field_blocks(fire):
        block = np.moveaxis(fire[rows], 0, -1).astype(np.float32)
        some = Ages(block, knots, duration, extent, kindling)
        energy = np.square(lifted_fields(some, parts)).sum(axis=some.grid_axes, dtype=np.float64)
        scalars = lift_scalars(some, products, None if covariates is None else covariates[rows])
        size = size + np.square(scalars, dtype=np.float64).T @ energy
    scales = np.sqrt(size / math.prod(fire.shape))
    scales = np.where(scales > 0.0, scales, 1.0)
    channels = None if physics is None else fit_physics_channels(physics)
    return Lift(tuple(parts), tuple(products), knots, duration, extent, scales, channels, kindling)


def _extremes(fire: Array) -> tuple[float, float]:
    """The largest age (or size of a negative input), and the most burned cells of a snapshot."""
    oldest, most = 0.0, 0
    for rows in field_blocks(fire):
        block = fire[rows]
        oldest = max(oldest, float(block.max()), -float(block.min()))
        cells = np.count_nonzero(block > 0.0, axis=tuple(range(1, block.ndim)))
        most = max(most, int(cells.max()))
    return oldest, float(max(most, 1))


def _sampled_ages(fire: Array) -> Array:
    """Sizes of non-zero inputs, from a sample of the snapshots if there are many."""
    cells = math.prod(fire.shape[1:])
    rows = sampled_rows(fire.shape[0], max(LEAST_ROWS, AGE_VALUES // cells))
    blocks = (fire[rows[part]] for part in row_blocks(rows.size, VALUES // cells))
    return np.concatenate([np.abs(block[block != 0.0]) for block in blocks])


CARRIED_FLOOR = 1e-4
"""Smoke below which the logarithm ln(1 + g/floor) is linear, relative to the root mean square."""

CARRIED_RAMPS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles, of the logarithms above the floor, at which ramps begin; one more begins at 0."""

CARRIED_SAMPLE = 400
"""Largest number of snapshots from which knots and scales are computed."""


@dataclass(frozen=True, slots=True)
class PhysicsChannels:
    """Channels of K fields, each with a root mean square of 1."""

    floors: Array  # (K,)
    knots: Array  # (K, R), where ramps of the logarithms begin
    scales: Array  # (K + K · R,)

    @property
    def channels(self) -> int:
        """Number of channels, K + K · R."""
        return int(self.scales.shape[0])

    def of(self, physics: Array | None) -> Array:
        """(B, K, *grid) → (*grid, B, channels), float32."""
        assert physics is not None, "the map was fitted with physics"
        xp = array_namespace(physics)
        last = xp.moveaxis(xp.astype(physics, xp.float32, copy=False), (0, 1), (-2, -1))
        fields = contiguous(last)
        log = xp.log1p(fields / like(self.floors, fields, fields.dtype))
        above = log[..., None] - like(self.knots, fields, fields.dtype)
        ramps = xp.reshape(xp.clip(above, 0.0, None), (*fields.shape[:-1], -1))
        joined = xp.concat([fields, ramps], axis=-1)
        return joined / like(self.scales, fields, fields.dtype)


def fit_physics_channels(physics: Array) -> PhysicsChannels:
    """Floors, knots and scales from (M, K, *grid) smoke of the training snapshots.

    `physics` is an array or an object that gives one when indexed by rows.
    """
    sample = physics[sampled_rows(physics.shape[0], CARRIED_SAMPLE)]
    floors, knots = [], []
    for values in np.moveaxis(sample, 1, 0):
        size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
        floors.append(CARRIED_FLOOR * size if size > 0.0 else 1.0)
        logs = np.log1p(values[values > floors[-1]] / floors[-1])
        starts = np.quantile(logs, CARRIED_RAMPS) if logs.size else np.zeros(len(CARRIED_RAMPS))
        knots.append(np.concatenate([[0.0], starts]))
    kinds = len(floors) * (2 + len(CARRIED_RAMPS))
    draft = PhysicsChannels(np.array(floors), np.stack(knots), np.ones(kinds))
    made = draft.of(sample)
    scales = np.sqrt(np.mean(np.square(made, dtype=np.float64), axis=tuple(range(made.ndim - 1))))
    return PhysicsChannels(draft.floors, draft.knots, np.where(scales > 0.0, scales, 1.0))
