"""Confidence intervals of means and probabilities over fires. Arrays only.

Snapshots of one fire, and fires of one ignition, are not independent: the clusters of samples are
counted, not the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from statistics import NormalDist

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.values import shown


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean (of any shape), its standard error, and the degrees of freedom of that error."""

    mean: np.ndarray
    error: np.ndarray  # standard error; infinite for a single cluster
    freedom: float | np.ndarray  # one for all means, or one for each

    def interval(self, coverage: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the Student t interval."""
        reach = t_quantile(self.freedom, coverage)
        with np.errstate(invalid="ignore"):
            half = np.where(np.isfinite(self.error), reach * self.error, np.inf)
        return self.mean - half, self.mean + half


def t_quantile(freedom: float | np.ndarray, coverage: float) -> np.ndarray:
    """Half width of Student's t interval in standard errors; 0 without degrees of freedom."""
    check_coverage(coverage)
    from scipy.special import stdtrit  # imported here: sums on a bare machine do not need it

    known = np.asarray(freedom, dtype=np.float64)
    reach = stdtrit(np.where(known > 0.0, known, 1.0), 0.5 * (1.0 + coverage))
    return np.where(known > 0.0, reach, 0.0)


def normal_quantile(coverage: float) -> float:
    """Half width of the normal interval in standard errors."""
    check_coverage(coverage)
    return NormalDist().inv_cdf(0.5 * (1.0 + coverage))


def check_coverage(coverage: float, name: str = "coverage") -> None:
    """Raise unless a coverage is a number within (0, 1); `name` is what the caller's user gave."""
    known = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not known or not 0.0 < coverage < 1.0:
        text = f"{coverage:g}" if known else shown(coverage)
        raise PlumecastError(f"{name}={text} is not within (0, 1); 0.9 is usual")


def cluster_sums(values: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums (C, …) of samples (M, …) by cluster, and the number of samples of each."""
    _, index, counts = np.unique(clusters, return_inverse=True, return_counts=True)
    return group_sums(values, index, counts.size), counts


def group_sums(values: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Sums (count, …) in float64 of the samples (M, …) of each group 0 … count − 1."""
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    sums = np.zeros((count, *values.shape[1:]))
    sums[ranked[starts]] = np.add.reduceat(values[order], starts, axis=0, dtype=np.float64)
    return sums


def cluster_mean(values: np.ndarray, clusters: np.ndarray) -> Estimate:
    """Mean of samples (M, …), with an error that treats each cluster as one sample.

    The mean is the ratio Σ sums / Σ counts over C clusters. With e_c = sum_c − mean · count_c, its
    variance is C / (C − 1) · Σ e_c² / M², and it has C − 1 degrees of freedom.
    """
    return sums_mean(*cluster_sums(np.asarray(values, dtype=np.float64), clusters))


def sums_mean(sums: np.ndarray, counts: np.ndarray) -> Estimate:
    """`cluster_mean` from the sums (C, …) and numbers of samples (C,) of the clusters."""
    clusters, total = counts.size, counts.sum()
    mean = sums.sum(axis=0) / total
    if clusters < 2:
        return Estimate(mean, np.full(mean.shape, np.inf), 0.0)
    shape = (-1,) + (1,) * (sums.ndim - 1)
    rest = sums - mean * counts.reshape(shape)
    variance = clusters / (clusters - 1.0) * (rest**2).sum(axis=0) / total**2
    return Estimate(mean, np.sqrt(variance), clusters - 1.0)


def jackknife_variance(changes: np.ndarray) -> np.ndarray:
    """(R − 1) / R Σ (d_r − d̄)² of (R, …) changes of an estimate, each with one part left out."""
    parts = changes.shape[0]
    found: np.ndarray = (parts - 1.0) * changes.var(axis=0)
    return found


def with_variance(mean: Estimate, variance: np.ndarray, freedom: float) -> Estimate:
    """A mean with one more, independent part of its variance; freedom after Satterthwaite."""
    own = mean.error**2
    total = own + variance
    known = np.maximum(np.asarray(mean.freedom, dtype=np.float64), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        both = total**2 / (own**2 / known + variance**2 / freedom)
    usable = np.isfinite(both) & (np.asarray(mean.freedom) > 0.0)
    return Estimate(mean.mean, np.sqrt(total), np.where(usable, both, mean.freedom))


def share_interval(
    share: np.ndarray, samples: np.ndarray | float, coverage: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of a probability, from the share of (effective) samples.

    A share of 0 of one sample is not certain:

    >>> low, high = share_interval(np.array(0.0), 1.0, 0.95)
    >>> float(low), round(float(high), 2)
    (0.0, 0.79)
    """
    z = normal_quantile(coverage)
    n = np.asarray(samples, dtype=np.float64)
    centre = (share + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
    half = z / (1.0 + z**2 / n) * np.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2))
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    return np.where(share <= 0.0, 0.0, low), np.where(share >= 1.0, 1.0, high)


def effective_samples(share: Estimate, clusters: int, samples: int) -> np.ndarray:
    """Number of independent samples that would have the clustered error of a share.

    p (1 − p) / error², at least 1 and at most the number of samples; the number of clusters where
    all samples agree, as these have no spread to tell it from.
    """
    p = np.clip(share.mean, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = p * (1.0 - p) / share.error**2
    found = np.where(np.isfinite(found) & (found > 0.0), found, float(clusters))
    return np.clip(found, 1.0, float(samples))


def probability_interval(
    share: Estimate, clusters: int, samples: int, coverage: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of a probability with a clustered error.

    The effective samples n = p (1 − p) / error² are multiplied by (z / t)², because the error is
    itself estimated (Korn and Graubard 1998): z and t are the quantiles of the normal and of
    Student's distribution. Where all samples agree, n is the number of clusters.
    """
    number = effective_samples(share, clusters, samples)
    z = normal_quantile(coverage)
    reach = t_quantile(share.freedom, coverage)
    spread = np.isfinite(share.error) & (share.error > 0.0) & (reach > 0.0)
    shrunk = np.where(spread, number * (z / np.where(spread, reach, z)) ** 2, number)
    return share_interval(np.clip(share.mean, 0.0, 1.0), shrunk, coverage)
