"""Weather of the three droughts, and steering of the wind by terrain."""

from dataclasses import replace

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.sources.simulator.air.weather import (
    IGNITION_LOCAL_HOUR,
    SCENARIOS,
    mean_wind,
    steering,
    weather,
    wind_profile,
)
from plumecast.weather.profile import daylight


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


def test_mean_wind_of_a_constant_wind_is_that_wind():
    series = weather("low", hours=12.0)
    constant = np.ones_like(series.hours)
    series = replace(series, wind_u=3.0 * constant, wind_v=-4.0 * constant)
    speed, direction = mean_wind(series, 5.7)
    assert speed == pytest.approx(5.0)
    assert direction == pytest.approx(np.rad2deg(np.arctan2(-3.0, 4.0)) % 360.0)  # north-west


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
