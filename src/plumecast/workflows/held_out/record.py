"""What is recorded of scores: values, a verdict in words, and what results say of their model.

Everything recorded is numbers or text, so that any file can hold it as attributes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.names import SIMULATION
from plumecast.scores.quantities import DEFAULT
from plumecast.scores.tally import Exceedance
from plumecast.surrogate.error_bars.counting import Cells
from plumecast.surrogate.error_bars.interval import promise_text
from plumecast.surrogate.surrogate import Surrogate


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of one surrogate; AUC and IoU are medians over snapshots."""

    name: str
    auc: float
    iou: float  # at the ROC point nearest (0, 1), which needs the observed smoke, as in the paper
    deployable_iou: float  # at one decision threshold chosen on validation
    decision_threshold: float
    relative_error: float  # in the Frobenius norm over all snapshots
    snapshot_error: float  # median over snapshots of the relative ℓ² error
    auc_undefined: int  # number of snapshots without an AUC: no smoke, or smoke in every cell
    predict_ms: float  # per snapshot
    smoke_iou: float = math.nan  # of predicted smoke above τ; NaN in records of version 0.1.0
    exceedances: tuple[Exceedance, ...] = ()  # of smoke above τ and the thresholds of the user
    # Total predicted over total observed smoke at the last hour of each fire: median, 10 %, 90 %.
    mass_ratio: float = math.nan
    mass_ratio_low: float = math.nan
    mass_ratio_high: float = math.nan


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of several surrogates on the same snapshots, and the smoke threshold."""

    scores: list[Score]
    snapshots: int
    smoke_threshold: float
    captured: float
    details: dict[str, xr.Dataset]  # per-snapshot scores by name
    quantity: str = DEFAULT  # that the thresholds of the user are values of; τ is one of the sum
    cells: Cells | None = None  # of the first surrogate, for its error bars

    def record(self) -> dict[str, Any]:
        """The scores as plain values, without the time of predictions, which is never the same."""
        scores = [asdict(score) for score in self.scores]
        for score in scores:
            del score["predict_ms"]
            score["exceedances"] = list(score["exceedances"])
        return {
            "snapshots": self.snapshots,
            "smoke_threshold": self.smoke_threshold,
            "captured": self.captured,
            "quantity": self.quantity,
            "scores": scores,
        }


def recorded_evaluation(record: Mapping[str, Any]) -> Evaluation:
    """The evaluation that `Evaluation.record` wrote; times of predictions are NaN."""
    scores = []
    for score in record["scores"]:
        exceedances = tuple(Exceedance(**item) for item in score.get("exceedances", ()))
        scores.append(Score(**score | {"predict_ms": math.nan, "exceedances": exceedances}))
    return Evaluation(
        scores,
        record["snapshots"],
        record["smoke_threshold"],
        record["captured"],
        details={},
        quantity=record.get("quantity", "sum"),  # records of earlier versions have none
    )


VALIDATION, OUT_OF_FOLD = "validation", "out_of_fold"
"""Entries of a training record with the scores of snapshots that the fit has not seen."""


@dataclass(frozen=True, slots=True)
class Folds:
    """How out-of-fold predictions were made: by fits that each leave out a fold of groups."""

    by: str
    groups: int
    folds: int
    left_out: tuple[str, ...] = ()  # fires whose drought is in no other group


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """The scores that training records of one output: out of fold, or on the validation part."""

    evaluation: Evaluation
    folds: Folds | None = None  # None: on validation

    def record(self) -> dict[str, Any]:
        """The entry of a training record."""
        scores = self.evaluation.record()
        if self.folds is None:
            return {VALIDATION: scores}
        return {OUT_OF_FOLD: scores | asdict(self.folds) | {"left_out": list(self.folds.left_out)}}


def stored_scores(training: Mapping[str, Any]) -> HeldOutScores | None:
    """The scores in the training record of one output; None if it has none."""
    for name in (OUT_OF_FOLD, VALIDATION):
        record = training.get(name)
        if record and record.get("scores"):
            folds = None if name == VALIDATION else Folds(
                record.get("by", "ignition_id"),
                int(record.get("groups", 0)),
                int(record["folds"]),
                tuple(record.get("left_out", ())),
            )  # fmt: skip
            return HeldOutScores(recorded_evaluation(record), folds)
    return None


TRIVIAL = {"mean-field": "the mean field", "nearest-fire": "the nearest fire"}
"""Baselines that any useful surrogate beats."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence about a surrogate, and whether it beats every trivial baseline."""

    beats: bool
    text: str


