"""`plumecast train` with few ignitions, or on all of them: folds give thresholds and scores."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

import plumecast.workflows.train
from plumecast.base.errors import PlumecastError
from plumecast.data.store import export_snapshots, open_snapshots
from plumecast.scores.footprint import (
    choose_decision_threshold,
    score_footprints,
    smoke_threshold,
)
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from support.snapshots import make_snapshots, select_fire


def unequal(fires: int = 8) -> xr.Dataset:
    """Ignitions of which only the first burned under low drought, as in the how-to."""
    made = make_snapshots(fires=fires, checkpoints=3)
    keep = (made.drought.values == "high") | (made.ignition_id.values == "ignition-00")
    return made.isel(snapshot=np.flatnonzero(keep))


def test_few_ignitions_train_score_and_predict(run, tmp_path):
    data, model = export_snapshots(unequal(), tmp_path / "few.nc"), tmp_path / "smoke.plume"
    result = run("train", data, "-o", model, "--layers", 1)
    assert result.code == 0, result.err
    assert "trained on 15 snapshots" in result.out
    assert "4 further fits" in result.out
    assert "fire-00-low: the drought is in no other ignition_id" in result.err
    assert (
        "on 12 snapshots, each predicted by a fit without its ignition_id"
        in result.out + result.err
    )
    out = run("evaluate", model, data).out
    assert "12 snapshots, each predicted by a fit without it" in out
    assert "mean-field" in out
    assert "nearest-fire" in out
    predicted = tmp_path / "predicted.nc"
    assert run("predict", model, data, "-o", predicted, "--footprint").code == 0
    assert open_snapshots(predicted, fields=["smoke"]).sizes["snapshot"] == 15


def test_out_of_fold_scores_are_those_of_fits_without_each_ignition(succeed, tmp_path):
    made = make_snapshots(fires=8)
    data, model = export_snapshots(made, tmp_path / "few.nc"), tmp_path / "smoke.plume"
    succeed("train", data, "-o", model, "--degree", 1)
    parts = []
    for name in np.unique(made.ignition_id.values):
        out = made.ignition_id.values == name
        fitted = fit_surrogate(made.isel(snapshot=np.flatnonzero(~out)), degree=1)
        parts.append(fitted.predict(made.isel(snapshot=np.flatnonzero(out))))
    predicted = xr.concat(parts, "snapshot")
    tau = smoke_threshold(made.smoke)
    alpha = choose_decision_threshold(predicted, made.smoke, tau)
    expected = score_footprints(predicted, made.smoke, tau, alpha)
    training = load_surrogate(model).training
    assert training["thresholds"] == {"smoke": tau, "decision": alpha}
    own = training["out_of_fold"]["scores"][0]
    assert own["iou"] == np.median(expected.iou)
    assert own["deployable_iou"] == np.median(expected.deployable_iou)
    succeed("evaluate", model, data)
    shown = json.loads(model.with_suffix(".scores.json").read_text())
    assert shown["scores"][0]["iou"] == own["iou"]


def test_all_keeps_out_of_fold_scores_and_thresholds(succeed, refused, ensemble, tmp_path):
    model, data = tmp_path / "all.plume", ensemble.store
    out = succeed("train", data, "-o", model, "--degree", 1, "--all", "--folds", 3)
    assert "trained on 96 snapshots" in out
    assert "3 further fits" in out
    assert f"next: plumecast evaluate {model} {data}" in out
    assert "96 snapshots, each predicted by a fit without it" in succeed("evaluate", model, data)
    succeed("predict", model, data, "-o", tmp_path / "p.nc", "--footprint")
    message = refused("evaluate", model, data, "--baselines", "gp-codes")
    assert "baseline 'gp-codes' has no out-of-fold scores" in message


def test_without_folds_nothing_is_scored_and_that_is_said(succeed, refused, tmp_path):
    data = export_snapshots(make_snapshots(fires=8), tmp_path / "ensemble.nc")
    model = tmp_path / "all.plume"
    assert "next:" not in succeed("train", data, "-o", model, "--degree", 1, "--folds", 0)
    assert "nothing is held out" in refused("evaluate", model, data)
    message = refused("predict", model, data, "-o", tmp_path / "p.nc", "--footprint")
    assert f"{model} has no decision threshold" in message
    message = refused("train", data, "-o", model, "--folds", 1)
    assert message == "--folds=1 leaves nothing out; give at least 2, or 0 for none"


def test_one_ignition_keeps_its_fit_and_names_the_ways_out(run, refused, tmp_path):
    one = select_fire(make_snapshots(), "fire-00-low")
    data, model = export_snapshots(one, tmp_path / "one.nc"), tmp_path / "smoke.plume"
    result = run("train", data, "-o", model, "--degree", 1, "--penalty", 1)
    assert result.code == 0
    assert "note: no thresholds were chosen: there is a single ignition_id" in result.err
    assert load_surrogate(model).predict(one).shape == one.smoke.shape
    message = refused("train", data, "-o", model)
    assert all(option in message for option in ("--fractions", "--seed", "--all"))


def test_a_fit_is_kept_if_thresholds_cannot_be_chosen(run, ensemble, tmp_path, monkeypatch):
    def refuse(*parts, **options):
        raise PlumecastError("no snapshot holds smoke: no threshold can be chosen")

    monkeypatch.setattr(plumecast.workflows.train, "evaluate", refuse)
    result = run("train", ensemble.store, "-o", tmp_path / "smoke.plume", "--degree", 1)
    assert result.code == 0
    assert "no snapshot holds smoke" in result.err
    assert load_surrogate(tmp_path / "smoke.plume").training["problem"]
