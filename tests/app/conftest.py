"""A small world with a trained surrogate."""

from __future__ import annotations

import json

import pytest

from plumecast.base.names import SIMULATION
from plumecast.data.covariates import extrapolating
from plumecast.data.store import export_snapshots
from plumecast.simulator.ensemble import World, plan_fires, simulate
from plumecast.simulator.landscape import synthetic_landscape
from plumecast.workflows.train import train_surrogate

SHAPE, CELL, CHECKPOINTS = (160, 200), 600.0, 3


@pytest.fixture(scope="session")
def live_files(tmp_path_factory):
    """A store of ten simulated fires with a weather each, and a surrogate of eight of them."""
    folder = tmp_path_factory.mktemp("live")
    fires = simulate(
        World(0, CHECKPOINTS, landscape=synthetic_landscape(0, SHAPE, CELL)),
        plan_fires(10, (), 0, weathers=1),
    )
    settings = {
        "checkpoints": CHECKPOINTS, "years": 1, "shape": SHAPE, "cell": CELL, "seed": 0,
        "weather": "own", "dem": None, "steering": 1.2,
    }  # fmt: skip
    fires = fires.assign_attrs({SIMULATION: json.dumps(settings)})
    store = export_snapshots(fires, folder / "fires.nc")
    seen = fires.isel(
        snapshot=[n for n, name in enumerate(fires.ignition_id.values) if name < "s0-i0008"]
    )
    with extrapolating():
        surrogate = train_surrogate(
            seen, "recommended", split=None, layers=1, folds=5, physics="column", frame="wind"
        )
    return store, surrogate.save(folder / "smoke.plume")
