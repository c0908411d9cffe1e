"""One clock: smoke is a function of time, whatever hours are asked for and however labels fall."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plumecast as pc
from plumecast.data.clock import record_interval, take_final
from plumecast.scores.reading import Reading
from plumecast.surrogate.weather import fire_history
from plumecast.weather.snapshots import CompletedWeather, complete_weather, with_mean_winds
from plumecast.workflows.fires.hours import BeyondLastMap, ages_at
from plumecast.workflows.fires.sources import Overrides
from plumecast.workflows.predict import predict_store
from plumecast.workflows.statistics.request import Statistics
from support.weather_fires import true_doses, weather_fires

FAMILIES = {
    "spectral": {"preset": "recommended", "physics": "calibrated"},
    "spectral, one layer": {"preset": "quick", "physics": "column", "frame": "map"},
    "unet": {"family": "unet", "physics": "column", "epochs": 3},
    "coded": {
        "family": "coded",
        "lift": "age-bins",
        "targets": ["log", "smoke"],
        "physics": "column",
        "kernel": "matern-5/2",
    },
}
"""Families with smoke that the weather carries; a network with an epoch hardly follows the fire."""

LONGEST = 9.0  # h, of the fires
SLOW = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def train() -> xr.Dataset:
    return record_interval(weather_fires(10))


@pytest.fixture(scope="module")
def fires() -> xr.Dataset:
    """Two fires that were not in training."""
    return record_interval(weather_fires(12)).isel(snapshot=slice(30, None)).drop_vars("smoke")


@pytest.fixture(scope="module")
def quick(train) -> pc.Surrogate:
    return pc.fit_surrogate(train, **FAMILIES["spectral, one layer"])


@pytest.fixture(scope="module", params=FAMILIES)
def surrogate(request, train) -> pc.Surrogate:
    if request.param == "unet":
        pytest.importorskip("torch")
    made = pc.fit_surrogate(train, **FAMILIES[request.param])
    assert made.operator.needs_weather
    return made


def doses(surrogate: pc.Surrogate, fires: xr.Dataset, hours) -> np.ndarray:
    """(fire, hour, y, x)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BeyondLastMap)
        warnings.filterwarnings("ignore", "the weather of the fires ends", CompletedWeather)
        smoke = surrogate.predict(pc.workflows.at_hours(fires, hours))
    dose = pc.scores.as_quantity(smoke, "dose").values
    return dose.reshape(-1, len(hours), *dose.shape[1:])


@SLOW
@given(hour=st.floats(0.1, 11.0) | st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 6.0, 9.0]))
def test_the_dose_is_continuous(surrogate, fires, hour):
    """From one to the next hundredth of an hour it changes by less than 3 %.

    Before half of the first frame, where nothing was learned, by less than 8 % of that at 1 h.
    Whole hours and steps are where frames and steps begin to count.
    """
    before, after = np.moveaxis(doses(surrogate, fires, [hour, hour + 0.01]).sum((-2, -1)), 1, 0)
    least = doses(surrogate, fires, [1.0])[:, 0].sum((-2, -1))
    most = 0.03 * after if hour >= 1.5 else 0.08 * np.maximum(after, least)
    assert (np.abs(after - before) <= most).all()


@SLOW
@given(hours=st.lists(st.floats(0.05, 11.0), min_size=2, max_size=6, unique=True))
def test_the_dose_never_falls_and_is_zero_at_ignition(surrogate, fires, hours):
    found = doses(surrogate, fires, np.unique([1e-4, *np.round(hours, 3)]))
    assert (np.diff(found, axis=1) >= 0.0).all()
    whole = doses(surrogate, fires, [LONGEST])[:, 0].sum((-2, -1))
    assert (found[:, 0].sum((-2, -1)) < 1e-3 * whole).all()


@SLOW
@given(hour=st.floats(2.0, LONGEST), others=st.lists(st.floats(0.5, LONGEST), max_size=4))
def test_an_answer_does_not_depend_on_the_other_hours(surrogate, fires, hour, others):
    """Except that a dose is never below that of an earlier hour, in a cell."""
    hours = sorted({round(hour, 3), *np.round(others, 3)})
    smoke = surrogate.predict(pc.workflows.at_hours(fires, hours))
    alone = surrogate.predict(pc.workflows.at_hours(fires, [round(hour, 3)]))
    row = hours.index(round(hour, 3))
    rounding = {"rtol": 1e-4, "atol": 1e-4 * float(alone.max())}
    for one, other in ((smoke, alone), (smoke.dose_of_smoke, alone.dose_of_smoke)):
        together = one.values.reshape(-1, len(hours), *smoke.shape[1:])[:, row]
        np.testing.assert_allclose(together, other.values, **rounding)


