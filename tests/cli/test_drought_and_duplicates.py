"""Labels of stored fires on the command line, and copies of fires that must not leak."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.data.split import DuplicateWarning, find_duplicates, split_by_fire
from plumecast.data.store import export_snapshots
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from support.quantities import settled
from support.snapshots import make_snapshots, select_fire


@pytest.fixture(scope="module")
def model(ensemble, tmp_path_factory) -> Path:
    """A surrogate that distinguishes the droughts low and high."""
    path = tmp_path_factory.mktemp("drought") / "smoke.plume"
    fit_surrogate(ensemble.snapshots, degree=1, covariates="drought").save(path)
    return path


def labelled(fires: xr.Dataset, drought: str) -> xr.Dataset:
    return fires.assign_coords(drought=("snapshot", np.full(fires.sizes["snapshot"], drought)))


def test_predict_gives_a_drought_to_fires_without_one(succeed, refused, model, tmp_path):
    fires = make_snapshots(fires=4)
    store = export_snapshots(labelled(fires, "unknown"), tmp_path / "fires.nc")
    said = refused("predict", model, store, "-o", tmp_path / "none.nc")
    assert "drought 'unknown' was not in training" in said
    succeed("predict", model, store, "--drought", "high", "-o", tmp_path / "smoke.nc")
    with xr.open_dataset(tmp_path / "smoke.nc", decode_timedelta=False) as predicted:
        expected = settled(load_surrogate(model), labelled(fires, "high"))
        np.testing.assert_array_equal(predicted.smoke, expected.astype("f4"))
        assert set(predicted.drought.values) == {"high"}
    succeed("ensemble", model, store, "--drought", "high", "-o", tmp_path / "stats.nc")


def test_the_label_of_a_stored_fire_wins(refused, model, tmp_path):
    store = export_snapshots(make_snapshots(fires=4), tmp_path / "fires.nc")
    for command in ("predict", "ensemble"):
        said = refused(command, model, store, "--drought", "high", "-o", tmp_path / "out.nc")
        assert said == (
            "fire 'fire-00-low' is stored with drought 'low', which is not changed by "
            "'high'; leave that out to use the stored label, or change it with "
            "plumecast ingest wrf --relabel"
        )


def with_copies(copies: int = 8) -> xr.Dataset:
    """Twelve fires, and copies of some under other names, each an ignition of its own."""
    fires = make_snapshots(fires=12, droughts=("low",))
    names = list(dict.fromkeys(fires.fire_id.values.tolist()))[:copies]
    parts = [fires]
    for name in names:
        copy = select_fire(fires, name)
        label = np.full(copy.sizes["snapshot"], f"copy-of-{name}")
        parts.append(
            copy.assign_coords(fire_id=("snapshot", label), ignition_id=("snapshot", label))
        )
    return xr.concat(parts, "snapshot")


def test_train_names_copies_and_keeps_them_in_one_part(run, tmp_path):
    store = export_snapshots(with_copies(), tmp_path / "ensemble.nc")
    model = tmp_path / "smoke.plume"
    result = run("train", store, "--degree", "1", "-o", model)
    assert result.code == 0, result.err
    (line,) = [line for line in result.err.splitlines() if "under several names" in line]
    assert line.startswith("warning: 16 fires are only 8 different runs under several names (")
    assert "copy-of-fire-00-low = fire-00-low" in line
    trained = set(load_surrogate(model).training["fire_id"])
    for name in trained:
        twin = name.removeprefix("copy-of-") if "copy" in name else f"copy-of-{name}"
        assert twin in trained or int(name[-6:-4]) >= 8
    assert run("evaluate", model, store).code == 0


@pytest.mark.parametrize("by", ["ignition_id", "fire_id"])
def test_no_part_of_a_split_has_a_copy_of_another_part(by):
    for seed in range(2):
        with pytest.warns(DuplicateWarning, match="8 different runs"):
            split = split_by_fire(with_copies(), seed=seed, by=by)
        parts = [
            {name.removeprefix("copy-of-") for name in part.fire_id.values.tolist()}
            for part in (split.train, split.validation, split.test)
        ]
        assert sum(map(len, parts)) == len(set().union(*parts))


def test_fires_that_only_begin_alike_or_burn_the_same_area_are_no_copies():
    fires = make_snapshots(fires=12)
    first = fires.time_since_ignition.values[fires.hours.values == 6.0]
    for fire in range(0, 12, 2):  # one ignition under two droughts
        first[fire + 1] = first[fire]
    fires.time_since_ignition.values[fires.hours.values == 6.0] = first
    same = fires.assign_coords(burned_area=("snapshot", np.full(48, 7.0), {"units": "acre"}))
    assert find_duplicates(same) == []
    split_by_fire(same)  # a warning would be an error
