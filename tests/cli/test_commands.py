"""The command line: train, look, score, predict, tune; an error is one line and exit code 2."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import plumecast.cli.commands.train
import plumecast.workflows.predict
from plumecast.base.version import __version__
from plumecast.cli import main
from plumecast.data.schema import apply_smoke_floor, drop_small_fires, select_drought
from plumecast.data.split import split_by_fire
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.surrogate.baselines import BASELINES
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from plumecast.workflows.evaluate import fit_thresholds
from plumecast.workflows.held_out.scoring import separate
from plumecast.workflows.tune.candidates import SearchSpace
from plumecast.workflows.tune.tune import tune_surrogate
from support.snapshots import fires_of, make_snapshots
from support.weather_fires import weather_fires

COMMANDS = ("train", "tune", "evaluate", "predict", "info")


@dataclass(frozen=True)
class Ensemble:
    snapshots: xr.Dataset
    store: Path
    version: str


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory) -> Ensemble:
    """Twenty-four fires of twelve ignitions, appended ignition by ignition."""
    snapshots = make_snapshots(fires=24)
    store = tmp_path_factory.mktemp("data") / "ensemble.zarr"
    fires = fires_of(snapshots)
    for first in range(0, 24, 6):
        version = append_fire(store, xr.concat(fires[first : first + 6], "snapshot"))
    return Ensemble(snapshots, store, version)


@pytest.fixture(scope="module")
def trained(ensemble, tmp_path_factory) -> Path:
    """A surrogate trained by the command line."""
    model = tmp_path_factory.mktemp("model") / "smoke.plume"
    with pytest.raises(SystemExit) as stopped:
        main(["train", str(ensemble.store), "-o", str(model), "--preset", "paper-linear"])
    assert stopped.value.code == 0
    return model


# train


def test_device_and_memory_change_nothing(succeed, trained, ensemble, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    common = ["--smoke-floor", 0.5, "--preset", "paper-linear", "-o"]
    plain, placed = tmp_path / "plain.plume", tmp_path / "placed.plume"
    succeed("train", ensemble.store, *common, plain)
    succeed("train", ensemble.store, *common, placed, "--device", "torch", "--memory", "1MB")
    one, other = (load_surrogate(path) for path in (plain, placed))
    expected = one.predict(ensemble.snapshots).values
    np.testing.assert_allclose(
        other.predict(ensemble.snapshots).values, expected, atol=1e-5 * expected.max()
    )  # float32 fields
    assert other.training["thresholds"] == pytest.approx(one.training["thresholds"], rel=1e-6)
    scores = []
    for extra in ([], ["--device", "torch", "--memory", "1MB"]):
        options = ["--json", tmp_path / "scores.json", "--baselines", "mean-field", *extra]
        succeed("evaluate", plain, ensemble.store, *options)
        written = json.loads((tmp_path / "scores.json").read_text())["scores"]
        scores.append(np.array([(score["iou"], score["auc"]) for score in written], dtype=float))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-8)
    for number, extra in enumerate(([], ["--device", "torch", "--memory", "1MB"])):
        succeed("predict", plain, ensemble.store, "-o", tmp_path / f"{number}.nc", *extra)
    first, second = (xr.load_dataset(tmp_path / f"{n}.nc") for n in range(2))
    np.testing.assert_allclose(second.smoke, first.smoke, rtol=1e-5)


def test_with_memory_only_the_mean_field_is_beside(run, trained, ensemble, tmp_path):
    result = run(
        "evaluate", trained, ensemble.store, "--memory", "1MB", "--json", tmp_path / "s.json"
    )
    assert result.code == 0
    assert "only the mean field is shown" in result.err
    names = [score["name"] for score in json.loads((tmp_path / "s.json").read_text())["scores"]]
    assert names == ["paper-linear", "mean-field"]


def test_a_device_that_is_not_here_is_one_line(refused, ensemble, tmp_path):
    message = refused("train", ensemble.store, "-o", tmp_path / "a.plume", "--device", "abacus")
    assert message == "device 'abacus' is unknown; choose from cpu, cuda, cupy, torch"


def test_train_equals_open_split_and_fit(trained, ensemble):
    loaded = load_surrogate(trained)
    split = split_by_fire(open_snapshots(ensemble.store))
    expected = fit_surrogate(split.train.load(), "paper-linear")
    np.testing.assert_array_equal(loaded.predict(split.test), expected.predict(split.test))
    assert loaded.settings == expected.settings
    assert loaded.training["data_version"] == ensemble.version


def test_train_records_its_thresholds_from_validation(trained, ensemble):
    loaded = load_surrogate(trained)
    validation = split_by_fire(open_snapshots(ensemble.store)).validation.load()
    thresholds = fit_thresholds(loaded, validation)
    assert loaded.training["thresholds"] == {
        "smoke": thresholds.smoke,
        "decision": thresholds.decision,
    }


def test_train_says_what_it_did_and_where_it_wrote(succeed, ensemble, tmp_path):
    model = tmp_path / "new" / "smoke.plume"
    out = succeed("train", ensemble.store, "-o", model, "--degree", 2, "--fire-rank", 4)
    training = load_surrogate(model).training
    assert f"ranks 4 → {training['smoke_rank']}, penalty {training['penalty']:.4g}\n" in out
    assert f"wrote the surrogate to {model}\n" in out
    assert f"next: plumecast evaluate {model} {ensemble.store}\n" in out


def test_train_passes_every_choice_on(succeed, ensemble, tmp_path):
    model = tmp_path / "smoke.plume"
    succeed(
        *("train", ensemble.store, "-o", model, "--degree", 2, "--penalty", 50, "--fire-std", 0.8),
        *("--smoke-rank", 5, "--center", "--drought", "high", "--min-acres", 2e4, "--seed", 3),
        *("--smoke-floor", 1.0, "--by", "fire_id", "--fractions", "0.5,0.25,0.25"),
    )
    kept = drop_small_fires(select_drought(open_snapshots(ensemble.store), "high"), 2e4)
    split = split_by_fire(apply_smoke_floor(kept, 1.0), (0.5, 0.25, 0.25), 3, by="fire_id")
    expected = fit_surrogate(
        split.train.load(),
        degree=2,
        penalty=50.0,
        fire_std_fraction=0.8,
        smoke_rank=5,
        center=True,
    )
    loaded = load_surrogate(model)
    np.testing.assert_array_equal(loaded.predict(split.test), expected.predict(split.test))


def test_train_on_other_variables(succeed, ensemble, tmp_path):
    data = export_snapshots(with_log_smoke(ensemble.snapshots), tmp_path / "logarithm.nc")
    model = tmp_path / "log.plume"
    succeed("train", data, "-o", model, "--outputs", "log_smoke")
    assert load_surrogate(model).outputs.names == ("log_smoke",)
    succeed("evaluate", model, data, "--baselines", "mean-field")


def test_train_notes_a_missing_smoke_floor(run, ensemble, tmp_path):
    traces = ensemble.snapshots.drop_attrs(deep=False)
    data = export_snapshots(traces, tmp_path / "traces.nc")
    result = run("train", data, "-o", tmp_path / "smoke.plume")
    assert result.code == 0
    assert "note: the data records no smoke floor" in result.err
    result = run("train", data, "-o", tmp_path / "smoke.plume", "--smoke-floor", 0.1)
    assert "smoke floor" not in result.err


# info


def test_info_describes_a_store(succeed, ensemble):
    lines = succeed("info", ensemble.store, "--check").splitlines()
    assert lines[0] == str(ensemble.store)
    shown = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines[1:-2])
    assert shown["snapshots"] == "96"
    assert shown["fires"] == "24 from 12 ignitions"
    assert shown["droughts"] == "high 48, low 48"
    assert shown["hours"] == "6 … 24"
    assert shown["grid"] == "10 × 8 cells (x by y), 3000 × 3000 m"
    assert shown["smoke floor"] == "0.01 µg m⁻³ of the sum over checkpoints"
    assert shown["version"] == ensemble.version
    assert lines[-2:] == [
        "every value is finite and none is negative",
        "24 of 24 fires are clean, 0 findings",
    ]


def test_info_check_lists_every_finding_with_its_fire(run, ensemble, tmp_path):
    bad = ensemble.snapshots.copy(deep=True)
    smoke, age = bad.smoke.values, bad.time_since_ignition.values
    smoke[3, 0, 0] = np.nan  # four snapshots per fire
    smoke[4:8] = 0.0
    smoke[8:12] *= -1.0
    smoke[12:16] *= 1e12
    smoke[19] = 0.0
    age[20:24] = np.where(age[20:24] > 0.0, age[20:24] + 6.0, 0.0)
    smoke[28:32] *= 1e-9
    result = run("info", export_snapshots(bad, tmp_path / "bad.nc"), "--check")
    assert result.code == 1
    assert result.err == ""
    for said in (
        "fire-00-low: NaN in smoke: 1 of 320 values are not finite",
        "fire-00-high: no smoke: no value above 0 in 4 snapshots",
        "fire-01-low: no smoke",
        "fire-01-low: negative smoke: ",
        "fire-01-high: too much smoke: peak ",
        "fire-02-low: decreasing smoke: the total falls from",
        "fire-02-high: hours: a cell has burned for ",
        "fire-03-high: too little smoke: peak ",
    ):
        assert said in result.out, said
    assert result.out.splitlines()[-1] == "17 of 24 fires are clean, 8 findings"


def test_info_describes_a_surrogate(succeed, trained, ensemble):
    lines = succeed("info", trained).splitlines()
    assert lines[0] == str(trained)
    shown = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines[1:])
    training = load_surrogate(trained).training
    assert shown["preset"] == "paper-linear"
    assert shown["map"] == "time_since_ignition [h] 8 × 10 → smoke [ug m-3] 8 × 10"
    fires = len(training["fire_id"])
    assert shown["trained on"] == f"{training['snapshots']} snapshots, {fires} fires"
    assert shown["data"] == f"growing discs, version {ensemble.version}"
    assert shown["file"] == f"format 2, plumecast {__version__}"


# evaluate


def table_rows(out: str) -> dict[str, list[str]]:
    """The rows of a printed table by the name in their first column."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) > 2}


