"""Count the cells of predicted and observed smoke by group, in logarithmic bins.

The counts of blocks are added. Positions are smoke on the scale of the bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.compute.arrays import Array, array_namespace, to_numpy
from plumecast.surrogate.ranges import snapshot_hours

if TYPE_CHECKING:
    from plumecast.surrogate.surrogate import Surrogate


BINS = 48
"""Number of bins; the first is for smoke of at most the lowest edge, most of it exactly 0."""

BELOW = 30.0
"""The lowest edge is about τ / 30: smoke predicted just below τ is often observed above it."""

ABOVE = 3.0
"""The highest edge is about three times the largest training smoke."""

LEAST = 1e-6
"""Smallest smoke threshold of the bins, as a share of the largest smoke: a smaller one is a trace
(data without a smoke floor), and bins down to it would be too wide."""


def make_edges(tau: float, peak: float) -> Array:
    """(K − 1,) upper edges of all bins but the last, τ r^(k − m), k = 0 … K − 2; one is τ."""
    ratio = (BELOW * max(ABOVE * peak / tau, ABOVE)) ** (1.0 / (BINS - 2))
    own = int(np.ceil(np.log(BELOW) / np.log(ratio)))
    edges = tau * ratio ** (np.arange(BINS - 1) - float(own))
    edges[own] = tau
    return edges


def bin_numbers(smoke: Array, edges: Array) -> Array:
    """Bin of every value: the number of edges below it, so that τ itself is no smoke.

    >>> bin_numbers(np.array([0.0, 1.0, 1.5, 9.0]), np.array([1.0, 2.0, 4.0]))
    array([0, 0, 1, 3])
    """
    return np.searchsorted(edges, smoke, side="left")


def positions(smoke: Array, edges: Array) -> Array:
    """u(g): g / e₀ up to the lowest edge e₀, then 1 + ln(g / e₀) / ln r; bin k has k < u ≤ k + 1.

    >>> positions(np.array([0.0, 0.5, 1.0, 2.0, 8.0]), np.array([1.0, 2.0, 4.0]))
    array([0. , 0.5, 1. , 2. , 4. ])
    """
    xp = array_namespace(smoke)
    lowest, step = float(edges[0]), math.log(edges[1] / edges[0])
    above = 1.0 + xp.log(xp.clip(smoke, lowest, None) / lowest) / step
    return xp.where(smoke > lowest, above, xp.clip(smoke, 0.0, None) / lowest)


def smoke_at(position: Array, edges: Array) -> Array:
    """The inverse of `positions`."""
    lowest, step = edges[0], np.log(edges[1] / edges[0])
    above = lowest * np.exp((np.maximum(position, 1.0) - 1.0) * step)
    return np.where(position > 1.0, above, np.clip(position, 0.0, None) * lowest)


TIMES = (0.15, 0.35)
"""Shares of the longest training fire that divide snapshots: young plumes are predicted less well
than old ones, whose smoke is a sum over many frames."""

SCORE_BINS = 200
"""Bins of the detection score, of equal width in its square root: most scores are near 0."""


@dataclass(frozen=True, slots=True)
class CellBins:
    """How cells are counted: by which groups, and in which bins of smoke."""

    by: str
    tau: float  # smoke threshold
    edges: Array  # (K − 1,) of `make_edges`
    detects: bool  # whether there is a detection score; if not, the smoke is the score
    hours: tuple[float, ...] = ()  # since ignition, that divide snapshots into times

    def count(self, block: xr.Dataset, predicted: Array, score: Array, observed: Array) -> Cells:
        """Counts of (M, N) cells by the group of their row, and by the time of their snapshot."""
        smoke, seen = to_numpy(predicted), to_numpy(observed)
        rows, columns = bin_numbers(smoke, self.edges), bin_numbers(seen, self.edges)
        levels = bin_numbers(to_numpy(score), score_edges()) if self.detects else rows
        size = SCORE_BINS if self.detects else BINS
        names = block[self.by].values.astype(str)
        pairs, scored = rows * BINS + columns, levels * 2 + (seen > self.tau).astype(np.intp)

        def by_group(cells: Array, chosen: Array, *shape: int) -> dict[str, Array]:
            return {
                group: np.bincount(
                    cells[chosen & (names == group)].ravel(), minlength=math.prod(shape)
                ).reshape(shape)
                for group in np.unique(names[chosen]).tolist()
            }

        every = np.ones(names.size, dtype=bool)
        smoke_counts = by_group(pairs, every, BINS, BINS)
        score_counts = by_group(scored, every, size, 2)
        times = {}
        hours = snapshot_hours(block) if self.hours else None  # None where they are unknown
        if hours is not None:
            numbers = np.searchsorted(self.hours, hours)
            for number in np.unique(numbers).tolist():
                here = numbers == number
                counts = by_group(pairs, here, BINS, BINS)
                times[number] = Time(float(hours[here].sum()), int(here.sum()), counts)
        both = {group: (smoke_counts[group], score_counts[group]) for group in smoke_counts}
        return Cells(self, both, times)


def _together(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[Any, Any]:
    """Both by key; values that both have are added."""
    added = {key: one[key] + value if key in one else value for key, value in other.items()}
    return {**one, **added}


@dataclass(frozen=True, slots=True)
class Time:
    """Cells of snapshots of one time since ignition: the sum of their hours, and by group."""

    hours: float
    snapshots: int
    counts: dict[str, Array]  # (K, K) by predicted and observed bin

    def __add__(self, other: Time) -> Time:
        counts = _together(self.counts, other.counts)
        return Time(self.hours + other.hours, self.snapshots + other.snapshots, counts)


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells by group: (K, K) by predicted and observed bin; (B, 2) by score and observed smoke."""

    bins: CellBins
    counts: dict[str, tuple[Array, Array]]
    times: dict[int, Time] = field(default_factory=dict)

    def __add__(self, other: Cells) -> Cells:
        """Cells of both, in the same bins."""
        total = dict(self.counts)
        for group, pair in other.counts.items():
            mine = total.get(group)
            total[group] = pair if mine is None else (mine[0] + pair[0], mine[1] + pair[1])
        return Cells(self.bins, total, _together(self.times, other.times))


def choose_bins(surrogate: Surrogate, tau: float, by: str) -> CellBins | None:
    """Bins up to the largest training smoke; None for outputs that may be negative.

    The smoke threshold is at least a millionth of the largest smoke.
    """
    ranges = surrogate.training.get("ranges", {})
    peak = ranges.get("peak")
    if peak is None or not surrogate.nonnegative or not peak[1] > 0.0:
        return None
    least = max(float(tau), LEAST * peak[1])
    longest = ranges.get("hours", [0.0, 0.0])[1]
    hours = tuple(share * longest for share in TIMES) if longest > 0.0 else ()
    return CellBins(by, least, make_edges(least, peak[1]), surrogate.detects, hours)


def score_edges() -> Array:
    """(B − 1,) upper edges of the bins of the detection score but the last, (b / B)²."""
    return (np.arange(1, SCORE_BINS) / SCORE_BINS) ** 2


def group_weights(counts: Array, scored: Array) -> Array:
    """(G,) 1 / number of scored cells, so that every group counts once; 0 without such cells."""
    cells = (counts * scored).sum(axis=(1, 2)).astype(np.float64)
    return np.divide(1.0, cells, out=np.zeros_like(cells), where=cells > 0)


def add_cells(blocks: Iterable[Cells | None]) -> Cells | None:
    """Cells of all blocks; None if they were not counted."""
    counted = [block for block in blocks if block is not None]
    return reduce(add, counted) if counted else None