def test_the_dose_is_nearer_to_the_truth_than_that_of_its_frames(surrogate):
    """Of fires that were not in training, at single hours, where frames are three hours apart."""
    if surrogate.training["physics"] != "calibrated":
        pytest.skip("one family is enough")
    new = record_interval(weather_fires(12)).isel(snapshot=slice(30, None))
    true = true_doses(new)
    errors = []
    for smoke in (surrogate.predict(new.drop_vars("smoke")), new.smoke):
        dose = pc.scores.as_quantity(smoke, "dose").values
        squares = ((dose - true) ** 2).sum((1, 2)) / (true**2).sum((1, 2))
        errors.append(np.sqrt(squares))
    assert (np.median(errors, axis=1) < [0.4, np.inf]).all(), errors
    assert np.median(errors[0]) < 0.8 * np.median(errors[1]), errors


@pytest.mark.parametrize("shift", [-0.06, 0.05, 0.1])
def test_labels_that_are_shifted_move_the_dose_by_what_it_gains_in_that_time(
    surrogate, fires, shift
):
    """The defect was a factor of 50, where hours were just below a whole number of frames."""
    own = doses(surrogate, fires, [3.0, 6.0, 9.0]).sum((-2, -1))
    gained = np.abs(
        doses(surrogate, fires, [3.0 + shift, 6.0 + shift, 9.0 + shift]).sum((-2, -1)) - own
    )
    moved = fires.assign_coords(hours=fires.hours + shift)
    smoke = surrogate.predict(moved)
    found = pc.scores.as_quantity(smoke, "dose").sum(("y", "x")).values.reshape(own.shape)
    assert (np.abs(found - own) <= 3.0 * gained + 0.05 * own).all()


def test_blocks_do_not_change_a_prediction(surrogate, fires):
    """Every snapshot holds the history of its fire; one alone needs no dimension."""
    asked = Overrides(hours=[2.5, 7.0])
    whole = xr.concat(list(predict_store(surrogate, fires, asked)), "snapshot")
    one = fires.isel(snapshot=fires.fire_id.values == fires.fire_id.values[0])
    first = xr.concat(list(predict_store(surrogate, one, asked)), "snapshot")
    rounding = {"rtol": 1e-4, "atol": 1e-5 * float(whole.smoke.max())}  # of float32
    np.testing.assert_allclose(whole.smoke[:2], first.smoke, **rounding)
    np.testing.assert_array_equal(whole.hours, [2.5, 7.0] * 2)
    last = take_final(fires, np.array([2, 5]), history=True)
    stored = surrogate.predict(fires).isel(snapshot=[2, 5])
    np.testing.assert_allclose(surrogate.predict(last), stored, **rounding)
    alone = surrogate.predict(last.isel(snapshot=0))
    np.testing.assert_allclose(alone, stored[0], **rounding)


def test_hours_after_the_last_map_are_said_and_flagged(surrogate, fires):
    with (
        pytest.warns(BeyondLastMap, match="2 of 2 fires have no map as late as 40 h"),
        pytest.warns(CompletedWeather, match=r"ends at 9 h: until 40 h its last winds .* are held"),
    ):
        late = pc.workflows.at_hours(fires, [40.0])
    assert late.weather_hour.values[-1] == 40.0
    with pytest.warns(UserWarning, match=r"hours|train"):
        smoke = surrogate.predict(late)
    assert np.isfinite(smoke).all()


