"""Snapshots that a surrogate has not seen: which, their scores, and what more fires would gain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import DATA_VERSION, SMOKE, SNAPSHOT
from plumecast.compute.blocks import sampled_rows
from plumecast.data.clock import take_final
from plumecast.data.covariates import extrapolating
from plumecast.data.split import Split, SplitRecipe
from plumecast.scores.learning_curve import FEWEST, Point, forecast
from plumecast.scores.quantities import as_integrals, find_quantity
from plumecast.scores.roc import pooled_roc
from plumecast.scores.tally import Exceedance, exceedance_counts, exceedance_of
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.update import group_name
from plumecast.workflows.evaluate import evaluate_at
from plumecast.workflows.fires.extrapolation import is_same_simulation
from plumecast.workflows.held_out.record import stored_scores


@dataclass(frozen=True, slots=True)
class Unseen:
    """Snapshots of another store, without the groups that were in training."""

    snapshots: xr.Dataset
    trained: int  # number of groups of the store that were in training and are left out
    filtered: int  # number of snapshots that the recorded filters drop


def is_same_version(surrogate: Surrogate, snapshots: xr.Dataset) -> bool:
    """Whether the snapshots have the data version of training."""
    version = snapshots.attrs.get(DATA_VERSION)
    return version is not None and version == surrogate.training.get("data_version")


def training_split(
    surrogate: Surrogate, recipe: SplitRecipe, snapshots: xr.Dataset, outputs: str | Sequence[str]
) -> Split | None:
    """The split of training, if this is the store of training; None if it is another one.

    A store of another version is that of training if the recorded split gives the same training
    groups, and it was not simulated with other settings.
    """
    try:
        split = recipe.split(snapshots, outputs)
    except PlumecastError:
        if is_same_version(surrogate, snapshots):
            raise
        return None
    if is_same_version(surrogate, snapshots):
        return split
    trained = surrogate.training.get(recipe.by)
    groups = set(split.train[recipe.by].values.astype(str).tolist())
    same = trained is None or groups == set(trained)
    return split if same and is_same_simulation(surrogate, snapshots) else None


def unseen_snapshots(
    surrogate: Surrogate, recipe: SplitRecipe, snapshots: xr.Dataset, outputs: str | Sequence[str]
) -> Unseen:
    """All snapshots that pass the recorded filters, without the groups that were in training."""
    selected = recipe.select(snapshots, outputs)
    filtered = snapshots.sizes[SNAPSHOT] - selected.sizes[SNAPSHOT]
    trained = set(surrogate.training.get(recipe.by, ()))
    if not trained or not is_same_simulation(surrogate, snapshots):
        return Unseen(selected, 0, filtered)
    if recipe.by not in selected.variables:
        raise PlumecastError(
            f"coordinate '{recipe.by}' is missing, so that it is unknown whether the surrogate was "
            "trained on these snapshots; add it"
        )
    labels = selected[recipe.by].values.astype(str)
    seen = np.isin(labels, sorted(trained))
    kept = selected.isel({SNAPSHOT: np.flatnonzero(~seen)})
    return Unseen(kept, np.unique(labels[seen]).size, filtered)


# -- Scores at any threshold of any quantity, at once


@dataclass(frozen=True, slots=True)
class UnseenSmoke:
    """Predicted and observed smoke (M, N) of snapshots that a surrogate has not seen."""

    hours: np.ndarray  # (M,) since ignition
    sums: tuple[np.ndarray, np.ndarray]
    integrals: tuple[np.ndarray, np.ndarray]  # ∫ c dt / Δ
    interval: float  # Δ, hours

    def read_as(self, quantity: str) -> tuple[np.ndarray, np.ndarray]:
        """Predicted and observed values of a quantity."""
        kind = find_quantity(quantity)
        if not kind.needs_interval:
            return self.sums
        factor = self.interval * kind.factor(self.hours)[:, np.newaxis]
        predicted, observed = self.integrals
        return factor * predicted, factor * observed

    def above(self, threshold: float, quantity: str) -> Exceedance:
        """Scores of the cells above a threshold, over all snapshots together."""
        counts = exceedance_counts(*self.read_as(quantity), [threshold])[0]
        return exceedance_of(threshold, counts, quantity)

    def roc(self, threshold: float, quantity: str) -> list[tuple[float, float]]:
        """The ROC curve of all cells together, against observed values above a threshold."""
        predicted, observed = self.read_as(quantity)
        return pooled_roc(predicted, observed > threshold)


def predict_unseen(
    surrogate: Surrogate, snapshots: xr.Dataset, interval: float, most: int
) -> UnseenSmoke:
    """Predict at most `most` snapshots of a store that the surrogate has not seen.

    `interval` has the hours between checkpoints of the store. Raises if all have been seen.
    """
    recipe = SplitRecipe.from_record(surrogate.training.get("split", {}))
    unseen = unseen_snapshots(surrogate, recipe, snapshots, SMOKE).snapshots
    if not unseen.sizes[SNAPSHOT]:
        raise PlumecastError(
            "the surrogate was trained on all fires of the store, so that none is left to score; "
            "train one that leaves some out"
        )
    integrals = as_integrals(unseen[SMOKE], interval)  # of whole fires
    if unseen.sizes[SNAPSHOT] > most:
        rows = sampled_rows(unseen.sizes[SNAPSHOT], most)
        unseen = take_final(unseen, rows, history=surrogate.operator.needs_weather)
        integrals = integrals.isel({SNAPSHOT: rows})
    with extrapolating():
        predicted = surrogate.output(surrogate.outputs.names[0]).predict(unseen)
    assert isinstance(predicted, xr.DataArray)

    def rows_of(field: xr.DataArray) -> np.ndarray:
        values = field.transpose(SNAPSHOT, ...).values
        return values.reshape(values.shape[0], -1)

    return UnseenSmoke(
        unseen["hours"].values.astype(float),
        (rows_of(predicted), rows_of(unseen[SMOKE])),
        (rows_of(as_integrals(predicted, interval)), rows_of(integrals)),
        interval,
    )


# -- The learning curve of a surrogate that takes in new fires


CURVE = "learning_curve"
"""Entry of a training record: scores of new ignitions, each predicted before it was added."""

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def score_new(surrogate: Surrogate, fires: xr.Dataset) -> dict[str, Any] | None:
    """Scores of fires that a surrogate does not contain; None if it has no thresholds.

    IoU and error are medians over snapshots of the first output.
    """
    first = surrogate.output(surrogate.outputs.names[0])
    thresholds = first.record.thresholds
    if thresholds is None:
        return None
    with extrapolating():
        result = evaluate_at({"before": (first, thresholds)}, fires)
    score = result.scores[0]
    count = ignition_count(surrogate)
    return {"ignitions": count, "iou": score.deployable_iou, "error": score.snapshot_error}


def ignition_count(surrogate: Surrogate) -> int:
    """Number of ignitions (or other groups) that a surrogate has learned."""
    return len(surrogate.training.get(group_name(surrogate.training), ()))


def curve_points(training: Mapping[str, Any]) -> list[Point]:
    """1 − IoU of new ignitions, and of the out-of-fold predictions of the last fit."""
    points = [
        Point(float(item["ignitions"]), 1.0 - float(item["iou"]))
        for item in training.get(CURVE, [])
        if math.isfinite(item["iou"])
    ]
    recorded = stored_scores(training)
    if recorded is not None and recorded.folds is not None:
        groups, iou = recorded.folds.groups, recorded.evaluation.scores[0].deployable_iou
        if groups > 1 and math.isfinite(iou):
            learned = groups * (1.0 - 1.0 / recorded.folds.folds)
            points.append(Point(learned, 1.0 - iou, float(groups)))
    return points


def recommendation(surrogate: Surrogate, more: int, target: float | None = None) -> str:
    """What more ignitions would gain, in one line."""
    points = curve_points(surrogate.training)
    outlook = forecast(points, ignition_count(surrogate), more)
    if outlook is None:
        return (
            f"cannot say yet what more ignitions would gain: {len(points)} of at least {FEWEST} "
            "scores of ignitions that a fit had not seen"
        )
    name = _WORDS[more] if more < len(_WORDS) else str(more)
    now, later = 1.0 - outlook.now, 1.0 - outlook.later
    text = (
        f"{name} more ignition{'' if more == 1 else 's'}: IoU {now:.2f} ± {outlook.now_spread:.2f} "
        f"→ {later:.2f} ± {outlook.later_spread:.2f}"
    )
    if not outlook.is_clear:
        text += "; the gain is not clear from these fires"
    if target is None:
        return text
    needed = outlook.ignitions_for(1.0 - target)
    if needed is None:
        return f"{text}; IoU {target:g} is out of reach of more fires alone"
    if needed == 0:
        return f"{text}; IoU {target:g} is reached: stop"
    return f"{text}; IoU {target:g} needs about {needed} more"