def test_evaluate_prints_the_numbers_it_writes(succeed, trained, ensemble, tmp_path):
    where = tmp_path / "scores.json"
    out = succeed("evaluate", trained, ensemble.store, "--json", where)
    written = json.loads(where.read_text())
    assert [score["name"] for score in written["scores"]] == ["paper-linear", *BASELINES]
    first, second = out.split("predicted smoke above a threshold")
    rows, above = table_rows(first), table_rows(second)
    for score in written["scores"]:
        (item,) = score["exceedances"]
        assert above[score["name"]][-1] == f"{item['iou']:.3f}"
        assert rows[score["name"]] == [
            f"{score['auc']:.3f}",
            f"{score['iou']:.3f}",
            f"{score['deployable_iou']:.3f}",
            f"{score['smoke_iou']:.3f}",
            f"{score['snapshot_error']:.2f}",
            f"{score['relative_error']:.2f}",
            f"{score['predict_ms']:.2f}",
        ]
    title = f"{written['test_snapshots']} test snapshots, smoke above "
    title += f"{written['smoke_threshold']:.3g} (sum over checkpoints; 95% of the footprint)"
    assert title in " ".join(out.split())  # a long title has two lines
    assert f"wrote the scores to {where}\n" in out


def test_evaluate_records_what_was_scored(succeed, trained, ensemble):
    succeed("evaluate", trained, ensemble.store, "--baselines", "none")
    written = json.loads(trained.with_suffix(".scores.json").read_text())
    assert written["plumecast"] == __version__
    assert written["model"] == str(trained)
    assert written["data"] == str(ensemble.store)
    assert written["data_version"] == ensemble.version
    assert written["captured"] == 0.95
    assert [score["name"] for score in written["scores"]] == ["paper-linear"]
    assert written["test_snapshots"] == split_by_fire(ensemble.snapshots).test.sizes["snapshot"]


