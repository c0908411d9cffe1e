"""Score surrogates and baselines side by side on snapshots they have not seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.errors import PlumecastError
from plumecast.names import SMOKE, SNAPSHOT
from plumecast.quantity.footprint import (
    choose_decision_threshold,
    relative_error,
    score_footprints,
    smoke_threshold,
    snapshot_relative_errors,
)
from plumecast.surrogate import Surrogate

CAPTURED = 0.95
"""The share of the footprint that the smoke threshold captures: β in the paper."""


@dataclass(frozen=True, slots=True)
class Score:
    """How one surrogate did: medians over the scored snapshots."""

    name: str
    auc: float
    iou: float  # at the ROC point nearest (0, 1): peeks at the answer, as in the paper
    deployable_iou: float  # at one decision threshold chosen on validation
    decision_threshold: float
    relative_error: float  # Frobenius, all snapshots together
    snapshot_error: float  # median over snapshots of the relative ℓ² error
    auc_undefined: int  # snapshots left out of the AUC: no smoke, or nothing but smoke
    predict_ms: float  # per snapshot


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of several surrogates on the same snapshots, and what they were scored against."""

    scores: list[Score]
    snapshots: int
    smoke_threshold: float
    captured: float
    details: dict[str, xr.Dataset]  # per-snapshot scores by name


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Smoke threshold τ in the data and decision threshold α in the predictions."""

    smoke: float
    decision: float


def fit_thresholds(
    surrogate: Surrogate, validation: xr.Dataset, captured: float = CAPTURED
) -> Thresholds:
    """τ by its rule and the one α of largest mean IoU, both on validation snapshots."""
    observed = _observed(surrogate, validation)
    tau = smoke_threshold(observed, captured)
    alpha = choose_decision_threshold(_detect(surrogate, validation), observed, tau)
    return Thresholds(tau, alpha)


def evaluate(
    surrogates: Mapping[str, Surrogate],
    validation: xr.Dataset,
    test: xr.Dataset,
    *,
    captured: float = CAPTURED,
    by: str = "ignition_id",
    progress: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Thresholds from validation, scores on test, for every surrogate. `progress` hears each name.

    A surrogate that was trained on an ignition (or what `by` names) of either part is refused.
    """
    if not surrogates:
        raise PlumecastError("there is no surrogate to evaluate")
    scores, details = [], {}
    tau = math.nan
    for name, surrogate in surrogates.items():
        progress(name)
        refuse_leaks(surrogate, by, validation, test)
        thresholds = fit_thresholds(surrogate, validation, captured)
        tau = thresholds.smoke
        observed = _observed(surrogate, test)
        start = time.perf_counter()
        predicted = _predict(surrogate, test)
        elapsed = time.perf_counter() - start
        detected = _detect(surrogate, test) if surrogate.detects else predicted
        each = score_footprints(detected, observed, tau, thresholds.decision)
        each["relative_error"] = (SNAPSHOT, snapshot_relative_errors(predicted, observed))
        details[name] = each
        scores.append(
            Score(
                name=name,
                auc=_median(each.auc),
                iou=_median(each.iou),
                deployable_iou=_median(each.deployable_iou),
                decision_threshold=thresholds.decision,
                relative_error=relative_error(predicted, observed),
                snapshot_error=_median(each.relative_error),
                auc_undefined=int(np.isnan(each.auc.values).sum()),
                predict_ms=1e3 * elapsed / test.sizes[SNAPSHOT],
            )
        )
    return Evaluation(scores, int(test.sizes[SNAPSHOT]), tau, captured, details)


def refuse_leaks(surrogate: Surrogate, by: str, *parts: xr.Dataset) -> None:
    """Raise when a part holds an ignition (or what `by` names) the surrogate was trained on."""
    trained = set(surrogate.training.get(by, ()))
    for part in parts:
        if trained and by not in part.variables:
            raise PlumecastError(
                f"coordinate '{by}' is missing: nothing shows that the surrogate was not trained "
                "on these snapshots"
            )
        shared = sorted(trained and trained.intersection(part[by].values.astype(str).tolist()))
        if shared:
            raise PlumecastError(
                f"the surrogate was trained on {len(shared)} {by} of these snapshots, the first "
                f"'{shared[0]}'; score it on others"
            )


def _observed(surrogate: Surrogate, part: xr.Dataset) -> xr.DataArray:
    if len(surrogate.outputs.names) != 1:
        raise PlumecastError(
            f"footprints need one output, this surrogate has {', '.join(surrogate.outputs.names)}"
        )
    name = surrogate.outputs.names[0]
    if name not in part:
        raise PlumecastError(f"variable '{name}' is missing; is this a store of {SMOKE}?")
    return part[name]


def _predict(surrogate: Surrogate, part: xr.Dataset) -> xr.DataArray:
    predicted = surrogate.predict(part)
    assert isinstance(predicted, xr.DataArray)
    return predicted


def _detect(surrogate: Surrogate, part: xr.Dataset) -> xr.DataArray:
    """What the footprint is read from: the detection score where there is one, else the smoke."""
    if not surrogate.detects:
        return _predict(surrogate, part)
    score: xr.DataArray = surrogate.predict_footprint(part)
    return score


def _median(values: xr.DataArray) -> float:
    known = values.values[~np.isnan(values.values)]
    return float(np.median(known)) if known.size else math.nan
