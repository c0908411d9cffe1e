"""The result of an evaluation: scores of surrogates on the same snapshots, and their record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr

from plumecast.scores.exceedance import Exceedance
from plumecast.scores.quantities import DEFAULT
from plumecast.surrogate.error_bars.counting import Cells


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
    smoke_iou: float  # of predicted smoke above τ
    exceedances: tuple[Exceedance, ...] = ()  # of smoke above τ and the thresholds of the user


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
    scores = [_recorded_score(score) for score in record["scores"]]
    return Evaluation(
        scores,
        record["snapshots"],
        record["smoke_threshold"],
        record["captured"],
        details={},
        quantity=record.get("quantity", "sum"),  # records of earlier versions have none
    )


def _recorded_score(record: Mapping[str, Any]) -> Score:
    known = dict(record)
    exceedances = tuple(Exceedance(**item) for item in known.pop("exceedances", ()))
    return Score(**known, predict_ms=math.nan, exceedances=exceedances)
