"""Smoke and heat emission of a fire."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.physics.fuels import Moisture, fuel_table
from plumecast.physics.plume import SMOKE_YIELD, consumed_load
from plumecast.simulator.smoke import crossing_time, emission

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