def test_evaluate_scores_a_surrogate_split_by_fire_beside_its_baselines(
    succeed, ensemble, tmp_path
):
    model = tmp_path / "loose.plume"
    succeed("train", ensemble.store, "-o", model, "--by", "fire_id", "--degree", 1)
    rows = table_rows(succeed("evaluate", model, ensemble.store))
    assert {"loose", *BASELINES} <= set(rows)


def test_evaluate_notes_that_the_data_has_changed(run, trained, ensemble, tmp_path):
    other = export_snapshots(ensemble.snapshots, tmp_path / "other.nc")
    result = run("evaluate", trained, other, "--baselines", "none", "--json", tmp_path / "s.json")
    assert result.code == 0
    assert f"note: {other} has changed since {trained} was trained" in result.err


def test_evaluate_writes_into_a_new_folder(succeed, trained, ensemble, tmp_path):
    where = tmp_path / "new" / "scores.json"
    succeed("evaluate", trained, ensemble.store, "--baselines", "none", "--json", where)
    assert json.loads(where.read_text())["scores"][0]["name"] == "paper-linear"


# predict


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_predict_writes_what_the_surrogate_predicts(succeed, trained, ensemble, tmp_path, ending):
    where = tmp_path / f"smoke.{ending}"
    out = succeed("predict", trained, ensemble.store, "-o", where)
    assert out == (
        "predicted 96 snapshots\n"
        "smoke_mean: time-mean column concentration of smoke since ignition (µg m⁻³)\n"
        "smoke: sum of column-mean smoke concentrations over checkpoints, as predicted\n"
        f"wrote the smoke to {where}\n"
    )
    written = open_snapshots(where, fields=["smoke"])
    expected = load_surrogate(trained).predict(open_snapshots(ensemble.store))
    assert "over checkpoints 6 h apart" in written.smoke.attrs.pop("comment")
    xr.testing.assert_identical(written.smoke.load().drop_vars("extrapolates"), expected)


