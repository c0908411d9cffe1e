"""The study of fires with their own weather: sizes, methods, carried smoke alone, kept rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT, WEATHER
from plumecast.data.covariates import extrapolating
from plumecast.data.split import split_by_fire
from plumecast.paper import learning_curve, shift
from plumecast.paper.context import Context
from plumecast.paper.methods import fit_physics_alone
from support.snapshots import make_snapshots
from support.study_runs import SMALL, three_droughts

SINGLE = 1e-5
"""Relative: smoke is stored and carried in single precision."""


def with_hourly_weather(snapshots: xr.Dataset) -> xr.Dataset:
    """Snapshots with the wind of each at two heights, in every hour."""
    hours, heights = np.arange(0.0, 13.0), np.array([10.0, 3000.0])
    angle = np.deg2rad(snapshots.wind_from_direction.values)
    shape = (angle.size, hours.size, heights.size)
    speed = snapshots.wind_speed.values
    fields = {
        "wind_u": np.broadcast_to((-speed * np.sin(angle))[:, None, None], shape),
        "wind_v": np.broadcast_to((-speed * np.cos(angle))[:, None, None], shape),
        "boundary_layer_depth": np.full(shape[:2], 1200.0),
    }
    entries = {entry.name: (entry.dims, fields[entry.name], entry.attrs) for entry in WEATHER}
    return snapshots.assign(entries).assign_coords(weather_hour=hours, height=heights)


@pytest.fixture(scope="module")
def windy() -> xr.Dataset:
    return with_hourly_weather(three_droughts())


def test_sizes_are_those_that_the_training_part_has():
    assert learning_curve.training_sizes((8, 16, 100), 40) == [8, 16]
    assert learning_curve.training_sizes((8, 16), 5) == [5]
    with pytest.raises(PlumecastError, match="2 training ignitions are too few"):
        learning_curve.training_sizes((8,), 2)


def test_without_weather_only_methods_that_need_none_are_compared():
    calm = Context(split_by_fire(make_snapshots(fires=16)), limits=SMALL)
    assert not set(learning_curve.CARRIED) & set(learning_curve.methods_of(calm))
    finding = learning_curve.run_weather(calm)
    assert (
        "No smoke was carried, because the data has no weather."
        in learning_curve.weather_remarks(finding)
    )
    assert "map_physics-alone" not in finding


def test_physics_alone_finds_the_factor_of_carried_smoke(windy):
    unit = fit_physics_alone(windy)
    factor = 3.7 / unit.training["factor"]
    smoke = factor * unit.predict(windy).transpose(*windy[SMOKE].dims).values
    carried = windy.assign({SMOKE: windy[SMOKE].copy(data=smoke)})
    found = fit_physics_alone(carried)
    assert found.training["factor"] == pytest.approx(3.7, rel=SINGLE)
    np.testing.assert_allclose(found.predict(carried), smoke, atol=SINGLE * smoke.max())
    empty = windy.assign({FIRE: xr.zeros_like(windy[FIRE])})
    with extrapolating():
        assert not found.predict(empty).any()


def test_physics_alone_says_how_to_give_the_weather():
    with pytest.raises(PlumecastError, match="needs the weather of every fire; give --weather"):
        fit_physics_alone(make_snapshots(fires=4))


def test_a_kept_row_is_computed_once_until_the_data_changes(split, tmp_path):
    calls = []

    def make() -> dict[str, float]:
        calls.append(1)
        return {"iou": 0.5}

    def again(fingerprint: str) -> dict[str, float]:
        kept = Context(split, fingerprint=fingerprint, folder=tmp_path, limits=SMALL)
        return kept.kept("weather recommended 8 0", ("scored",), make)

    assert [again("one"), again("one")] == [{"iou": 0.5}] * 2
    assert len(calls) == 1
    again("two")
    assert len(calls) == 2
    (tmp_path / "rows" / "weather-recommended-8-0.json").write_text("{")
    again("two")
    assert len(calls) == 3


def test_maps_show_fires_whose_winds_differ(windy):
    rows = learning_curve.different_winds(windy, 3)
    shown = windy.isel({SNAPSHOT: rows})
    assert len(set(shown.fire_id.values)) == 3
    assert shown.is_final.all()
    assert len(set(shown.wind_from_direction.values)) == 3


def test_the_shift_carries_smoke_if_the_data_has_hourly_weather(windy):
    assert shift.spectral_kinds(windy) == [
        shift.PLAIN, shift.WIND_FRAME, shift.CARRIED_ON_MAP, shift.CARRIED,
    ]  # fmt: skip
    assert shift.spectral_kinds(three_droughts()) == [shift.PLAIN, shift.WIND_FRAME]
    split = split_by_fire(windy)
    two = replace(SMALL, shift_train=12, scored=8)
    kinds = [shift.CARRIED]
    part = split.train.isel({SNAPSHOT: slice(0, 12)})
    context = Context(replace(split, train=part), limits=two)
    tests = {"high": shift._drought(split.test, ["high"])}
    *_, row = shift.scores_after(context, np.random.default_rng(0), ["low"], tests, kinds)
    assert (row["method"], row["covariates"], row["physics"]) == ("recommended", 1, 1)
    assert 0.0 <= row["iou"] <= 1.0
