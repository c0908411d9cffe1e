"""Landscapes: synthetic terrain and fuels, slopes and blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.simulator.landscape import (
    Landscape,
    ignition_mask,
    synthetic_landscape,
)

GRASS = FUEL_CODES["GR2"]


def grass(elevation):
    elevation = np.asarray(elevation, dtype=float)
    return Landscape(elevation, np.full(elevation.shape, GRASS, dtype=np.int16), 300.0)


def test_slope_points_uphill():
    y, x = np.mgrid[:6, :8] * 300.0
    east, north = grass(0.1 * x - 0.2 * y).slope
    np.testing.assert_allclose(east, 0.1)
    np.testing.assert_allclose(north, -0.2)
    # central differences are exact for a parabola away from the edge
    east, _ = grass(1e-4 * x**2).slope
    np.testing.assert_allclose(east[:, 1:-1], (2e-4 * x)[:, 1:-1])


@pytest.mark.parametrize(
    ("elevation", "fuel", "cell", "message"),
    [
        (np.zeros((3, 4)), np.full((4, 3), GRASS), 300.0, r"\(3, 4\) and fuel \(4, 3\)"),
        (np.zeros((3, 3)), np.full((3, 3), GRASS), 0.0, "cell=0 m"),
        (np.array([[0.0, np.nan]]), np.full((1, 2), GRASS), 300.0, "1 cells without a value"),
        (np.zeros((2, 2)), np.full((2, 2), 7), 300.0, "unknown fuel 7"),
    ],
)
def test_impossible_landscapes_are_refused(elevation, fuel, cell, message):
    with pytest.raises(PlumecastError, match=message):
        Landscape(elevation, fuel.astype(np.int16), cell)


@pytest.fixture(scope="module")
def ground():
    return synthetic_landscape(0)


def test_synthetic_landscape_is_a_valley_between_mountains(ground):
    assert ground.shape == (800, 1000)
    assert ground.elevation.min() == pytest.approx(2300, abs=30)
    assert ground.elevation.max() == pytest.approx(3900, abs=1)
    profile = ground.elevation.mean(axis=0)
    lowest = int(profile.argmin())
    assert 400 < lowest < 700
    assert profile[:300].mean() > profile[lowest] + 600
    assert profile[lowest + 150 : lowest + 250].mean() > profile[lowest] + 400
    east, north = ground.slope
    steep = np.hypot(east, north)[ground.elevation > 3000]
    assert 0.08 < np.median(steep) < 0.3
    assert np.quantile(steep, 0.99) < 0.8


def test_synthetic_fuels_follow_elevation(ground):
    assert 0.8 < ground.burnable.mean() < 0.97
    valley = ground.fuel[ground.elevation < 2400]
    slopes = ground.fuel[(ground.elevation > 2900) & (ground.elevation < 3300)]
    summits = ground.fuel[ground.elevation > 3800]
    assert np.isin(valley, [91, 93, *range(101, 125)]).mean() > 0.8
    assert (slopes >= FUEL_CODES["SH1"]).mean() > 0.6
    assert (summits == FUEL_CODES["NB9"]).mean() > 0.6
    assert np.unique(ground.fuel).size > 20


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**31), year=st.integers(1, 50))
def test_years_change_some_woody_fuel_and_never_the_terrain(seed, year):
    shape = (60, 80)
    now, again, later = (synthetic_landscape(seed, shape, year=y) for y in (0, 0, year))
    np.testing.assert_array_equal(now.fuel, again.fuel)
    np.testing.assert_array_equal(now.elevation, later.elevation)
    changed = now.fuel != later.fuel
    assert 0.0 < changed.mean() < 0.5
    np.testing.assert_array_equal(now.burnable, later.burnable)
    assert fuel_table().listed[now.fuel].all()


def test_ignitions_lie_in_burnable_forested_mountains_inside(ground):
    mask = ignition_mask(ground)
    assert 0.1 < mask.mean() < 0.4
    assert ground.burnable[mask].all()
    assert not mask[:100].any()
    assert not mask[:, -100:].any()
    assert ground.elevation[mask].min() > 2600
    assert (ground.fuel[mask] >= FUEL_CODES["SH1"]).mean() > 0.75
    water = Landscape(np.zeros((30, 30)), np.full((30, 30), 98, dtype=np.int16), 300.0)
    assert not ignition_mask(water).any()


def test_a_synthetic_landscape_that_is_too_small_is_refused():
    with pytest.raises(PlumecastError, match=r"shape=\(5, 200\)"):
        synthetic_landscape(0, (5, 200))
