"""Every equation's limits, monotonicity, units and a value by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.physics.air import (
    FREE_DIFFUSIVITY,
    convective_velocity_cubed,
    diffusivity,
    exchange,
    friction_velocity,
    mixing_matrices,
)
from plumecast.physics.fuels import Moisture, fuel_table
from plumecast.physics.plume import (
    LOFTED_SHARE,
    burned_share,
    consumed_load,
    injection_profile,
    mean_plume_lift,
    moisture_damping,
    plume_lift,
    plume_top,
)

EDGES = np.linspace(0.0, 6000.0, 7)
DRY = Moisture(0.02, 0.03, 0.04, 0.3, 0.6)
WET = Moisture(0.10, 0.11, 0.12, 0.9, 1.2)


def test_plume_top_of_a_gigawatt_by_hand():
    # 0.24·2000 + 170·146^0.35·exp(−0.6·0.5) = 480 + 170·5.7213·0.7408 = 1200.5, P_f = 146 MW
    assert plume_top(2000.0, plume_lift(146.0, 1.25e-4)) == pytest.approx(1200.5, abs=0.5)


def test_more_heat_lifts_higher_and_stable_air_holds_the_plume_down():
    power = np.array([0.0, 0.1, 10.0, 1e3, 1e4])
    lift = plume_lift(power, 1.2e-4)
    assert lift[0] == 0.0
    assert (np.diff(lift) > 0.0).all()
    assert (plume_lift(power[1:], 4e-4) < lift[1:]).all()


@given(power=st.floats(0.0, 1e4), weight=st.floats(0.1, 10.0))
def test_mean_lift_of_equal_cells_is_the_lift_of_one(power, weight):
    cells = np.full((2, 3, 4), power)
    mean = mean_plume_lift(cells, np.full(cells.shape, weight), 1.2e-4)
    np.testing.assert_allclose(mean, plume_lift(power, 1.2e-4), rtol=1e-12)


def test_mean_lift_is_that_of_the_burning_cells_and_0_without_any():
    power, burned = np.array([[[50.0, 9e9]]]), np.array([[[2.0, 0.0]]])
    np.testing.assert_allclose(mean_plume_lift(power, burned, 1e-4), plume_lift(50.0, 1e-4))
    assert mean_plume_lift(power, 0.0 * burned, 1e-4) == 0.0


@given(st.lists(st.floats(30.0, 40_000.0), min_size=1, max_size=6))
def test_shares_of_a_plume_are_positive_and_sum_to_1(tops):
    shares = injection_profile(np.array(tops), EDGES)
    assert shares.min() >= 0.0
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=1e-12)


def test_most_smoke_is_in_the_upper_half_and_none_above_the_top():
    shares = injection_profile(np.array([4000.0]), EDGES)[0]
    assert shares[:2].sum() == pytest.approx(1.0 - LOFTED_SHARE)
    assert shares[:4].sum() == pytest.approx(1.0)
    middle = 0.5 * (EDGES[1:] + EDGES[:-1])
    centres = injection_profile(np.linspace(100.0, 6000.0, 9), EDGES) @ middle
    assert (np.diff(centres) >= 0.0).all()


def test_friction_velocity_is_proportional_to_the_wind():
    # 0.4·8 / ln(10/0.3) = 3.2 / 3.5066
    assert friction_velocity(8.0) == pytest.approx(0.9126, abs=1e-4)
    assert friction_velocity(0.0) == 0.0
    assert friction_velocity(8.0) == pytest.approx(2.0 * friction_velocity(4.0))


def test_convection_needs_a_boundary_layer_deeper_than_at_night():
    # 1.6 m/s where the layer has grown by 2 km
    depth = np.array([0.0, 250.0, 2250.0])
    np.testing.assert_allclose(convective_velocity_cubed(depth), [0.0, 0.0, 1.6**3])


def test_diffusivity_is_confined_to_the_boundary_layer_and_grows_with_convection():
    height = np.linspace(50.0, 3000.0, 60)
    night = diffusivity(height, depth=300.0, friction_velocity=0.3, convective_velocity_cubed=0.0)
    day = diffusivity(height, depth=2000.0, friction_velocity=0.3, convective_velocity_cubed=8.0)
    assert (night[height > 300.0] == FREE_DIFFUSIVITY).all()
    assert height[day.argmax()] == pytest.approx(2000.0 / 3.0, abs=50.0)
    assert day.max() > 10.0 * night.max()


def test_exchange_of_equal_layers_is_density_times_diffusivity_over_their_depth():
    density, middle = np.full(3, 1.2), np.array([50.0, 150.0, 250.0])
    np.testing.assert_allclose(exchange(density, middle, np.array([10.0, 20.0])), [0.12, 0.24])


def test_mixing_keeps_smoke_but_for_what_is_deposited():
    edges = np.array([0.0, 200.0, 600.0, 1200.0, 2200.0, 3600.0, 6000.0])
    depth, speed = np.float32([250.0, 2000.0]), np.float32([2.0, 8.0])
    matrices = mixing_matrices(edges, depth, speed, 3600.0)
    assert (matrices >= -1e-5).all()
    total = matrices.sum(axis=-2)
    assert (total <= 1.0 + 1e-5).all()
    assert (total[:, 3:] > 0.98).all()  # little reaches the ground from above 1200 m
    # By day smoke of the lowest layer is spread over the boundary layer, at night it stays.
    assert matrices[0, 0, 0] > 0.6 > 0.3 > matrices[1, 0, 0]


def test_moisture_damping_by_hand():
    # 1 − 2.59·0.4 + 5.11·0.16 − 3.52·0.064 = 0.55632; fuel as wet as its extinction does not burn
    np.testing.assert_allclose(moisture_damping([0.0, 0.4, 1.0, 2.0]), [1.0, 0.55632, 0.0, 0.0])


def test_moisture_reduces_the_consumed_fuel():
    dry, wet = consumed_load(DRY), consumed_load(WET)
    burnable = fuel_table().burnable
    assert (wet[burnable] < dry[burnable]).all()
    assert (dry[burnable] < fuel_table().total_load[burnable]).all()
    assert not dry[~burnable].any()


@given(crossing=st.floats(0.0, 5.0), burnout=st.floats(0.01, 1.0))
def test_burned_share_is_the_mean_over_strips_of_the_cell(crossing, burnout):
    age = np.linspace(0.0, 8.0, 50)
    strips = crossing * (np.arange(400) + 0.5) / 400
    late = np.maximum(age[:, np.newaxis] - strips, 0.0)
    want = (1.0 - np.exp(-late / burnout)).mean(axis=1)
    share = np.array([burned_share(t, crossing, burnout) for t in age])
    np.testing.assert_allclose(share, want, atol=6e-3)
    assert (np.diff(share) >= -1e-12).all()


def test_burned_share_starts_at_0_and_ends_at_exactly_1():
    assert burned_share(-1.0, 0.5, 0.2) == burned_share(0.0, 0.5, 0.2) == 0.0
    assert burned_share(50.0, 0.5, 0.2) == 1.0
