"""Means over many fires from few with true smoke and many with predicted smoke. Arrays only.

The surrogate is a control variate: on n clusters (ignitions) both the truth Y and the prediction X
are known, on N others only X. With means Ȳ, X̄ over the n and X̄' over the N,

    μ̂ = Ȳ + β (X̄' − X̄),

which has the mean of the truth for every β, however wrong the surrogate is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.scores.sampling.intervals import Estimate, sums_mean

FEWEST = 2
"""Clusters with true smoke without which there is no variance."""

STRONGEST = 0.9
"""Largest leverage: a cluster beyond it decides the line alone, and its residual tells nothing."""


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
    found: np.ndarray = ((influence / (1.0 - np.minimum(leverage, STRONGEST))) ** 2).sum(axis=0)
    return found
