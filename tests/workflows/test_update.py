"""New ignitions of a store, one by one: scores before, new fits, held-out fires, growing stores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.data.store import append_fire
from plumecast.operators.settings import choose_settings, recorded_choices
from plumecast.workflows.fires.update import refit, take_in_fires, watch_store
from plumecast.workflows.held_out.unseen import curve_points, recommendation
from support.snapshots import fires_of, make_snapshots

LINEAR = {"preset": "paper-linear", "updatable": True}
FIELDS = ("time_since_ignition", "smoke")


@pytest.fixture(scope="module")
def data():
    return make_snapshots(fires=20)


def first(data, count: int):
    names = np.unique(data.ignition_id.values)[:count]
    return data.isel(snapshot=np.flatnonzero(np.isin(data.ignition_id.values, names)))


def unknown(data, surrogate):
    return data.isel(snapshot=~np.isin(data.fire_id, surrogate.training["fire_id"]))


@pytest.fixture(scope="module")
def trained(data):
    return pc.train_surrogate(first(data, 6), split=None, **LINEAR)


@pytest.fixture(scope="module")
def steps(trained, data):
    return list(take_in_fires(trained, data))


def test_ignitions_are_taken_in_one_by_one_and_scored_before(steps, trained, data):
    assert [step.group for step in steps] == [f"ignition-{n:02d}" for n in range(6, 10)]
    assert all(step.is_new and len(step.fires) == 2 and step.snapshots == 8 for step in steps)
    assert [step.score["ignitions"] for step in steps] == [6, 7, 8, 9]
    last = steps[-1].surrogate
    assert len(last.training["learning_curve"]) == 4
    at_once = trained.update(
        data.isel(snapshot=~np.isin(data.fire_id, trained.training["fire_id"]))
    )
    # The order of the new fires matters to truncated bases alone, by about what they leave out.
    np.testing.assert_allclose(
        last.predict(data).values, at_once.predict(data).values, atol=0.05 * float(data.smoke.max())
    )
    assert not list(take_in_fires(last, data)), "every ignition is taken in once"


def test_a_recommendation_needs_three_scores(steps):
    assert len(curve_points(steps[0].surrogate.training)) == 2  # out of fold, and one new ignition
    assert "cannot say yet" in recommendation(steps[0].surrogate, 4)
    said = recommendation(steps[-1].surrogate, 4, target=0.999)
    assert said.startswith("four more ignitions: IoU 0.")
    assert "IoU 0.999" in said


def test_the_held_out_parts_of_a_split_stay_apart(data):
    split = pc.train_surrogate(first(data, 8), **LINEAR)
    apart = set(split.training["held_out"])
    assert apart
    assert not apart & set(split.training["ignition_id"])
    groups = {step.group for step in take_in_fires(split, data)}
    assert groups == {"ignition-08", "ignition-09"}


def test_a_new_fit_is_that_of_all_fires(trained, data):
    last = list(take_in_fires(trained, data, refit_after=4))[-1]
    assert last.refitted
    expected = pc.train_surrogate(data, split=None, **LINEAR)
    np.testing.assert_array_equal(
        last.surrogate.predict(data).values, expected.predict(data).values
    )
    assert last.surrogate.training["ignitions_since_fit"] == 0
    assert len(last.surrogate.training["learning_curve"]) == 4
    assert last.surrogate.training["thresholds"] == expected.training["thresholds"]


def test_a_new_fit_needs_every_fire(trained, data):
    new = unknown(data, trained)
    with pytest.raises(PlumecastError, match="12 fires of this surrogate are in no given store"):
        next(take_in_fires(trained, new, refit_after=1))
    with pytest.raises(PlumecastError, match="name the store"):
        refit(trained, [new])
    step = next(take_in_fires(trained, new, refit_after=1, training=[first(data, 6)]))
    assert step.refitted


@pytest.mark.parametrize(
    "choices",
    [
        {"preset": "recommended"},
        {"preset": "paper-linear", "degree": 2, "fire_rank": 3},
        {"kernel": "matern-5/2", "length_scale": 2.0},
        {"preset": "quick", "layers": 1, "age_bins": 4},
    ],
)
def test_recorded_settings_give_the_same_fit(choices):
    settings = choose_settings(**choices)
    preset, again = recorded_choices(settings.record())
    assert choose_settings(preset, **again).family_settings == settings.family_settings


def test_a_growing_store_gives_whole_ignitions_once(tmp_path, data, monkeypatch):
    """An ignition with one of its two fires is not given before its second fire has been seen."""
    store = tmp_path / "growing.zarr"
    fires = list(fires_of(first(data, 3)))
    growth = iter([fires[:1], fires[1:2], [], fires[2:6], []])

    def grow(seconds: float) -> None:
        for fire in next(growth):
            append_fire(store, fire)

    monkeypatch.setattr("plumecast.workflows.fires.update.time.sleep", grow)
    seen = [
        set(part.fire_id.values.tolist())
        for part in itertools.islice(watch_store(store, 1.0, FIELDS), 2)
    ]
    assert [len(part) for part in seen] == [2, 6]
