"""Estimates of means and probabilities over many fires with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumecast.scores.sampling import (
    ControlVariate,
    Estimate,
    control_variate,
    jackknife_variance,
    probability_interval,
    with_variance,
)
from plumecast.surrogate.error_bars.expected import Expected

SAMPLING = "the sampling of fires; not the surrogate's error, which fires with true smoke tell"
CORRECTED = (
    "the sampling of fires and the surrogate's error: a control variate of true smoke, plain Monte "
    "Carlo where the correlation is too low"
)
CALIBRATED = (
    "the sampling of fires and the surrogate's error, calibrated by ignition on smoke that a fit "
    "has not seen; for fires like those of training, at places where the surrogate errs as it does "
    "elsewhere for the same predicted smoke"
)


def what_intervals_contain(*, truth: bool, expected: Expected | None) -> str:
    """The parts of the error that intervals contain, in words."""
    return CORRECTED if truth else SAMPLING if expected is None else CALIBRATED


@dataclass(frozen=True, slots=True)
class Corrected:
    """A statistic (…): estimate, interval, and what the truth said of the surrogate, if known."""

    mean: np.ndarray
    error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    surrogate: np.ndarray  # the mean of the predictions, as they are
    variate: ControlVariate | None = None
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class PairedSums:
    """Sums (C, …) of one statistic over ignitions with true and predicted smoke."""

    observed: np.ndarray
    predicted: np.ndarray
    counts: np.ndarray  # (C,)


@dataclass(frozen=True, slots=True)
class Cheap:
    """The mean of one statistic over the fires without true smoke."""

    estimate: Estimate  # of the predictions, or of what they let expect
    predicted: np.ndarray  # the mean of the predictions, as they are
    clusters: int
    samples: int
    calibrated: bool = False


def cheap_mean(
    sampled: Estimate,
    predicted: np.ndarray,
    *,
    clusters: int,
    samples: int,
    changes: np.ndarray | None = None,
    expected: Expected | None = None,
) -> Cheap:
    """The mean of predictions; with a calibration, the variance of that is added.

    `sampled` is then of the expected values, and `changes` (R, …) of their sum over all samples.
    """
    if expected is None or changes is None:
        return Cheap(sampled, predicted, clusters, samples)
    variance = jackknife_variance(changes / samples)
    best = with_variance(sampled, variance, expected.freedom)
    return Cheap(best, predicted, min(clusters, expected.groups), samples, calibrated=True)


def corrected_mean(cheap: Cheap, truth: PairedSums | None, coverage: float) -> Corrected:
    """A mean of values that are not negative; t intervals.

    Where all values are 0 the upper end is unknown, NaN: no spread tells how large others may be.
    """
    best, variate = _best(cheap.estimate, truth)
    low, high = best.interval(coverage)
    nothing = (best.mean <= 0.0) & (best.error <= 0.0)
    ends = np.maximum(low, 0.0), np.where(nothing, np.nan, high)
    mean = np.maximum(best.mean, 0.0)
    return Corrected(mean, best.error, *ends, cheap.predicted, variate, cheap.calibrated)


def corrected_share(cheap: Cheap, truth: PairedSums | None, coverage: float) -> Corrected:
    """A probability; Wilson's interval with effective samples."""
    best, variate = _best(cheap.estimate, truth)
    count = cheap.clusters if truth is None else truth.counts.size
    most = cheap.samples if truth is None else cheap.samples + int(truth.counts.sum())
    ends = probability_interval(best, count, most, coverage)
    mean = np.clip(best.mean, 0.0, 1.0)
    return Corrected(mean, best.error, *ends, cheap.predicted, variate, cheap.calibrated)


def nested_shares(parts: Sequence[Corrected], thresholds: Sequence[float]) -> list[Corrected]:
    """Probabilities of exceeding thresholds, with intervals that do not contradict each other.

    What exceeds a threshold exceeds every lower one too, so neither end of an interval may be above
    that of a lower threshold. Where it is (estimates differ in accuracy), the intervals are
    extended to each other's ends, never shortened.
    """
    rising = np.argsort(thresholds, kind="stable")
    lower = np.minimum.accumulate([parts[i].lower for i in rising], axis=0)
    upper = np.maximum.accumulate([parts[i].upper for i in rising[::-1]], axis=0)[::-1]
    place = np.argsort(rising, kind="stable")
    return [
        replace(part, lower=lower[i], upper=upper[i]) for part, i in zip(parts, place, strict=True)
    ]


def _best(cheap: Estimate, truth: PairedSums | None) -> tuple[Estimate, ControlVariate | None]:
    if truth is None:
        return cheap, None
    variate = control_variate(truth.observed, truth.predicted, truth.counts, cheap)
    return variate.estimate, variate
