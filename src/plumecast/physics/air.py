"""State of the air: standard atmosphere, gas law, and column means of smoke."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plumecast.base.names import CP_DRY, GRAVITY, P0, R_DRY
from plumecast.compute.arrays import Array, Field, array_namespace


def standard_density(height: npt.ArrayLike) -> Field:
    """ρ = p / (R T) of the ICAO standard atmosphere at `height` m above sea level, kg m⁻³.

    T = 288.15 K − 6.5 K/km · z up to 11 km and constant above; p is hydrostatic from 101,325 Pa.
    """
    z = np.asarray(height, dtype=float)
    temperature = 288.15 - 0.0065 * np.minimum(z, 11_000.0)
    exponent = GRAVITY / (R_DRY * 0.0065)
    pressure = 101_325.0 * (temperature / 288.15) ** exponent
    above = np.exp(-GRAVITY * np.maximum(z - 11_000.0, 0.0) / (R_DRY * temperature))
    return np.asarray(pressure * above / (R_DRY * temperature))


def actual_temperature(potential_temperature: Array, pressure: Array) -> Array:
    """Tₐ = θ (p / p₀)^(R / c_p), K; θ in K and p in Pa."""
    return potential_temperature * (pressure / P0) ** (R_DRY / CP_DRY)


def mass_concentration(mixing_ratio: Array, pressure: Array, temperature: Array) -> Array:
    """c = q p / (R Tₐ) (ideal gas): q per kg of dry air gives the same mass unit per m³."""
    return mixing_ratio * (pressure / (R_DRY * temperature))


def column_mean(concentration: Array, layer_depth: Array, axis: int = -3) -> Array:
    """Σ c Δz / Σ Δz over the layers along `axis`: the paper's integral by the midpoint rule."""
    xp = array_namespace(concentration, layer_depth)
    total = xp.sum(layer_depth, axis=axis)
    return xp.sum(concentration * layer_depth, axis=axis) / total
