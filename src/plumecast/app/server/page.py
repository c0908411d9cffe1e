"""Everything that the server keeps, together."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.app.maps.colours import FIRST, MISSING, Scale, amount_scale
from plumecast.app.server.fires import COVERAGE, LIVE, Fires
from plumecast.app.server.kept import PLACES, POINTS, WIND_SPEED, Kept, Limits
from plumecast.app.server.models import FEWEST, Jobs, Models
from plumecast.app.server.store import Store
from plumecast.app.server.world import DROUGHTS, LiveWorld
from plumecast.base.names import SMOKE
from plumecast.base.version import __version__
from plumecast.data.crs import crs_of
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
        self.fires = Fires(self.world, self.limits)
        self.jobs = Jobs(self.models.add, self.limits)
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
        store = self.store
        train, held = store.split() if store else ([], [])
        return {
            "version": __version__,
            "grid": _grid_record(self.world),
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


def _grid_record(world: LiveWorld) -> dict[str, Any]:
    """The grid for the page: cell sizes, and the lower left corner."""
    cells = world.cells
    return {
        "ny": cells.ny, "nx": cells.nx, "x0": cells.left, "y0": cells.bottom,
        "dx": cells.dx, "dy": cells.dy, "has_projection": crs_of(world.grid) is not None,
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
