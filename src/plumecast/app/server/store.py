"""The fires of the store on the page: observed beside predicted, and scores of those held out."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.server.kept import Kept
from plumecast.app.server.models import Model
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.clock import take_final
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.split import SplitRecipe
from plumecast.scores.quantities import (
    as_integrals,
    as_quantity,
    find_quantity,
    quantity_factors,
)
from plumecast.scores.roc import roc_curves
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.evaluate import evaluate_at
from plumecast.workflows.held_out.evaluation import Evaluation
from plumecast.workflows.held_out.unseen import unseen_snapshots

LAYERS = ("observed", "predicted", "difference")
ROC_POINTS = 120
MOST_SCORED = 96
"""Snapshots of whole fires that are scored at most, so that a threshold can be moved."""

HELD_OUT = 0.25
"""Share of the ignitions that trainings on the page never see."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Fires that a model has not seen, and its prediction of them."""

    snapshots: xr.Dataset
    predicted: xr.DataArray


class Store:
    """The snapshots of a store in memory, and predictions of them by model."""

    levels: tuple[float, ...] = ()
    """Thresholds of the page's slider, which are scored together, so that it can be moved."""

    def __init__(self, snapshots: xr.Dataset, interval: float) -> None:
        self.snapshots = snapshots
        self.interval = interval
        self.rows: dict[str, np.ndarray] = {}
        fires = snapshots["fire_id"].values.astype(str)
        hours = snapshots["hours"].values
        for fire in dict.fromkeys(fires.tolist()):
            rows = np.flatnonzero(fires == fire)
            self.rows[fire] = rows[np.argsort(hours[rows])]
        self.ignitions = list(dict.fromkeys(snapshots["ignition_id"].values.astype(str).tolist()))
        self._lock = threading.Lock()
        self._unseen: Kept[Unseen] = Kept(8)
        self._evaluations: Kept[Evaluation] = Kept(16)

    def split(self) -> tuple[list[str], list[str]]:
        """Ignitions to train on, in the order in which they are added, and those held out."""
        order = np.random.default_rng(0).permutation(sorted(self.ignitions)).tolist()
        held = max(1, round(HELD_OUT * len(order)))
        return order[held:], order[:held]

    def listed(self) -> list[dict[str, Any]]:
        """What the page shows of every fire."""
        held = set(self.split()[1])
        fires = []
        for fire, rows in self.rows.items():
            part = self.snapshots.isel({SNAPSHOT: rows})
            ignition = str(part["ignition_id"].values[0])
            fires.append({
                "id": fire,
                "ignition": ignition,
                "drought": str(part["drought"].values[0]) if "drought" in part.coords else None,
                "hours": part["hours"].values.astype(float).tolist(),
                "burned_area": part["burned_area"].values.astype(float).tolist(),
                "held_out": ignition in held,
            })  # fmt: skip
        return fires

    def snapshot(self, fire: str, k: int) -> xr.Dataset:
        """One snapshot of a fire, with the history of the fire."""
        return take_final(self.snapshots, np.array([int(self.rows[fire][k])]), history=True)

    def layer(self, fire: str, k: int, layer: str, quantity: str, model: Model) -> xr.DataArray:
        """Observed or predicted smoke (y, x), or predicted − observed."""
        part = self.snapshot(fire, k)
        whole = self.snapshots[SMOKE].isel({SNAPSHOT: self.rows[fire]})
        observed = self._quantity(whole, k, quantity)
        if layer == "observed":
            return observed
        with extrapolating():
            predicted = self._quantity(_smoke(model, part), 0, quantity)
        if layer == "predicted":
            return predicted
        return (predicted - observed).assign_attrs(observed.attrs)

    def _quantity(self, smoke: xr.DataArray, k: int, quantity: str) -> xr.DataArray:
        """A quantity of one of the snapshots of a fire, from the south-west."""
        read = as_quantity(smoke, quantity, checkpoint_interval=self.interval)
        return read.isel({SNAPSHOT: k}).sortby(["y", "x"])

    def scores(self, model: Model, threshold: float, quantity: str) -> dict[str, Any]:
        """Scores of smoke above a threshold on fires that the model has not seen."""
        with self._lock:  # one prediction of the whole store at a time
            unseen = self._unseen.get_or_make(model.id, lambda: self._predict_unseen(model))
            evaluation = self._evaluate(model, unseen, threshold, quantity)
        exceedances = evaluation.scores[0].exceedances[1:]  # the first is of the sum
        score = min(exceedances, key=lambda item: abs(item.threshold - threshold))
        predicted, observed = (
            self._rows(smoke, quantity) for smoke in (unseen.predicted, unseen.snapshots[SMOKE])
        )
        return {
            "iou": score.iou,
            "hit_rate": score.hit_rate,
            "false_alarm_ratio": score.false_alarm_ratio,
            "bias": score.bias,
            "threshold": threshold,
            "units": find_quantity(quantity).units,
            "snapshots": evaluation.snapshots,
            "roc": _roc(predicted, observed > threshold),
        }

    def _rows(self, smoke: xr.DataArray, quantity: str) -> np.ndarray:
        """(M, N) values of a quantity of whole fires, as the scores read them."""
        if find_quantity(quantity).needs_interval:
            smoke = as_integrals(smoke, self.interval)
        factors = quantity_factors(smoke, smoke, quantity, self.interval)
        rows = smoke.transpose(SNAPSHOT, ...).values.reshape(smoke.sizes[SNAPSHOT], -1)
        return np.asarray(factors[:, np.newaxis] * rows)

    def _evaluate(
        self, model: Model, unseen: Unseen, threshold: float, quantity: str
    ) -> Evaluation:
        """The evaluation at a threshold; at all of the slider together if it is one of them."""
        on_slider = np.isclose(self.levels, threshold, rtol=1e-9, atol=0.0).any()
        thresholds = self.levels if on_slider else (threshold,)

        def evaluated() -> Evaluation:
            compared = {model.name: (_first_output(model), Thresholds(0.0, 0.0))}
            with extrapolating():
                return evaluate_at(
                    compared,
                    unseen.snapshots,
                    thresholds=thresholds,
                    quantity=quantity,
                    checkpoint_interval=self.interval,
                )

        return self._evaluations.get_or_make((model.id, quantity, thresholds), evaluated)

    def _predict_unseen(self, model: Model) -> Unseen:
        recipe = SplitRecipe.from_record(model.surrogate.training.get("split", {}))
        unseen = unseen_snapshots(model.surrogate, recipe, self.snapshots, SMOKE).snapshots
        if not unseen.sizes[SNAPSHOT]:
            raise PlumecastError(
                f"{model.name} was trained on all fires of the store, so that none is left to "
                "score; train a model here, which leaves some out"
            )
        unseen = unseen.isel({SNAPSHOT: _whole_fires(unseen["fire_id"].values, MOST_SCORED)})
        with extrapolating():
            return Unseen(unseen, _smoke(model, unseen))