def test_fires_of_two_names_alike_stand_alone(train, quick):
    """Maps that cannot be of one fire are not its history; their doses would limit one another."""
    fire = train.time_since_ignition.values
    assert (fire_history(train, fire).rows >= 0).sum(axis=1).tolist() == [3] * 30
    mixed = train.assign_coords(fire_id=("snapshot", np.repeat(["a"], 30)))
    assert ((fire_history(mixed, fire).rows >= 0).sum(axis=1) == 1).all()
    with pytest.raises(pc.PlumecastError, match="fire a: two snapshots at 3 h"):
        pc.scores.as_quantity(quick.predict(mixed), "dose")
    hours = np.r_[train.hours.values[:3], train.hours.values[:3] + 0.5]
    other = train.isel(snapshot=[0, 1, 2, 3, 4, 5]).assign_coords(
        fire_id=("snapshot", ["a"] * 6), hours=("snapshot", hours)
    )
    assert ((fire_history(other, fire[:6]).rows >= 0).sum(axis=1) == 1).all()


@given(
    arrival=st.lists(st.floats(0.0, 8.0), min_size=6, max_size=6),
    asked=st.lists(st.floats(0.01, 12.0), min_size=1, max_size=5),
    known=st.sampled_from([[2.0, 4.0, 9.0], [9.0]]),
)
def test_maps_between_maps_meet_them_and_age_with_time(arrival, asked, known):
    """Ages grow, by no more than the time that passes."""
    cells = np.array(arrival).reshape(1, 2, 3)
    hours = np.array(known)
    maps = np.maximum(hours[:, None, None] - cells, 0.0)
    np.testing.assert_allclose(ages_at(hours, hours, maps), maps, atol=1e-6)
    times = np.unique(np.round(np.concatenate([asked, hours]), 4))
    ages = ages_at(times, hours, maps)
    grown, gaps = np.diff(ages, axis=0), np.diff(times)[:, None, None]
    assert (grown >= -1e-6).all()
    assert (ages >= 0.0).all()
    if len(known) > 1:
        assert (grown <= 2.0 * gaps + 1e-5).all()  # a share extrapolated to a map may be 2 b
    late = ages_at(np.array([9.0, 11.0]), hours, maps)
    assert (late[1] - late[0] <= 2.0 + 1e-6).all()


def test_the_order_of_snapshots_does_not_change_a_prediction(train, quick, monkeypatch):
    """A store sorted by time, in blocks that would split its fires; these keep their history."""
    monkeypatch.setattr("plumecast.workflows.predict.BLOCK", 4)
    by_time = train.sortby("hours")
    for overrides in (Overrides(), Overrides(hours=[2.5, 7.0])):
        one, other = (
            xr.concat(list(predict_store(quick, data, overrides)), "snapshot").sortby(
                ["fire_id", "hours"]
            )
            for data in (train, by_time)
        )
        np.testing.assert_array_equal(one.fire_id, other.fire_id)
        np.testing.assert_allclose(one.smoke, other.smoke, rtol=1e-4, atol=1e-5 * one.smoke.max())


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        *((hours, "give hours since ignition above 0") for hours in ([], [0.0], [-1.0], [np.nan])),
        ([1.0, 1e9], r"hours=1e\+09 is more than the 8784 h"),
    ],
)
def test_hours_that_are_none_are_refused(fires, quick, hours, said):
    """Before anything of their length is made, or a warning of their ends."""
    with pytest.raises(pc.PlumecastError, match=said):
        pc.workflows.at_hours(fires, hours)
    if hours:
        with pytest.raises(pc.PlumecastError, match=said):
            list(predict_store(quick, fires, Overrides(hours=hours)))


def test_a_missing_boundary_layer_is_filled_in_and_said(train, fires):
    bare = train.drop_vars("boundary_layer_depth")
    with pytest.warns(CompletedWeather, match=r"no 'boundary_layer_depth': .*12 h local time"):
        surrogate = pc.fit_surrogate(bare, **FAMILIES["spectral, one layer"])
    assert surrogate.training["weather"] == "hourly", "the hourly winds are used"
    bare = fires.drop_vars("boundary_layer_depth")
    with pytest.warns(CompletedWeather):
        smoke = surrogate.predict(bare)
    with pytest.warns(CompletedWeather):
        filled = complete_weather(bare)
    np.testing.assert_array_equal(surrogate.predict(filled), smoke)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda d: d.drop_vars("wind_v"), "there is 'wind_u', but no 'wind_v'"),
        (lambda d: d.drop_vars(["wind_u", "wind_v"]), "there is 'boundary_layer_depth', but no"),
        (lambda d: d.isel(weather_hour=slice(0, 5)), r"lasts until 9 h, but the weather ends at 4"),
        (lambda d: d.isel(weather_hour=slice(3, None)), "the weather begins 3 h after ignition"),
        (lambda d: d.isel(height=slice(None, None, -1)), "'height' must increase"),
        (lambda d: d.isel(weather_hour=slice(None, None, -1)), "'weather_hour' must increase"),
        (lambda d: d.drop_vars("height"), "no coordinate 'height'"),
        (lambda d: d.assign(wind_u=d.wind_u.isel(height=0, drop=True)), "'wind_v' has heights"),
    ],
)
def test_a_weather_that_is_wrong_is_refused_from_python_too(quick, fires, broken, words):
    with pytest.raises(pc.PlumecastError, match=words):
        quick.predict(broken(fires))