def judge(scores: Sequence[Score]) -> Verdict | None:
    """Compare the first score with those of the trivial baselines; None if there are none.

    A surrogate beats a baseline if its median deployable IoU is higher and its median relative
    error is lower.
    """
    score, *others = scores
    baselines = [other for other in others if other.name in TRIVIAL]
    if not baselines:
        return None
    lost = []
    for other in baselines:
        pairs = (
            ("deployable IoU", score.deployable_iou, other.deployable_iou, 1.0),
            ("error", score.snapshot_error, other.snapshot_error, -1.0),
        )
        losses = [
            f"{what} ({mine:.2f} against {its:.2f})"
            for what, mine, its, sign in pairs
            if not math.isnan(its) and not sign * mine > sign * its
        ]
        if losses:
            lost.append(f"{TRIVIAL[other.name]} in {' and '.join(losses)}")
    if lost:
        advice = "do not rely on it; add fires or try another preset"
        text = f"'{score.name}' does not beat {' or '.join(lost)}: {advice}"
        return Verdict(False, text)
    names = " and ".join(TRIVIAL[other.name] for other in baselines)
    iou = " and ".join(f"{other.deployable_iou:.2f}" for other in baselines)
    error = " and ".join(f"{other.snapshot_error:.2f}" for other in baselines)
    return Verdict(
        True,
        f"'{score.name}' beats {names}: deployable IoU {score.deployable_iou:.2f} against {iou}, "
        f"error {score.snapshot_error:.2f} against {error}",
    )


MODEL = "model_id"
COVERAGE = 0.9
"""Coverage for which the promise of the error bars is stated."""

NO_ERROR_BARS = "not calibrated"


def model_record(surrogate: Surrogate) -> dict[str, Any]:
    """Attributes `model_…` of results that were made with a surrogate."""
    training = surrogate.training
    attrs: dict[str, Any] = {
        MODEL: model_id(surrogate),
        "model_preset": str(surrogate.settings.get("preset") or "own settings"),
        "model_version": str(training.get("plumecast", "unknown")),
        "model_trained_on": str(training.get("source") or "unknown"),
        "model_data_version": str(training.get("data_version") or "unknown"),
        "model_snapshots": int(training.get("snapshots", 0)),
        "model_ignitions": len(training.get("ignition_id") or ()),
        "model_output": ", ".join(surrogate.outputs.names),
        "model_weather": _weather(surrogate),
        "model_error_bars": NO_ERROR_BARS,
    }
    interval = recorded_interval(surrogate.outputs.fields[0].attrs)
    if interval is not None:
        attrs["model_checkpoint_interval_h"] = float(interval)
    seed = (training.get(SIMULATION) or {}).get("seed")
    if seed is not None:
        attrs["model_seed"] = int(seed)
    if surrogate.error_bars is not None:
        attrs["model_error_bars"] = promise_text(surrogate.error_bars, COVERAGE)
    recorded = stored_scores(training)
    verdict = None if recorded is None else judge(recorded.evaluation.scores)
    if verdict is not None:
        attrs |= {"model_verdict": verdict.text, "model_beats_baselines": int(verdict.beats)}
    return attrs


def model_id(surrogate: Surrogate) -> str:
    """The same for surrogates with the same settings and training record, with or without files."""
    content = json.dumps([surrogate.settings, surrogate.training], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _weather(surrogate: Surrogate) -> str:
    """What the surrogate uses of the weather of a fire, in words."""
    if surrogate.operator.needs_weather:
        return "hourly wind and mixing depth of every fire"
    if surrogate.operator.needs_wind:
        return "mean wind of every fire"
    if surrogate.scenario is not None:
        return f"only the label '{surrogate.scenario}' of every fire"
    return "none: fires are taken to burn in the weather of the training fires"
