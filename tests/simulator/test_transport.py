"""Transport against analytic solutions, conservation laws and symmetries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumecast.base.errors import PlumecastError
from plumecast.simulator.advection import slope_weights
from plumecast.simulator.atmosphere import (
    AirFlux,
    FaceSteering,
    Layers,
    empty_flux,
    face_steering,
    fill_flux,
    fill_vertical,
    steering_profile,
    stretched_layers,
)
from plumecast.simulator.transport import (
    SmokeState,
    Source,
    Turbulence,
    advance,
    clean_air,
    fit_box,
)

CELL = 3000.0


def even_layers(count, top=10_000.0):
    """Layers of equal depth and density 1, for simple analytic solutions."""
    return Layers(np.linspace(0.0, top, count + 1), np.ones(count))


def still(layers):
    return Turbulence(np.zeros(layers.mass.size - 1))


def uniform_flux(shape, layers, u, v, cell=CELL):
    flux = empty_flux(shape)
    wind = (np.full(shape[0], u), np.full(shape[0], v))
    fill_flux(flux, wind, hilly_steering(shape[1:], size=0.0), layers, cell=cell)
    return flux


def hilly_steering(shape, seed=0, size=0.3):
    return FaceSteering(
        size * np.random.default_rng(seed).standard_normal((2, shape[0], shape[1] + 1)),
        size * np.random.default_rng(seed + 1).standard_normal((2, shape[0] + 1, shape[1])),
    )


def sheared_flux(shape, layers, seed=0):
    flux = empty_flux(shape)
    rise = np.linspace(0.0, 1.0, shape[0])
    wind = (4.0 + 12.0 * rise, 6.0 - 10.0 * rise)
    fill_flux(flux, wind, hilly_steering(shape[1:], seed), layers, cell=CELL)
    return flux


def smoky_air(smoke, cell):
    """State with a given smoke field, (L, ny, nx) kg m⁻², which counts as emitted."""
    layers, ny, nx = smoke.shape
    box = np.array([layers, 0, ny, 0, nx])
    return SmokeState(smoke.copy(), cell, box, emitted=float(smoke.sum()) * cell**2)


def carry(plume, seconds, flux, layers, **terms):
    nothing = Source(np.zeros((0, 2), dtype=np.int64), np.zeros((0, layers.mass.size)))
    usual = {"turbulence": still(layers), "source": nothing}
    return advance(plume, seconds, flux=flux, layers=layers, **(usual | terms))


# layers and air


def test_layers_reach_from_the_ground_to_the_top_and_grow():
    layers = stretched_layers(22, first=50.0, top=14_000.0)
    assert layers.edges[0] == 0.0
    assert layers.edges[1] == pytest.approx(50.0)
    assert layers.edges[-1] == 14_000.0
    assert (np.diff(layers.depth) > 0).all()


def test_layers_that_cannot_stretch_are_refused():
    with pytest.raises(PlumecastError, match="do not stretch"):
        stretched_layers(30, first=1000.0, top=12_000.0)


def test_vertical_flux_closes_continuity_in_every_cell():
    layers = stretched_layers(12)
    flux = sheared_flux((12, 9, 11), layers)
    net = np.diff(flux.east, axis=2) + np.diff(flux.north, axis=1) + np.diff(flux.up, axis=0)
    assert np.abs(net).max() < 1e-12 * np.abs(flux.east).max()
    assert (flux.up[0] == 0.0).all()


def test_steering_lifts_air_near_the_ground_but_not_through_the_top():
    layers = stretched_layers()
    lift = np.abs(sheared_flux((25, 9, 11), layers).up).max(axis=(1, 2))
    assert 300.0 < layers.edges[lift.argmax()] < 1000.0
    assert lift[-1] < 1e-12 * lift.max()
    assert steering_profile(layers)[0] == pytest.approx(0.9, abs=0.05)


def test_face_steering_averages_blocks_and_is_zero_for_the_identity():
    neutral = np.broadcast_to(np.eye(2), (20, 30, 2, 2))
    faces = face_steering(neutral, 10)
    assert not faces.east.any()
    assert not faces.north.any()
    assert faces.east.shape == (2, 2, 4)
    turned = np.broadcast_to(np.array([[1.2, 0.1], [0.3, 0.7]]), (20, 30, 2, 2))
    faces = face_steering(turned, 10)
    np.testing.assert_allclose(faces.east[:, 0, 0], [0.2, 0.1])
    np.testing.assert_allclose(faces.north[:, 0, 0], [0.3, -0.3])


# conservation, positivity, monotonicity


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_mass_budget_closes_and_nothing_is_negative(seed):
    layers = stretched_layers(10)
    rng = np.random.default_rng(seed)
    plume, flux = clean_air((10, 16, 20), CELL), sheared_flux((10, 16, 20), layers, seed)
    mixing = Turbulence(
        layers.exchange(rng.uniform(0.0, 200.0, 9)),
        ground=0.02,
        horizontal=200.0,
    )
    for _ in range(8):
        source = Source(rng.integers(0, 16, (5, 2)), rng.uniform(0.0, 3.0, (5, 10)))
        plume = carry(plume, 1800.0, flux, layers, turbulence=mixing, source=source)
    assert plume.smoke.min() >= 0.0
    assert abs(plume.imbalance) < 1e-12
    assert plume.deposited > 0.0
    assert plume.left > 0.0


@settings(max_examples=10, deadline=None)
@given(values=arrays(float, (6, 12, 12), elements=st.floats(0.0, 1.0)), seed=st.integers(0, 1000))
def test_mixing_ratio_gets_no_new_extremum_in_a_diverging_sheared_wind(values, seed):
    layers = stretched_layers(6)
    ratio = 0.2 + values
    mass = layers.mass[:, np.newaxis, np.newaxis]
    flux = sheared_flux((6, 12, 12), layers, seed)
    plume = carry(smoky_air(ratio * mass, CELL), 3600.0, flux, layers, ambient=0.7)
    low, high = min(ratio.min(), 0.7), max(ratio.max(), 0.7)
    assert (plume.smoke / mass).min() >= low - 1e-12
    assert (plume.smoke / mass).max() <= high + 1e-12


@settings(max_examples=20, deadline=None)
@given(values=arrays(float, 40, elements=st.floats(0.0, 1.0)), wind=st.floats(-20.0, 20.0))
def test_total_variation_never_grows(values, wind):
    layers = even_layers(2)
    smoke = np.zeros((2, 1, 60))
    smoke[:, :, 10:50] = values
    flux = uniform_flux(smoke.shape, layers, wind, 0.0)
    plume, before = smoky_air(smoke, CELL), np.abs(np.diff(smoke[0, 0])).sum()
    for _ in range(5):
        plume = carry(plume, 120.0, flux, layers)
        after = np.abs(np.diff(plume.smoke[0, 0])).sum()
        assert after <= before + 1e-12
        before = after


def test_uniform_mixing_ratio_stays_uniform_in_a_sheared_steered_wind():
    layers = stretched_layers(12)
    shape = (12, 20, 24)
    ratio = 3e-6
    smoke = np.broadcast_to(ratio * layers.mass[:, np.newaxis, np.newaxis], shape)
    mixing = Turbulence(layers.exchange(np.full(11, 80.0)), horizontal=500.0)
    flux = sheared_flux(shape, layers)
    assert np.abs(flux.up[3]).max() > 0.1
    plume = carry(
        smoky_air(smoke, CELL), 4 * 3600.0, flux, layers, turbulence=mixing, ambient=ratio
    )
    np.testing.assert_allclose(plume.smoke, smoke, rtol=1e-11)


def test_without_emission_there_is_exactly_no_smoke():
    layers = stretched_layers(8)
    plume = carry(clean_air((8, 12, 14), CELL), 7200.0, sheared_flux((8, 12, 14), layers), layers)
    assert not plume.smoke.any()
    assert (plume.emitted, plume.deposited, plume.left) == (0.0, 0.0, 0.0)


def test_box_follows_the_smoke_and_drops_only_empty_cells():
    smoke = np.zeros((6, 20, 20))
    smoke[1, 7:9, 11] = 1.0
    smoke[2, 3, 4] = 1e-16
    box = np.array([6, 0, 20, 0, 20])
    assert fit_box(smoke, box, 0) == 1e-16
    assert list(box) == [3, 6, 10, 10, 13]
    smoke[:] = 0.0
    assert fit_box(smoke, box, 0) == 0.0
    assert box[0] == 0


# analytic solutions


def translation_error(count):
    """Mean error of a smooth hump carried diagonally over a quarter of a square of unit size."""
    layers = even_layers(2)
    cell = 1.0 / count
    centre = (np.arange(count) + 0.5) * cell

    def hump(x0):
        return np.exp(-(((centre - x0) / 0.07) ** 2))

    smoke = np.broadcast_to(hump(0.35)[:, np.newaxis] * hump(0.35), (2, count, count))
    flux = uniform_flux(smoke.shape, layers, 0.3, 0.3, cell)
    moved = carry(smoky_air(smoke, cell), 1.0, flux, layers).smoke[0]
    return np.abs(moved - hump(0.65)[:, np.newaxis] * hump(0.65)).mean()


def test_second_order_on_a_smooth_profile():
    errors = np.array([translation_error(count) for count in (50, 100, 200)])
    order = np.log2(errors[:-1] / errors[1:])
    assert (order > 1.9).all(), order


def test_second_order_across_unequal_layers():
    def error(count):
        layers = stretched_layers(count, first=400.0 / count, top=12_000.0)
        exact = Layers(layers.edges, np.ones(count))
        up = np.zeros((count + 1, 1, 1))
        up[1:] = 0.5  # air entering sideways at the ground, rising 0.5 m/s above
        flux = AirFlux(np.zeros((count, 1, 2)), np.zeros((count, 2, 1)), up)
        flux.east[0, 0, 0] = 0.5
        hump = np.exp(-(((exact.middle - 4000.0) / 1200.0) ** 2))
        smoke = (hump * exact.depth)[:, np.newaxis, np.newaxis]
        moved = carry(smoky_air(smoke, 1.0), 4000.0, flux, exact).smoke[:, 0, 0] / exact.depth
        want = np.exp(-(((exact.middle - 6000.0) / 1200.0) ** 2))
        return np.sum(np.abs(moved - want) * exact.depth)

    errors = np.array([error(count) for count in (40, 80, 160)])
    order = np.log2(errors[:-1] / errors[1:])
    assert (order > 1.8).all(), order
    np.testing.assert_allclose(slope_weights(np.full(5, 70.0)), 0.5)


def test_gaussian_puff_drifts_and_spreads_as_the_analytic_one():
    layers = even_layers(40, top=8000.0)
    shape, wind, time = (40, 80, 80), (8.0, 5.0), 2.5 * 3600.0
    across, upright = 1.0e4, 30.0
    y = x = (np.arange(80) + 0.5) * CELL

    def puff(t):
        side = 15e3**2 + 2.0 * across * t
        height = 500.0**2 + 2.0 * upright * t
        gx = np.exp(-((x - 80e3 - wind[0] * t) ** 2) / (2 * side)) / np.sqrt(2 * np.pi * side)
        gy = np.exp(-((y - 90e3 - wind[1] * t) ** 2) / (2 * side)) / np.sqrt(2 * np.pi * side)
        gz = np.exp(-((layers.middle - 1000.0) ** 2) / (2 * height))
        gz += np.exp(-((layers.middle + 1000.0) ** 2) / (2 * height))  # reflected at the ground
        gz *= layers.depth / np.sqrt(2 * np.pi * height)
        return 1e6 * gz[:, np.newaxis, np.newaxis] * gy[:, np.newaxis] * gx

    mixing = Turbulence(layers.exchange(np.full(39, upright)), horizontal=across)
    flux = uniform_flux(shape, layers, *wind)
    plume = smoky_air(puff(0.0), CELL)
    for _ in range(150):  # advection and diffusion share a step: their cross term is first order
        plume = carry(plume, time / 150, flux, layers, turbulence=mixing)
    want = puff(time)
    assert np.abs(plume.smoke - want).max() < 0.03 * want.max()
    assert np.abs(plume.smoke - want).sum() < 0.02 * want.sum()


def test_steady_source_makes_the_gaussian_plume():
    layers = even_layers(2)
    wind, across, strength = 10.0, 2.0e4, 50.0
    shape = (2, 81, 100)
    flux = uniform_flux(shape, layers, wind, 0.0)
    source = Source(np.array([[40, 5]]), np.array([[strength / 2, strength / 2]]))
    mixing = Turbulence(np.zeros(1), horizontal=across)
    plume = carry(
        clean_air(shape, CELL), 20 * 3600.0, flux, layers, turbulence=mixing, source=source
    )
    column = plume.smoke.sum(axis=0)
    y = (np.arange(81) - 40) * CELL
    for i in (30, 45, 60, 75):
        variance = 2.0 * across * (i - 5) * CELL / wind
        want = np.exp(-(y**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance) * strength / wind
        # the slender-plume formula leaves out diffusion along the wind: small where x ≫ K/u
        assert np.abs(column[:, i] - want).max() < 0.03 * want.max()


def solid_rotation(count, layers):
    """Air turning once in 2π hours about the middle of the domain."""
    cell = 1.0 / count
    centre = (np.arange(count) + 0.5) * cell - 0.5
    flux = empty_flux((layers.mass.size, count, count))
    flux.east[:] = -centre[:, np.newaxis] / 3600.0 / cell * layers.mass[0]
    flux.north[:] = centre / 3600.0 / cell * layers.mass[0]
    fill_vertical(flux.east, flux.north, flux.up)
    return flux


def test_solid_rotation_returns_the_blob_to_its_place():
    count, layers = 80, even_layers(2)
    y, x = (np.mgrid[0:count, 0:count] + 0.5) / count - 0.5
    blob = np.exp(-((x - 0.22) ** 2 + (y - 0.05) ** 2) / 0.09**2)
    smoke = np.broadcast_to(blob, (2, count, count))
    flux = solid_rotation(count, layers)
    plume = carry(smoky_air(smoke, 1.0 / count), 2 * np.pi * 3600.0, flux, layers)
    back = plume.smoke[0]
    assert back.max() > 0.85
    assert np.abs(back - blob).sum() < 0.12 * blob.sum()
    assert np.average(x, weights=back) == pytest.approx(0.22, abs=0.002)
    assert np.average(y, weights=back) == pytest.approx(0.05, abs=0.002)


def test_rotated_input_gives_the_rotated_result():
    layers = even_layers(2)
    y, x = np.mgrid[0:40, 0:40]
    blob = np.exp(-((x - 12.0) ** 2 + 2.0 * (y - 15.0) ** 2) / 16.0)
    smoke = np.broadcast_to(blob, (2, 40, 40))
    turned = np.rot90(smoke, axes=(2, 1))  # quarter turn counterclockwise with row 0 south
    straight = carry(
        smoky_air(smoke, CELL), 5400.0, uniform_flux((2, 40, 40), layers, 9.0, 4.0), layers
    )
    quarter = carry(
        smoky_air(turned, CELL), 5400.0, uniform_flux((2, 40, 40), layers, -4.0, 9.0), layers
    )
    np.testing.assert_allclose(
        quarter.smoke, np.rot90(straight.smoke, axes=(2, 1)), atol=0.01 * straight.smoke.max()
    )


# mixing and deposition


def test_mixing_ends_in_a_uniform_mixing_ratio():
    layers = stretched_layers(15)
    smoke = np.zeros((15, 1, 1))
    smoke[3] = 1.0
    mixing = Turbulence(layers.exchange(np.full(14, 500.0)))
    plume = carry(
        smoky_air(smoke, CELL), 1e9, uniform_flux((15, 1, 1), layers, 0.0, 0.0), layers,
        turbulence=mixing,
    )  # fmt: skip
    np.testing.assert_allclose(plume.smoke[:, 0, 0], layers.mass / layers.mass.sum(), rtol=1e-3)


def test_well_mixed_smoke_settles_out_exponentially():
    layers = even_layers(10, top=1000.0)
    smoke = np.full((10, 1, 1), 0.1)
    mixing = Turbulence(layers.exchange(np.full(9, 1e5)), ground=0.01)
    flux = uniform_flux((10, 1, 1), layers, 0.0, 0.0)
    plume = smoky_air(smoke, 1.0)
    for _ in range(200):
        plume = carry(plume, 100.0, flux, layers, turbulence=mixing)
    assert plume.airborne == pytest.approx(np.exp(-0.01 * 20_000.0 / 1000.0), rel=2e-3)
    assert plume.deposited + plume.airborne == pytest.approx(1.0, abs=1e-10)
