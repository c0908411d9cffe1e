"""Vertical mixing by turbulence and dry deposition at the ground, implicit in time.

    ∂(ρ q)/∂t = ∂/∂z (ρ K ∂q/∂z),   ρ K ∂q/∂z = v_d ρ q at the ground,

solved by backward Euler: positive, without new extrema and conservative for any step.
"""

from __future__ import annotations

import numpy as np

from plumecast.sources.simulator.air.advection import Box
from plumecast.sources.simulator.air.atmosphere import Layers
from plumecast.sources.simulator.compiled import compiled
from plumecast.sources.simulator.fields import Field

VON_KARMAN = 0.4

FREE_DIFFUSIVITY = 1.0
"""K above the boundary layer, m² s⁻¹: weak turbulence of a stable free troposphere."""

DEPOSITION_VELOCITY = 1.0e-3
"""v_d of fine smoke particles, m s⁻¹ (order of magnitude of 0.1–1 µm particles on vegetation;
Seinfeld and Pandis 2016, Atmospheric Chemistry and Physics, chapter 19)."""

ROUGHNESS_LENGTH = 0.3
"""z₀ of shrub and open woodland, m."""


def friction_velocity(wind_speed: float) -> float:
    """u* = κ |V₁₀| / ln(10 m / z₀), m s⁻¹: the logarithmic wind of a neutral surface layer."""
    return VON_KARMAN * wind_speed / float(np.log(10.0 / ROUGHNESS_LENGTH))


def diffusivity(
    height: Field, *, depth: float, friction_velocity: float, convective_velocity: float
) -> Field:
    """K(z) = κ w_s z (1 − z/h)² below h plus `FREE_DIFFUSIVITY`, m² s⁻¹.

    w_s = (u*³ + 0.28 w*³)^⅓ (Troen and Mahrt 1986, Boundary-Layer Meteorol. 37, 129: 7 ε κ = 0.28
    with ε = 0.1).
    """
    scale = (friction_velocity**3 + 0.28 * convective_velocity**3) ** (1.0 / 3.0)
    inside = np.clip(1.0 - height / depth, 0.0, None) ** 2
    return np.asarray(VON_KARMAN * scale * height * inside + FREE_DIFFUSIVITY)


def exchange(layers: Layers, inner_diffusivity: Field) -> Field:
    """ρ K / Δz at the L − 1 faces between layers, kg m⁻² s⁻¹, from K at those faces."""
    face_density = np.sqrt(layers.density[1:] * layers.density[:-1])
    return np.asarray(face_density * inner_diffusivity / np.diff(layers.middle))


@compiled(error_model="numpy")
def mix(smoke: Field, mass: Field, between: Field, ground: float, dt: float, box: Box) -> float:
    """Mix smoke (kg m⁻² per layer) in place over `dt` s; returns the deposit, kg m⁻² of a cell.

    Each column is a tridiagonal system m_k q_k + dt Σ e (q_k − q_neighbour) = s_k, with the
    additional term dt · `ground` q₀ in the lowest row. `between` is e and `ground` is v_d ρ₀, both
    in kg m⁻² s⁻¹. There is no flux through the top of the box. All columns have the same matrix,
    which is factorised once.
    """
    top, south, north, west, east = box
    inverse, ratio = np.empty(top), np.zeros(top)
    for k in range(top):
        diagonal = mass[k] + (dt * between[k] if k < top - 1 else 0.0)
        diagonal += dt * ground if k == 0 else dt * between[k - 1] * (1.0 - ratio[k - 1])
        inverse[k] = 1.0 / diagonal
        ratio[k] = dt * between[k] * inverse[k] if k < top - 1 else 0.0
    deposited = 0.0
    for j in range(south, north):
        _solve_row(smoke, between, dt, (j, west, east), inverse, ratio)
        lowest = smoke[0, j, west:east]
        for i in range(lowest.size):
            deposited += dt * ground * lowest[i]
        for k in range(top):
            row = smoke[k, j, west:east]
            for i in range(row.size):
                row[i] *= mass[k]
    return deposited


@compiled(error_model="numpy")
def _solve_row(
    smoke: Field, between: Field, dt: float, where: tuple[int, int, int], inverse: Field,
    ratio: Field,
) -> None:  # fmt: skip
    """Thomas elimination for a row of columns: smoke mass in, mixing ratio out."""
    j, west, east = where
    top = inverse.size
    for k in range(top):
        row = smoke[k, j, west:east]
        below = smoke[max(k - 1, 0), j, west:east]
        lower = dt * between[k - 1] if k > 0 else 0.0
        for i in range(row.size):
            row[i] = (row[i] + lower * below[i]) * inverse[k]
    for k in range(top - 2, -1, -1):
        row, above = smoke[k, j, west:east], smoke[k + 1, j, west:east]
        for i in range(row.size):
            row[i] += ratio[k] * above[i]
