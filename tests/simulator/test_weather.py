"""Weather of a drought, drawn and stated ones, their profile, and the steering by terrain."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.simulator.atmosphere import steering
from plumecast.simulator.weather import (
    IGNITION_LOCAL_HOUR,
    JET_HEIGHT,
    OWN,
    RANGES,
    SCENARIOS,
    STORED_HEIGHTS,
    drawn_weather,
    hourly_weather,
    stated_weather,
    weather,
    wind_profile,
)
from plumecast.weather import profile
from plumecast.weather.profile import daylight


def mean_wind(series, hour):
    """Mean 10 m wind from ignition to an hour: speed, and direction that it comes from."""
    (speed,), (way,) = profile.mean_wind(series.hours, series.wind_u, series.wind_v, [hour])
    return speed, way


@pytest.mark.parametrize("drought", SCENARIOS)
def test_each_drought_has_one_fixed_series(drought):
    first, second = weather(drought, seed=3), weather(drought, seed=3)
    np.testing.assert_array_equal(first.wind_u, second.wind_u)
    np.testing.assert_array_equal(first.wind_v, second.wind_v)
    assert not np.array_equal(first.wind_u, weather(drought, seed=4).wind_u)


def test_a_longer_series_begins_like_the_shorter_one():
    short, long = weather("medium", hours=24.0), weather("medium", hours=96.0)
    assert long.hours[-1] == 96.0
    np.testing.assert_array_equal(long.wind_u[: short.wind_u.size], short.wind_u)


def test_drier_is_windier_and_mixes_deeper():
    low, medium, high = (weather(drought, seed=0) for drought in ("low", "medium", "high"))
    assert low.moisture.dead_1h == 0.10
    assert medium.moisture.dead_1h == 0.05
    assert 0.0 < high.moisture.dead_1h < 0.05
    speeds = [mean_wind(series, 60.0)[0] for series in (low, medium, high)]
    assert speeds == sorted(speeds)
    depths = [series.boundary_layer_depth.max() for series in (low, medium, high)]
    assert depths == sorted(depths)


def test_an_unknown_drought_raises_with_the_known_ones():
    with pytest.raises(PlumecastError, match="'extreme'; known are 'low', 'medium', 'high'"):
        weather("extreme")
    with pytest.raises(PlumecastError, match="hours=0"):
        weather("low", hours=0)


def test_the_day_peaks_in_the_afternoon_and_ends_at_night():
    assert daylight(15.0) == 1.0
    assert daylight([0.0, 3.0, 6.5, 23.5]).max() == 0.0
    assert daylight(39.0) == daylight(15.0)
    series = weather("high", hours=24.0)
    deepest = series.hours[series.boundary_layer_depth.argmax()]
    assert (IGNITION_LOCAL_HOUR + deepest) % 24.0 == 15.0


def test_profile_starts_at_the_surface_wind_and_ends_at_the_upper_wind():
    series = weather("low")
    u, v = wind_profile(series, 7.25, [10.0, 300.0, 4000.0, 10_000.0])
    surface = np.hypot(series.at(series.wind_u, 7.25), series.at(series.wind_v, 7.25))
    assert np.hypot(u[0], v[0]) == pytest.approx(surface)
    assert u[-1] == pytest.approx(series.at(series.upper_u, 7.25))
    assert v[-1] == pytest.approx(series.at(series.upper_v, 7.25))
    assert np.hypot(u[1], v[1]) > surface


def test_wind_veers_with_height_in_the_boundary_layer():
    series = weather("medium")
    depth = series.at(series.boundary_layer_depth, 3.0)
    u, v = wind_profile(series, 3.0, [10.0, depth])
    turn = np.rad2deg(np.arctan2(v[1], u[1]) - np.arctan2(v[0], u[0]))
    assert turn == pytest.approx(-15.0, abs=0.5)


def test_flat_ground_does_not_steer():
    flat = steering(np.full((30, 40), 1500.0), 300.0)
    np.testing.assert_array_equal(flat, np.broadcast_to(np.eye(2), (30, 40, 2, 2)))


def test_a_valley_turns_oblique_wind_along_its_axis_and_weakens_wind_across():
    x = np.arange(120) * 300.0
    ridges = 1500.0 + 400.0 * np.sin(2 * np.pi * x / 9000.0)
    terrain = np.broadcast_to(ridges, (100, 120))  # valleys run north–south
    local = steering(terrain, 300.0)[50, 60] @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    assert local[0, 0] < 1.0 < local[1, 1]
    assert abs(local[1, 0]) < 1e-9
    assert local[1, 2] > local[0, 2]
    with pytest.raises(PlumecastError, match=r"strength=2\.5 .* use 2\.\d+ or less"):
        steering(terrain, 300.0, 2.5)
    np.testing.assert_array_equal(
        steering(terrain, 300.0, 0.0), np.broadcast_to(np.eye(2), (100, 120, 2, 2))
    )


def test_steering_turns_with_the_terrain():
    y, x = np.mgrid[0:90, 0:90] * 300.0
    terrain = 1500.0 + 300.0 * np.sin((x + 0.4 * y) / 2000.0)
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])  # counterclockwise, row 0 south
    turned = steering(np.rot90(terrain, axes=(1, 0)), 300.0)
    want = quarter @ np.rot90(steering(terrain, 300.0), axes=(1, 0)) @ quarter.T
    np.testing.assert_allclose(turned, want, atol=1e-9)


def test_the_strongest_steering_stops_wind_across_a_valley_without_reversing_it():
    x = np.arange(120) * 300.0
    terrain = np.broadcast_to(1500.0 + 400.0 * np.sin(2 * np.pi * x / 9000.0), (100, 120))
    with pytest.raises(PlumecastError, match="or less") as refusal:
        steering(terrain, 300.0, 1e6)
    most = float(str(refusal.value).split()[-3])
    least = np.linalg.eigvalsh(steering(terrain, 300.0, most)).min()
    assert 0.0 < least < 0.01  # the number is rounded down to 0.01


GUSTS = 1.3  # largest factor between a drawn speed and the mean of three gusty days
SERIES = ("wind_u", "wind_v", "upper_u", "upper_v", "boundary_layer_depth")


def test_drawn_weathers_fill_their_ranges():
    drawn = [drawn_weather(0, ignition, 0, hours=72.0) for ignition in range(200)]
    assert {series.drought for series in drawn} == {OWN}
    speed, direction = np.array([mean_wind(series, 72.0) for series in drawn]).T
    low, high = RANGES["wind_speed"]
    assert low / GUSTS < speed.min() < 1.1 * low
    assert 0.9 * high < speed.max() < GUSTS * high
    assert (np.histogram(direction, bins=8, range=(0.0, 360.0))[0] > 10).all()  # of 25 expected
    for name, values in {
        "jet_speed": [np.hypot(series.upper_u, series.upper_v).max() for series in drawn],
        "day_depth": [series.boundary_layer_depth.max() for series in drawn],
        "stability": [series.stability for series in drawn],
    }.items():
        (low, high), span = RANGES[name], np.ptp(RANGES[name])
        assert low <= min(values) < low + 0.05 * span, name
        assert high - 0.05 * span < max(values) <= high * (1.0 + 1e-12), name
    moisture = np.array([series.moisture for series in drawn])
    driest, moistest = (np.array(SCENARIOS[name].moisture) for name in ("high", "low"))
    assert (moisture >= driest).all()
    assert (moisture <= moistest).all()


def test_a_drawn_weather_depends_on_seed_ignition_and_number_alone():
    first = drawn_weather(1, 2, 3, hours=24.0)
    for name in SERIES:
        again = getattr(drawn_weather(1, 2, 3, hours=48.0), name)
        np.testing.assert_array_equal(getattr(first, name), again[: first.hours.size])
        for other in ((0, 2, 3), (1, 0, 3), (1, 2, 0)):
            assert not np.array_equal(
                getattr(first, name), getattr(drawn_weather(*other, hours=24.0), name)
            )


@pytest.mark.parametrize(
    "series", [weather("high", hours=30.0), drawn_weather(0, 5, 0, hours=30.0)]
)
def test_the_stored_weather_is_the_profile_of_every_hour(series):
    stored = hourly_weather(series, 29.5)
    np.testing.assert_array_equal(stored["weather_hour"], np.arange(31.0))
    for hour in (0, 7, 30):
        u, v = wind_profile(series, float(hour), STORED_HEIGHTS)
        np.testing.assert_array_equal(stored["wind_u"][hour], u)
        np.testing.assert_array_equal(stored["wind_v"][hour], v)
        assert stored["boundary_layer_depth"][hour] == series.at(series.boundary_layer_depth, hour)
    np.testing.assert_allclose(stored["wind_u"][:, 0], series.wind_u[::2], rtol=1e-3, atol=0.05)


def direction(u, v):
    """Where the wind comes from, degree."""
    return np.rad2deg(np.arctan2(-u, -v)) % 360.0


@pytest.mark.parametrize("way", [0.0, 90.0, 200.0, 359.0])
def test_the_winds_are_those_stated(way):
    made = stated_weather((8.0, way), (15.0, way + 30.0), hours=48.0)
    np.testing.assert_allclose(direction(made.wind_u, made.wind_v), way, atol=1e-9)
    speed, mean_from = mean_wind(made, 48.0)
    # Over whole days the diurnal cycle cancels; the trapezoidal rule is exact for a cosine.
    assert speed == pytest.approx(8.0, rel=1e-9)
    assert mean_from == pytest.approx(way, abs=1e-6)
    u, v = wind_profile(made, 5.0, JET_HEIGHT)
    assert np.hypot(u, v) == pytest.approx(15.0)
    assert direction(u, v) == pytest.approx((way + 30.0) % 360.0)
    assert made.drought == OWN
    assert made.moisture == weather("medium").moisture


def test_the_hour_of_ignition_moves_the_day():
    """The wind is strongest at 15 h local time, and the boundary layer is shallow at night."""
    noon, midnight = (
        stated_weather((8.0, 0.0), (9.0, 0.0), local_hour=hour, hours=24.0) for hour in (12.0, 0.0)
    )
    assert noon.hours[np.argmax(-noon.wind_v)] == 3.0
    assert midnight.hours[np.argmax(-midnight.wind_v)] == 15.0
    assert midnight.boundary_layer_depth[0] < 0.5 * noon.boundary_layer_depth[0]


@pytest.mark.parametrize(
    "wrong",
    [{"surface": (-1.0, 0.0)}, {"aloft": (np.nan, 0.0)}, {"local_hour": 25.0}, {"drought": "x"}],
)
def test_impossible_weathers_are_refused(wrong):
    good = {"surface": (5.0, 0.0), "aloft": (9.0, 0.0)}
    with pytest.raises(PlumecastError):
        stated_weather(**(good | wrong))
