"""`info --check` says what `train` refuses, each in words of the other."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.names import SNAPSHOT
from plumecast.data.store import export_snapshots
from support.snapshots import make_snapshots


@pytest.fixture(scope="module")
def snapshots():
    return make_snapshots(fires=8, checkpoints=3, shape=(6, 8))


def negative(data):
    data.smoke.values[4] = -1.0
    return data


def not_finite(data):
    data.time_since_ignition.values[2, 0, 0] = np.nan
    return data


def two_ignitions(data):
    data.ignition_id.values[0] = data.ignition_id.values[-1]
    return data


def twice(data):
    data.hours.values[1] = data.hours.values[0]
    return data


def bad_area(data):
    data.burned_area.values[0] = np.nan
    return data


def unknown_wind(data):
    winds = {"wind_speed": "m s-1", "wind_from_direction": "degree"}
    values = np.where(np.arange(data.sizes[SNAPSHOT]) == 3, np.nan, 5.0)
    return data.assign_coords({n: (SNAPSHOT, values, {"units": u}) for n, u in winds.items()})


def one_ignition(data):
    return data.isel({SNAPSHOT: data.ignition_id.values == data.ignition_id.values[0]})


def no_smoke(data):
    return data.assign(smoke=0.0 * data.smoke.assign_attrs(data.smoke.attrs))


def no_fire(data):
    data.time_since_ignition.values[:] = 0.0
    return data


def shuffled(data):
    data["x"] = ("x", data.x.values[[0, 2, 1, *range(3, data.sizes["x"])]], data.x.attrs)
    return data


def uneven(data):
    data["y"] = ("y", data.y.values**1.1, data.y.attrs)
    return data


def constant(data):
    data["x"] = ("x", np.zeros(data.sizes["x"]), data.x.attrs)
    return data


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (negative, "negative"),
        (not_finite, "time_since_ignition"),
        (two_ignitions, "two ignitions"),
        (twice, "two snapshots at"),
        (bad_area, "burned_area"),
        (unknown_wind, "wind_speed"),
        (one_ignition, "at least 2 'ignition_id'"),
        (no_smoke, "smoke"),
        (no_fire, ""),
        (shuffled, "'x' is not evenly spaced"),
        (uneven, "'y' is not evenly spaced"),
        (constant, "'x' is not evenly spaced"),
    ],
)
def test_check_says_what_training_refuses(snapshots, tmp_path, run, spoil, said):
    path = tmp_path / "bad.nc"
    export_snapshots(spoil(snapshots.copy(deep=True)), path)
    trained = run("train", path, "--all", "--folds", "0", "-o", tmp_path / "m.plume")
    assert trained.code == 2
    assert said in trained.err
    checked = run("info", path, "--check")
    assert checked.code in (1, 2)
    assert said in checked.out + checked.err


def test_clean_snapshots_are_trained_and_checked_without_a_finding(snapshots, tmp_path, run):
    path = export_snapshots(snapshots, tmp_path / "good.nc")
    assert run("info", path, "--check").code == 0
    model = tmp_path / "m.plume"
    assert run("train", path, "--all", "--folds", "0", "--layers", "1", "-o", model).code == 0
