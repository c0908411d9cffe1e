"""The fires of the store on the page: observed beside predicted, and scores of those held out."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.server.kept import Kept
from plumecast.app.server.models import Model
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.clock import take_final
from plumecast.data.covariates import extrapolating
from plumecast.scores.quantities import as_quantity, find_quantity
from plumecast.workflows.held_out.unseen import UnseenSmoke, predict_unseen

LAYERS = ("observed", "predicted", "difference")
MOST_SCORED = 96
"""Snapshots that are scored at most."""

HELD_OUT = 0.25
"""Share of the ignitions that trainings on the page never see."""


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
        self._unseen: Kept[UnseenSmoke] = Kept(8)

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
        """Scores of smoke above a threshold on snapshots that the model has not seen."""
        with self._lock:  # one prediction of the whole store at a time
            unseen = self._unseen.get_or_make(
                model.id,
                lambda: predict_unseen(
                    model.surrogate, self.snapshots, self.interval, most=MOST_SCORED
                ),
            )
        score = unseen.above(threshold, quantity)
        return {
            "iou": score.iou,
            "hit_rate": score.hit_rate,
            "false_alarm_ratio": score.false_alarm_ratio,
            "bias": score.bias,
            "threshold": threshold,
            "units": find_quantity(quantity).units,
            "snapshots": int(unseen.hours.size),
            "roc": unseen.roc(threshold, quantity),
        }


def _smoke(model: Model, snapshots: xr.Dataset) -> xr.DataArray:
    predicted = model.surrogate.output(model.surrogate.outputs.names[0]).predict(snapshots)
    assert isinstance(predicted, xr.DataArray)
    return predicted
