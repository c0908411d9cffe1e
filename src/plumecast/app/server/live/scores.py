"""The fires of the store on the page: observed beside predicted, and scores of those held out."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.server.live.kept import Kept
from plumecast.app.server.live.models import Model
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.clock import take_final
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.split import SplitRecipe
from plumecast.scores.exceedance import exceedance_counts, exceedance_of
from plumecast.scores.quantities import as_integrals, as_quantity, find_quantity
from plumecast.scores.roc import roc_curves
from plumecast.workflows.held_out.unseen import unseen_snapshots

LAYERS = ("observed", "predicted", "difference")
ROC_POINTS = 120
MOST_SCORED = 96
"""Snapshots that are scored at most, so that a threshold can be moved at once."""

HELD_OUT = 0.25
"""Share of the ignitions that trainings on the page never see."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Predicted and observed smoke (M, N) of the snapshots that a model has not seen."""

    hours: np.ndarray  # (M,)
    sums: tuple[np.ndarray, np.ndarray]  # the paper's
    integrals: tuple[np.ndarray, np.ndarray]  # ∫ c dt / Δ


class Store:
    """The snapshots of a store in memory, and predictions of them by model."""

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
        self._compared: Kept[Compared] = Kept(8)

    def split(self) -> tuple[list[str], list[str]]:
        """Ignitions to train on, in the order in which they are added, and those held out."""
        order = np.random.default_rng(0).permutation(sorted(self.ignitions)).tolist()
        held = max(1, round(HELD_OUT * len(order)))
        return order[held:], order[:held]

    def listed(self) -> list[dict[str, Any]]:
        """What the page shows of every fire."""
        held = set(self.split()[1])
        found = []
        for fire, rows in self.rows.items():
            part = self.snapshots.isel({SNAPSHOT: rows})
            ignition = str(part["ignition_id"].values[0])
            found.append({
                "id": fire,
                "ignition": ignition,
                "drought": str(part["drought"].values[0]) if "drought" in part.coords else None,
                "hours": part["hours"].values.astype(float).tolist(),
                "burned_area": part["burned_area"].values.astype(float).tolist(),
                "held_out": ignition in held,
            })  # fmt: skip
        return found

    def snapshot(self, fire: str, k: int) -> xr.Dataset:
        """One snapshot of a fire, with the history of the fire."""
        return take_final(self.snapshots, np.array([int(self.rows[fire][k])]), history=True)

    def layer(
        self, fire: str, k: int, layer: str, quantity: str, model: Model | None
    ) -> xr.DataArray:
        """Observed or predicted smoke (y, x), or predicted − observed."""
        part = self.snapshot(fire, k)
        whole = self.snapshots[SMOKE].isel({SNAPSHOT: self.rows[fire]})
        observed = self._quantity(whole, k, quantity)
        if layer == "observed":
            return observed
        assert model is not None
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
        """Scores of smoke above a threshold on the snapshots that the model has not seen."""
        found = self._compare(model)
        predicted, observed = found.sums
        chosen = find_quantity(quantity)
        if chosen.needs_interval:
            factor = self.interval * chosen.factor(found.hours)[:, np.newaxis]
            predicted, observed = (factor * part for part in found.integrals)
        counts = exceedance_counts(predicted, observed, [threshold])[0]
        scores = exceedance_of(threshold, counts)
        return {
            "iou": scores.iou,
            "hit_rate": scores.hit_rate,
            "false_alarm_ratio": scores.false_alarm_ratio,
            "bias": scores.bias,
            "threshold": threshold,
            "units": find_quantity(quantity).units,
            "snapshots": int(predicted.shape[0]),
            "roc": _roc(predicted, observed > threshold),
        }

    def _compare(self, model: Model) -> Compared:
        found = self._compared.get(model.id)
        if found is not None:
            return found
        with self._lock:  # one prediction of the whole store at a time
            found = self._compared.get(model.id) or self._predict_unseen(model)
            self._compared.add(found, model.id)
        return found

    def _predict_unseen(self, model: Model) -> Compared:
        recipe = SplitRecipe.from_record(model.surrogate.training.get("split", {}))
        unseen = unseen_snapshots(model.surrogate, recipe, self.snapshots, SMOKE).snapshots
        if not unseen.sizes[SNAPSHOT]:
            raise PlumecastError(
                f"{model.name} was trained on all fires of the store, so that none is left to "
                "score; train a model here, which leaves some out"
            )
        read = as_integrals(unseen[SMOKE], self.interval)  # of whole fires
        if unseen.sizes[SNAPSHOT] > MOST_SCORED:
            draw = np.random.default_rng(0)
            rows = np.sort(draw.choice(unseen.sizes[SNAPSHOT], MOST_SCORED, replace=False))
            unseen = take_final(unseen, rows, history=model.surrogate.operator.needs_weather)
            read = read.isel({SNAPSHOT: rows})
        with extrapolating():
            predicted = _smoke(model, unseen)

        def rows_of(one: xr.DataArray, other: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
            first, second = (
                field.transpose(SNAPSHOT, ...).values.reshape(field.sizes[SNAPSHOT], -1)
                for field in (one, other)
            )
            return first, second

        return Compared(
            unseen["hours"].values.astype(float),
            rows_of(predicted, unseen[SMOKE]),
            rows_of(as_integrals(predicted, self.interval), read),
        )


def _smoke(model: Model, snapshots: xr.Dataset) -> xr.DataArray:
    predicted = model.surrogate.output(model.surrogate.outputs.names[0]).predict(snapshots)
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
