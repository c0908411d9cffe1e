"""The difference of two means, or of two probabilities, with its interval. Arrays only.

Samples (K, P) are values of K fires at P places; clusters (K,) name their ignitions, which count as
independent samples. Pairs of fires with the same ignition share its place and weather, so that the
spread of their differences is smaller than that of the fires themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from plumecast.scores.sampling import (
    Estimate,
    cluster_mean,
    cluster_sums,
    effective_samples,
    share_interval,
)

MOST = 1_000_000
"""Largest number of further ignitions that is reported; beyond it, more fires do not settle it."""


TRACE = 1e-6
"""Pairs that differ by less than this share of the largest value count as equal: smoke of 1e-10
µg m⁻³ is what a numerical scheme leaves behind, not more or less smoke."""

COCHRAN = 25.0
"""Samples for each squared skewness from which on a mean is nearly normal (Cochran's rule)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Means of two scenarios at P places, and their difference (other − reference)."""

    base: Estimate  # mean of the reference
    other: np.ndarray
    change: Estimate  # of the difference
    relative: Estimate  # of the difference over the mean of the reference
    spread: np.ndarray  # standard deviation of the difference for one ignition
    ignitions: int  # pairs, or the smaller number of the two
    per_ignition: int  # degrees of freedom that one more ignition adds: 1, unpaired 2
    better: np.ndarray  # share of pairs where the other is lower; NaN if unpaired
    worse: np.ndarray
    skewness: np.ndarray  # of the differences; unpaired, the larger of both scenarios

    def rough(self) -> np.ndarray:
        """Places whose Student t interval does not hold its coverage: n < 25 skewness² (Cochran).

        There a few fires make most of the mean, and samples without them have too short intervals.
        """
        return np.asarray(self.ignitions < COCHRAN * self.skewness**2)

    @property
    def unchanged(self) -> np.ndarray:
        """Places where no fire differs, so that the samples do not tell the error."""
        return np.asarray((self.change.mean == 0.0) & (self.change.error == 0.0))

    def interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Student t interval of the difference; NaN where no fire differs."""
        low, high = self.change.interval(coverage)
        return np.where(self.unchanged, np.nan, low), np.where(self.unchanged, np.nan, high)

    def relative_interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        """Student t interval of the relative difference, not below −1.

        NaN where no fire differs, where the scenario has no smoke at all, or where the interval of
        the reference's mean includes 0: then a ratio to it has no bounds (Fieller).
        """
        low, high = self.relative.interval(coverage)
        bounded = self.base.interval(coverage)[0] > 0.0
        finite = bounded & (self.relative.error > 0.0)
        return np.where(finite, np.maximum(low, -1.0), np.nan), np.where(finite, high, np.nan)

    def relative_mean(self, coverage: float) -> np.ndarray:
        """The relative difference; NaN where the interval of the reference's mean includes 0."""
        return np.where(self.base.interval(coverage)[0] > 0.0, self.relative.mean, np.nan)

    def chance(self) -> np.ndarray:
        """Chance that the other scenario's mean is lower: P(T < −difference / error), Student's t.

        It is the confidence with which a one-sided interval excludes 0. NaN where no fire differs
        or a single ignition leaves the error unknown.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = -self.change.mean / self.change.error
        finite = np.isfinite(self.change.error) & ~self.unchanged
        return np.where(finite, stats.t.cdf(ratio, self.change.freedom), np.nan)

    def more_ignitions(self, coverage: float) -> np.ndarray:
        """Ignitions to add until the interval excludes 0, if difference and spread stay.

        The smallest n with t(n) · spread / √n ≤ |difference|, less those there are: 0 if it is
        settled, infinite beyond MOST or without a difference.
        """
        needed = _needed(abs(self.change.mean), self.spread, coverage, self.per_ignition)
        low, high = self.interval(coverage)
        more = np.maximum(needed - self.ignitions, 1.0)
        return np.where((low > 0.0) | (high < 0.0), 0.0, more)


def paired_difference(a: np.ndarray, b: np.ndarray, clusters: np.ndarray) -> Difference:
    """Difference of pairs (K, P) of samples: the clustered mean of b − a.

    The relative difference is R − 1 with R = mean(b) / mean(a). Its error is that of the mean of
    b − R a, over mean(a).
    """
    apart = b - a
    change = cluster_mean(apart, clusters)
    count = np.unique(clusters).size
    base = cluster_mean(a, clusters)
    first, second = base.mean, b.mean(axis=0)
    ratio = _ratio(second, first)
    rest = cluster_mean(b - ratio * a, clusters)
    trace = TRACE * max(np.max(a, initial=0.0), np.max(b, initial=0.0))
    return Difference(
        base, second, change,
        Estimate(ratio - 1.0, _ratio(rest.error, abs(first)), change.freedom),
        change.error * np.sqrt(count), count, 1,
        (apart < -trace).mean(axis=0), (apart > trace).mean(axis=0), _skewness(apart),
    )  # fmt: skip


def unpaired_difference(
    a: np.ndarray, a_clusters: np.ndarray, b: np.ndarray, b_clusters: np.ndarray
) -> Difference:
    """Welch's difference of two independent sets of samples (K, P), by clusters.

    The squared errors add up; the degrees of freedom are Satterthwaite's.
    """
    one, two = cluster_mean(a, a_clusters), cluster_mean(b, b_clusters)
    counts = [np.unique(clusters).size for clusters in (a_clusters, b_clusters)]
    unknown = np.full(one.mean.shape, np.nan)
    ratio = _ratio(two.mean, one.mean)
    with np.errstate(invalid="ignore"):  # a single ignition has an infinite error
        relative = Estimate(ratio * one.mean, abs(ratio) * one.error, one.freedom)
    apart = _welch(relative, two)
    spread = np.sqrt(counts[0] * one.error**2 + counts[1] * two.error**2)
    return Difference(
        one, two.mean, _welch(one, two),
        Estimate(ratio - 1.0, _ratio(apart.error, abs(one.mean)), apart.freedom),
        spread, min(counts), 2, unknown, unknown, np.maximum(_skewness(a), _skewness(b)),
    )  # fmt: skip


def _welch(one: Estimate, two: Estimate) -> Estimate:
    """The difference of two independent means."""
    squares = one.error**2, two.error**2
    if not (np.all(np.asarray(one.freedom) > 0) and np.all(np.asarray(two.freedom) > 0)):
        return Estimate(two.mean - one.mean, np.full(one.mean.shape, np.inf), 0.0)
    total = squares[0] + squares[1]
    parts = squares[0] ** 2 / one.freedom + squares[1] ** 2 / two.freedom
    least = np.minimum(one.freedom, two.freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(parts > 0.0, total**2 / parts, least)
    return Estimate(two.mean - one.mean, np.sqrt(total), freedom)


def _skewness(values: np.ndarray) -> np.ndarray:
    """Size of the skewness of samples (K, P); 0 where they are equal."""
    rest = values - values.mean(axis=0)
    variance = (rest**2).mean(axis=0)
    return np.asarray(abs(np.nan_to_num(_ratio((rest**3).mean(axis=0), variance**1.5))))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole != 0.0, part / whole, np.nan)


def _needed(size: np.ndarray, spread: np.ndarray, coverage: float, per: int) -> np.ndarray:
    """Smallest n ≤ MOST with t · spread / √n ≤ size, t with per · (n − 1) degrees of freedom."""

    def settles(count: np.ndarray) -> np.ndarray:
        reach = stats.t.ppf(0.5 * (1.0 + coverage), per * (count - 1.0))
        return np.asarray((size > 0.0) & (reach * spread <= size * np.sqrt(count)))

    low, high = np.full(size.shape, 1.0), np.full(size.shape, float(MOST))
    possible = settles(high)
    while (high - low > 1.0).any():
        middle = np.floor(0.5 * (low + high))
        enough = settles(middle) & (middle > 1.0)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        high = np.maximum(high, low + 1.0)
    return np.where(possible & np.isfinite(spread), high, np.inf)


def share_difference(
    a: np.ndarray,
    a_clusters: np.ndarray,
    b: np.ndarray,
    b_clusters: np.ndarray,
    *,
    paired: bool,
    coverage: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shares p of a and q of b, and the lower and upper end of the interval of q − p.

    Newcombe's hybrid score interval (his method 10; Statistics in Medicine 17, 1998). With Wilson's
    intervals (l_p, u_p) and (l_q, u_q) by effective samples and the correlation φ of pairs,

        lower = q − p − √((q − l_q)² − 2φ (q − l_q)(u_p − p) + (u_p − p)²),

    and likewise the upper end; φ = 0 if unpaired. It is not ± 0 where all fires agree.
    """
    one, two = cluster_mean(a, a_clusters), cluster_mean(b, b_clusters)
    (low_p, high_p), (low_q, high_q) = (
        share_interval(
            share.mean,
            effective_samples(share, np.unique(clusters).size, clusters.size),
            coverage,
        )
        for share, clusters in ((one, a_clusters), (two, b_clusters))
    )
    phi = _correlation(a, b, a_clusters) if paired else np.zeros(one.mean.shape)
    p, q = one.mean, two.mean
    down = _hypotenuse(q - low_q, high_p - p, phi)
    up = _hypotenuse(high_q - q, p - low_p, phi)
    return p, q, np.maximum(q - p - down, -1.0), np.minimum(q - p + up, 1.0)


def _hypotenuse(one: np.ndarray, two: np.ndarray, phi: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.maximum(one**2 - 2.0 * phi * one * two + two**2, 0.0)))


