"""Means, probabilities and quantiles over fires, with confidence intervals. Arrays only.

Snapshots of one fire, and fires of one ignition, are not independent: the clusters of samples are
counted, not the samples.

Few fires with true smoke and many with predicted smoke give a corrected mean. The surrogate is a
control variate: on n clusters (ignitions) both the truth Y and the prediction X are known, on N
others only X. With means Ȳ, X̄ over the n and X̄' over the N,

    μ̂ = Ȳ + β (X̄' − X̄),

which has the mean of the truth for every β, however wrong the surrogate is.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from statistics import NormalDist

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError

FEWEST = 2
"""Clusters with true smoke without which there is no variance."""

STRONGEST = 0.9
"""Largest leverage: a cluster beyond it decides the line alone, and its residual tells nothing."""


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
        raise ArgumentError(name, coverage, "0.9 is usual", problem="is not within (0, 1)")


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
    return np.asarray((changes.shape[0] - 1.0) * changes.var(axis=0))


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
        count = p * (1.0 - p) / share.error**2
    count = np.where(np.isfinite(count) & (count > 0.0), count, float(clusters))
    return np.clip(count, 1.0, float(samples))


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
    parts = [_quantile(values, ranked, clusters, counts, share, coverage) for share in shares]
    middle, lower, upper = (np.stack(part) for part in zip(*parts, strict=True))
    return middle, lower, upper


def _quantile(
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
    return np.asarray(np.clip(np.ceil(share * count).astype(np.int64) - 1, 0, count - 1))


@dataclass(frozen=True, slots=True)
class ControlVariate:
    """A corrected mean (of any shape), and what the surrogate contributed to it."""

    estimate: Estimate
    coefficient: np.ndarray  # β; 0 where the mean is that of the truth alone
    correlation: np.ndarray  # ρ of truth and prediction over clusters; NaN without spread
    variance_ratio: np.ndarray  # variance of the estimate / variance of the mean of the truth alone

    @property
    def used(self) -> np.ndarray:
        """Whether the surrogate was used: elsewhere this is plain Monte Carlo."""
        return self.coefficient > 0.0


def control_variate(
    observed: np.ndarray, predicted: np.ndarray, counts: np.ndarray, cheap: Estimate
) -> ControlVariate:
    """The corrected mean from sums (C, …) of truth and prediction over C clusters.

    `counts` (C,) are samples per cluster, `cheap` is the mean prediction over all cheap fires. With
    deviations y_c = sum_c − Ȳ count_c and x_c likewise, S_xy = Σ x_c y_c and M = Σ counts, the
    coefficient is b = max(S_xy / S_xx, 0), shrunk to β = s b with s = V / (V + V'), where V and V'
    are the variances of X̄ and X̄': few cheap fires deserve little trust. The variance is

        Σ (i_c / (1 − h_c))² + β² V',    h_c = count_c / M + x_c² / S_xx,
        i_c = (y_c − β x_c) / M + s (X̄' − X̄) x_c (y_c − b x_c) / S_xx.

    The first part counts the residuals and that b is estimated, each cluster as if it were left out
    (HC3), the second the sampling of the cheap fires. The degrees of freedom are Satterthwaite's of
    C − 2 and those of `cheap`. Where ρ² < 1 / (C − 2) the surrogate would rather add variance, and
    the estimate is that of the truth alone. Where the truth has no spread, such as no smoke in any
    cluster, the spread of the cheap fires stands in for it.
    """
    clusters, total = counts.size, float(counts.sum())
    if clusters < FEWEST:
        raise PlumecastError(
            f"truth has {clusters} ignition; an interval needs at least {FEWEST}, and is useful "
            "from about 8"
        )
    size = counts.reshape((-1,) + (1,) * (observed.ndim - 1)).astype(np.float64)
    plain, own = _plain(observed, size, cheap), sums_mean(predicted, counts)
    y, x = observed - plain.mean * size, predicted - own.mean * size
    s_xx, s_yy, s_xy = (x**2).sum(axis=0), (y**2).sum(axis=0), (x * y).sum(axis=0)
    gap = cheap.mean - own.mean
    degrees = max(clusters - 2, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = s_xy / np.sqrt(s_xx * s_yy)
        slope = np.maximum(s_xy / s_xx, 0.0)
        trust = own.error**2 / (own.error**2 + cheap.error**2)
        beta = slope * trust
        influence = (y - beta * x) / total + trust * gap * x * (y - slope * x) / s_xx
        residual = _left_out(influence, size / total + x**2 / s_xx)
        sampled = beta**2 * cheap.error**2
        variance = residual + sampled
        parts = residual**2 / degrees + sampled**2 / np.maximum(cheap.freedom, 1.0)
        freedom = variance**2 / parts
        useful = (rho**2 >= 1.0 / degrees) & (beta > 0.0) & np.isfinite(variance)
        useful &= clusters > FEWEST
        error = np.where(useful, np.sqrt(variance), plain.error)
        ratio = np.where(plain.error > 0.0, (error / plain.error) ** 2, 1.0)
    mean = plain.mean + np.where(useful, beta * gap, 0.0)
    freedom = np.where(useful & np.isfinite(freedom), freedom, plain.freedom)
    return ControlVariate(Estimate(mean, error, freedom), np.where(useful, beta, 0.0), rho, ratio)


def _plain(observed: np.ndarray, size: np.ndarray, cheap: Estimate) -> Estimate:
    """The mean of the truth; the cheap fires lend their spread where it has none."""
    clusters, total = size.shape[0], size.sum()
    mean = observed.sum(axis=0) / total
    error = np.sqrt(_left_out((observed - mean * size) / total, size / total))
    # The variance of a mean of N clusters is that of one cluster over N.
    lent = cheap.error * np.sqrt((np.asarray(cheap.freedom) + 1.0) / clusters)
    flat = (error <= 0.0) & np.isfinite(lent)
    return Estimate(mean, np.where(flat, lent, error), clusters - 1.0)


def _left_out(influence: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Σ (i_c / (1 − h_c))²: the variance of a sum of influences, each as if it were left out."""
    return np.asarray(((influence / (1.0 - np.minimum(leverage, STRONGEST))) ** 2).sum(axis=0))
