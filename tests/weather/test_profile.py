"""The default profile, and constant winds that use it."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.base.names import WEATHER, WEATHER_AXES
from plumecast.simulator import weather as simulated
from plumecast.weather.options import DefaultProfile
from plumecast.weather.profile import (
    HEIGHTS,
    VEER,
    complete_profile,
    default_depth,
    log_law_ratio,
    shear_exponent,
)
from plumecast.weather.read import constant_weather
from plumecast.weather.series import check_covers, check_weather

CLOSE = 1e-12


@pytest.mark.parametrize("hour", [0.0, 3.0, 13.5])
def test_the_profile_is_the_simulators_up_to_its_boundary_layer(hour):
    """Above, the simulator has a jet. Its wind at 10 m is turned by at most 0.3 degrees."""
    series = simulated.weather("medium", hours=24.0)
    depth = series.at(series.boundary_layer_depth, hour)
    heights = [h for h in HEIGHTS if h <= max(depth, 500.0)]
    expected = simulated.wind_profile(series, hour, heights)
    surface = (series.at(series.wind_u, hour), series.at(series.wind_v, hour))
    found = complete_profile(
        (np.array([10.0]), *(np.array([part]) for part in surface)),
        heights,
        local_hour=simulated.IGNITION_LOCAL_HOUR + hour,
        depth=depth,
        veer=VEER,
    )
    np.testing.assert_allclose(np.hypot(*found), np.hypot(*expected), rtol=1e-3)
    turned = np.rad2deg(np.arctan2(*found) - np.arctan2(*expected))
    assert np.abs((turned + 180.0) % 360.0 - 180.0).max() < 0.31


def test_given_heights_are_kept_and_a_logarithmic_wind_is_exact_between_them():
    z = np.array([5.0, 10.0, 100.0, 1000.0, 8000.0])
    u, v = complete_profile(
        (z, 2.0 * np.log(z), -np.log(z)), HEIGHTS, local_hour=12.0, depth=1000.0, veer=15.0
    )
    np.testing.assert_allclose(u, 2.0 * np.log(HEIGHTS), rtol=CLOSE)
    np.testing.assert_allclose(v, -np.log(HEIGHTS), rtol=CLOSE)


def test_below_and_above_the_given_heights_by_hand():
    """A west wind of 8 m/s at 100 m: 8 (10/100)^p at 10 m, 8 (300/100)^p from 300 m on."""
    wind = (np.array([100.0]), np.array([8.0]), np.array([0.0]))
    u, v = complete_profile(wind, HEIGHTS, local_hour=15.0, depth=2000.0, veer=20.0)
    speed = np.hypot(u, v)
    np.testing.assert_allclose(speed[:2], 8.0 * np.array([0.1, 0.5]) ** 0.12, rtol=CLOSE)
    np.testing.assert_allclose(speed[3:], 8.0 * 3.0**0.12, rtol=CLOSE)
    turned = np.rad2deg(np.arctan2(u, v)) - 90.0
    np.testing.assert_allclose(turned[:2], 0.0, atol=1e-9)
    np.testing.assert_allclose(turned[4], 20.0 * 900.0 / 2000.0, rtol=1e-9)  # at 1000 m
    np.testing.assert_allclose(turned[6:], 20.0 * 1900.0 / 2000.0, rtol=1e-9)


def test_a_wind_below_10_m_is_raised_by_the_log_law():
    wind = (np.array([6.096]), np.array([0.0]), np.array([5.0]))
    _, v = complete_profile(wind, [10.0], local_hour=12.0, depth=1000.0, veer=15.0)
    np.testing.assert_allclose(v, 5.0 * log_law_ratio(6.096), rtol=CLOSE)
    assert log_law_ratio(6.096) == pytest.approx(np.log(100.0) / np.log(60.96))


def test_day_and_night():
    assert HEIGHTS == simulated.STORED_HEIGHTS
    np.testing.assert_allclose(default_depth([3.0, 15.0], 2000.0), [250.0, 2000.0])
    np.testing.assert_allclose(shear_exponent([3.0, 15.0]), [0.24, 0.12])


def test_a_constant_wind():
    weather = constant_weather(5.0, 270.0, 6.5, profile=DefaultProfile(15.0))
    np.testing.assert_array_equal(weather.weather_hour, np.arange(8.0))
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), 5.0)
    np.testing.assert_allclose(weather.wind_v.sel(height=10.0), 0.0, atol=1e-12)
    assert weather.boundary_layer_depth[0] == 2500.0
    assert "default cycle" in weather.boundary_layer_depth.attrs["comment"]
    for entry in (*WEATHER, *WEATHER_AXES):
        assert entry.attrs.items() <= weather[entry.name].attrs.items()
    check_weather(weather)
    check_covers(weather, 6.5)
    with pytest.raises(PlumecastError, match=r"ends at 6.5 h, but the fire lasts until 7 h"):
        check_covers(weather, 7.0)


def test_a_constant_wind_in_other_units_and_hemispheres():
    knots = constant_weather(10.0, 0.0, 2.0, speed_unit="knots")
    np.testing.assert_allclose(knots.wind_v.sel(height=10.0), -5.14444, rtol=1e-5)
    assert constant_weather("10 kn", "N", 2.0).equals(knots)
    north, south = (
        constant_weather(5.0, 180.0, 2.0, profile=DefaultProfile(veer=veer))
        for veer in (15.0, -15.0)
    )
    np.testing.assert_allclose(north.wind_u, -south.wind_u, atol=1e-12)
    assert (north.wind_u.sel(height=1000.0) > 0.5).all()


@pytest.mark.parametrize(
    ("speed", "direction", "hours", "message"),
    [
        (-1.0, 0.0, 1.0, "speed=-1"),
        (float("nan"), 0.0, 1.0, "speed=nan"),
        (5.0, 400.0, 1.0, "from_direction=400"),
        (5.0, 40.0, 0.0, "hours=0"),
        (90.0, 40.0, 1.0, "90 m/s at hour 0, 10 m is no wind; .*mph"),
    ],
)
def test_bad_constant_winds(speed, direction, hours, message):
    with pytest.raises(PlumecastError, match=message):
        constant_weather(speed, direction, hours)