def _whole_fires(fires: np.ndarray, most: int) -> np.ndarray:
    """Rows of fires in a random order (fixed seed): as many as have at most `most` snapshots."""
    names, counts = np.unique(fires.astype(str), return_counts=True)
    order = np.random.default_rng(0).permutation(names.size)
    number = max(1, int(np.searchsorted(np.cumsum(counts[order]), most, side="right")))
    return np.flatnonzero(np.isin(fires.astype(str), names[order[:number]]))


def _first_output(model: Model) -> Surrogate:
    return model.surrogate.output(model.surrogate.outputs.names[0])


def _smoke(model: Model, snapshots: xr.Dataset) -> xr.DataArray:
    predicted = _first_output(model).predict(snapshots)
    assert isinstance(predicted, xr.DataArray)
    return predicted


def _roc(predicted: np.ndarray, observed: np.ndarray) -> list[list[float]]:
    """At most `ROC_POINTS` points (FPR, TPR) of all cells together, from (0, 0) to (1, 1)."""
    if not observed.any() or observed.all():
        return []
    curve = roc_curves(predicted.reshape(1, -1).astype(np.float64), observed.reshape(1, -1))
    points = np.flatnonzero(np.asarray(curve.is_point)[0])
    true, false = (np.asarray(part)[0] for part in (curve.true_positives, curve.false_positives))
    fpr, tpr = false[points] / false[-1], true[points] / true[-1]
    # Evenly along the curve: most points lie in its corners.
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(fpr), np.diff(tpr)))])
    kept = np.unique(
        np.searchsorted(way, np.linspace(0.0, way[-1], ROC_POINTS)).clip(0, way.size - 1)
    )
    return [[0.0, 0.0], *([float(fpr[i]), float(tpr[i])] for i in kept), [1.0, 1.0]]
