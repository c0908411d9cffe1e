"""Quantiles of clustered samples, with Woodruff's intervals. Arrays only."""

from __future__ import annotations

import numpy as np

from plumecast.scores.sampling.intervals import (
    Estimate,
    group_sums,
    probability_interval,
    sums_mean,
)


def quantiles_with_intervals(
    values: np.ndarray, clusters: np.ndarray, shares: tuple[float, ...], coverage: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quantiles (S, P) of samples (M, P), and the lower and upper ends of their intervals.

    `clusters` (M,) are numbers 0 … C − 1. The quantile q of a share p is the ⌈p M⌉-th smallest
    value. Its interval has the quantiles of both ends of the interval of P(value ≤ q), clustered
    (Woodruff 1952); an end that needs more clusters than there are is infinite, or 0.
    """
    counts = np.bincount(clusters)
    ranked = np.sort(values, axis=0)
    found = [_one(values, ranked, clusters, counts, share, coverage) for share in shares]
    middle, lower, upper = (np.stack(part) for part in zip(*found, strict=True))
    return middle, lower, upper


def _one(
    values: np.ndarray,
    ranked: np.ndarray,
    clusters: np.ndarray,
    counts: np.ndarray,
    share: float,
    coverage: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places = np.arange(values.shape[1])
    middle = ranked[_rank(np.full(places.size, share), ranked.shape[0]), places]
    below = sums_mean(group_sums(values <= middle, clusters, counts.size), counts)
    wanted = Estimate(np.full(places.size, share), below.error, below.freedom)
    ends = probability_interval(wanted, counts.size, values.shape[0], coverage)
    lower, upper = (ranked[_rank(end, ranked.shape[0]), places] for end in ends)
    least = 0.5 / counts.size
    lower = np.where(ends[0] < least, 0.0, lower)
    return middle, lower, np.where(ends[1] > 1.0 - least, np.inf, upper)


def _rank(share: np.ndarray, count: int) -> np.ndarray:
    rank: np.ndarray = np.clip(np.ceil(share * count).astype(np.int64) - 1, 0, count - 1)
    return rank
