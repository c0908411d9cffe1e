"""Bands of observed smoke, and sets of certain and possible smoke, at a stated confidence.

The bands are quantiles of observed given predicted smoke, calibrated by leaving out one group.

Each set is the cells whose score lies above a threshold. With the risk α = 1 − coverage, at most a
share α of the cells of `certain_smoke` of a fire are to have no smoke, and at most a share α of its
smoky cells are to lie outside of `possible_smoke`; each in a share 1 − α of new fires. Every group
has a threshold at which this holds for itself, and `rank`, a finite-sample quantile, chooses
among them (split conformal, with one number per group).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression

from plumecast.compute.arrays import Array
from plumecast.surrogate.error_bars.counting import group_weights

HALVINGS = 30
"""Steps of the bisection for the level; more than the digits of a share of cells."""

WIDEST = 1.0 - 1e-7
"""Largest level of the quantiles."""

LEAST_WEIGHT = 1e-12
"""Weight of rows without cells; every group has a weight of 1."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Ends of the bands at the middle of every predicted bin, as positions (see `bins`)."""

    lower: Array  # (K,) not decreasing
    upper: Array  # (K,) not decreasing
    level: float  # of the quantiles, so that left-out groups have the coverage; above 1, wider
    lost: float = 0.0  # mean share of the cells of left-out groups beyond their bands

    def at(self, position: Array) -> tuple[Array, Array]:
        """Lower and upper position: linear between bins, with slope 1 beyond the last bin."""
        knots = np.arange(self.lower.size) + 0.5
        beyond = np.clip(position - knots[-1], 0.0, None)
        ends = (np.interp(position, knots, ends) + beyond for ends in (self.lower, self.upper))
        lower, upper = ends
        return np.where(self.lower[-1] > 0.0, lower, 0.0), upper

    def covered(self) -> Array:
        """(K, K) share of each observed bin within the band of each predicted bin.

        Smoke is spread evenly within its bin; that of bin 0 is exactly 0.
        """
        bins = np.arange(self.lower.size)
        low = np.maximum(self.lower[:, None], bins)
        high = np.minimum(self.upper[:, None], bins + 1.0)
        shares = np.clip(high - low, 0.0, 1.0)
        shares[:, 0] = self.lower <= 0.0
        return shares


@dataclass(frozen=True, slots=True)
class Rows:
    """Distribution of the observed position for each predicted bin: (…, K, K) weights."""

    weights: Array

    def ends(self, level: float) -> Array:
        """(…, K) quantiles of the rows, linear within a bin; 0 within bin 0."""
        cumulative = np.cumsum(self.weights, axis=-1)
        total = cumulative[..., -1:]
        share = np.divide(cumulative, total, out=np.ones_like(cumulative), where=total > 0)
        number = np.minimum((share < level).sum(axis=-1), share.shape[-1] - 1)
        after = np.take_along_axis(share, number[..., None], axis=-1)[..., 0]
        before = np.take_along_axis(share, np.maximum(number - 1, 0)[..., None], axis=-1)[..., 0]
        within = np.clip((level - before) / np.maximum(after - before, 1e-300), 0.0, 1.0)
        return np.where(number == 0, 0.0, number + within)

    def rising(self, level: float) -> Array:
        """The quantiles as a function of the row that does not decrease.

        An isotonic regression of the ends by weight, exactly 0 up to one row and above 0 beyond.
        That row has the least weight on the wrong side. A mean of zeros and others would leave no
        lower end at exactly 0, where cells without smoke are; the least of all later rows would
        follow a single row with few cells.
        """
        all_ends, all_weights = self.ends(level), self.weights.sum(axis=-1)
        fitted = np.zeros_like(all_ends)
        for index in np.ndindex(all_ends.shape[:-1]):
            ends, weights = all_ends[index], np.maximum(all_weights[index], LEAST_WEIGHT)
            empty = ends <= 0.0
            lost = np.sum(weights * empty)
            wrong = np.cumsum(weights * ~empty) + lost - np.cumsum(weights * empty)
            first = 0 if lost < wrong.min() else int(np.argmin(wrong)) + 1
            if first < ends.size:
                known = np.where(empty, LEAST_WEIGHT, weights)[first:]
                fitted[index][first:] = isotonic_regression(ends[first:], weights=known).x
        return fitted

    def bands(self, level: float) -> list[Bands]:
        """The bands of every table of rows: quantiles (1 ± a) / 2, where a is the level up to 1.

        Beyond, they are moved outwards by (level − 1) K bins. They contain the prediction in the
        middle of its bin.
        """
        size, share = self.weights.shape[-1], min(level, WIDEST)
        further, middle = max(0.0, level - 1.0) * size, np.arange(size) + 0.5
        lower = np.clip(self.rising(0.5 * (1.0 - share)) - further, 0.0, None)
        upper = self.rising(0.5 * (1.0 + share)) + further
        low, high = np.minimum(lower, middle), np.maximum(upper, middle)
        low[..., 0] = 0.0
        high[..., 0] = upper[..., 0]  # smoke predicted as 0 is observed as 0, unless the quantile
        pairs = zip(low.reshape(-1, size), high.reshape(-1, size), strict=True)  # says otherwise
        return [Bands(*pair, level) for pair in pairs]