def test_predict_in_blocks_equals_one_block(succeed, trained, ensemble, tmp_path, monkeypatch):
    succeed("predict", trained, ensemble.store, "-o", tmp_path / "whole.nc")
    monkeypatch.setattr(plumecast.workflows.predict, "BLOCK", 7)
    succeed("predict", trained, ensemble.store, "-o", tmp_path / "blocks.nc")
    whole, blocks = (xr.load_dataset(tmp_path / f"{name}.nc") for name in ("whole", "blocks"))
    # float32 of sums that were taken in another order.
    names = ["smoke", "smoke_mean"]
    for name in names:
        np.testing.assert_allclose(blocks[name], whole[name], rtol=1e-5, atol=1e-4)
    blocks.attrs["history"] = whole.attrs["history"]  # the command lines differ
    xr.testing.assert_identical(blocks.drop_vars(names), whole.drop_vars(names))


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_footprint_is_smoke_above_the_recorded_decision_threshold(
    succeed, trained, ensemble, tmp_path, ending
):
    where = tmp_path / f"smoke.{ending}"
    succeed("predict", trained, ensemble.store, "-o", where, "--footprint")
    written = open_snapshots(where, fields=["smoke"])
    alpha = load_surrogate(trained).training["thresholds"]["decision"]
    assert written.footprint.attrs["decision_threshold"] == alpha
    np.testing.assert_array_equal(written.footprint, written.smoke > alpha)
    assert 0.0 < float(written.footprint.mean()) < 1.0


