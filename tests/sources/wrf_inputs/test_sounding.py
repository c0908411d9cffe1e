"""`input_sounding`: the winds of the weather and a stable atmosphere beyond the top of WRF."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.constants import GRAVITY
from plumecast.sources.wrf_inputs.domain import TOP
from plumecast.sources.wrf_inputs.sounding import (
    INVERSION,
    MIXED_TEMPERATURE,
    Profile,
    input_sounding,
    sounding_table,
)
from plumecast.weather.profile import HEIGHTS

ROUNDED = 5.1e-4  # three decimals are written
STABILITY = 1.2e-4


def profile(depth=1200.0):
    z = np.array(HEIGHTS)
    return Profile(z, 3.0 + z / 1000.0, -2.0 * np.log10(z), depth)


def read(text):
    """Levels of `input_sounding`, (n, 5), below its first line."""
    lines = [[float(value) for value in line.split()] for line in text.splitlines()]
    assert len(lines[0]) == 3
    return np.array(lines[1:])


def test_winds_come_back():
    given = profile()
    levels = read(input_sounding(sounding_table(given, STABILITY)))
    at = np.isin(levels[:, 0], given.height)
    assert at.sum() == given.height.size
    np.testing.assert_allclose(levels[at, 3], given.u, atol=ROUNDED)
    np.testing.assert_allclose(levels[at, 4], given.v, atol=ROUNDED)
    assert levels[-1, 0] > TOP
    np.testing.assert_allclose(levels[-1, 3:], [given.u[-1], given.v[-1]], atol=ROUNDED)


@pytest.mark.parametrize("depth", [0.0, 400.0, 1500.0, 3333.3])
def test_levels_rise_and_air_is_stable(depth):
    levels = sounding_table(profile(depth), STABILITY)
    assert (np.diff(levels[:, 0]) > 0.0).all()
    assert (np.diff(levels[:, 1]) >= 0.0).all()
    assert (np.diff(levels[:, 2]) < 0.0).all()


def test_temperature_is_mixed_then_jumps_then_has_the_stability_of_the_weather():
    levels = sounding_table(profile(1200.0), STABILITY)
    height, theta = levels[:, 0], levels[:, 1]
    np.testing.assert_allclose(theta[height <= 1200.0], MIXED_TEMPERATURE)
    assert theta[height == 1300.0] == pytest.approx(MIXED_TEMPERATURE + INVERSION)
    free = height >= 1300.0
    gradient = np.diff(theta[free]) / np.diff(height[free])
    np.testing.assert_allclose(GRAVITY * gradient / MIXED_TEMPERATURE, STABILITY, rtol=1e-9)
