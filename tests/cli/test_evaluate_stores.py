"""`plumecast evaluate` on the store of training, on one that has changed and on other fires."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.data.split import split_by_fire
from plumecast.data.store import export_snapshots, open_snapshots
from plumecast.scores.footprint import score_footprints
from plumecast.surrogate.load import load_surrogate
from support.snapshots import make_snapshots


@pytest.fixture(scope="module")
def folder(ensemble, trained, tmp_path_factory) -> Path:
    """A store, a surrogate of it, and a store of other fires."""
    path = tmp_path_factory.mktemp("stores")
    shutil.copytree(ensemble.store, path / "ensemble.zarr")
    shutil.copy(trained, path / "smoke.plume")
    other = make_snapshots(fires=8, seed=5)
    for name in ("fire_id", "ignition_id"):
        other[name] = (other[name].dims, np.char.add("new-", other[name].values.astype(str)))
    export_snapshots(other, path / "other.nc")
    return path


def written(path: Path) -> dict:
    return json.loads(path.read_text())


def test_another_store_is_scored_whole_with_the_stored_thresholds(run, folder):
    model = folder / "smoke.plume"
    result = run("evaluate", model, folder / "other.nc")
    assert result.code == 0
    assert "other.nc is not the store of training: all of it is scored" in result.err
    assert "no baselines are shown" in result.err
    found = written(folder / "smoke.other.scores.json")
    assert not (folder / "smoke.scores.json").exists()
    other, surrogate = open_snapshots(folder / "other.nc").load(), load_surrogate(model)
    thresholds = surrogate.training["thresholds"]
    expected = score_footprints(
        surrogate.predict(other), other.smoke, thresholds["smoke"], thresholds["decision"]
    )
    assert found["test_snapshots"] == other.sizes["snapshot"] == 32
    assert found["smoke_threshold"] == thresholds["smoke"]
    [score] = found["scores"]
    assert score["decision_threshold"] == thresholds["decision"]
    assert score["deployable_iou"] == np.median(expected.deployable_iou)


def test_baselines_of_another_store_are_fitted_to_the_store_of_training(run, folder, tmp_path):
    where = tmp_path / "scores.json"
    stores = (folder / "other.nc", "--trained-on", folder / "ensemble.zarr")
    result = run("evaluate", folder / "smoke.plume", *stores, "--out", where)
    assert result.code == 0
    names = [score["name"] for score in written(where)["scores"]]
    assert names == ["paper-linear", "mean-field", "nearest-fire", "gp-images", "gp-codes"]
    wrong = ("--trained-on", folder / "other.nc", "-o", tmp_path / "no.json")
    result = run("evaluate", folder / "smoke.plume", folder / "other.nc", *wrong)
    assert result.code == 2
    assert "is not the store that" in result.err


def test_scores_of_another_store_are_not_overwritten(run, refused, folder, tmp_path):
    where = tmp_path / "scores.json"
    options = ("--baselines", "none", "--json", where)
    assert run("evaluate", folder / "smoke.plume", folder / "ensemble.zarr", *options).code == 0
    before = where.read_bytes()
    message = refused("evaluate", folder / "smoke.plume", folder / "other.nc", *options)
    assert message.startswith(f"{where} has the scores of another store, {folder}/ensemble.zarr")
    assert where.read_bytes() == before
    again = run("evaluate", folder / "smoke.plume", folder / "ensemble.zarr", *options)
    assert again.code == 0


def test_a_store_that_has_grown_is_scored_without_the_fires_of_training(run, folder, tmp_path):
    new = open_snapshots(folder / "other.nc")
    grown = xr.concat([open_snapshots(folder / "ensemble.zarr"), new], "snapshot")
    data = export_snapshots(grown, tmp_path / "grown.nc")
    result = run("evaluate", folder / "smoke.plume", data, "-o", tmp_path / "s.json")
    assert result.code == 0, result.err
    split = split_by_fire(open_snapshots(folder / "ensemble.zarr"))
    trained = np.unique(split.train.ignition_id.values).size
    assert f"{trained} ignition_id(s) of {data} were in training and are left out" in result.err
    rest = grown.sizes["snapshot"] - split.train.sizes["snapshot"]
    assert written(tmp_path / "s.json")["test_snapshots"] == rest


def test_a_surrogate_that_loses_to_the_mean_field_says_so(run, folder, tmp_path):
    model = tmp_path / "poor.plume"
    # So large a penalty leaves a prediction of zero smoke.
    options = ("--degree", 1, "--penalty", 1e30, "-o", model)
    result = run("train", folder / "ensemble.zarr", *options)
    assert result.code == 0
    assert "validation snapshots, 'surrogate' does not beat the mean field in" in result.err
    result = run("evaluate", model, folder / "ensemble.zarr", "--baselines", "mean-field")
    assert "warning: 'poor' does not beat the mean field in " in result.err


def test_thresholds_of_the_user_are_scored_and_written(run, refused, folder, tmp_path):
    scores = tmp_path / "scores.json"
    options = ("--baselines", "mean-field", "--thresholds", "35,100", "--json", scores)
    result = run("evaluate", folder / "smoke.plume", folder / "ensemble.zarr", *options)
    assert result.code == 0
    for heading in ("smoke", "smoke above", "hit rate", "false alarms", "bias"):
        assert heading in result.out
    own, mean = written(scores)["scores"]
    tau = written(scores)["smoke_threshold"]
    for score in (own, mean):
        assert [item["threshold"] for item in score["exceedances"]] == [tau, 35.0, 100.0]
        assert all(0.0 <= item["iou"] <= 1.0 for item in score["exceedances"])
    wrong = ("evaluate", folder / "smoke.plume", folder / "ensemble.zarr", "--thresholds")
    assert "--thresholds=-2 must be ≥ 0" in refused(*wrong, "-2")
    assert "is not a list of numbers" in refused(*wrong, "many")
