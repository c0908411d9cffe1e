"""Where fires come from, in words."""

from __future__ import annotations

from types import SimpleNamespace

from plumecast import export_snapshots, open_snapshots
from plumecast.base.names import DATA_VERSION
from plumecast.data import append_fire
from plumecast.workflows.fires.sources import files_origin, fires_origin
from support.snapshots import make_snapshots


def test_stores_are_named_with_the_version_of_their_data(tmp_path):
    store = tmp_path / "fires.zarr"
    append_fire(store, make_snapshots(fires=1, checkpoints=2))
    opened = open_snapshots(store)
    said = f"version {opened.attrs[DATA_VERSION]}"
    assert fires_origin(store) == fires_origin([str(store)]) == f"fires.zarr, {said}"
    assert fires_origin(opened) == f"data, {said}"
    assert fires_origin([store] * 5) == f"5 stores, the first fires.zarr, {said}"
    plain = export_snapshots(make_snapshots(fires=1, checkpoints=2), tmp_path / "plain.zarr")
    assert fires_origin(plain) == "plain.zarr"


def test_simulated_fires_have_a_seed_and_rasters_their_names():
    assert fires_origin(SimpleNamespace(settings={"seed": 7})) == "simulated, seed 7"
    assert fires_origin(SimpleNamespace(paths=["a/b.asc", "c.asc"])) == "b.asc; c.asc"
    assert files_origin([f"{n}.asc" for n in range(9)]) == "9 files, the first 0.asc"
    assert fires_origin(iter([])) == "not recorded"
