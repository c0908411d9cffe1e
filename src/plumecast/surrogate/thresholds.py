"""The thresholds of a surrogate, and smoke and footprint that agree: they cover the same cells.

The detection score (above the decision threshold α) and the predicted smoke (above the smoke
threshold τ) are fitted to different targets and differ in many cells. Together they find the smoke
better than either alone: so the score becomes a weighted mean of both, on which α is chosen. Much
smoke counts by itself: far from the training fires the detection score is low everywhere, and
their smoke must not vanish. Then smoke is raised above τ where this score is above α, and lowered
to at most τ elsewhere.
Decision 0021 has the rules that were compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from plumecast.compute.arrays import Array, array_namespace
from plumecast.compute.dose import largest_so_far, limited_by_later
from plumecast.data.layout import Layout
from plumecast.surrogate.error_bars.calibration import Calibration
from plumecast.surrogate.error_bars.interval import NO_ERROR_BARS

AGREE = "agree"
"""Entry of a training record with the constants of the agreement. Predictions of files without it
are two answers, as they always were."""

FURTHER = "further"
"""Entry of a training record with the records of outputs after the first, by their names."""

WEIGHT = 0.5
"""Weight of the smoke in the joint score, beside 1 of the detection score."""

SCALE = 30.0
"""Smoke that counts half in the joint score, as a multiple of τ."""

THICK = 100.0
"""Smoke, as a multiple of τ, that has a joint score of at least ½ whatever the detection score."""

_LEAST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Smoke threshold τ in the data and decision threshold α in the predictions."""

    smoke: float
    decision: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the smoke and the detection score of a surrogate become one answer."""

    thresholds: Thresholds
    weight: float = WEIGHT
    scale: float = SCALE
    thick: float = THICK

    def reconcile(self, smoke: Array, score: Array) -> tuple[Array, Array]:
        """Smoke and joint score of any shape and namespace: smoke > τ exactly where score > α.

        This holds after rounding to single precision too, for which a score next to α moves by one
        step of that precision. Smoke on the right side of τ does not change.
        """
        tau, alpha = self.thresholds.smoke, self.thresholds.decision
        joint = joint_score(
            smoke, score, tau, weight=self.weight, scale=self.scale, thick=self.thick
        )
        xp, present = array_namespace(smoke, score), joint > alpha

        def agreeing(values: Array, threshold: float) -> Array:
            below, above = steps_around(threshold)
            return xp.where(present, xp.clip(values, above, None), xp.clip(values, None, below))

        return agreeing(smoke, tau), agreeing(joint, alpha)


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """What training chose and measured of one output on fires that the fit has not seen.

    A file has the entries of the first output in the training record itself, and those of the
    others within it, by name (FURTHER).
    """

    thresholds: Thresholds | None = None
    agreement: Agreement | None = None  # None: smoke and detection score are two answers
    scores: Mapping[str, Any] = field(default_factory=dict)  # "validation" or "out_of_fold"
    problem: str | None = None  # why there are no thresholds
    error_bars: Calibration | None = None
    no_error_bars: str | None = None  # why there are none

    def entries(self) -> dict[str, Any]:
        """The entries of a training record; the error bars, which are arrays, are no such entry."""
        made: dict[str, Any] = {}
        if self.thresholds is not None:
            made["thresholds"] = asdict(self.thresholds)
        if self.agreement is not None:
            made[AGREE] = {name: getattr(self.agreement, name) for name in _CONSTANTS}
        if self.no_error_bars is not None:
            made[NO_ERROR_BARS] = self.no_error_bars
        if self.problem is not None:
            made["problem"] = self.problem
        return made | dict(self.scores)


_CONSTANTS = ("weight", "scale", "thick")
_SCORES = ("validation", "out_of_fold")
OF_OUTPUT = {"thresholds", AGREE, *_SCORES, "problem", NO_ERROR_BARS}
"""Entries of a training record that belong to one output; the others are shared by all."""


def read_record(entries: Mapping[str, Any], error_bars: Calibration | None) -> OutputRecord:
    """What the entries of one output say."""
    known = entries.get("thresholds", {})
    thresholds = agreement = None
    if "smoke" in known and "decision" in known:
        thresholds = Thresholds(float(known["smoke"]), float(known["decision"]))
    constants = entries.get(AGREE)
    if constants is not None and thresholds is not None:
        agreement = Agreement(thresholds, *(float(constants[name]) for name in _CONSTANTS))
    return OutputRecord(
        thresholds,
        agreement,
        {name: entries[name] for name in _SCORES if name in entries},
        entries.get("problem"),
        error_bars,
        entries.get(NO_ERROR_BARS),
    )


def output_entries(training: Mapping[str, Any], names: Sequence[str], name: str) -> dict[str, Any]:
    """The training record of one of several outputs: what all share, and what is its own."""
    shared = {key: value for key, value in training.items() if key != FURTHER}
    if name == names[0]:
        return shared
    kept = {key: value for key, value in shared.items() if key not in OF_OUTPUT}
    return kept | dict(training.get(FURTHER, {}).get(name, {}))


def training_entries(records: Mapping[str, OutputRecord]) -> dict[str, Any]:
    """The entries of all outputs in a training record, the first output first."""
    first, *others = records
    entries = records[first].entries()
    if others:
        entries[FURTHER] = {name: records[name].entries() for name in others}
    return entries


def reconcile_outputs(
    agreements: Sequence[Agreement | None], smoke: Array, score: Array
) -> tuple[Array, Array]:
    """`Agreement.reconcile` of every output; their columns, of equal number, lie side by side."""
    xp = array_namespace(smoke, score)
    size = smoke.shape[1] // len(agreements)
    pairs = []
    for number, agreement in enumerate(agreements):
        part = slice(number * size, (number + 1) * size)
        both = smoke[:, part], score[:, part]
        pairs.append(both if agreement is None else agreement.reconcile(*both))
    if len(pairs) == 1:
        return pairs[0]
    made, scores = (xp.concat(parts, axis=1) for parts in zip(*pairs, strict=True))
    return made, scores


def joint_score(
    smoke: Array,
    score: Array,
    tau: float,
    *,
    weight: float = WEIGHT,
    scale: float = SCALE,
    thick: float = THICK,
) -> Array:
    """max((score + w g / (g + k τ)) / (1 + w), g / (g + t τ)), from 0 to 1.

    w is the weight of the smoke, k its scale, and t what is thick smoke.

    >>> joint_score(np.array([0.0, 3.0]), np.array([0.3, 0.5]), 0.1, weight=0.5, scale=30.0)
    array([0.2, 0.5])
    """
    xp = array_namespace(smoke, score)
    half, much = (max(times * tau, _LEAST) for times in (scale, thick))
    mean = (score + weight * (smoke / (smoke + half))) / (1.0 + weight)
    return xp.maximum(mean, smoke / (smoke + much))


def settled_smoke(
    smoke: Array, fire: np.ndarray, hours: np.ndarray, level: float | None = None
) -> Array:
    """(M, …) predicted sums of fires and hours (M,), so that they never fall within a fire.

    A later hour limits the smoke of those before, as it limits their dose (`limited_by_later`).
    Footprints never shrink either: where smoke has been above the `level` of footprints, it stays
    just above it. This changes only the trace of smoke at the edge of a plume.

    >>> sums = np.array([[5.0, 2.0], [3.0, 0.5]])
    >>> settled_smoke(sums, np.array(["a", "a"]), np.array([1.0, 2.0]), 1.0).round(6).tolist()
    [[3.0, 1.0], [3.0, 1.0]]
    """
    if np.unique(fire).size == fire.size:
        return smoke
    limited = limited_by_later(smoke, fire, hours)
    if level is None:
        return limited
    xp = array_namespace(smoke)
    present = (largest_so_far(smoke, fire, hours) > level) & (limited <= level)
    return xp.where(present, steps_around(level)[1], limited)


def footprint_level(record: OutputRecord, detects: bool) -> float | None:
    """The smoke above which a cell is in the footprint of a prediction; None if unknown."""
    if record.thresholds is None:
        return None
    return record.thresholds.smoke if detects else record.thresholds.decision


def steps_around(threshold: float) -> tuple[float, float]:
    """Single-precision numbers at most the threshold, and above it, next to it.

    The upper one also exceeds the threshold after its rounding to single precision. Above 0 it is
    the smallest normal number, because devices may take smaller ones for 0.

    >>> steps_around(0.5)
    (0.5, 0.5000000596046448)
    """
    rounded = np.float32(threshold)
    above = max(float(np.nextafter(rounded, np.float32(np.inf))), _LEAST)
    exceeds = float(rounded) > threshold
    return float(np.nextafter(rounded, np.float32(-np.inf)) if exceeds else rounded), above


def score_layout(outputs: Layout) -> Layout:
    """The detection scores of the outputs; those after the first are named after their output."""
    scores = []
    for number, part in enumerate(outputs.fields):
        what, end = (part.name, f"_{part.name}") if number else ("smoke", "")
        attrs = {"units": "1", "long_name": f"detection score of {what}"}
        scores.append(replace(part, name=f"footprint_score{end}", attrs=attrs))
    return Layout(tuple(scores))
