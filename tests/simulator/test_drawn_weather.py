"""Drawn weathers: their ranges, what they depend on, and what is stored of any weather."""

import numpy as np
import pytest

from plumecast.simulator.weather import (
    OWN,
    RANGES,
    SCENARIOS,
    STORED_HEIGHTS,
    drawn_weather,
    hourly_weather,
    mean_wind,
    weather,
    wind_profile,
)

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
    for name, found in {
        "jet_speed": [np.hypot(series.upper_u, series.upper_v).max() for series in drawn],
        "day_depth": [series.boundary_layer_depth.max() for series in drawn],
        "stability": [series.stability for series in drawn],
    }.items():
        (low, high), span = RANGES[name], np.ptp(RANGES[name])
        assert low <= min(found) < low + 0.05 * span, name
        assert high - 0.05 * span < max(found) <= high * (1.0 + 1e-12), name
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
