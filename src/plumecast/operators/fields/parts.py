"""The tables of a lift: fields made of the input, and scalars of it that multiply them.

A new part or product is one function and one entry of its table. Arrays only, no labels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, clip, like

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


def _identity(ages: Ages) -> list[Array]:
    return [ages.fire / ages.duration]


def _burned(ages: Ages) -> list[Array]:
    return [ages.burned]


def _age_bins(ages: Ages) -> list[Array]:
    return _hats(ages.fire, ages.knots)


def _negative_bins(ages: Ages) -> list[Array]:
    return _hats(-ages.fire, ages.knots)


def _saturating(ages: Ages) -> list[Array]:
    xp = array_namespace(ages.fire)
    known = xp.clip(ages.fire, 0.0, None)
    return [1.0 - xp.exp(-known / (share * ages.duration)) for share in SATURATION]


def _position(ages: Ages) -> list[Array]:
    return [ages.burned * place for place in _places(ages.fire)]


PARTS = {
    "identity": Part("the age itself", _identity),
    "burned": Part("1 where burned", _burned),
    "age-bins": Part(
        "hat functions of the age, whose knots are quantiles of the ages in training",
        _age_bins,
        count=lambda bins, axes: bins,
    ),
    "saturating": Part(
        "1 − exp(−age / s) for three time scales s",
        _saturating,
        count=lambda bins, axes: len(SATURATION),
    ),
    "position": Part(
        "1 where burned, times the coordinate along every axis",
        _position,
        count=lambda bins, axes: axes,
    ),
    "negative-bins": Part(
        "the hat functions of the age, for inputs below zero",
        _negative_bins,
        count=lambda bins, axes: bins,
    ),
}
"""Parts of a lift."""


def _hours(ages: Ages) -> list[Array]:
    return [ages.oldest / ages.duration]


def _hours_squared(ages: Ages) -> list[Array]:
    return [(ages.oldest / ages.duration) ** 2]


def _day(ages: Ages) -> list[Array]:
    xp = array_namespace(ages.fire)
    phase = (2.0 * math.pi / DAY) * ages.oldest
    return [xp.sin(phase), xp.cos(phase)]


def _area(ages: Ages) -> list[Array]:
    return [array_namespace(ages.fire).sum(ages.burned, axis=ages.grid_axes) / ages.extent]


PRODUCTS = {
    "hours": Product("the largest age of the fire", _hours),
    "hours-squared": Product("its square", _hours_squared),
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
