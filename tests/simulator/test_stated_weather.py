"""A weather of two stated winds."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.simulator.weather import (
    JET_HEIGHT,
    OWN,
    mean_wind,
    stated_weather,
    weather,
    wind_profile,
)


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


def test_the_hour_of_ignition_moves_the_day():
    """The wind is strongest at 15 h local time, and the boundary layer is shallow at night."""
    noon, midnight = (
        stated_weather((8.0, 0.0), (9.0, 0.0), local_hour=hour, hours=24.0) for hour in (12.0, 0.0)
    )
    assert noon.hours[np.argmax(-noon.wind_v)] == 3.0
    assert midnight.hours[np.argmax(-midnight.wind_v)] == 15.0
    assert midnight.boundary_layer_depth[0] < 0.5 * noon.boundary_layer_depth[0]


def test_moisture_is_that_of_the_drought():
    made = stated_weather((8.0, 0.0), (9.0, 0.0), drought="low")
    assert made.moisture == weather("low").moisture


@pytest.mark.parametrize(
    "wrong",
    [{"surface": (-1.0, 0.0)}, {"aloft": (np.nan, 0.0)}, {"local_hour": 25.0}, {"drought": "x"}],
)
def test_impossible_weathers_are_refused(wrong):
    good = {"surface": (5.0, 0.0), "aloft": (9.0, 0.0)}
    with pytest.raises(PlumecastError):
        stated_weather(**(good | wrong))
