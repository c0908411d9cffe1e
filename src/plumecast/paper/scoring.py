"""Choose the decision threshold on validation and score surrogates on other snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.paper.context import Context, timed
from plumecast.paper.figures import percentile_rows
from plumecast.paper.methods import fitted
from plumecast.scores.footprint import snapshot_relative_errors
from plumecast.scores.roc import roc_curves
from plumecast.scores.tally import known_median
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.held_out.record import Score
from plumecast.workflows.held_out.scoring import (
    agreeing,
    choose_decision,
    predicted,
    score_parts,
    separate,
)

FPR_GRID = np.linspace(0.0, 1.0, 101)
MAP_PERCENTILES = (5, 25, 50, 75, 95)
SNAPSHOT_SCORES = {
    "auc": ("area under the ROC curve", "1"),
    "iou": ("IoU at the ROC point nearest (0, 1)", "1"),
    "deployable_iou": ("IoU at one decision threshold from validation", "1"),
    "smoke_iou": ("IoU of smoke above the smoke threshold", "1"),
}
"""Columns of a table with one row per snapshot: long name and unit."""

MEDIAN_SCORES = {name: (f"median {text}", unit) for name, (text, unit) in SNAPSHOT_SCORES.items()}
"""The same columns of a table with one row per method."""

_BLOCK = 256  # snapshots whose cells are sorted together


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """Predictions and scores of a surrogate on some snapshots."""

    smoke: xr.DataArray
    detected: xr.DataArray  # detection score, or the smoke where the surrogate has none
    score: Score
    scores: xr.Dataset  # per snapshot, with `log_error`, the relative error of ln(g + 1)
    seconds: dict[str, float]  # `threshold`: choosing α; `predicting`: these snapshots

    def median(self, name: str) -> float:
        """Median of a score over the snapshots for which it is defined."""
        return known_median(self.scores[name])


def score_surrogate(
    surrogate: Surrogate, validation: xr.Dataset, tests: Sequence[xr.Dataset], *, tau: float
) -> list[ScoredPart]:
    """Choose α on the validation snapshots, then score each test set with it.

    `tau` is the smoke threshold τ in the observed smoke. One pass predicts smoke and detection
    score together; as after `train`, they agree at τ and α.
    """
    held_out = predicted(separate(surrogate), validation, joined_at=tau)
    alpha, seconds = timed(lambda: choose_decision([held_out], tau))
    chosen = Thresholds(tau, alpha)
    surrogate = agreeing(surrogate, chosen)
    scored = []
    for test in tests:
        part = predicted(surrogate, test)
        score, scores, _ = score_parts("", [part], chosen)
        smoke, detected = part.fields
        errors = snapshot_relative_errors(np.log1p(smoke), np.log1p(test[SMOKE]))
        scores["log_error"] = (SNAPSHOT, errors)
        times = {"threshold": seconds, "predicting": part.seconds}
        scored.append(ScoredPart(smoke, detected, score, scores, times))
    return scored


def median_scores(score: Score) -> dict[str, float]:
    """The columns `MEDIAN_SCORES` and `median_error` of a table with one row per method."""
    scores = {column: float(getattr(score, column)) for column in MEDIAN_SCORES}
    return scores | {"median_error": score.snapshot_error}


@dataclass(frozen=True, slots=True)
class MethodScores:
    """Scores of one method on the test part, with the curves and maps that are shown."""

    score: Score
    scores: xr.Dataset  # per snapshot
    curves: Array  # (M, len(FPR_GRID)), NaN where a snapshot has only one class
    maps: xr.Dataset  # (percentile, y, x): fire, observed and predicted smoke
    seconds: dict[str, float]  # `threshold`: choosing α; `predicting`: the test part


def outcome(context: Context, name: str) -> MethodScores:
    """The outcome of a method, computed once per run."""
    return context.once(f"scoring {name}", lambda: _score(context, name))


def _score(context: Context, name: str) -> MethodScores:
    surrogate = fitted(context, name).surrogate
    test, tau = context.split.test, context.smoke_threshold
    [found] = score_surrogate(surrogate, context.split.validation, [test], tau=tau)
    return MethodScores(
        score=replace(found.score, name=name),
        scores=found.scores,
        curves=curves_on_grid(found.detected, test[SMOKE], tau),
        maps=_maps(found.scores, found.smoke, test),
        seconds=found.seconds,
    )


def curves_on_grid(detected: xr.DataArray, observed: xr.DataArray, tau: float) -> Array:
    """TPR of every snapshot on FPR_GRID, (M, F), by linear interpolation of its ROC curve.

    The AUC is the area under the same curve: cells with equal predictions form one point.
    """
    out = np.full((observed.sizes[SNAPSHOT], FPR_GRID.size), np.nan)
    detected = detected.transpose(*observed.dims)
    for start in range(0, out.shape[0], _BLOCK):
        part = {SNAPSHOT: slice(start, start + _BLOCK)}
        guess = detected.isel(part).values
        truth = observed.isel(part).values > tau
        curves = roc_curves(guess.reshape(guess.shape[0], -1), truth.reshape(truth.shape[0], -1))
        for row in range(guess.shape[0]):
            points = curves.is_point[row]
            hits, misses = curves.true_positives[row], curves.false_positives[row]
            if hits[-1] > 0 and misses[-1] > 0:
                out[start + row] = _interpolate(hits[points], misses[points])
    return out


def _interpolate(hits: Array, misses: Array) -> Array:
    """TPR on FPR_GRID from cumulative counts; the highest of several points with the same FPR."""
    highest = np.append(misses[1:] > misses[:-1], True)
    x, y = misses[highest] / misses[-1], hits[highest] / hits[-1]
    if x[0] > 0.0:
        x, y = np.concatenate([[0.0], x]), np.concatenate([[0.0], y])
    return np.interp(FPR_GRID, x, y)


def _maps(scores: xr.Dataset, smoke: xr.DataArray, test: xr.Dataset) -> xr.Dataset:
    named = percentile_rows(scores.iou, MAP_PERCENTILES)
    rows = list(named.values())
    chosen = test[[FIRE, SMOKE]].isel({SNAPSHOT: rows})
    maps = chosen.assign(predicted=smoke.isel({SNAPSHOT: rows}).transpose(*chosen[SMOKE].dims))
    labels = {
        name: f"map_{name}" for name in ("fire_id", "hours", "drought") if name in maps.coords
    }
    extra = [name for name in maps.coords if name not in (*labels, "x", "y")]
    maps = maps.drop_vars(extra).rename({SNAPSHOT: "percentile", **labels})
    return maps.assign_coords(
        percentile=("percentile", list(named)),
        map_iou=("percentile", scores.iou.values[rows]),
    )
