"""New ignitions of a store, one by one: scores, new fits, held-out fires, growing stores."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.data.split import DuplicateWarning, SplitRecipe
from plumecast.data.store import append_fire
from plumecast.operators.settings import choose_settings, recorded_choices
from plumecast.workflows.fires import update
from plumecast.workflows.fires.update import refit, take_in_fires, watch_store
from plumecast.workflows.held_out.unseen import curve_points, recommendation, unseen_snapshots
from support.snapshots import fires_of, make_snapshots
from support.two_outputs import add_surface
from support.weather_fires import weather_fires

LINEAR = {"preset": "paper-linear", "updatable": True}
FIELDS = ("time_since_ignition", "smoke")


@pytest.fixture(scope="module")
def data():
    return make_snapshots(fires=20)


def ignitions(data, start: int, stop: int | None = None):
    names = np.unique(data.ignition_id.values)[start:stop]
    return data.isel(snapshot=np.flatnonzero(np.isin(data.ignition_id.values, names)))


@pytest.fixture(scope="module")
def trained(data):
    return pc.train_surrogate(ignitions(data, 0, 6), split=None, **LINEAR)


@pytest.fixture(scope="module")
def steps(trained, data):
    return list(take_in_fires(trained, data))


def test_ignitions_are_taken_in_one_by_one_and_scored_before(steps, trained, data):
    assert [step.group for step in steps] == [f"ignition-{n:02d}" for n in range(6, 10)]
    assert all(step.is_new and len(step.fires) == 2 and step.snapshots == 8 for step in steps)
    assert [step.score["ignitions"] for step in steps] == [6, 7, 8, 9]
    last = steps[-1].surrogate
    assert len(last.training["learning_curve"]) == 4
    at_once = trained.update(ignitions(data, 6))
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
    split = pc.train_surrogate(ignitions(data, 0, 8), **LINEAR)
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
    new = ignitions(data, 6)
    with pytest.raises(PlumecastError, match="12 fires of this surrogate are in no given store"):
        next(take_in_fires(trained, new, refit_after=1))
    with pytest.raises(PlumecastError, match="name the store"):
        refit(trained, [new])
    step = next(take_in_fires(trained, new, refit_after=1, training=[ignitions(data, 0, 6)]))
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
    fires = list(fires_of(ignitions(data, 0, 3)))
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


def with_later_hour(fires: xr.Dataset) -> xr.Dataset:
    """Fires whose weather is known for one more hour."""
    hours = fires.weather_hour.values
    return fires.reindex(weather_hour=[*hours, hours[-1] + 1.0], method="ffill")


def test_error_bars_of_every_output_gain_the_cells_of_new_fires(data):
    both = add_surface(data)
    names = ["smoke", "surface_smoke"]
    before = pc.train_surrogate(ignitions(both, 0, 6), split=None, outputs=names, **LINEAR)
    assert before.outputs.fields[0].scale > 2.0  # the operator computes with scaled values
    new = ignitions(both, 6, 7)
    after = before.update(new)
    for name, bars in zip(names, after.calibrations(), strict=True):
        assert len(bars.groups) == 7
        assert bars.scores[-1][:, 1].sum() == (new[name].values > bars.tau).sum()


def test_fires_of_another_simulation_that_were_taken_in_are_not_unseen(data):
    first = ignitions(data, 0, 6).assign_attrs(simulation=json.dumps({"seed": 1}))
    second = ignitions(data, 6).assign_attrs(simulation=json.dumps({"seed": 2}))
    before = pc.train_surrogate(first, split=None, **LINEAR)
    (*_, last) = take_in_fires(before, second)
    recipe = SplitRecipe.from_record(last.surrogate.training["split"])
    found = unseen_snapshots(last.surrogate, recipe, second, ["smoke"])
    assert found.snapshots.sizes["snapshot"] == 0
    assert found.trained == np.unique(second.ignition_id.values).size


def test_a_copy_of_a_held_out_fire_does_not_bring_it_into_training(data):
    before = pc.train_surrogate(ignitions(data, 0, 8), **LINEAR)
    group = before.training["held_out"][0]
    held = data.isel(snapshot=np.flatnonzero(data.ignition_id.values == group))
    names = [f"a-{name}" for name in held.fire_id.values.astype(str)]
    copy = held.assign_coords(
        ignition_id=("snapshot", ["a-new"] * len(names)), fire_id=("snapshot", names)
    )
    copy["smoke"] = copy.smoke * 1.01
    store = xr.concat(
        [data, copy], "snapshot", data_vars="minimal", coords="minimal", compat="override"
    )
    with pytest.warns(DuplicateWarning, match="2 different runs"):
        (*_, last) = take_in_fires(before, store)
    learned = set(last.surrogate.training["fire_id"])
    assert not learned & {*names, *held.fire_id.values.astype(str)}


@pytest.mark.parametrize("rule", ["drought", "size"])
def test_new_fires_are_chosen_as_those_of_training(data, rule):
    """Of some droughts all are taken in; fires below the least size are left out."""
    new = ignitions(data, 6, 7)
    dry, area = new.drought.values == "high", new.burned_area.values
    limit = float(area.min()) + 1.0
    recipe, rows, taken = {
        "drought": (SplitRecipe(fractions=None, drought=["high", "low"]), dry, [dry.sum()]),
        "size": (SplitRecipe(fractions=None, min_acres=limit), area < limit, []),
    }[rule]
    before = pc.train_surrogate(ignitions(data, 0, 6), split=recipe, **LINEAR)
    steps = take_in_fires(before, new.isel(snapshot=np.flatnonzero(rows)))
    assert [step.snapshots for step in steps] == taken


def test_a_new_fit_joins_stores_with_other_hours_of_weather_and_coordinates():
    fires = weather_fires(4)
    one, two = ignitions(fires, 0, 2), ignitions(fires, 2)
    two = with_later_hour(two).assign_coords(crew=("snapshot", np.zeros(two.sizes["snapshot"])))
    joined = update._joined([one, two])
    assert joined.sizes["snapshot"] == fires.sizes["snapshot"]
    assert joined.sizes["weather_hour"] == two.sizes["weather_hour"]
    assert "crew" not in joined.variables
    np.testing.assert_array_equal(joined.smoke.values[: one.sizes["snapshot"]], one.smoke.values)
    with pytest.raises(PlumecastError, match="cannot be joined for a new fit"):
        update._joined([one, one.isel(x=slice(1, None))])


def test_an_output_of_another_model_is_not_continued(run, data, tmp_path):
    first, more = ignitions(data, 0, 6), ignitions(data, 6, 7)
    pc.export_snapshots(more, tmp_path / "more.nc")
    model, out = tmp_path / "model.plume", tmp_path / "out.plume"
    pc.fit_surrogate(first, **LINEAR).save(out)
    pc.fit_surrogate(first, "paper-quadratic", updatable=True).save(model)
    result = run("update", model, tmp_path / "more.nc", "-o", out)
    assert result.code == 2
    assert "out.plume is a surrogate of other fires or settings than" in result.err
