"""Exchange of smoke between layers by turbulence, and deposition at the ground. Arrays only."""

from __future__ import annotations

import math

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like

SQUARINGS = 3
SUBSTEPS = 2**SQUARINGS
"""Implicit steps within a step of the transport; their product comes from repeated squaring."""

SCALE_HEIGHT = 9000.0
"""Height, m, in which the density of air falls by e."""

VON_KARMAN, ROUGHNESS_LENGTH = 0.4, 0.3
DEPOSITION_VELOCITY = 1.0e-3  # m s⁻¹, of fine smoke particles
FREE_DIFFUSIVITY = 1.0  # m² s⁻¹, above the boundary layer
NIGHT_DEPTH = 250.0  # m; a boundary layer that is no deeper has no convection


def mixing_matrices(edges: Array, depth: Array, speed: Array, seconds: float) -> Array:
    """(…) depths and 10 m winds → (…, L, L): share of a layer's smoke in each layer after a step.

    K(z) = κ w_s z (1 − z/h)² below the depth h, with w_s = (u*³ + 0.28 w*³)^⅓ (Troen and Mahrt
    1986, Boundary-Layer Meteorol. 37, 129). u* is that of the logarithmic wind. The weather has no
    convective velocity: w* = 1.6 m s⁻¹ ((h − 250 m) / 2 km)^⅓. A column of the matrix sums to 1
    minus the deposited share.
    """
    xp = array_namespace(depth)
    middle = 0.5 * (edges[1:] + edges[:-1])
    density = np.exp(-middle / SCALE_HEIGHT)
    mass, faces = density * np.diff(edges), edges[1:-1]
    friction = VON_KARMAN / math.log(10.0 / ROUGHNESS_LENGTH) * speed
    convective = 1.6**3 / 2000.0 * xp.clip(depth - NIGHT_DEPTH, 0.0, None)  # w*³
    scale = (friction**3 + 0.28 * convective)[..., None] ** (1.0 / 3.0)
    heights = like(faces.astype(np.float32), depth)
    inside = xp.clip(1.0 - heights / xp.clip(depth, 1.0, None)[..., None], 0.0, None) ** 2
    diffusivity = VON_KARMAN * scale * heights * inside + FREE_DIFFUSIVITY
    factor = np.sqrt(density[1:] * density[:-1]) / np.diff(middle)
    exchange = diffusivity * like(factor.astype(np.float32), depth)
    fixed, patterns = _systems(mass, density[0], seconds / SUBSTEPS)
    shape = (*depth.shape, mass.size, mass.size)
    changing = exchange @ like(patterns.astype(np.float32), depth)
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
