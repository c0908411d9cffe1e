"""Commands write and score quantities that do not depend on the interval between checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.data.store import export_snapshots
from support.snapshots import CHECKPOINT, make_snapshots


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A store, a surrogate of it, the same without an interval, and an hourly store."""
    where = tmp_path_factory.mktemp("quantities")
    snapshots = make_snapshots(fires=24)
    hourly, unknown = snapshots.copy(deep=True), snapshots.isel(snapshot=snapshots.is_final.values)
    hourly["smoke"] *= CHECKPOINT
    hourly.smoke.attrs |= snapshots.smoke.attrs | {INTERVAL: 1.0}
    hourly = hourly.assign_coords(ignition_id=("snapshot", "x" + hourly.ignition_id.values))
    hourly["fire_id"] = ("snapshot", "x" + hourly.fire_id.values.astype(object))
    unknown = unknown.copy(deep=True)
    del unknown.smoke.attrs[INTERVAL]
    for name, data in {"fires": snapshots, "hourly": hourly, "unknown": unknown}.items():
        store = export_snapshots(data, where / f"{name}.nc")
        pc.train_surrogate(store, "paper-linear").save(where / f"{name}.plume")
    return where


@pytest.mark.parametrize(
    ("quantity", "ending"), [("mean", "nc"), ("dose", "zarr"), ("between", "nc")]
)
def test_predict_writes_the_quantity_beside_the_sum(succeed, folder, tmp_path, quantity, ending):
    out = tmp_path / f"smoke.{ending}"
    words = succeed(
        *("predict", folder / "fires.plume", folder / "fires.nc", "-o", out),
        *("--quantity", quantity),
    )
    name = f"smoke_{quantity}"
    assert f"{name}: " in words
    written = pc.open_snapshots(out, fields=["smoke"]).load()
    if quantity == "between":
        expected = pc.scores.smoke_between(written.smoke, written.fire_id.values.astype(str))
    else:
        expected = pc.scores.as_quantity(written.smoke, quantity)
    np.testing.assert_array_equal(written[name], expected)
    assert written[name].attrs["units"] == ("ug m-3 h" if quantity == "dose" else "ug m-3")
    assert written.smoke.attrs[INTERVAL] == CHECKPOINT
    assert INTERVAL not in written[name].attrs


def test_predict_of_a_surrogate_without_an_interval(run, refused, folder, tmp_path):
    common = ("predict", folder / "unknown.plume", folder / "fires.nc", "-o")
    result = run(*common, tmp_path / "sum.nc")
    assert result.code == 0
    assert "written as the sum over them; state it with --checkpoint-interval" in result.err
    with xr.open_dataset(tmp_path / "sum.nc") as written:
        assert "smoke_mean" not in written
    said = refused(*common, tmp_path / "mean.nc", "--quantity", "mean")
    assert "does not record the interval" in said
    assert "--checkpoint-interval is missing" in said
    assert run(*common, tmp_path / "mean.nc", "--checkpoint-interval", 6).code == 0
    with xr.open_dataset(tmp_path / "mean.nc") as written:
        np.testing.assert_array_equal(written.smoke_mean, pc.scores.as_quantity(written.smoke))
        assert written.smoke.attrs[INTERVAL] == 6.0


def test_wrong_quantities_are_refused(refused, folder, tmp_path):
    common = (folder / "fires.plume", folder / "fires.nc")
    out = ("-o", tmp_path / "s.nc")
    said = refused("predict", *common, *out, "--quantity", "median")
    assert said == "--quantity='median' is unknown; choose from mean, dose, sum, between, peak"
    said = refused("predict", *common, *out, "--checkpoint-interval", 1)
    assert said.startswith("--checkpoint-interval=1 contradicts the 6 h")
    said = refused("evaluate", *common, "--thresholds", 1, "--quantity", "between")
    assert said == "--quantity='between' is unknown; choose from mean, dose, sum"


def test_evaluate_says_what_thresholds_are_values_of(succeed, folder, tmp_path):
    scores = tmp_path / "scores.json"
    common = ("evaluate", folder / "fires.plume", folder / "fires.nc", "--baselines", "none")
    options = ("--thresholds", 0.2, "--json", scores)
    shown = " ".join(succeed(*common, *options).split())
    assert "mean: time-mean column concentration of smoke since ignition, µg m⁻³" in shown
    assert "0.2 (mean)" in shown
    found = json.loads(scores.read_text())
    assert found["quantity"] == "mean"
    assert [i["quantity"] for i in found["scores"][0]["exceedances"]] == ["sum", "mean"]
    assert "0.2 (sum)" in succeed(*common, *options, "--quantity", "sum")
    assert json.loads(scores.read_text())["quantity"] == "sum"


def test_a_store_with_another_interval_is_scored_in_the_quantity(run, folder, tmp_path):
    """The fires of the hourly store are those of training with other names: the time means are the
    same, though the surrogate predicts sums over six-hourly checkpoints."""
    scores = tmp_path / "scores.json"
    options = ("--thresholds", 0.2, "--json", scores)
    result = run("evaluate", folder / "fires.plume", folder / "hourly.nc", *options)
    assert result.code == 0
    assert "has a checkpoint every 1 h and the training fires one every 6 h" in result.err
    of_sum, of_mean = json.loads(scores.read_text())["scores"][0]["exceedances"]
    assert 0.8 < of_mean["bias"] < 1.25
    assert of_sum["bias"] < of_mean["bias"]
