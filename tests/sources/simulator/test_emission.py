"""Smoke and heat emission of a fire, and plume rise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.sources.fuels.table import fuel_table
from plumecast.sources.simulator.air.atmosphere import stretched_layers
from plumecast.sources.simulator.air.plume_rise import (
    LOFTED_SHARE,
    injection_height,
    injection_profile,
)
from plumecast.sources.simulator.emission import (
    SMOKE_YIELD,
    burned_share,
    consumed_load,
    crossing_time,
    emission,
    moisture_damping,
)
from plumecast.sources.simulator.spread.rothermel import Moisture

DRY = Moisture(0.02, 0.03, 0.04, 0.3, 0.6)
WET = Moisture(0.10, 0.11, 0.12, 0.9, 1.2)
TU5, GR2, WATER = 165, 102, 98


def a_fire(seed=0, shape=(40, 60)):
    rng = np.random.default_rng(seed)
    arrival = rng.uniform(0.0, 6.0, shape)
    arrival[rng.random(shape) < 0.3] = np.inf
    return arrival, rng.choice([TU5, GR2, 187, WATER], shape).astype(np.int16)


def emission_of(arrival, fuel, hours, moisture=DRY):
    return emission(arrival, fuel, moisture=moisture, hours=hours, cell=300.0, block=10)


@pytest.mark.parametrize("moisture", [DRY, WET])
def test_smoke_over_all_time_is_the_yield_of_the_fuel_consumed(moisture):
    arrival, fuel = a_fire()
    smoke = emission_of(arrival, fuel, np.linspace(0.0, 40.0, 241), moisture)
    burned = consumed_load(moisture)[fuel[np.isfinite(arrival)]].sum() * 300.0**2
    assert smoke.total_smoke == pytest.approx(SMOKE_YIELD * burned, rel=1e-12)


@given(seed=st.integers(0, 10_000), intervals=st.integers(1, 30))
def test_total_smoke_does_not_depend_on_the_intervals(seed, intervals):
    arrival, fuel = a_fire(seed, (20, 20))
    coarse = emission_of(arrival, fuel, np.linspace(0.0, 5.0, 2))
    fine = emission_of(arrival, fuel, np.linspace(0.0, 5.0, intervals + 1))
    assert fine.total_smoke == pytest.approx(coarse.total_smoke, rel=1e-12)


def test_one_cell_burns_down_exponentially_in_its_own_block():
    arrival = np.full((20, 30), np.inf)
    arrival[13, 4] = 1.25
    fuel = np.full((20, 30), TU5, dtype=np.int16)
    hours = np.linspace(0.0, 3.0, 13)
    smoke = emission_of(arrival, fuel, hours)
    whole = SMOKE_YIELD * consumed_load(DRY)[TU5] * 300.0**2
    burnout = fuel_table().burnout_time[TU5] / 3600.0
    share = 1.0 - np.exp(-np.maximum(hours - 1.25, 0.0) / burnout)
    np.testing.assert_allclose(smoke.smoke[:, 1, 0] * 900.0, whole * np.diff(share), atol=1e-9)
    assert smoke.smoke.sum() == smoke.smoke[:, 1, 0].sum()


@given(crossing=st.floats(0.0, 5.0), burnout=st.floats(0.01, 1.0))
def test_burned_share_is_the_mean_over_strips_of_the_cell(crossing, burnout):
    age = np.linspace(0.0, 8.0, 50)
    strips = crossing * (np.arange(400) + 0.5) / 400
    late = np.maximum(age[:, np.newaxis] - strips, 0.0)
    want = (1.0 - np.exp(-late / burnout)).mean(axis=1)
    share = np.array([burned_share(t, crossing, burnout) for t in age])
    np.testing.assert_allclose(share, want, atol=6e-3)
    assert (np.diff(share) >= -1e-12).all()


def test_a_steady_front_smokes_steadily():
    arrival = np.broadcast_to(np.arange(100) * 0.7, (20, 100)).copy()  # one 300 m cell in 42 min
    smoke = emission_of(
        arrival, np.full((20, 100), TU5, dtype=np.int16), np.linspace(0.0, 70.0, 421)
    )
    steady = smoke.smoke.sum(axis=(1, 2))[30:-30]
    assert steady.std() < 1e-6 * steady.mean()


def test_crossing_time_is_the_gradient_times_the_cell():
    y, x = np.mgrid[0:7, 0:9]
    assert crossing_time(0.3 * x + 0.4 * y, 3, 4) == pytest.approx(0.5)
    assert crossing_time(6.0 - 0.3 * x - 0.4 * y, 3, 4) == pytest.approx(0.5)
    alone = np.full((3, 3), np.inf)
    alone[1, 1] = 2.0
    assert crossing_time(alone, 1, 1) == 0.0
    alone[1, 2] = 2.6
    assert crossing_time(alone, 1, 1) == pytest.approx(0.6)


def test_heat_is_the_heat_content_of_the_same_fuel():
    arrival, fuel = a_fire()
    fuel[:] = TU5
    result = emission_of(arrival, fuel, np.linspace(0.0, 5.0, 31))
    np.testing.assert_allclose(
        result.heat, result.smoke / SMOKE_YIELD * fuel_table().heat_content[TU5], rtol=1e-12
    )


def test_no_fire_and_bare_ground_give_exactly_nothing():
    arrival, fuel = a_fire()
    hours = np.linspace(0.0, 6.0, 7)
    assert not emission_of(np.full_like(arrival, np.inf), fuel, hours).smoke.any()
    assert not emission_of(arrival, np.full_like(fuel, WATER), hours).smoke.any()


def test_moisture_reduces_the_consumed_fuel():
    dry, wet = consumed_load(DRY), consumed_load(WET)
    burnable = fuel_table().burnable
    assert (wet[burnable] < dry[burnable]).all()
    assert (dry[burnable] < fuel_table().total_load[burnable]).all()
    assert not dry[~burnable].any()


def test_moisture_damping_by_hand():
    # 1 − 2.59·0.4 + 5.11·0.16 − 3.52·0.064 = 0.55632; fuel as wet as its extinction does not burn
    np.testing.assert_allclose(moisture_damping([0.0, 0.4, 1.0, 2.0]), [1.0, 0.55632, 0.0, 0.0])


def test_a_grid_that_does_not_divide_into_blocks_is_refused():
    with pytest.raises(PlumecastError, match=r"\(25, 20\) cells does not divide into blocks of 10"):
        emission_of(
            np.zeros((25, 20)), np.full((25, 20), TU5, dtype=np.int16), np.array([0.0, 1.0])
        )


def test_injection_height_of_a_gigawatt_by_hand():
    # P_f = 146 MW: 0.24·2000 + 170·146^0.35·exp(−0.6·0.5) = 480 + 170·5.7213·0.7408 = 1200.5
    assert injection_height(1.0e9, 2000.0, 1.25e-4) == pytest.approx(1200.5, abs=0.5)


def test_more_heat_rises_higher_and_stable_air_holds_it_down():
    heat = np.array([1e6, 1e8, 1e10, 1e11])
    height = injection_height(heat, 1500.0, 1.2e-4)
    assert (np.diff(height) > 0.0).all()
    assert (injection_height(heat, 1500.0, 4e-4) < height).all()
    layers = stretched_layers()
    centre = injection_profile(height, layers.edges) @ layers.middle
    assert (np.diff(centre) > 0.0).all()


def test_profile_sums_to_one_with_most_smoke_in_the_upper_half():
    layers = stretched_layers()
    heights = np.array([30.0, 500.0, 4000.0, 14_000.0, 40_000.0])
    shares = injection_profile(heights, layers.edges)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    assert shares.min() >= 0.0
    edges = np.linspace(0.0, 6000.0, 7)
    low_half = injection_profile(np.array([4000.0]), edges)[0, :2].sum()
    assert low_half == pytest.approx(1.0 - LOFTED_SHARE)
