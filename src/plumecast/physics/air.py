"""State of the air, its vertical mixing by turbulence, and dry deposition of smoke at the ground.

    ∂(ρ q)/∂t = ∂/∂z (ρ K ∂q/∂z),   ρ K ∂q/∂z = v_d ρ q at the ground

The simulator solves these columns for every cell (`simulator.transport.mix`); the transport of the
operators has one column for all cells of a fire, whose step is a matrix (`mixing_matrices`).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plumecast.base.names import CP_DRY, GRAVITY, P0, R_DRY
from plumecast.compute.arrays import Array, Field, array_namespace, like


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


VON_KARMAN = 0.4

FREE_DIFFUSIVITY = 1.0
"""K above the boundary layer, m² s⁻¹: weak turbulence of a stable free troposphere."""

DEPOSITION_VELOCITY = 1.0e-3
"""v_d of fine smoke particles, m s⁻¹ (order of magnitude of 0.1–1 µm particles on vegetation;
Seinfeld and Pandis 2016, Atmospheric Chemistry and Physics, chapter 19)."""

ROUGHNESS_LENGTH = 0.3
"""z₀ of shrub and open woodland, m."""

HORIZONTAL_DIFFUSIVITY = 100.0
"""Diffusivity of eddies smaller than a 3 km cell, m² s⁻¹.

Smagorinsky: (0.2 Δx)² times a shear of 3·10⁻⁴ s⁻¹.
"""

NIGHT_DEPTH = 250.0
"""Depth of the nocturnal boundary layer, which has no convection, m."""

SCALE_HEIGHT = 9000.0
"""Height, m, in which the density of air falls by e in `mixing_matrices`."""

SQUARINGS = 3
SUBSTEPS = 2**SQUARINGS
"""Implicit steps within a step of the transport; their product comes from repeated squaring."""


def friction_velocity(wind_speed: float) -> float:
    """u* = κ |V₁₀| / ln(10 m / z₀), m s⁻¹: the logarithmic wind of a neutral surface layer.

    >>> round(friction_velocity(8.0), 2)
    0.91
    """
    return VON_KARMAN * wind_speed / math.log(10.0 / ROUGHNESS_LENGTH)


def convective_velocity_cubed(depth: Array) -> Array:
    """w*³, m³ s⁻³, where only the depth of the boundary layer is known.

    w* = 1.6 m s⁻¹ ((h − `NIGHT_DEPTH`) / 2 km)^⅓: the heat that deepens the layer drives its
    convection (Stull 1988, An Introduction to Boundary Layer Meteorology).
    """
    xp = array_namespace(depth)
    return 1.6**3 / 2000.0 * xp.clip(depth - NIGHT_DEPTH, 0.0, None)


def diffusivity(
    height: Array, *, depth: Array, friction_velocity: Array, convective_velocity_cubed: Array
) -> Array:
    """K(z) = κ w_s z (1 − z/h)² below h plus `FREE_DIFFUSIVITY`, m² s⁻¹.

    w_s = (u*³ + 0.28 w*³)^⅓ (Troen and Mahrt 1986, Boundary-Layer Meteorol. 37, 129: 7 ε κ = 0.28
    with ε = 0.1). All arguments broadcast.
    """
    xp = array_namespace(height)
    scale = (friction_velocity**3 + 0.28 * convective_velocity_cubed) ** (1.0 / 3.0)
    inside = xp.clip(1.0 - height / depth, 0.0, None) ** 2
    return VON_KARMAN * scale * height * inside + FREE_DIFFUSIVITY


def exchange(density: Array, middle: Array, inner_diffusivity: Array | float) -> Array:
    """ρ K / Δz at the L − 1 faces between layers, kg m⁻² s⁻¹, from K at those faces.

    `density` and `middle` (L,) are those of the layers; at a face ρ is the geometric mean.
    """
    face_density = np.sqrt(density[1:] * density[:-1])
    return face_density * inner_diffusivity / np.diff(middle)


def mixing_matrices(edges: Array, depth: Array, speed: Array, seconds: float) -> Array:
    """(…) depths and 10 m winds → (…, L, L): share of a layer's smoke in each layer after a step.

    Backward Euler with the `diffusivity` of the boundary layer. The weather has no convective
    velocity: see `convective_velocity_cubed`. A column of the matrix sums to 1 minus the deposited
    share.
    """
    xp = array_namespace(depth)
    middle = 0.5 * (edges[1:] + edges[:-1])
    density = np.exp(-middle / SCALE_HEIGHT)
    mass = density * np.diff(edges)
    inner = diffusivity(
        like(edges[1:-1].astype(np.float32), depth),
        depth=xp.clip(depth, 1.0, None)[..., None],
        friction_velocity=(friction_velocity(1.0) * speed)[..., None],
        convective_velocity_cubed=convective_velocity_cubed(depth)[..., None],
    )
    between = inner * like(exchange(density, middle, 1.0).astype(np.float32), depth)
    fixed, patterns = _systems(mass, density[0], seconds / SUBSTEPS)
    shape = (*depth.shape, mass.size, mass.size)
    changing = between @ like(patterns.astype(np.float32), depth)
    # In units of mixing ratio the rows sum to 1: the inverse is accurate in single precision.
    system = xp.reshape(changing, shape) + like(fixed.astype(np.float32), depth)
    per_mass = like((1.0 / mass).astype(np.float32), depth)
    step = xp.linalg.inv(system * per_mass[:, None])
    step = step * per_mass * like(mass.astype(np.float32), depth)[:, None]
    for _ in range(SQUARINGS):
        step = step @ step
    return step


def _systems(mass: Array, lowest: float, seconds: float) -> tuple[Array, Array]:
    """(L, L) masses and deposition, and (L − 1, L²) systems of an exchange of 1 at each face."""
    fixed = np.diag(mass)
    fixed[0, 0] += seconds * DEPOSITION_VELOCITY * lowest
    patterns = np.zeros((mass.size - 1, mass.size, mass.size))
    for face in range(mass.size - 1):
        pair = [face, face + 1]
        patterns[face][np.ix_(pair, pair)] = [[seconds, -seconds], [-seconds, seconds]]
    return fixed, patterns.reshape(mass.size - 1, -1)