def test_predict_needs_only_the_fires(succeed, trained, ensemble, tmp_path):
    fires = ensemble.snapshots.drop_vars(["smoke", "burned_area", "drought"])
    data = export_snapshots(fires, tmp_path / "fires.nc")
    succeed("predict", trained, data, "-o", tmp_path / "smoke.nc")
    expected = load_surrogate(trained).predict(ensemble.snapshots)
    with xr.open_dataset(tmp_path / "smoke.nc") as written:
        np.testing.assert_array_equal(written.smoke, expected)


def test_train_with_a_kernel_says_its_length_scale(succeed, ensemble, tmp_path):
    model = tmp_path / "matern.plume"
    out = succeed("train", ensemble.store, "-o", model, "--kernel", "polynomial-1 + matern-5/2")
    training = load_surrogate(model).training
    assert f"length scale {training['length_scale']:.3g}, penalty" in out
    error = training["leave_out_error"]
    assert 0.0 < error < 1.0
    assert f"inner error  {error:.3g}: relative error, of training fires left out in turn" in (
        succeed("info", model)
    )


# tune, and train with its settings


CODED = ("--families", "coded", "--kernels", "")


def test_tune_prints_and_writes_the_candidates_best_first(succeed, ensemble, tmp_path):
    where = tmp_path / "tuned.json"
    out = succeed(
        *("tune", ensemble.store, "-o", where, "--families", "coded", "--degrees", "1,2"),
        *("--std-fractions", "0.5,0.9", "--kernels", "polynomial-1 + matern-5/2"),
    )
    written = json.loads(where.read_text())
    found = written["candidates"]
    assert len(found) == 5
    confirmed = [c["validation"]["iou"] for c in found[:3]]
    assert confirmed == sorted(confirmed, reverse=True)
    assert all(c["validation"] is None for c in found[3:])
    assert written["settings"] == found[0]["choices"]
    assert {"fire_rank", "smoke_rank", "penalty"} <= set(written["settings"])
    assert f"the settings of '{found[0]['name']}'" in out
    for candidate in found:
        lines = [line.strip() for line in out.splitlines()]
        line = next(line for line in lines if line.startswith(candidate["name"] + " "))
        shown = line.removeprefix(candidate["name"]).split()
        names = ("relative_error", "auc", "iou", "deployable_iou")
        assert shown[:4] == [f"{candidate['folds'][name]:.3f}" for name in names]
        assert shown[5:] == (
            [f"{candidate['validation']['iou']:.3f}"] if candidate["validation"] else []
        )


def test_tune_says_what_it_did_not_try(run, ensemble, tmp_path):
    where = tmp_path / "tuned.json"
    result = run("tune", ensemble.store, "-o", where, "--candidates", 2, "--confirm", 1)
    assert result.code == 0
    note = next(line for line in result.err.splitlines() if "not tried" in line)
    assert "beyond the first 2" in note
    assert "spectral, 2 layers" in note
    tried = [c for c in json.loads(where.read_text())["candidates"] if c["folds"] is not None]
    assert len(tried) == 2
    assert "spectral, recommended" in {c["name"] for c in tried}


def test_tune_equals_the_function(succeed, ensemble, tmp_path):
    where = tmp_path / "tuned.json"
    succeed(
        *("tune", ensemble.store, "-o", where, "--degrees", "1", "--std-fractions", "0.5,0.9"),
        *("--rank-by", "relative_error", "--seed", 2, "--drought", "low,high", *CODED),
    )
    split = split_by_fire(open_snapshots(ensemble.store), seed=2)
    expected = tune_surrogate(
        split.train.load(),
        split.validation.load(),
        space=SearchSpace(["coded"], degrees=[1], kernels=[], std_fractions=[0.5, 0.9]),
        rank_by="relative_error",
    )
    assert json.loads(where.read_text())["settings"] == expected[0].settings()


