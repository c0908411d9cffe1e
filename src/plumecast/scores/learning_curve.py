"""How the error falls with the number of ignitions: a power law with its uncertainty.

A point is the error of an ignition that a surrogate of n others predicted. The law e(n) = a n⁻ᵇ is
fitted by least squares, with b from 0 (more fires do not make it worse) to LARGEST_POWER; its
uncertainty is that of resampled points. It has no constant term: the points of one ensemble seldom
tell a slow fall from a limit, so a forecast far beyond the data is too good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array

FEWEST = 3
"""Points below which nothing is said."""

LARGEST_POWER = 1.0
"""Learning curves fall more slowly than 1/n; a steeper fit to few points promises too much."""

POWERS = np.linspace(0.0, LARGEST_POWER, 201)

DRAWS = 1000
"""Resampled sets of points."""

BEYOND = 10.0
"""A target that needs more than this many times the ignitions of now is out of reach."""


@dataclass(frozen=True, slots=True)
class Point:
    """The error of some ignitions that a surrogate of `count` others predicted."""

    count: float  # ignitions that the surrogate had learned
    error: float
    weight: float = 1.0  # number of ignitions that were predicted


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """e(n) = a n⁻ᵇ."""

    a: float
    b: float

    def at(self, count: float) -> float:
        """The error of a surrogate of `count` ignitions."""
        return float(self.a * count**-self.b)


def fit_power_law(points: Sequence[Point]) -> PowerLaw:
    """The least-squares law of some points.

    >>> law = fit_power_law([Point(1, 0.8), Point(4, 0.4), Point(16, 0.2)])
    >>> round(law.a, 6), round(law.b, 6)
    (0.8, 0.5)
    """
    a, b = _fit(points, np.ones((1, len(points))))
    return PowerLaw(float(a[0]), float(b[0]))


@dataclass(frozen=True, slots=True)
class Forecast:
    """The error now and after more ignitions, each with the standard error of resampled points."""

    law: PowerLaw
    count: int  # ignitions now
    more: int
    now: float
    now_spread: float
    later: float
    later_spread: float
    gain_low: float  # lower end of the 90 % interval of the gain, now − later

    @property
    def is_clear(self) -> bool:
        """Whether the whole interval of the gain is above a tenth of the gain itself."""
        return self.gain_low > 0.1 * (self.now - self.later) > 0.0

    def ignitions_for(self, error: float) -> int | None:
        """Further ignitions that the error needs; None if they are far more than those of now."""
        needed = 1.0 if self.law.a <= error else math.inf
        if self.law.a > error > 0.0 and self.law.b > 0.0:
            needed = (self.law.a / error) ** (1.0 / self.law.b)
        if needed > BEYOND * self.count:
            return None
        return max(0, math.ceil(needed - 1e-9) - self.count)


def forecast(points: Sequence[Point], count: int, more: int, seed: int = 0) -> Forecast | None:
    """The error after `more` ignitions; None with fewer than FEWEST points of two counts."""
    if len(points) < FEWEST or len({point.count for point in points}) < 2:
        return None
    law = fit_power_law(points)
    drawn = np.random.default_rng(seed).multinomial(
        len(points), np.full(len(points), 1.0 / len(points)), size=DRAWS
    )
    a, b = _fit(points, drawn)
    now, later = a * float(count) ** -b, a * float(count + more) ** -b
    low = np.quantile(now - later, 0.05)
    spreads = float(now.std()), float(later.std())
    return Forecast(law, count, more, law.at(count), spreads[0], law.at(count + more), spreads[1],
                    float(low))  # fmt: skip


def _fit(points: Sequence[Point], repeats: Array) -> tuple[Array, Array]:
    """(D,) a and b of points that are repeated (D, P) times; a is linear, b from a grid."""
    table = np.array([(point.count, point.error, point.weight) for point in points], dtype=float)
    counts, errors, weights = table[:, 0], table[:, 1], repeats * table[:, 2]
    falls = counts[None, :] ** -POWERS[:, None]  # (B, P)
    cross = weights @ (falls * errors).T  # (D, B)
    square = weights @ (falls**2).T
    best = np.argmax(cross**2 / square, axis=1)  # the explained part of Σ w e²
    rows = np.arange(weights.shape[0])
    return cross[rows, best] / square[rows, best], POWERS[best]
