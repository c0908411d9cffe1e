"""The state of the air: by hand, the ideal-gas law and the standard atmosphere."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.physics.air import (
    actual_temperature,
    column_mean,
    mass_concentration,
    standard_density,
)


def test_actual_temperature_equals_potential_at_the_reference_pressure():
    assert actual_temperature(300.0, 1.0e5) == 300.0
    assert actual_temperature(np.array(300.0), np.array(5.0e4)) == pytest.approx(246.1, abs=0.1)


def test_concentration_is_mixing_ratio_times_air_density():
    """1 g/kg in air of 1.2 kg/m³ is 1.2 g/m³: p = ρ R T."""
    temperature = 290.0
    pressure = 1.2 * 287.0 * temperature
    assert mass_concentration(1.0, pressure, temperature) == pytest.approx(1.2)


def test_column_mean_weighs_layers_by_their_depth():
    concentration = np.array([3.0, 0.0])[:, None, None]
    depth = np.array([100.0, 300.0])[:, None, None]
    assert column_mean(concentration, depth)[0, 0] == pytest.approx(0.75)


def test_column_mean_of_a_constant_is_that_constant():
    depth = np.random.default_rng(0).uniform(10.0, 500.0, size=(5, 2, 3))
    np.testing.assert_allclose(column_mean(np.full((5, 2, 3), 7.0), depth), 7.0)


@pytest.mark.parametrize(
    ("height", "density"), [(0, 1.2250), (2000, 1.0066), (5000, 0.7364), (11_000, 0.3639)]
)
def test_density_is_that_of_the_standard_atmosphere(height, density):
    assert standard_density(height) == pytest.approx(density, rel=8e-3)
