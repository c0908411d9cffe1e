"""Updates at their edges: units, leaks, growing stores, stores that differ."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.data.split import DuplicateWarning, SplitRecipe
from plumecast.workflows.fires import update
from plumecast.workflows.fires.update import take_in_fires, watch_store
from plumecast.workflows.held_out.unseen import unseen_snapshots
from support.snapshots import make_snapshots
from support.two_outputs import add_surface
from support.weather_fires import weather_fires

LINEAR = {"preset": "paper-linear", "updatable": True}


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return make_snapshots(fires=20)


def pick(data: xr.Dataset, part: slice) -> xr.Dataset:
    names = np.unique(data.ignition_id.values)[part]
    return data.isel(snapshot=np.flatnonzero(np.isin(data.ignition_id.values, names)))


def with_later_hour(fires: xr.Dataset) -> xr.Dataset:
    """Fires whose weather is known for one more hour."""
    hours = fires.weather_hour.values
    return fires.reindex(weather_hour=[*hours, hours[-1] + 1.0], method="ffill")


def test_error_bars_of_every_output_gain_the_cells_of_new_fires(data):
    both = add_surface(data)
    names = ["smoke", "surface_smoke"]
    before = pc.train_surrogate(pick(both, slice(0, 6)), split=None, outputs=names, **LINEAR)
    assert before.outputs.fields[0].scale > 2.0  # the operator computes with scaled values
    new = pick(both, slice(6, 7))
    after = before.update(new)
    for name, bars in zip(names, after.calibrations(), strict=True):
        assert len(bars.groups) == 7
        assert bars.scores[-1][:, 1].sum() == (new[name].values > bars.tau).sum()


def test_fires_of_another_simulation_that_were_taken_in_are_not_unseen(data):
    first = pick(data, slice(0, 6)).assign_attrs(simulation=json.dumps({"seed": 1}))
    second = pick(data, slice(6, None)).assign_attrs(simulation=json.dumps({"seed": 2}))
    before = pc.train_surrogate(first, split=None, **LINEAR)
    (*_, last) = take_in_fires(before, second)
    recipe = SplitRecipe.from_record(last.surrogate.training["split"])
    found = unseen_snapshots(last.surrogate, recipe, second, ["smoke"])
    assert found.snapshots.sizes["snapshot"] == 0
    assert found.trained == np.unique(second.ignition_id.values).size


def test_a_copy_of_a_held_out_fire_does_not_bring_it_into_training(data):
    before = pc.train_surrogate(pick(data, slice(0, 8)), **LINEAR)
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


def test_a_store_with_some_of_the_droughts_of_training_is_taken_in(data):
    recipe = SplitRecipe(fractions=None, drought=["high", "low"])
    before = pc.train_surrogate(pick(data, slice(0, 6)), split=recipe, **LINEAR)
    new = pick(data, slice(6, 7))
    dry = new.isel(snapshot=np.flatnonzero(new.drought.values == "high"))
    (taken,) = take_in_fires(before, dry)
    assert taken.snapshots == dry.sizes["snapshot"]


def test_fires_below_the_size_of_training_are_not_taken_in(data):
    new = pick(data, slice(6, 7))
    limit = float(new.burned_area.min()) + 1.0
    recipe = SplitRecipe(fractions=None, min_acres=limit)
    before = pc.train_surrogate(pick(data, slice(0, 6)), split=recipe, **LINEAR)
    small = new.isel(snapshot=np.flatnonzero(new.burned_area.values < limit))
    assert list(take_in_fires(before, small)) == []


def test_a_watched_store_whose_only_ignition_grows_is_given_when_it_is_whole(
    data, tmp_path, monkeypatch
):
    one = pick(data, slice(0, 1))
    low = one.isel(snapshot=np.flatnonzero(one.drought.values == "low"))
    looks = iter([low, low, one, one])
    monkeypatch.setattr(update, "_open_if_any", lambda path, fields: next(looks))
    monkeypatch.setattr(update.time, "sleep", lambda seconds: None)
    given = itertools.islice(watch_store(tmp_path, 1.0, ["smoke"]), 2)
    sizes = [fires.sizes["snapshot"] for fires in given]
    assert sizes == [low.sizes["snapshot"], one.sizes["snapshot"]]


def test_a_new_fit_joins_stores_with_other_hours_of_weather_and_coordinates():
    fires = weather_fires(4)
    one, two = pick(fires, slice(0, 2)), pick(fires, slice(2, None))
    two = with_later_hour(two).assign_coords(crew=("snapshot", np.zeros(two.sizes["snapshot"])))
    joined = update._joined([one, two])
    assert joined.sizes["snapshot"] == fires.sizes["snapshot"]
    assert joined.sizes["weather_hour"] == two.sizes["weather_hour"]
    assert "crew" not in joined.variables
    np.testing.assert_array_equal(joined.smoke.values[: one.sizes["snapshot"]], one.smoke.values)


def test_an_output_of_another_model_is_not_continued(run, data, tmp_path):
    first, more = pick(data, slice(0, 6)), pick(data, slice(6, 7))
    pc.export_snapshots(more, tmp_path / "more.nc")
    model, out = tmp_path / "model.plume", tmp_path / "out.plume"
    pc.fit_surrogate(first, **LINEAR).save(out)
    pc.fit_surrogate(first, "paper-quadratic", updatable=True).save(model)
    result = run("update", model, tmp_path / "more.nc", "-o", out)
    assert result.code == 2
    assert "out.plume is a surrogate of other fires or settings than" in result.err


def test_stores_that_cannot_be_joined_are_refused_in_words(data):
    one = pick(data, slice(0, 1))
    with pytest.raises(PlumecastError, match="cannot be joined for a new fit"):
        update._joined([one, one.isel(x=slice(1, None))])
