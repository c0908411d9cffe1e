"""The command line: train, look, score, predict, tune; an error is one line and exit code 2."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from plumecast.base.version import __version__
from plumecast.data.schema import apply_smoke_floor, drop_small_fires, select_drought
from plumecast.data.split import split_by_fire
from plumecast.data.store import export_snapshots, open_snapshots
from plumecast.surrogate.baselines import BASELINES
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from plumecast.workflows.evaluate import fit_thresholds
from support.quantities import settled

# train


def test_train_equals_the_functions_of_the_library(trained, ensemble):
    loaded = load_surrogate(trained)
    split = split_by_fire(open_snapshots(ensemble.store))
    expected = fit_surrogate(split.train.load(), "paper-linear")
    np.testing.assert_array_equal(loaded.predict(split.test), expected.predict(split.test))
    assert loaded.settings == expected.settings
    assert loaded.training["data_version"] == ensemble.version
    thresholds = fit_thresholds(loaded, split.validation.load())
    recorded = {"smoke": thresholds.smoke, "decision": thresholds.decision}
    assert loaded.training["thresholds"] == recorded


def test_train_says_what_it_did_and_where_it_wrote(succeed, ensemble, tmp_path):
    model = tmp_path / "new" / "smoke.plume"
    kernel = ("--kernel", "polynomial-1 + matern-5/2", "--fire-rank", 4)
    out = succeed("train", ensemble.store, "-o", model, *kernel)
    training = load_surrogate(model).training
    ranks = f"ranks 4 → {training['smoke_rank']}, length scale {training['length_scale']:.3g}"
    assert f"{ranks}, penalty {training['penalty']:.4g}\n" in out
    assert f"wrote the surrogate to {model}\n" in out
    assert f"next: plumecast evaluate {model} {ensemble.store}\n" in out
    error = training["leave_out_error"]
    assert 0.0 < error < 1.0
    inner = f"inner error  {error:.3g}: relative error, of training fires left out in turn"
    assert inner in succeed("info", model)


def test_device_and_memory_change_nothing(run, succeed, ensemble, tmp_path):
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
    for extra in (["--baselines", "mean-field"], ["--device", "torch", "--memory", "1MB"]):
        result = run("evaluate", plain, ensemble.store, "--json", tmp_path / "scores.json", *extra)
        assert ("only the mean field is shown" in result.err) == ("--memory" in extra)
        written = json.loads((tmp_path / "scores.json").read_text())["scores"]
        scores.append(np.array([(score["iou"], score["auc"]) for score in written], dtype=float))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-8)
    for number, extra in enumerate(([], ["--device", "torch", "--memory", "1MB"])):
        succeed("predict", plain, ensemble.store, "-o", tmp_path / f"{number}.nc", *extra)
    first, second = (xr.load_dataset(tmp_path / f"{n}.nc") for n in range(2))
    np.testing.assert_allclose(second.smoke, first.smoke, rtol=1e-5)


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
            f"{score['mass_ratio']:.2f}",
            f"{score['predict_ms']:.2f}",
        ]
    low, middle, high = (written["scores"][0][f"mass_ratio{end}"] for end in ("_low", "", "_high"))
    assert low <= middle <= high
    mass = (
        f"'paper-linear' is {middle:.2f}, and 80 % of the fires lie within {low:.2f} … {high:.2f}"
    )
    assert mass in " ".join(out.split())
    title = f"{written['test_snapshots']} test snapshots, smoke above "
    title += f"{written['smoke_threshold']:.3g} (sum over checkpoints; 95% of the footprint)"
    assert title in " ".join(out.split())  # a long title has two lines
    assert f"wrote the scores to {where}\n" in out
    recorded = {"model": str(trained), "data": str(ensemble.store), "captured": 0.95}
    recorded |= {"plumecast": __version__, "data_version": ensemble.version}
    assert recorded.items() <= written.items()
    assert written["test_snapshots"] == split_by_fire(ensemble.snapshots).test.sizes["snapshot"]


# predict


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_predict_writes_what_the_surrogate_predicts(succeed, trained, ensemble, tmp_path, ending):
    where = tmp_path / f"smoke.{ending}"
    out = succeed("predict", trained, ensemble.store, "-o", where)
    assert out == (
        "predicted 96 snapshots\n"
        "smoke_mean: time-mean column concentration of smoke since ignition (µg m⁻³)\n"
        "smoke: sum of column-mean smoke concentrations over checkpoints, as predicted\n"
        "9 of 96 snapshots lie beyond the training fires (far_from_training_fires 9)\n"
        f"wrote the smoke to {where}\n"
    )
    written = open_snapshots(where, fields=["smoke"])
    expected = settled(load_surrogate(trained), open_snapshots(ensemble.store))
    assert "over checkpoints 6 h apart" in written.smoke.attrs.pop("comment")
    xr.testing.assert_identical(written.smoke.load().drop_vars("extrapolates"), expected)


def test_footprint_is_smoke_above_the_decision_threshold(succeed, trained, ensemble, tmp_path):
    where = tmp_path / "smoke.zarr"
    succeed("predict", trained, ensemble.store, "-o", where, "--footprint")
    written = open_snapshots(where, fields=["smoke"])
    alpha = load_surrogate(trained).training["thresholds"]["decision"]
    assert written.footprint.attrs["decision_threshold"] == alpha
    np.testing.assert_array_equal(written.footprint, written.smoke > alpha)
    assert 0.0 < float(written.footprint.mean()) < 1.0


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
    other = ("--settings", tuned, "--penalty", 7.5, "--seed", 9)
    succeed("train", ensemble.store, "-o", model, *other)
    training = load_surrogate(model).training
    assert (training["penalty"], training["split"]["seed"]) == (7.5, 9)


# Errors: one line, exit code 2, nothing written

REFUSED = [
    ("train nowhere.zarr", "nowhere.zarr does not exist"),
    ("evaluate no.plume STORE", "no.plume does not exist or is not"),
    ("info nowhere", "nowhere does not exist"),
    ("predict MODEL a.asc -o s.nc", "a.asc: expected one snapshot store; for"),
    ("predict STORE STORE -o out.nc", "is a folder; here a surrogate is needed"),
    ("train MODEL", "is a saved surrogate; here a store of fires is needed"),
    ("train STORE --preset cubic", "preset 'cubic' is unknown; choose from"),
    ("train STORE --degree 7", "--degree=7 is not one of 1…4"),
    ("train STORE --penalty -1", "--penalty=-1 must be ≥ 0"),
    ("train STORE --kernel box", "kernel 'box' is unknown; choose from pol"),
    ("train STORE --kernel matern-5/2 --length-scale 0",
     "--length-scale=0 must be a finite number above 0"),
    ("train STORE --kernel matern-5/2 --length-scale 1e-5", "--length-scale=1e-05 is so short"),
    ("train STORE -o MODEL --fire-rank 900", "rank=900 exceeds 40, the rank of 40"),
    ("train STORE --drought wet", "drought 'wet' is not in the data; found"),
    ("train STORE --min-acres 1e9", "no snapshot has a burned area of 1e+09"),
    ("train STORE --fractions half", "--fractions='half' is not a list of"),
    ("train STORE --fractions 0.5,0.5", "--fractions=(0.5, 0.5) must be three positive shares"),
    ("train STORE --by season", "coordinate 'season' is missing"),
    ("train STORE --by drought --fractions 0.5,0.25,0.25",
     "2 group(s) by drought cannot make three parts; add fires, or train on all snapshots"),
    ("train STORE --by smoke", "'smoke' has dimensions"),
    ("train STORE --smoke-floor -1", "--smoke-floor=-1 must be ≥ 0"),
    ("train STORE --inputs wind", "variable 'wind' is missing; found"),
    ("train STORE --inputs drought", "'drought'"),
    ("train STORE --settings MODEL", "has no settings; write them with"),
    ("train STORE --settings no.json", "no.json"),
    ("train STORE --device abacus",
     "device 'abacus' is unknown; choose from cpu, cuda, cupy, torch"),
    ("evaluate MODEL STORE --baselines luck", "baseline 'luck' is unkno"),
    ("study all --data STORE --captured 2",
     "--captured=2 is not within (0, 1); the paper takes 0.95"),
    ("predict MODEL STORE -o out.csv", "use .nc, .zarr or .tif"),
    ("predict MODEL STORE -o MODEL", "unknown file ending '.plume'; use .nc, .zarr or .tif"),
    ("tune STORE --degrees one", "--degrees='one' is not a list"),
    ("tune STORE --degrees 5", "degree=5 is not one of 1…4"),
    ("tune STORE --families neutral", "family 'neutral' is unknown; choose"),
    ("tune STORE --folds 99", "in training cannot make 99 folds; add fires"),
    ("tune STORE --rank-by luck", "--rank-by='luck' is unknown; choose from"),
    # What the parser itself finds.
    ("forecast", "forecast"),
    ("train STORE --speed 9", "--speed"),
    ("train", "argument"),
    ("train STORE --degree two", "--degree"),
    ("train STORE --degree", "--degree"),
    ("predict MODEL STORE", "--out"),
    ("info STORE STORE", "extra argument"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "names"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_bad_request_is_one_line(refused, trained, ensemble, tmp_path, monkeypatch, line, names):
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "model.plume"
    model.write_bytes(trained.read_bytes())
    paths = {"STORE": ensemble.store, "MODEL": model}
    assert names in refused(*(paths.get(word, word) for word in line.split()))
    assert list(tmp_path.iterdir()) == [model], "something was written"
    assert model.read_bytes() == trained.read_bytes()


# The program itself


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "plumecast", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_program_fails_with_one_line_and_code_2_or_with_a_traceback(tmp_path):
    message = f"{tmp_path / 'nowhere.zarr'} does not exist\n"
    done = program("train", tmp_path / "nowhere.zarr")
    assert (done.returncode, done.stderr, done.stdout) == (2, f"error: {message}", "")
    done = program("--debug", "train", tmp_path / "nowhere.zarr")
    assert done.returncode != 0
    assert "Traceback (most recent call last)" in done.stderr
    assert f"PlumecastError: {message}" in done.stderr


def test_program_describes_without_a_warning(trained):
    done = program("info", trained)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{trained}\n")
