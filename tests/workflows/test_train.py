"""A surrogate trained in Python and one trained by the command are the same file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.compute.resources import Resources
from plumecast.data.split import PAPER_FRACTIONS, SplitRecipe
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.workflows.train import train_surrogate
from support.snapshots import make_snapshots

SPLIT = {"seed": 3, "by": "fire_id", "fractions": (0.5, 0.25, 0.25), "min_acres": 1e4}
CASES = {
    "--preset paper-linear": {"preset": "paper-linear"},
    "--preset quick --layers 1": {"preset": "quick", "layers": 1},
    "--degree 1 --all --folds 2": {"degree": 1, "split": None, "folds": 2},
    "--degree 2 --fire-std 0.9 --lift burned,age-bins": {
        "degree": 2,
        "fire_std_fraction": 0.9,
        "lift": ["burned", "age-bins"],
    },
    "--degree 1 --seed 3 --by fire_id --fractions 0.50,0.25,0.25 --drought high,low "
    "--min-acres 1e4 --smoke-floor 1": {
        "degree": 1,
        "split": SplitRecipe(**SPLIT, drought=["high", "low"], smoke_floor=1.0),
    },
    "--degree 1 --all --drought low": {
        "degree": 1,
        "split": SplitRecipe(fractions=None, drought="low"),
    },
    "--degree 1 --outputs log_smoke": {"degree": 1, "outputs": "log_smoke"},
    "--preset paper-linear --memory 1MB": {
        "preset": "paper-linear",
        "resources": Resources(memory="1MB"),
    },
}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ensemble.zarr"
    append_fire(path, with_log_smoke(make_snapshots(fires=24)))
    return path


@pytest.mark.parametrize("words", CASES)
def test_python_and_the_command_write_the_same_bytes(succeed, store, tmp_path, words):
    succeed("train", store, "-o", tmp_path / "command.plume", *words.split())
    data = open_snapshots(store) if "quick" in words or "--all" in words else store
    train_surrogate(data, **CASES[words]).save(tmp_path / "python.plume")
    assert (tmp_path / "python.plume").read_bytes() == (tmp_path / "command.plume").read_bytes()


def test_a_trained_surrogate_is_evaluated_by_the_command(succeed, store, tmp_path):
    recipe = SplitRecipe(seed=2, drought="high", fractions=(0.5, 0.25, 0.25))
    pc.train_surrogate(store, "paper-linear", split=recipe).save(tmp_path / "smoke.plume")
    out = succeed("evaluate", tmp_path / "smoke.plume", store, "--baselines", "none")
    count = recipe.split(open_snapshots(store)).test.sizes["snapshot"]
    assert f"{count} test snapshots" in out


def test_the_record_has_the_split_and_the_thresholds(store):
    steps: list[str] = []
    resources = Resources(progress=lambda done, total, what: steps.append(what))
    training = train_surrogate(store, degree=1, resources=resources).training
    assert training["split"] == {
        "min_acres": None,
        "drought": None,
        "smoke_floor": None,
        "seed": 0,
        "by": "ignition_id",
        "fractions": "0.45,0.1,0.45",
        "inputs": "time_since_ignition",
        "outputs": "smoke",
        "all": False,
    }
    assert set(training["thresholds"]) == {"smoke", "decision"}
    assert [step for step in steps if ":" not in step] == ["reading", "fitting", "thresholds"]


def test_without_a_split_everything_is_for_training(store):
    data = open_snapshots(store)
    training = train_surrogate(data, degree=1, split=None).training
    assert not isinstance(data.smoke.variable._data, np.ndarray), "the field was loaded"
    assert training["snapshots"] == data.sizes["snapshot"]
    assert training["split"]["all"] is True
    assert training["out_of_fold"]["folds"] == 5
    assert training["out_of_fold"]["snapshots"] == training["snapshots"]
    assert "thresholds" not in train_surrogate(store, degree=1, split=None, folds=0).training


@pytest.mark.parametrize(
    "recipe",
    [SplitRecipe(), SplitRecipe(**SPLIT), SplitRecipe(drought=["low", "high"], fractions=None)],
)
def test_a_recipe_is_read_back_from_its_record(recipe):
    again = SplitRecipe.from_record(recipe.record() | {"inputs": "a,b", "all": False})
    assert again.record() == recipe.record()
    assert again.fractions is None or sum(again.fractions) == pytest.approx(1.0)


def test_a_record_of_an_old_file_is_read():
    assert SplitRecipe.from_record({}) == SplitRecipe(fractions=PAPER_FRACTIONS)
    old = {"drought": "low,high", "fractions": "0.6,0.2,0.2", "inputs": "x", "outputs": "y"}
    assert SplitRecipe.from_record(old) == SplitRecipe(
        drought=["low", "high"], fractions=[0.6, 0.2, 0.2]
    )


def test_a_recipe_without_fractions_makes_no_split(snapshots):
    with pytest.raises(PlumecastError, match="fractions=None makes no split"):
        SplitRecipe(fractions=None).split(snapshots)


def test_a_netcdf_store_gives_the_same_fit(store, tmp_path):
    data = open_snapshots(store)
    copy = export_snapshots(data, tmp_path / "copy.nc")
    one, two = (train_surrogate(source, degree=1).predict(data) for source in (store, copy))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ["data.nc", "data.zarr", "chunk.zarr"])
def test_data_that_change_during_the_fit_are_refused(tmp_path, name):
    """Validation is read after the fit: it must not come from another version of the file."""
    snapshots = make_snapshots(fires=24)
    path = export_snapshots(snapshots, tmp_path / name)
    other = export_snapshots(snapshots.assign(smoke=100.0 * snapshots.smoke), tmp_path / f"o{name}")

    def change_while_fitting(done: int, total: int, step: str) -> None:
        if step == "fitting" and name == "chunk.zarr":
            chunk = max((path / "smoke").rglob("*"), key=lambda item: item.is_file())
            chunk.write_bytes(chunk.read_bytes())
        elif step == "fitting":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            other.rename(path)

    with pytest.raises(PlumecastError, match=f"{path} changed while it was read"):
        train_surrogate(path, "paper-linear", resources=Resources(progress=change_while_fitting))


def test_data_in_memory_may_lose_their_file(tmp_path):
    path = export_snapshots(make_snapshots(fires=24), tmp_path / "data.nc")
    loaded = open_snapshots(path).load()
    path.unlink()
    assert "thresholds" in train_surrogate(loaded, "paper-linear").training
