"""One store of fires and one surrogate of it, made by the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import xarray as xr

from plumecast.cli import main
from plumecast.data.store import append_fire
from support.snapshots import fires_of, make_snapshots


@dataclass(frozen=True)
class Ensemble:
    snapshots: xr.Dataset
    store: Path
    version: str


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory) -> Ensemble:
    """Twenty-four fires of twelve ignitions, appended in four parts."""
    snapshots = make_snapshots(fires=24)
    store = tmp_path_factory.mktemp("data") / "ensemble.zarr"
    fires = fires_of(snapshots)
    for first in range(0, 24, 6):
        version = append_fire(store, xr.concat(fires[first : first + 6], "snapshot"))
    return Ensemble(snapshots, store, version)


@pytest.fixture(scope="session")
def trained(ensemble, tmp_path_factory) -> Path:
    """A surrogate trained by the command line."""
    model = tmp_path_factory.mktemp("model") / "smoke.plume"
    with pytest.raises(SystemExit) as stopped:
        main(["train", str(ensemble.store), "-o", str(model), "--preset", "paper-linear"])
    assert stopped.value.code == 0
    return model