def test_a_constant_wind_is_said_where_training_had_an_hourly_one(train, fires):
    surrogate = pc.fit_surrogate(train, **FAMILIES["spectral, one layer"])
    mean = with_mean_winds(fires)
    calm = mean.drop_dims("weather_hour").drop_vars("height", errors="ignore")
    with pytest.warns(CompletedWeather, match="is taken as constant since ignition"):
        surrogate.predict(calm)


def test_stored_hours_have_their_stored_winds(train):
    """Winds that were measured otherwise than by the hourly weather: 30° and a quarter off."""
    fires = with_mean_winds(train.drop_vars(["wind_speed", "wind_from_direction"]))
    off = fires.assign_coords(
        wind_speed=1.25 * fires.wind_speed,
        wind_from_direction=(fires.wind_from_direction + 30.0) % 360.0,
    )
    for own in (off, off.drop_dims("weather_hour")):
        again = pc.workflows.at_hours(own, [3.0, 6.0, 9.0])
        for name in ("wind_speed", "wind_from_direction"):
            np.testing.assert_allclose(again[name], own[name], rtol=1e-6)
        close = pc.workflows.at_hours(own, [6.0, 6.001])
        turned = np.diff(close.wind_from_direction.values.reshape(-1, 2), axis=1)
        assert (np.abs((turned + 180.0) % 360.0 - 180.0) < 0.1).all()


def test_the_last_hour_is_the_same_in_every_answer(surrogate, fires):
    """Asked alone, with earlier hours, stored, and in statistics of the last snapshots."""
    alone = doses(surrogate, fires, [LONGEST])[:, 0]
    hourly = doses(surrogate, fires, np.arange(0.5, LONGEST + 0.25, 0.5))[:, -1]
    rounding = {"rtol": 1e-4, "atol": 1e-5 * float(alone.max())}
    np.testing.assert_allclose(hourly, alone, **rounding)
    asked = pc.workflows.at_hours(fires, [3.0, 6.0, 9.0])
    smoke, stored = surrogate.predict(asked), surrogate.predict(fires).values
    np.testing.assert_allclose(smoke.values, stored, rtol=1e-3, atol=1e-3 * stored.max())
    dose = pc.scores.as_quantity(smoke, "dose")
    for final in (True, False):
        read = dose[asked.is_final.values] if final else dose
        means = pc.ensemble_statistics(surrogate, asked, Reading("dose"), Statistics(final=final))
        np.testing.assert_allclose(means.mean_smoke, read.mean("snapshot"), **rounding)


@pytest.mark.parametrize("heights", [[10.0], [10.0, 50.0]])
def test_low_winds_become_a_profile(train, heights):
    """Above winds below 300 m: the default profile of the upper one."""
    axis = [*heights, *train.height.values[len(heights) :]]
    low = train.assign_coords(height=axis).isel(height=slice(0, len(heights)))
    up = heights[-1]
    with pytest.warns(CompletedWeather, match=f"{up:g} m alone: extended upwards"):
        filled = complete_weather(low)
    np.testing.assert_allclose(filled.wind_u.sel(height=heights), low.wind_u, rtol=1e-5)
    speed = np.hypot(filled.wind_u, filled.wind_v)
    assert (speed.isel(height=-1) > speed.sel(height=up)).all()
    xr.testing.assert_identical(complete_weather(filled), filled)
    with pytest.warns(CompletedWeather, match=f"{up:g} m alone"):
        upper = complete_weather(low.isel(height=[-1]))
    above = {"height": filled.height[filled.height > up]}
    np.testing.assert_allclose(filled.wind_u.sel(above), upper.wind_u.sel(above), rtol=1e-5)