def test_train_with_a_tuned_spectral_surrogate(succeed, ensemble, tmp_path):
    tuned, model = tmp_path / "tuned.json", tmp_path / "tuned.plume"
    succeed("tune", ensemble.store, "-o", tuned, "--families", "spectral", "--candidates", 1)
    assert json.loads(tuned.read_text())["settings"] == {"preset": "recommended"}
    succeed("train", ensemble.store, "-o", model, "--settings", tuned)
    assert load_surrogate(model).settings["family"] == "spectral"


def test_train_with_tuned_lift_and_targets(succeed, ensemble, tmp_path):
    tuned, model = tmp_path / "tuned.json", tmp_path / "tuned.plume"
    succeed("tune", ensemble.store, "-o", tuned, "--families", "lifted", "--confirm", 1)
    written = json.loads(tuned.read_text())["settings"]
    succeed("train", ensemble.store, "-o", model, "--settings", tuned)
    settings = load_surrogate(model).settings
    assert tuple(settings["lift"]) == tuple(written["lift"]) == ("age-bins", "burned")
    assert tuple(settings["targets"]) == tuple(written["targets"])
    split = split_by_fire(open_snapshots(ensemble.store), seed=0)
    expected = fit_surrogate(split.train.load(), **written).predict(split.test)
    trained = load_surrogate(model)
    np.testing.assert_array_equal(separate(trained).predict(split.test), expected)


