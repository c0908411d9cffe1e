"""Choose the decision threshold on validation and score surrogates on other snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.data.conditions.covariates import extrapolating
from plumecast.scores.exceedance import Exceedance, exceedance_counts, exceedance_of
from plumecast.scores.footprint import (
    choose_decision_threshold,
    relative_error,
    score_footprints,
    snapshot_relative_errors,
)
from plumecast.scores.roc import iou_at, roc_curves
from plumecast.scores.tally import known_median
from plumecast.studies.context import Context, Stopwatch
from plumecast.studies.figures.maps import percentile_rows
from plumecast.studies.methods.methods import fitted
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds, joint_score
from plumecast.workflows.held_out.scoring import agreeing, separate

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
class Scored:
    """Predictions and scores of a surrogate on some snapshots."""

    smoke: xr.DataArray
    detected: xr.DataArray  # detection score, or the smoke where the surrogate has none
    scores: xr.Dataset  # per snapshot, with `relative_error`, and `log_error` of ln(g + 1)
    decision_threshold: float  # α
    seconds: dict[str, float]  # `threshold`: choosing α; `predicting`: these snapshots


def score_surrogate(
    surrogate: Surrogate, validation: xr.Dataset, tests: Sequence[xr.Dataset], *, tau: float
) -> list[Scored]:
    """Choose α on the validation snapshots, then score each test set with it.

    `tau` is the smoke threshold τ in the observed smoke. One pass predicts smoke and detection
    score together; as after `train`, they agree at τ and α.
    """
    choosing = Stopwatch()
    surrogate = separate(surrogate)
    with extrapolating():
        smoke, detected = surrogate.predict_both(validation)
    if surrogate.detects:
        detected = detected.copy(data=joint_score(smoke.values, detected.values, tau))
    alpha = choosing.time(
        "threshold", lambda: choose_decision_threshold(detected, validation[SMOKE], tau)
    )
    surrogate = agreeing(surrogate, Thresholds(tau, alpha))
    scored = []
    for test in tests:
        watch = Stopwatch()
        with extrapolating():
            smoke, found = watch.time("predicting", partial(surrogate.predict_both, test))
        scores = score_footprints(found, test[SMOKE], tau, alpha)
        guess, truth = _matrices(smoke, test[SMOKE])
        scores["smoke_iou"] = (SNAPSHOT, iou_at(guess, truth > tau, tau))
        scores["relative_error"] = (SNAPSHOT, snapshot_relative_errors(smoke, test[SMOKE]))
        logs = np.log1p(smoke), np.log1p(test[SMOKE])
        scores["log_error"] = (SNAPSHOT, snapshot_relative_errors(*logs))
        scored.append(Scored(smoke, found, scores, alpha, choosing.seconds | watch.seconds))
    return scored


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scores of one method on the test part, with the curves and maps that are shown."""

    scores: xr.Dataset  # per snapshot
    decision_threshold: float
    relative_error: float  # Frobenius, over all snapshots
    exceedance: Exceedance  # of smoke above τ
    curves: Array  # (M, len(FPR_GRID)), NaN where a snapshot has only one class
    maps: xr.Dataset  # (percentile, y, x): fire, observed and predicted smoke
    seconds: dict[str, float]  # `threshold`: choosing α; `predicting`: the test part
    snapshots: int

    def median(self, name: str) -> float:
        """Median of a score over the snapshots for which it is defined."""
        return known_median(self.scores[name])


def outcome(context: Context, name: str) -> Outcome:
    """The outcome of a method, computed once per run."""
    return context.once(f"scoring {name}", lambda: _score(context, name))


def _score(context: Context, name: str) -> Outcome:
    surrogate = fitted(context, name).surrogate
    test, tau = context.split.test, context.smoke_threshold
    [found] = score_surrogate(surrogate, context.split.validation, [test], tau=tau)
    return Outcome(
        scores=found.scores,
        decision_threshold=found.decision_threshold,
        relative_error=relative_error(found.smoke, test[SMOKE]),
        exceedance=_exceedance(found.smoke, test[SMOKE], tau),
        curves=curves_on_grid(found.detected, test[SMOKE], tau),
        maps=_maps(found.scores, found.smoke, test),
        seconds=found.seconds,
        snapshots=int(test.sizes[SNAPSHOT]),
    )


def _matrices(smoke: xr.DataArray, observed: xr.DataArray) -> tuple[Array, Array]:
    """(M, N) predicted and observed smoke."""
    fields = (smoke.transpose(*observed.dims), observed)
    first, second = (field.transpose(SNAPSHOT, ...).values for field in fields)
    return first.reshape(first.shape[0], -1), second.reshape(second.shape[0], -1)


def _exceedance(smoke: xr.DataArray, observed: xr.DataArray, tau: float) -> Exceedance:
    return exceedance_of(tau, exceedance_counts(*_matrices(smoke, observed), [tau])[0])


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
