"""Column-mean concentration from a 3-D mixing ratio. Arrays only, no labels."""

from __future__ import annotations

from plumecast.base.names import CP_DRY, P0, R_DRY
from plumecast.compute.arrays import Array, array_namespace


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