def _correlation(a: np.ndarray, b: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """φ of pairs by clusters; a positive covariance is lowered by 1 / (2 C), Newcombe's correction.

    0 where all samples of one scenario agree.
    """
    rests = []
    for part in (a, b):
        sums, counts = cluster_sums(part.astype(np.float64), clusters)
        rests.append((sums - part.mean(axis=0) * counts[:, None]) / counts.mean())
    covariance = (rests[0] * rests[1]).mean(axis=0)
    lowered = np.maximum(covariance - 0.5 / len(rests[0]), 0.0)
    covariance = np.where(covariance > 0.0, lowered, covariance)
    scale = np.sqrt((rests[0] ** 2).mean(axis=0) * (rests[1] ** 2).mean(axis=0))
    return np.asarray(np.nan_to_num(_ratio(covariance, scale)))


def holm(chances: np.ndarray, coverage: float) -> np.ndarray:
    """Which differences stay clear if all are tested together (Holm's method).

    `chances` are those of `Difference.chance`, of any shape; the two-sided p is 2 min(c, 1 − c).
    With the p-values in rising order, p₍ᵢ₎ is compared with (1 − coverage) / (m − i), i from 0,
    until one fails. NaN is not clear and is not counted.

    >>> holm(np.array([0.999, 0.98, 0.5]), 0.95).tolist()
    [True, False, False]
    """
    flat = chances.ravel()
    finite = np.flatnonzero(np.isfinite(flat))
    p = 2.0 * np.minimum(flat[finite], 1.0 - flat[finite])
    order = np.argsort(p)
    passes = p[order] <= (1.0 - coverage) / (finite.size - np.arange(finite.size))
    clear = np.zeros(flat.shape, dtype=bool)
    clear[finite[order[np.logical_and.accumulate(passes)]]] = True
    return clear.reshape(chances.shape)
