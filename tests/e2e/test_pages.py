"""Further pages whose commands are run as they stand: the README, training, stores, WRF runs."""

from __future__ import annotations

import plumecast as pc
from plumecast import export_snapshots, open_snapshots
from plumecast.data import stored_fires
from support.snapshots import make_snapshots


def test_train_and_score(tmp_path, follow_page):
    export_snapshots(make_snapshots(fires=24, checkpoints=2), tmp_path / "ensemble.zarr")
    printed = follow_page("train-and-score.md")
    assert "24 of 24 fires are clean" in printed
    assert "false alarms" in printed
    auc, iou = map(float, printed.splitlines()[-1].split())
    assert 0.0 <= iou <= auc <= 1.0
    assert open_snapshots(tmp_path / "predicted.nc", fields=["smoke"]).sizes["snapshot"] == 48


def test_keep_stores_safe(tmp_path, follow_page):
    fires = make_snapshots(fires=2, checkpoints=2, shape=(4, 5))
    for rows in (slice(0, 2), slice(2, 4)):
        pc.data.append_fire(tmp_path / "ensemble.zarr", fires.isel(snapshot=rows))
    follow_page("keep-stores-safe.md")
    assert len(stored_fires(tmp_path / "ensemble.zarr")) == 2


def test_surrogates_of_wrf_runs(tmp_path, follow_page):
    export_snapshots(make_snapshots(fires=24), tmp_path / "ensemble.nc")
    printed = follow_page("../results/wrf.md")
    assert "nearest-fire" in printed


def test_readme(tmp_path, follow_page):
    few = make_snapshots(fires=14, checkpoints=2, shape=(5, 6), droughts=("high",))
    export_snapshots(few, tmp_path / "ensemble.zarr")
    printed = follow_page("../../README.md")
    assert "µg m⁻³, time mean" in printed
    assert (tmp_path / "map.html").stat().st_size > 0