def test_tune_with_networks_needs_torch(refused, ensemble, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    where = tmp_path / "tuned.json"
    message = refused("tune", ensemble.store, "-o", where, "--families", "coded", "--neural")
    assert "pip install 'plumecast[neural]'" in message


def test_train_with_tuned_settings_repeats_choices_filters_and_split(succeed, ensemble, tmp_path):
    tuned, model = tmp_path / "tuned.json", tmp_path / "tuned.plume"
    succeed(
        *("tune", ensemble.store, "-o", tuned, "--degrees", "2", "--std-fractions", "0.9", *CODED),
        *("--seed", 5, "--min-acres", 1e4),
    )
    succeed("train", ensemble.store, "-o", model, "--settings", tuned)
    settings = json.loads(tuned.read_text())["settings"]
    kept = drop_small_fires(open_snapshots(ensemble.store), 1e4)
    split = split_by_fire(kept, seed=5)
    expected = fit_surrogate(split.train.load(), **settings)
    loaded = load_surrogate(model)
    np.testing.assert_array_equal(loaded.predict(split.test), expected.predict(split.test))
    assert loaded.training["penalty"] == settings["penalty"]
    succeed("evaluate", model, ensemble.store, "--baselines", "none")


def test_options_beside_tuned_settings_win(succeed, ensemble, tmp_path):
    tuned, model = tmp_path / "tuned.json", tmp_path / "tuned.plume"
    succeed("tune", ensemble.store, "-o", tuned, "--degrees", "1", "--std-fractions", "0.9", *CODED)
    succeed(
        "train", ensemble.store, "-o", model, "--settings", tuned, "--penalty", 7.5, "--seed", 9
    )
    training = load_surrogate(model).training
    assert training["penalty"] == 7.5
    assert training["split"]["seed"] == 9


def test_tune_writes_into_a_new_folder(succeed, ensemble, tmp_path):
    where = tmp_path / "new" / "tuned.json"
    succeed("tune", ensemble.store, "-o", where, "--degrees", "1", "--std-fractions", "0.9", *CODED)
    assert json.loads(where.read_text())["settings"]["degree"] == 1


# Errors: one line, exit code 2, nothing written


def bad_requests(store: str, model: str, out: str) -> dict[str, tuple[list[str], str]]:
    """Requests that cannot be met, and what the line must say."""
    return {
        "no such store": (["train", "nowhere.zarr"], "nowhere.zarr does not exist"),
        "no such model": (["evaluate", "no.plume", store], "no.plume does not exist or is not"),
        "no such path": (["info", "nowhere"], "nowhere does not exist"),
        "rasters": (
            ["predict", model, "a.asc", "-o", "s.nc"],
            "a.asc: expected one snapshot store; for",
        ),
        "store as model": (
            ["predict", store, store, "-o", f"{out}.nc"],
            "is a folder; here a surrogate is needed",
        ),
        "model as store": (
            ["train", model],
            "is a saved surrogate; here a store of fires is needed",
        ),
        "preset": (["train", store, "--preset", "cubic"], "preset 'cubic' is unknown; choose from"),
        "degree": (["train", store, "--degree", "7"], "--degree=7 is not one of 1…4"),
        "penalty": (["train", store, "--penalty", "-1"], "--penalty=-1.0 must be ≥ 0"),
        "kernel": (["train", store, "--kernel", "box"], "kernel 'box' is unknown; choose from pol"),
        "length": (
            ["train", store, "--kernel", "matern-5/2", "--length-scale", "0"],
            "--length-scale=0.0 must be a finite number above 0",
        ),
        "short": (
            ["train", store, "--kernel", "matern-5/2", "--length-scale", "1e-5"],
            "--length-scale=1e-05 is so short that",
        ),
        "rank": (["train", store, "--fire-rank", "900"], "rank=900 exceeds 40, the rank of 40"),
        "drought": (
            ["train", store, "--drought", "wet"],
            "drought 'wet' is not in the data; found",
        ),
        "acres": (["train", store, "--min-acres", "1e9"], "no snapshot has a burned area of 1e+09"),
        "fractions": (
            ["train", store, "--fractions", "half"],
            "--fractions 'half' is not a list of",
        ),
        "shares": (
            ["train", store, "--fractions", "0.5,0.5"],
            "--fractions=(0.5, 0.5) must be three positive shares of 1",
        ),
        "group": (["train", store, "--by", "season"], "coordinate 'season' is missing"),
        "few groups": (
            ["train", store, "--by", "drought", "--fractions", "0.5,0.25,0.25"],
            "2 group(s) by drought cannot make three parts; add fires, or train on all snapshots",
        ),
        "field as group": (["train", store, "--by", "smoke"], "'smoke' has dimensions"),
        "floor": (["train", store, "--smoke-floor", "-1"], "--smoke-floor=-1.0 must be ≥ 0"),
        "input": (["train", store, "--inputs", "wind"], "variable 'wind' is missing; found"),
        "text input": (["train", store, "--inputs", "drought"], "'drought'"),
        "settings": (["train", store, "--settings", model], "has no settings; write them with"),
        "no settings": (["train", store, "--settings", "no.json"], "no.json"),
        "baseline": (["evaluate", model, store, "--baselines", "luck"], "baseline 'luck' is unkno"),
        "captured": (
            ["study", "all", "--data", store, "--captured", "2"],
            "--captured=2.0 is not within (0, 1); the paper takes 0.95",
        ),
        "ending": (["predict", model, store, "-o", f"{out}.csv"], "use .nc, .zarr or .tif"),
        "overwrite": (
            ["predict", model, store, "-o", model],
            "unknown file ending '.plume'; use .nc, .zarr or .tif",
        ),
        "degrees": (["tune", store, "--degrees", "one"], "--degrees 'one' is not a list"),
        "high degree": (["tune", store, "--degrees", "5"], "degree=5 is not one of 1…4"),
        "family": (["tune", store, "--families", "neutral"], "family 'neutral' is unknown; choose"),
        "folds": (["tune", store, "--folds", "99"], "in training cannot make 99 folds; add fires"),
        "rank by": (
            ["tune", store, "--rank-by", "luck"],
            "--rank-by='luck' is unknown; choose from",
        ),
        # What the parser itself finds.
        "command": (["forecast"], "forecast"),
        "option": (["train", store, "--speed", "9"], "--speed"),
        "argument": (["train"], "argument"),
        "number": (["train", store, "--degree", "two"], "--degree"),
        "value": (["train", store, "--degree"], "--degree"),
        "required option": (["predict", model, store], "--out"),
        "too many": (["info", store, store], "extra argument"),
    }


@pytest.mark.parametrize("name", bad_requests("", "", ""))
def test_bad_request_is_one_line_with_the_value(
    refused, trained, ensemble, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "model.plume"
    model.write_bytes(trained.read_bytes())
    arguments, said = bad_requests(str(ensemble.store), str(model), "out")[name]
    assert said in refused(*arguments)
    assert list(tmp_path.iterdir()) == [model], "something was written"
    assert model.read_bytes() == trained.read_bytes()


def test_failed_training_keeps_the_old_surrogate(refused, trained, ensemble, tmp_path):
    model = tmp_path / "smoke.plume"
    model.write_bytes(trained.read_bytes())
    refused("train", ensemble.store, "-o", model, "--fire-rank", "900")
    assert model.read_bytes() == trained.read_bytes()


@pytest.mark.parametrize(
    "folder", ["[bold]", "[2 by 2]", ":fire:", "back\\", "wide " + 90 * "w"], ids=str.split
)
def test_paths_are_printed_as_they_are(refused, succeed, trained, tmp_path, folder):
    path = tmp_path / folder / "smoke.plume"
    assert refused("info", path) == f"{path} does not exist"
    path.parent.mkdir()
    path.write_bytes(trained.read_bytes())
    assert succeed("info", path).splitlines()[0] == str(path)


def test_message_of_a_damaged_store_is_one_line(refused, ensemble, tmp_path):
    store = tmp_path / "damaged.zarr"
    append_fire(store, fires_of(ensemble.snapshots)[0])
    for path in (store / "snapshots").iterdir():
        path.write_bytes(b"damaged")
    assert str(store) in refused("info", store)


def test_interrupted_command_says_so_and_exits_130(run, ensemble, tmp_path, monkeypatch):
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plumecast.cli.commands.train, "train_surrogate", interrupt)
    result = run("train", ensemble.store, "-o", tmp_path / "smoke.plume")
    assert result.code == 130
    assert result.err.strip() == "stopped: nothing was written"
    assert list(tmp_path.iterdir()) == []


# Help, version, and the program itself


def plain(text: str) -> str:
    """Text without the frames, colours and line breaks of a terminal."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_an_example_of_it(succeed, command):
    assert f"Example: plumecast {command} " in plain(succeed(command, "--help"))


def test_help_names_every_command(succeed):
    text = plain(succeed("--help"))
    for command in COMMANDS:
        assert f" {command} " in text


def test_without_a_command_the_help_is_shown(run):
    result = run()
    assert "Usage: " in result.out + result.err
    assert "error:" not in result.err


def test_version_is_printed(succeed):
    assert succeed("--version") == f"plumecast {__version__}\n"


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "plumecast", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_program_fails_with_one_line_and_code_2(tmp_path):
    done = program("train", tmp_path / "nowhere.zarr")
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path / 'nowhere.zarr'} does not exist\n"
    assert done.stdout == ""


def test_debug_shows_the_traceback(tmp_path):
    done = program("--debug", "train", tmp_path / "nowhere.zarr")
    assert done.returncode != 0
    assert "Traceback (most recent call last)" in done.stderr
    assert f"PlumecastError: {tmp_path / 'nowhere.zarr'} does not exist" in done.stderr


def test_program_trains_and_describes_without_a_warning(ensemble, tmp_path):
    model = tmp_path / "smoke.plume"
    done = program("train", ensemble.store, "-o", model)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == ""
    assert f"wrote the surrogate to {model}\n" in done.stdout
    assert program("info", model).returncode == 0


def test_train_carries_smoke_by_the_weather_and_says_so(succeed, tmp_path):
    export_snapshots(weather_fires(8), tmp_path / "own.nc")
    model = tmp_path / "own.plume"
    printed = succeed(
        "train", tmp_path / "own.nc", "--layers", 1, "--physics", "column", "-o", model
    )
    assert "physics column" in printed
    assert "column" in succeed("info", model)
    succeed("predict", model, tmp_path / "own.nc", "-o", tmp_path / "smoke.nc")
