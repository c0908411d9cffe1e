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


def set_value(name, index, value):
    """Set one value of a variable; `value` may be the index of another one of its values."""

    def spoil(data):
        values = data[name].values
        values[index] = values[value] if isinstance(value, int) else value
        return data

    return spoil


def on_axis(name, move):
    return lambda data: data.assign_coords(
        {name: (name, move(data[name].values), data[name].attrs)}
    )


def unknown_wind(data):
    winds = {"wind_speed": "m s-1", "wind_from_direction": "degree"}
    values = np.where(np.arange(data.sizes[SNAPSHOT]) == 3, np.nan, 5.0)
    return data.assign_coords({n: (SNAPSHOT, values, {"units": u}) for n, u in winds.items()})


def one_ignition(data):
    return data.isel({SNAPSHOT: data.ignition_id.values == data.ignition_id.values[0]})


def swap(values):
    return values[[0, 2, 1, *range(3, values.size)]]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (set_value("smoke", 4, -1.0), "negative"),
        (set_value("time_since_ignition", (2, 0, 0), np.nan), "time_since_ignition"),
        (set_value("ignition_id", 0, -1), "two ignitions"),
        (set_value("hours", 1, 0), "two snapshots at"),
        (set_value("burned_area", 0, np.nan), "burned_area"),
        (unknown_wind, "wind_speed"),
        (one_ignition, "at least 2 'ignition_id'"),
        (set_value("smoke", slice(None), 0.0), "smoke"),
        (set_value("time_since_ignition", slice(None), 0.0), ""),
        (on_axis("x", swap), "'x' is not evenly spaced"),
        (on_axis("y", lambda values: values**1.1), "'y' is not evenly spaced"),
        (on_axis("x", np.zeros_like), "'x' is not evenly spaced"),
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
