"""Everything that the server keeps, together: world, models, fires, and those of the store."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.maps.colours import FIRST, MISSING, Scale, amount_scale
from plumecast.app.server.fires import COVERAGE, LIVE, LiveFire
from plumecast.app.server.kept import PLACES, POINTS, WIND_SPEED, Kept, Limits, Work
from plumecast.app.server.models import FEWEST, Job, Model, Models
from plumecast.app.server.world import DROUGHTS, LiveWorld
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.base.version import __version__
from plumecast.data.clock import take_final
from plumecast.data.covariates import extrapolating
from plumecast.data.crs import crs_of
from plumecast.operators.settings import FAMILIES, PRESETS
from plumecast.scores.quantities import DEFAULT, QUANTITIES, as_quantity, find_quantity
from plumecast.simulator.weather import JET_HEIGHT
from plumecast.sources.places import Places
from plumecast.workflows.held_out.unseen import UnseenSmoke, predict_unseen

_HIGH = 200.0  # µg m⁻³, end of the colours if there is no store to look at


STORE_LAYERS = ("observed", "predicted", "difference")
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

    def layer(self, fire: str, k: int, layer: str, quantity: str, model: Model) -> xr.DataArray:
        """Observed or predicted smoke (y, x), or predicted − observed, from the south-west."""

        def read(smoke: xr.DataArray, row: int) -> xr.DataArray:
            amount = as_quantity(smoke, quantity, checkpoint_interval=self.interval)
            return amount.isel({SNAPSHOT: row}).sortby(["y", "x"])

        rows = self.rows[fire]
        observed = read(self.snapshots[SMOKE].isel({SNAPSHOT: rows}), k)
        if layer == "observed":
            return observed
        part = take_final(self.snapshots, np.array([int(rows[k])]), history=True)
        with extrapolating():
            smoke = model.surrogate.output(model.surrogate.outputs.names[0]).predict(part)
            assert isinstance(smoke, xr.DataArray)
            predicted = read(smoke, 0)
        if layer == "predicted":
            return predicted
        return (predicted - observed).assign_attrs(observed.attrs)

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


@dataclass
class LivePage:
    """World, store, models, fires and jobs of one server."""

    world: LiveWorld
    models: Models
    folder: Path
    store: Store | None = None
    store_path: str | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        most = self.limits
        self.fires: Work[LiveFire] = Work(most.fires, most.fire_threads, most.fires_waiting)
        self.jobs: Work[Job] = Work(most.jobs, 1, most.jobs_waiting)
        self.places: Kept[Places] = Kept(self.limits.clients)
        self.scale = _scale(self.store)

    def close(self) -> None:
        """Stop fires and trainings."""
        self.fires.close()
        self.jobs.close()

    def curve(self) -> list[dict[str, Any]]:
        """The learning curve: one point per training."""
        return [
            {
                "model": model.id,
                "preset": model.result["preset"],
                "ignitions": model.result["ignitions"],
                "seconds": model.result["seconds"],
                "iou": model.result["scores"]["deployable_iou"],
                "rel": model.result["scores"]["snapshot_error"],
            }
            for model in self.models.all()
            if model.result is not None and model.result.get("scores")
        ]

    def state(self) -> dict[str, Any]:
        """What the page needs to know first."""
        store, world, cells = self.store, self.world, self.world.cells
        train, held = store.split() if store else ([], [])
        return {
            "version": __version__,
            "grid": {
                "ny": cells.ny, "nx": cells.nx, "x0": cells.left, "y0": cells.bottom,
                "dx": cells.dx, "dy": cells.dy, "has_projection": crs_of(world.grid) is not None,
            },
            "hours": world.hours,
            "interval": world.interval,
            "droughts": list(DROUGHTS),
            "own_weather": world.own_weather,
            "heights": {"surface": 10.0, "aloft": JET_HEIGHT},
            "can_ignite": world.simulator is not None,
            "why_not": world.why_not or None,
            "models": [model.record() for model in self.models.all()],
            "families": list(FAMILIES),
            "presets": list(PRESETS),
            "layers": list(LIVE),
            "quantities": {
                item.name: {"long_name": item.long_name, "units": item.units}
                for item in QUANTITIES.values()
            },
            "coverage": COVERAGE,
            "scale": scale_record(self.scale),
            "store": None if store is None else {
                "fires": len(store.rows),
                "ignitions": len(store.ignitions),
                "train": len(train),
                "held_out": len(held),
                "fewest": FEWEST,
            },
            "limits": asdict(self.limits) | {
                "points": POINTS, "places": PLACES, "wind_speed": WIND_SPEED,
            },
        }  # fmt: skip


def scale_record(scale: Scale) -> dict[str, Any]:
    """A colour scale for the page: ends, kind, colours from low to high, round values."""
    return {
        "kind": scale.kind,
        "low": scale.low,
        "high": scale.high,
        "colours": ["#" + bytes(colour[:3]).hex() for colour in scale.rgba[FIRST:MISSING]],
        "ticks": scale.ticks(),
    }


def _scale(store: Store | None) -> Scale:
    """The colours of time-mean smoke, up to the largest values of the store."""
    if store is None:
        return amount_scale(_HIGH)
    mean = as_quantity(store.snapshots[SMOKE], DEFAULT, checkpoint_interval=store.interval).values
    high = float(np.quantile(mean[mean > 0.0], 0.999)) if (mean > 0.0).any() else _HIGH
    power = 10.0 ** np.floor(np.log10(high))
    return amount_scale(float(np.ceil(high / power) * power))
