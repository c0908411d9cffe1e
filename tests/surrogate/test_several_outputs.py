"""Several outputs of one surrogate: fitted together, each with its own thresholds and scores."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.resources import Resources
from plumecast.data.split import split_by_fire
from plumecast.data.store import append_fire
from plumecast.scores.reading import Reading
from support.snapshots import make_snapshots
from support.two_outputs import add_surface

OUTPUTS = ["smoke", "surface_smoke"]

SINGLE = 1e-4
"""Relative to the largest value: the systems are solved in float32, and BLAS may round otherwise
with more right-hand sides."""


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return add_surface(make_snapshots(fires=20))


@pytest.fixture(scope="module")
def parts(data):
    return split_by_fire(data, seed=1)


@pytest.fixture(scope="module")
def both(parts) -> pc.Surrogate:
    return pc.fit_surrogate(parts.train, "recommended", layers=1, outputs=OUTPUTS)


@pytest.fixture(scope="module")
def trained(data) -> pc.Surrogate:
    return pc.train_surrogate(data, "recommended", layers=1, outputs=OUTPUTS)


def test_a_further_output_does_not_change_the_first(parts, both):
    alone = pc.fit_surrogate(parts.train, "recommended", layers=1)
    expected, predicted = alone.predict(parts.test), both.predict(parts.test)
    assert list(predicted.data_vars) == OUTPUTS
    np.testing.assert_allclose(
        predicted.smoke, expected, atol=SINGLE * float(expected.max()), rtol=SINGLE
    )
    assert alone.operator.targets == both.operator.targets
    for name in OUTPUTS:
        assert predicted[name].attrs["units"] == "ug m-3"
        wrong = float(np.linalg.norm(predicted[name] - parts.test[name]))
        assert wrong < 0.5 * float(np.linalg.norm(parts.test[name])), name


def test_a_scaled_copy_is_predicted_as_the_scaled_smoke(parts):
    """Targets are scaled one by one. The choice of the others depends on ln(1 + g), on the unit."""
    copy = parts.train.assign(other=1000.0 * parts.train.smoke)
    choices = {"preset": "recommended", "layers": 1, "targets": ["smoke"]}
    found = pc.fit_surrogate(copy, **choices, outputs=["smoke", "other"]).predict(parts.test)
    largest = float(found.other.max())
    np.testing.assert_allclose(found.other, 1000.0 * found.smoke, atol=SINGLE * largest)


def test_one_output_of_several_is_a_surrogate(parts, both):
    whole = both.predict(parts.test)
    for name in OUTPUTS:
        one = both.output(name)
        assert one.outputs.names == (name,)
        np.testing.assert_array_equal(one.predict(parts.test), whole[name])
    assert both.output("smoke").output("smoke").outputs.names == ("smoke",)
    with pytest.raises(pc.PlumecastError, match="output 'co' is unknown; choose from smoke, surf"):
        both.output("co")


def test_outputs_of_every_family_are_scored_one_by_one(parts):
    fitted = pc.fit_surrogate(parts.train, "paper-linear", outputs=OUTPUTS)
    whole = fitted.predict(parts.test)
    for name in OUTPUTS:
        one = fitted.output(name)
        np.testing.assert_allclose(one.predict(parts.test), whole[name], rtol=1e-6)
        result = pc.evaluate({"one": one}, parts.validation, parts.test)
        wrong = float(np.linalg.norm(whole[name] - parts.test[name]))
        error = wrong / float(np.linalg.norm(parts.test[name]))
        assert result.scores[0].relative_error == pytest.approx(error, rel=1e-4)
    with pytest.raises(pc.PlumecastError, match=r"one at a time: surrogate.output\('smoke'\)"):
        pc.evaluate({"all": fitted}, parts.validation, parts.test)


def test_thresholds_and_agreement_hold_for_every_output(data, trained):
    smoke, score = trained.predict(data), trained.predict_footprint(data)
    assert list(score.data_vars) == ["footprint_score", "footprint_score_surface_smoke"]
    chosen = [trained.output(name).training["thresholds"] for name in OUTPUTS]
    assert chosen[0] != chosen[1]
    for name, own, levels in zip(OUTPUTS, score.data_vars, chosen, strict=True):
        present = smoke[name].values > levels["smoke"]
        np.testing.assert_array_equal(present, score[own].values > levels["decision"])
        assert present.any()
    assert trained.training["split"]["outputs"] == "smoke,surface_smoke"


def test_a_saved_file_has_all_outputs_and_their_records(tmp_path, data, trained):
    again = pc.load_surrogate(trained.save(tmp_path / "both.plume"))
    xr.testing.assert_identical(again.predict(data), trained.predict(data))
    assert again.training == trained.training == trained.with_records(trained.records).training
    assert trained.records["surface_smoke"] == trained.output("surface_smoke").record
    odd = dataclasses.replace(trained, training={**trained.training, "further": {"co": {}}})
    with pytest.raises(pc.PlumecastError, match="further"):
        pc.load_surrogate(odd.save(tmp_path / "odd.plume"))


def test_a_fit_from_a_store_equals_the_fit_in_memory(tmp_path, data):
    append_fire(tmp_path / "store.zarr", data)
    choices = {"preset": "recommended", "layers": 1, "outputs": OUTPUTS}
    lazy = pc.open_snapshots(tmp_path / "store.zarr", fields=["time_since_ignition", *OUTPUTS])
    other = pc.fit_surrogate(lazy, resources=Resources(memory="90MB"), **choices)
    one = pc.fit_surrogate(data, **choices)
    for name in OUTPUTS:
        expected = one.predict(data)[name]
        np.testing.assert_allclose(
            other.predict(data)[name], expected, atol=1e-3 * float(expected.max())
        )  # systems in float32
    assert one.training["footprint_threshold"] == other.training["footprint_threshold"]


def test_outputs_that_cannot_be_fitted_are_named(data):
    empty = data.assign(surface_smoke=0.0 * data.surface_smoke)
    with pytest.raises(pc.PlumecastError, match="'surface_smoke' is zero in every training"):
        pc.fit_surrogate(empty, "recommended", layers=1, outputs=OUTPUTS)
    with pytest.raises(pc.PlumecastError, match="names a variable twice"):
        pc.train_surrogate(data, outputs=["smoke", "smoke"])
    with pytest.raises(pc.PlumecastError, match=r"choose one: surrogate.output\('smoke'\)"):
        pc.ensemble_statistics(
            pc.fit_surrogate(data, "paper-linear", outputs=OUTPUTS), data, Reading(thresholds=[1.0])
        )


def test_commands_with_several_outputs(tmp_path, monkeypatch, run, succeed, data):
    monkeypatch.chdir(tmp_path)
    append_fire("fires.zarr", data)
    assert "surface_smoke (lowest model layer)" in succeed("info", "fires.zarr")
    names = ",".join(OUTPUTS)
    told = run("train", "fires.zarr", "-o", "both.plume", "--outputs", names, "--layers", 1)
    assert "surface_smoke: on " in told.out + told.err  # a warning if it does not beat the others
    assert "thresholds of surface_smoke" in succeed("info", "both.plume")
    shown = succeed("evaluate", "both.plume", "fires.zarr", "--baselines", "mean-field")
    assert "predicted surface_smoke above a threshold" in shown
    scores = json.loads(Path("both.scores.json").read_text())
    assert list(scores["outputs"]) == OUTPUTS
    first = scores["outputs"]["smoke"]["scores"][0]
    assert first["iou"] == scores["scores"][0]["iou"]
    succeed("predict", "both.plume", "fires.zarr", "-o", "smoke.nc", "--footprint")
    with xr.open_dataset("smoke.nc") as written:
        assert {*OUTPUTS, "footprint", "footprint_surface_smoke"} <= set(written.data_vars)
        assert "lowest model layer" in written.surface_smoke.attrs["comment"]
    refused = run("tune", "fires.zarr", "-o", "tuned.json", "--outputs", names)
    assert refused.code == 2
    assert "settings are chosen on one output" in refused.err