def smoothed(counts: Array, weights: Array) -> Array:
    """(G, K, K) counts times the weight (G,) of their group, each row pooled by the residual.

    Row k gets Σⱼ max(0, 1 − |k − j| / (hₖ + 1)) times row j, its observed bins moved by k − j, so
    that ln(observed / predicted) stays the same; smoke observed as 0 stays 0. The width hₖ ≥ 1 is
    the smallest for which a quarter of the groups, and at least five, have cells in these rows. The
    first row, smoke predicted as 0, is not pooled.
    """
    size = counts.shape[-1]
    weighted = counts * weights[:, None, None]
    present = counts.sum(axis=-1)[:, 1:] > 0  # (G, K − 1)
    needed = min(present.any(axis=1).sum(), max(5, -(-len(counts) // 4)))
    result = np.zeros_like(weighted)
    result[:, 0] = weighted[:, 0]
    for row in range(1, size):
        width = 1
        while width < size - 1 and needed > (
            present[:, max(0, row - 1 - width) : row + width].any(axis=1).sum()
        ):
            width += 1
        for other in range(max(1, row - width), min(size, row + width + 1)):
            share = 1.0 - abs(row - other) / (width + 1.0)
            result[:, row] += share * _moved(weighted[:, other], row - other)
    return result


def _moved(rows: Array, by: int) -> Array:
    """(G, K) counts moved by some bins; bin 0 stays, and the ends collect what leaves the bins."""
    size = rows.shape[1]
    moved = np.zeros_like(rows)
    moved[:, 0] = rows[:, 0]
    first, last = max(1, 1 + by), min(size - 1, size - 1 + by)  # where the others arrive
    if first > last:
        moved[:, size - 1 if by > 0 else 1] = rows[:, 1:].sum(axis=1)
        return moved
    moved[:, first : last + 1] = rows[:, first - by : last + 1 - by]
    moved[:, 1] += rows[:, 1 : max(1, 1 - by)].sum(axis=1)
    moved[:, -1] += rows[:, min(size, size - by) :].sum(axis=1)
    return moved


def calibrated_bands(counts: Array, scored: Array, coverage: float) -> Bands:
    """Quantiles (1 ± level) / 2 of the rows, with the level that gives left-out groups `coverage`.

    For a level a, each group i has bands from the other groups, and loses a share ℓᵢ(a) of its
    scored cells, which lie beyond. The level solves `expected_loss` = 1 − coverage. Where a group
    has larger residuals than all others, even a = 1 may not reach it; levels up to 2 widen the
    bands further, so that every coverage is reached.
    """
    weights = group_weights(counts, scored)
    each = smoothed(counts, weights)
    cells, used = counts * scored * weights[:, None, None], weights > 0
    others = Rows((each.sum(axis=0) - each)[used])

    def losses(level: float) -> Array:
        each_band = zip(cells[used], others.bands(level), strict=True)
        return 1.0 - np.array([(part * bands.covered()).sum() for part, bands in each_band])

    low, high = 0.0, 2.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        lost = float(expected_loss(losses(middle)))
        low, high = (middle, high) if lost > 1.0 - coverage else (low, middle)
    (bands,) = Rows(each.sum(axis=0)).bands(high)
    return replace(bands, lost=float(losses(high).mean()))


def expected_loss(losses: Array) -> Array:
    """Loss to expect of one more group, from (G, …) losses: (Σ ℓᵢ + max ℓᵢ) / (G + 1).

    The unknown group is taken to lose as much as the worst of the known ones. The mean alone is
    too small where few groups have been seen; with the largest possible loss, 1, it would be
    conformal risk control, whose bands are far too wide for a dozen groups.
    """
    return np.asarray((losses.sum(axis=0) + losses.max(axis=0)) / (losses.shape[0] + 1.0))


def rank(groups: int, risk: float) -> int:
    """k = ⌊α (n + 1)⌋, at least 1: a new group is worse than the k-th worst of n with k / (n + 1).

    With fewer than 1 / α − 1 groups that is more than α; the worst group is then the best choice.

    >>> rank(8, 0.1), rank(19, 0.1), rank(64, 0.1)
    (1, 2, 6)
    """
    return max(1, int(np.floor(risk * (groups + 1) + 1e-9)))


def fire_thresholds(scores: Array, edges: Array, risk: float) -> tuple[float, float]:
    """Thresholds of certain and of possible smoke that hold for all groups but the k − 1 worst.

    A group's certain smoke is above the lowest edge at which, and at all higher ones, the share of
    its cells without smoke is at most the risk; infinite if there is none. Its possible smoke is
    above the highest edge with a share of missed smoke of at most the risk. The groups of possible
    smoke are those with smoke; without any, all cells are possible.
    """
    # (G, B, 2) numbers of cells in higher bins than b: with a score above the edge of bin b.
    above = np.asarray(scores[:, ::-1].cumsum(axis=1)[:, ::-1] - scores)[:, : edges.size]
    total, smoky = above.sum(axis=-1), scores[..., 1].sum(axis=1, keepdims=True)
    false = np.divide(above[..., 0], total, out=np.zeros(total.shape), where=total > 0)
    kept = np.divide(above[..., 1], smoky, out=np.ones(total.shape), where=smoky > 0)
    bad, good = false > risk, ((1.0 - kept) <= risk)[smoky[:, 0] > 0].sum(axis=1)
    first = np.where(bad.any(axis=1), edges.size - np.argmax(bad[:, ::-1], axis=1), 0)
    certain = np.sort(np.append(edges, np.inf)[first])[::-1]
    possible = np.sort(np.append(-1.0, edges)[good])
    chosen = possible[rank(possible.size, risk) - 1] if possible.size else -1.0
    return float(certain[rank(certain.size, risk) - 1]), float(chosen)


def fire_promises(scores: Array, risk: float) -> tuple[float, float]:
    """Share 1 − k / (n + 1) of new fires for which each of the `fire_thresholds` holds."""
    smoky = int((scores[..., 1].sum(axis=1) > 0).sum())
    certain, possible = (
        1.0 - rank(groups, risk) / (groups + 1.0) for groups in (len(scores), smoky)
    )
    return certain, possible
