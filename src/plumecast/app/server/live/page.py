"""Everything that the server keeps, together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.app.drawing.scale import FIRST, MISSING, Scale, amount_scale
from plumecast.app.server.live.fires import COVERAGE, LAYERS, Fires
from plumecast.app.server.live.kept import Kept
from plumecast.app.server.live.limits import Limits
from plumecast.app.server.live.models import Models
from plumecast.app.server.live.scores import Store
from plumecast.app.server.live.training import FEWEST, Jobs
from plumecast.app.server.live.world import DROUGHTS, LiveWorld
from plumecast.base.names import SMOKE
from plumecast.base.version import __version__
from plumecast.operators.settings import FAMILIES, PRESETS
from plumecast.scores.quantities import DEFAULT, QUANTITIES, as_quantity
from plumecast.simulator.weather import JET_HEIGHT
from plumecast.sources.places import Places

_HIGH = 200.0  # µg m⁻³, end of the colours if there is no store to look at


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
        limits = self.limits
        self.fires = Fires(
            self.world, most=limits.fires, threads=limits.fire_threads,
            waiting=limits.fires_waiting,
        )  # fmt: skip
        self.jobs = Jobs(self.models.add, kept=limits.jobs, waiting=limits.jobs_waiting)
        self.places: Kept[Places] = Kept(limits.clients)
        self.scale = _scale(self.store)

    def close(self) -> None:
        """Stop fires and trainings."""
        self.fires.close()
        self.jobs.close()

    def curve(self) -> list[dict[str, Any]]:
        """The learning curve: one point per training."""
        found = []
        for model in self.models.all():
            result = model.result
            if result is None or not result.get("scores"):
                continue
            scores = result["scores"]
            found.append({
                "model": model.id,
                "preset": result["preset"],
                "ignitions": result["ignitions"],
                "seconds": result["seconds"],
                "iou": scores["deployable_iou"],
                "rel": scores["snapshot_error"],
            })  # fmt: skip
        return found

    def state(self) -> dict[str, Any]:
        """What the page needs to know first."""
        store = self.store
        train, held = store.split() if store else ([], [])
        return {
            "version": __version__,
            "grid": self.world.record,
            "hours": self.world.hours,
            "interval": self.world.interval,
            "droughts": list(DROUGHTS),
            "own_weather": self.world.own_weather,
            "heights": {"surface": 10.0, "aloft": JET_HEIGHT},
            "can_ignite": self.world.simulator is not None,
            "why_not": self.world.why_not or None,
            "models": [model.record() for model in self.models.all()],
            "families": list(FAMILIES),
            "presets": list(PRESETS),
            "layers": list(LAYERS),
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
            "limits": {name: getattr(self.limits, name) for name in self.limits.__slots__},
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
