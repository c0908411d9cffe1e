"""Means and probabilities over many fires with their intervals, and the variables made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from plumecast.base.names import SMOKE
from plumecast.data.layout import Field
from plumecast.scores.field_statistics import ClusterSums
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import find_quantity
from plumecast.scores.sampling import (
    ControlVariate,
    control_variate,
    jackknife_variance,
    probability_interval,
    sums_mean,
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

ONE_IGNITION = (
    "the surrogate's error for fires of this one ignition, as predict --interval; not the sampling "
    "of fires"
)

Labelled: TypeAlias = dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, Any]]]
"""By name: dimensions beside those of grid or places, values, attributes."""

INTERVAL_PARTS = ("lower", "upper")
SURROGATE_PART = "surrogate"
TRUTH_PARTS = (SURROGATE_PART, "correlation", "variance_ratio", "corrected")
"""Endings of the names of variables that go with an estimate: always, where a mean
was corrected, and with true smoke."""


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
class Means:
    """Sums by ignition of V statistics of many fires in N cells or places, which give their means.

    With `weights` they are those of the weighted sum over places: places are added up before the
    variance is taken, as one plume reaches several.
    """

    sums: np.ndarray  # (C, V, N) of the predictions, or of what they let expect
    counts: np.ndarray  # (C,)
    predicted: Sequence[np.ndarray]  # V times (N,): the means of the predictions, as they are
    coverage: float
    expected: Expected | None = None
    changes: np.ndarray | None = None  # (V, R, N) of the sums if a part of the calibration is out
    truth: tuple[ClusterSums, ClusterSums] | None = None  # of observed and predicted smoke
    weights: np.ndarray | None = None  # (N,)
    ends: Mapping[int, np.ndarray] | None = None  # of one ignition: (2, N) by number of a mean

    @property
    def one(self) -> bool:
        """Whether the intervals are the error bars of a single ignition."""
        return self.ends is not None and self.truth is None

    @property
    def corrected(self) -> bool:
        """Whether a calibration or true smoke corrects the means of the predictions."""
        return self.changes is not None or self.truth is not None

    def of(self, number: int, *, share: bool = False) -> Corrected:
        """A mean of values that are not negative; t intervals.

        Where all values are 0 the upper end is unknown, NaN: no spread tells how large others may
        be. A `share` is a probability; Wilson's interval with effective samples.
        """
        best, variate = sums_mean(self._weighted(self.sums[:, number]), self.counts), None
        predicted = self._weighted(self.predicted[number])
        clusters, samples = self.counts.size, int(self.counts.sum())
        if self.expected is not None and self.changes is not None:
            variance = jackknife_variance(self._weighted(self.changes[number]) / samples)
            best = with_variance(best, variance, self.expected.freedom)
            clusters = min(clusters, self.expected.groups)
        if self.truth is not None:
            true, paired = (self._weighted(part.sums[:, number]) for part in self.truth)
            counts = self.truth[0].counts
            variate = control_variate(true, paired, counts, best)
            best, clusters, samples = variate.estimate, counts.size, samples + int(counts.sum())
        if share:
            low, high = probability_interval(best, clusters, samples, self.coverage)
        else:
            low, high = best.interval(self.coverage)
            nothing = (best.mean <= 0.0) & (best.error <= 0.0)
            low, high = np.maximum(low, 0.0), np.where(nothing, np.nan, high)
            if self.ends is not None and number in self.ends and self.truth is None:
                low, high = self._weighted(self.ends[number])
                low, high = np.minimum(low, best.mean), np.maximum(high, best.mean)
        mean = np.clip(best.mean, 0.0, 1.0 if share else None) if self.corrected else predicted
        calibrated = self.changes is not None
        return Corrected(mean, best.error, low, high, predicted, variate, calibrated)

    def _weighted(self, values: np.ndarray) -> np.ndarray:
        return values if self.weights is None else np.asarray(values @ self.weights)


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


def quantity_meaning(quantity: str, field: Field) -> tuple[str, str]:
    """What a quantity of the surrogate's output is in words, and its unit."""
    chosen = find_quantity(quantity)
    if field.name in (SMOKE, LOG_SMOKE):
        return chosen.long_name, chosen.units
    unit = str(field.attrs.get("units", "1"))
    if not chosen.needs_interval:
        return str(field.attrs.get("long_name", field.name)), unit
    return f"{chosen.name} of {field.name}", f"{unit} h" if chosen.units.endswith(" h") else unit


def estimate_variables(
    best: Corrected | Sequence[Corrected],
    name: str,
    meaning: str,
    unit: str,
    coverage: float,
) -> Labelled:
    """A statistic and the ends of its intervals; several estimates are one for each threshold.

    With true smoke the parts in TRUTH_PARTS follow; a calibrated statistic comes with the mean of
    the predictions.
    """
    lead = () if isinstance(best, Corrected) else ("threshold",)
    parts = [best] if isinstance(best, Corrected) else list(best)
    variates = [part.variate for part in parts if part.variate is not None]
    made: Labelled = {}

    def add(ending: str, values: list[np.ndarray], text: str, units: str, **attrs: Any) -> None:
        joined = np.stack(values) if lead else values[0]
        made[f"{name}{ending}"] = lead, joined, {"long_name": text, "units": units, **attrs}

    end = f"end of the {100 * coverage:g} % interval of the {meaning}"
    add("", [part.mean for part in parts], meaning, unit)
    add("_lower", [part.lower for part in parts], f"lower {end}", unit)
    add("_upper", [part.upper for part in parts], f"upper {end}", unit)
    if variates or all(part.calibrated for part in parts):
        text = f"{meaning}, of the predictions as they are"
        add(f"_{SURROGATE_PART}", [part.surrogate for part in parts], text, unit)
    if variates:
        text = "correlation of true and predicted values over ignitions"
        add("_correlation", [item.correlation for item in variates], text, "1")
        text = "variance of the estimate / variance of the mean of the true fires alone"
        add("_variance_ratio", [item.variance_ratio for item in variates], text, "1")
        flags = {"flag_values": [0, 1], "flag_meanings": "monte_carlo control_variate"}
        used = [item.used.astype(np.int8) for item in variates]
        add("_corrected", used, "estimator", "1", **flags)
    return made
