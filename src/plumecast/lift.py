"""Pointwise functions of the input that make smoke nearly linear in it. Arrays only, no labels.

Smoke is close to a sum over burned cells of something nonlinear in each cell's age. A lift turns
the age into channels whose linear combinations are any piecewise-linear function of it, and
repeats them times the size and the duration of the fire.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast._array import Array
from plumecast.errors import PlumecastError


@dataclass(frozen=True, slots=True)
class AgeLift:
    """Age of burn as hat functions, each also times two scalars of the fire."""

    knots: Array  # (K,), ages in the unit of the input, the first 0
    duration: float  # largest age in training
    extent: float  # largest number of burned cells in training
    scales: Array  # (C,), root mean square of each channel in training

    @property
    def channels(self) -> int:
        """Number of channels C."""
        return int(self.scales.shape[0])

    def __call__(self, fire: Array) -> Array:
        """(M, *grid) ages → (M, C, *grid) float32 channels of unit size; an empty fire gives 0."""
        return _channels(fire, self.knots, self.duration, self.extent) / _columns(self.scales, fire)


def fit_age_lift(fire: Array, bins: int = 5) -> AgeLift:
    """A lift whose knots are quantiles of the ages that occur: the bins are filled alike."""
    burned = fire[fire > 0.0]
    if burned.size == 0:
        raise PlumecastError("no training snapshot has a burned cell: there is nothing to lift")
    shares = np.linspace(1.0, 0.1, bins)[::-1]
    knots = np.unique(np.concatenate([[0.0], np.quantile(burned, shares)]))
    cells = np.count_nonzero(fire > 0.0, axis=tuple(range(1, fire.ndim)))
    duration, extent = float(knots[-1]), float(cells.max())
    size = np.zeros(3 * knots.size)
    for block in np.array_split(fire, -(-fire.shape[0] // 256)):
        channels = _channels(block, knots, duration, extent)
        size += np.sum(np.square(channels, dtype=np.float64), axis=(0, *range(2, channels.ndim)))
    scales = np.sqrt(size / fire.size)
    return AgeLift(knots, duration, extent, np.where(scales > 0.0, scales, 1.0))


def _columns(scales: Array, fire: Array) -> Array:
    return scales.astype(np.float32).reshape(1, -1, *([1] * (fire.ndim - 1)))


def _channels(fire: Array, knots: Array, duration: float, extent: float) -> Array:
    hats = np.stack([*_hats(fire, knots), fire > 0.0], axis=1).astype(np.float32)
    axes = tuple(range(1, fire.ndim))
    age = (fire.max(axis=axes) / duration).astype(np.float32)
    cells = (np.count_nonzero(fire > 0.0, axis=axes) / extent).astype(np.float32)
    each = (slice(None), *([None] * fire.ndim))
    return np.concatenate([hats, hats * age[each], hats * cells[each]], axis=1)


def _hats(fire: Array, knots: Array) -> list[Array]:
    """Hat functions on the knots but the first: their span holds every piecewise-linear function
    of the age that vanishes at 0; the last stays at 1 beyond its knot."""
    hats = []
    for i in range(1, knots.size):
        rise = np.clip((fire - knots[i - 1]) / (knots[i] - knots[i - 1]), 0.0, 1.0)
        if i + 1 < knots.size:
            rise = rise - np.clip((fire - knots[i]) / (knots[i + 1] - knots[i]), 0.0, 1.0)
        hats.append(rise)
    return hats
