"""Each method scored once on the test part: scores, curves and the maps that are shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.scores.footprint import (
    choose_decision_threshold,
    relative_error,
    score_footprints,
    snapshot_relative_errors,
)
from plumecast.scores.roc import roc_curves
from plumecast.studies.context import Context, Stopwatch
from plumecast.studies.figures.maps import percentile_rows
from plumecast.studies.methods.methods import fitted
from plumecast.surrogate.surrogate import Surrogate

FPR_GRID = np.linspace(0.0, 1.0, 101)
MAP_PERCENTILES = (5, 25, 50, 75, 95)
_BLOCK = 256  # snapshots sorted together


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one method did on the test part."""

    scores: xr.Dataset  # per snapshot
    decision_threshold: float
    relative_error: float  # Frobenius, all snapshots together
    curves: Array  # (M, len(FPR_GRID)), NaN where a snapshot has one class only
    maps: xr.Dataset  # (percentile, y, x): fire, observed and predicted smoke
    seconds: dict[str, float]  # of choosing α and of predicting
    snapshots: int

    def median(self, name: str) -> float:
        """Median of a score over the snapshots that have it."""
        return median(self.scores[name].values)


def median(values: Array) -> float:
    """Median of what is a number; NaN without any."""
    known = np.asarray(values)[~np.isnan(values)]
    return float(np.median(known)) if known.size else math.nan


def outcome(context: Context, name: str) -> Outcome:
    """A method's outcome, made once per run."""
    return context.once(f"scoring {name}", lambda: _score(context, name))


def detect(surrogate: Surrogate, part: xr.Dataset) -> xr.DataArray:
    """What footprints are read from: the detection score where there is one, else the smoke."""
    found = surrogate.predict_footprint(part) if surrogate.detects else surrogate.predict(part)
    assert isinstance(found, xr.DataArray)
    return found


def _score(context: Context, name: str) -> Outcome:
    surrogate = fitted(context, name).surrogate
    validation, test = context.split.validation, context.split.test
    tau = context.smoke_threshold
    watch = Stopwatch()
    detected = detect(surrogate, validation)
    alpha = watch.time(
        "threshold", lambda: choose_decision_threshold(detected, validation[SMOKE], tau)
    )
    smoke, detected = watch.time("predicting", lambda: surrogate.predict_both(test))
    scores = score_footprints(detected, test[SMOKE], tau, alpha)
    scores["relative_error"] = (SNAPSHOT, snapshot_relative_errors(smoke, test[SMOKE]))
    return Outcome(
        scores=scores,
        decision_threshold=alpha,
        relative_error=relative_error(smoke, test[SMOKE]),
        curves=curves_on_grid(detected, test[SMOKE], tau),
        maps=_maps(scores, smoke, test),
        seconds=watch.seconds,
        snapshots=int(test.sizes[SNAPSHOT]),
    )


def curves_on_grid(detected: xr.DataArray, observed: xr.DataArray, tau: float) -> Array:
    """TPR of every snapshot on FPR_GRID, (M, F): straight lines between the points of a curve.

    The same curve that the AUC is the area of: cells of equal prediction are one point.
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
    """TPR on FPR_GRID from counts that only grow; of several points at one FPR the highest."""
    highest = np.append(misses[1:] > misses[:-1], True)
    x, y = misses[highest] / misses[-1], hits[highest] / hits[-1]
    if x[0] > 0.0:
        x, y = np.concatenate([[0.0], x]), np.concatenate([[0.0], y])
    return np.interp(FPR_GRID, x, y)


def _maps(scores: xr.Dataset, smoke: xr.DataArray, test: xr.Dataset) -> xr.Dataset:
    rows = percentile_rows(scores.iou, MAP_PERCENTILES)
    chosen = test[[FIRE, SMOKE]].isel({SNAPSHOT: rows})
    maps = chosen.assign(predicted=smoke.isel({SNAPSHOT: rows}).transpose(*chosen[SMOKE].dims))
    labels = {
        name: f"map_{name}" for name in ("fire_id", "hours", "drought") if name in maps.coords
    }
    extra = [name for name in maps.coords if name not in (*labels, "x", "y")]
    maps = maps.drop_vars(extra).rename({SNAPSHOT: "percentile", **labels})
    return maps.assign_coords(
        percentile=("percentile", list(MAP_PERCENTILES)),
        map_iou=("percentile", scores.iou.values[rows]),
    )
