"""Means and probabilities over many fires with their intervals, and the variables made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from plumecast.base.names import SMOKE
from plumecast.data.layout import Field
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import find_quantity
from plumecast.scores.sampling import (
    ControlVariate,
    Estimate,
    control_variate,
    jackknife_variance,
    probability_interval,
    with_variance,
)
from plumecast.surrogate.error_bars.calibration import Expected

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

Labelled: TypeAlias = dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, Any]]]
"""By name: dimensions beside those of grid or places, values, attributes."""

INTERVAL_PARTS = ("lower", "upper")
SURROGATE_PART = "surrogate"
TRUTH_PARTS = (SURROGATE_PART, "correlation", "variance_ratio", "corrected")
"""Endings of the names of variables that go with an estimate: always, where a mean
was corrected, and with true smoke."""


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
class SurrogateMean:
    """The mean of one statistic over the fires without true smoke."""

    estimate: Estimate  # of the predictions, or of what they let expect
    predicted: np.ndarray  # the mean of the predictions, as they are
    clusters: int
    samples: int
    calibrated: bool = False


def surrogate_mean(
    sampled: Estimate,
    predicted: np.ndarray,
    *,
    clusters: int,
    samples: int,
    changes: np.ndarray | None = None,
    expected: Expected | None = None,
) -> SurrogateMean:
    """The mean of predictions; with a calibration, the variance of that is added.

    `sampled` is then of the expected values, and `changes` (R, …) of their sum over all samples.
    """
    if expected is None or changes is None:
        return SurrogateMean(sampled, predicted, clusters, samples)
    variance = jackknife_variance(changes / samples)
    best = with_variance(sampled, variance, expected.freedom)
    return SurrogateMean(best, predicted, min(clusters, expected.groups), samples, calibrated=True)


def corrected_mean(
    predictions: SurrogateMean, truth: PairedSums | None, coverage: float
) -> Corrected:
    """A mean of values that are not negative; t intervals.

    Where all values are 0 the upper end is unknown, NaN: no spread tells how large others may be.
    """
    best, variate = _best(predictions.estimate, truth)
    low, high = best.interval(coverage)
    nothing = (best.mean <= 0.0) & (best.error <= 0.0)
    ends = np.maximum(low, 0.0), np.where(nothing, np.nan, high)
    mean = np.maximum(best.mean, 0.0)
    return Corrected(
        mean, best.error, *ends, predictions.predicted, variate, predictions.calibrated
    )


def corrected_share(
    predictions: SurrogateMean, truth: PairedSums | None, coverage: float
) -> Corrected:
    """A probability; Wilson's interval with effective samples."""
    best, variate = _best(predictions.estimate, truth)
    count = predictions.clusters if truth is None else truth.counts.size
    most = predictions.samples if truth is None else predictions.samples + int(truth.counts.sum())
    ends = probability_interval(best, count, most, coverage)
    mean = np.clip(best.mean, 0.0, 1.0)
    return Corrected(
        mean, best.error, *ends, predictions.predicted, variate, predictions.calibrated
    )


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


def _best(
    predictions: Estimate, truth: PairedSums | None
) -> tuple[Estimate, ControlVariate | None]:
    if truth is None:
        return predictions, None
    variate = control_variate(truth.observed, truth.predicted, truth.counts, predictions)
    return variate.estimate, variate


def quantity_meaning(quantity: str, field: Field) -> tuple[str, str]:
    """What a quantity of the surrogate's output is in words, and its unit."""
    chosen = find_quantity(quantity)
    if field.name in (SMOKE, LOG_SMOKE):
        return chosen.long_name, chosen.units
    unit = str(field.attrs.get("units", "1"))
    if not chosen.needs_interval:
        return str(field.attrs.get("long_name", field.name)), unit
    return f"{chosen.name} of {field.name}", f"{unit} h" if chosen.units.endswith(" h") else unit


def interval_variables(
    found: Corrected | Sequence[Corrected],
    name: str,
    meaning: str,
    unit: str,
    coverage: float,
    *,
    lead: tuple[str, ...] = (),
) -> Labelled:
    """The ends of the intervals of a statistic.

    With true smoke the parts in TRUTH_PARTS follow; a calibrated statistic comes with the mean of
    the predictions.

    `lead` names the dimension of several estimates, such as one for each threshold.
    """
    parts = [found] if isinstance(found, Corrected) else list(found)
    variates = [part.variate for part in parts if part.variate is not None]
    made: Labelled = {}

    def add(ending: str, values: list[np.ndarray], text: str, units: str, **attrs: Any) -> None:
        joined = np.stack(values) if lead else values[0]
        made[f"{name}_{ending}"] = lead, joined, {"long_name": text, "units": units, **attrs}

    end = f"end of the {100 * coverage:g} % interval of the {meaning}"
    add("lower", [part.lower for part in parts], f"lower {end}", unit)
    add("upper", [part.upper for part in parts], f"upper {end}", unit)
    if variates or all(part.calibrated for part in parts):
        text = f"{meaning}, of the predictions as they are"
        add(SURROGATE_PART, [part.surrogate for part in parts], text, unit)
    if variates:
        text = "correlation of true and predicted values over ignitions"
        add("correlation", [item.correlation for item in variates], text, "1")
        text = "variance of the estimate / variance of the mean of the true fires alone"
        add("variance_ratio", [item.variance_ratio for item in variates], text, "1")
        flags = {"flag_values": [0, 1], "flag_meanings": "monte_carlo control_variate"}
        used = [item.used.astype(np.int8) for item in variates]
        add("corrected", used, "estimator", "1", **flags)
    return made
