"""Air layers above ground, the steering of winds by terrain, and the air flux through every face.

Layers follow the terrain. Each has the same depth and density everywhere, so a column contains
`mass` kg m⁻² of air per layer. Horizontal winds are given. The vertical air flux follows from
continuity for any divergence of the winds, so that a uniform mixing ratio stays uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.ndimage import gaussian_filter

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Field
from plumecast.physics.air import exchange, standard_density
from plumecast.simulator import compiled

STEERING_STRENGTH = 1.2
"""Default strength: in a straight deep valley, wind along it is scaled by 1.6, across it by 0.4."""

STEERING_RELIEF = 50.0
"""Standard deviation of the elevation, m, at which steering has half of its full effect."""

STEERING_HEIGHT = 600.0
"""Decay height of the terrain's steering of the wind, m: about from valley to ridge."""


@dataclass(frozen=True)
class Layers:
    """Air layers from the ground up; `edges` in m above ground, `density` in kg m⁻³."""

    edges: Field  # (L + 1,)
    density: Field  # (L,)

    @cached_property
    def depth(self) -> Field:
        """Δz of each layer, m."""
        return np.diff(self.edges)

    @cached_property
    def middle(self) -> Field:
        """Height of each layer's middle above ground, m."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @cached_property
    def mass(self) -> Field:
        """Air mass of each layer, kg m⁻²."""
        return self.density * self.depth

    def exchange(self, inner_diffusivity: Field) -> Field:
        """ρ K / Δz at the L − 1 faces between layers, kg m⁻² s⁻¹, from K at those faces."""
        return np.asarray(exchange(self.density, self.middle, inner_diffusivity))


def stretched_layers(
    count: int = 25, *, first: float = 60.0, top: float = 15_000.0, ground: float = 2000.0
) -> Layers:
    """`count` layers from the ground to `top` m, the lowest `first` m deep.

    Edges are z_k = top (k / count)^p, with p ≥ 1 such that z₁ = `first`. `ground` is the mean
    elevation in m above sea level; the density is that of the standard atmosphere.
    """
    if count < 2 or not 0.0 < count * first <= top:
        raise PlumecastError(
            f"{count} layers of at least {first} m do not stretch to {top} m; "
            "lower first or count, or raise top"
        )
    power = np.log(top / first) / np.log(count)
    edges = top * (np.arange(count + 1) / count) ** power
    return Layers(edges, standard_density(ground + 0.5 * (edges[1:] + edges[:-1])))


@dataclass(frozen=True, slots=True)
class AirFlux:
    """Air flux through the faces of every cell, kg s⁻¹ per m² of the cell's floor.

    `east` is positive along x, `north` along y; up[0] is at the ground and always 0.
    """

    east: Field  # (L, ny, nx + 1)
    north: Field  # (L, ny + 1, nx)
    up: Field  # (L + 1, ny, nx)


def empty_flux(shape: tuple[int, int, int]) -> AirFlux:
    """Zero air flux on (L, ny, nx) cells."""
    count, ny, nx = shape
    return AirFlux(
        np.zeros((count, ny, nx + 1)), np.zeros((count, ny + 1, nx)), np.zeros((count + 1, ny, nx))
    )


def steering(
    elevation: Field, cell: float, strength: float = STEERING_STRENGTH, *, scale: float = 3000.0
) -> Field:
    """Effect of the terrain on the wind near the ground: matrices T with local wind = T (u, v).

    T = I + strength · w (P − ½ I), (ny, nx, 2, 2), where P projects on the axis of the valley or
    ridge. Wind along the axis gains strength·w/2, wind across it loses as much, and oblique wind
    turns towards the axis. The axis is normal to the main direction of the elevation gradient
    within about `scale` m, from the structure tensor J of the gradient. w is the anisotropy of J (0
    for round hills, 1 for a straight valley) times s / (s + `STEERING_RELIEF`), where s is the
    local standard deviation of the elevation; flat ground does not steer. This is a kinematic
    model of channelling (Whiteman and Doran 1993, J. Appl. Meteorol. 32, 1669), not a flow model.
    With strength·w ≥ 2 the wind across a valley would reverse, so such a strength raises an error;
    the largest possible strength depends on the terrain.
    """
    check_steering(strength)

    def smooth(field: Field) -> Field:
        return np.asarray(gaussian_filter(field, scale / cell, mode="nearest"))

    slope_y, slope_x = np.gradient(gaussian_filter(elevation, 600.0 / cell, mode="nearest"), cell)
    xx, xy, yy = smooth(slope_x**2), smooth(slope_x * slope_y), smooth(slope_y**2)
    difference, twice = xx - yy, 2.0 * xy
    size = np.hypot(difference, twice)
    safe_size = np.where(size > 0.0, size, 1.0)
    deviation = smooth((elevation - smooth(elevation)) ** 2) ** 0.5
    anisotropy = size / np.where(size > 0.0, xx + yy, 1.0)
    weight = anisotropy * deviation / (deviation + STEERING_RELIEF)
    if strength * weight.max() >= 2.0:
        most = np.floor(200.0 / weight.max()) / 100.0
        raise PlumecastError(
            f"steering strength={strength:g} would blow wind across a valley of this landscape "
            f"backwards; use {most:g} or less"
        )
    half = 0.5 * strength * weight
    # P − ½ I = −½ [[cos 2θ, sin 2θ], [sin 2θ, −cos 2θ]] with θ the direction of the gradient
    cosine, sine = half * difference / safe_size, half * twice / safe_size
    return np.stack(
        [np.stack([1.0 - cosine, -sine], axis=-1), np.stack([-sine, 1.0 + cosine], axis=-1)],
        axis=-2,
    )


def check_steering(strength: float) -> None:
    """Raise if the strength is not possible for any landscape."""
    if not 0.0 <= strength < np.inf:
        raise PlumecastError(
            f"steering strength={strength}; use 0 (none), {STEERING_STRENGTH} (default) or another "
            "positive number"
        )


@dataclass(frozen=True, slots=True)
class FaceSteering:
    """Deviation of the ground wind (u, v) on the faces.

    The deviation across east faces is east[0] u + east[1] v, and across north faces likewise.
    """

    east: Field  # (2, ny, nx + 1)
    north: Field  # (2, ny + 1, nx)


def face_steering(steering: Field, block: int) -> FaceSteering:
    """Steering matrices on the fire grid → deviations on the faces of the smoke grid.

    `steering` (ny·block, nx·block, 2, 2) has the matrices T with local wind = T (u, v). T − I is
    averaged over blocks and then over the two cells of a face; outer faces have the value of their
    cell.
    """
    fine_ny, fine_nx = steering.shape[:2]
    ny, nx = fine_ny // block, fine_nx // block
    mean = steering.reshape(ny, block, nx, block, 2, 2).mean(axis=(1, 3)) - np.eye(2)
    across_x = np.pad(mean[:, :, 0, :], ((0, 0), (1, 1), (0, 0)), mode="edge")
    across_y = np.pad(mean[:, :, 1, :], ((1, 1), (0, 0), (0, 0)), mode="edge")
    east = 0.5 * (across_x[:, 1:] + across_x[:, :-1])
    north = 0.5 * (across_y[1:] + across_y[:-1])
    return FaceSteering(
        np.ascontiguousarray(np.moveaxis(east, -1, 0)),
        np.ascontiguousarray(np.moveaxis(north, -1, 0)),
    )


def fill_flux(
    flux: AirFlux, wind: tuple[Field, Field], steering: FaceSteering, layers: Layers, *, cell: float
) -> None:
    """Write the air flux of a wind profile (u, v), each (L,) m s⁻¹, into `flux`.

    Across an east face it is m_k (u_k + d_k u') / Δx, where u' is the deviation of the lowest
    layer's wind by steering and d_k the `steering_profile`; likewise with v across north faces. The
    vertical flux follows from continuity.
    """
    fade = steering_profile(layers)
    by_u, by_v = fade * wind[0][0], fade * wind[1][0]
    _fill(flux.east, steering.east, layers.mass / cell, wind[0], by_u, by_v)
    _fill(flux.north, steering.north, layers.mass / cell, wind[1], by_u, by_v)
    fill_vertical(flux.east, flux.north, flux.up)


def steering_profile(layers: Layers) -> Field:
    """Decay of steering with height, d(z) = e^(−z/h) (1 − c z/h) with h = `STEERING_HEIGHT`, (L,).

    c is near 1 and makes Σ m d = 0: air that converges near the ground flows back aloft, so that
    vertical motion is limited to heights of about h and does not reach the top.
    """
    z = layers.middle / STEERING_HEIGHT
    decay = np.exp(-z)
    c = np.sum(layers.mass * decay) / np.sum(layers.mass * decay * z)
    return np.asarray(decay * (1.0 - c * z))


@compiled()
def _fill(
    out: Field, steering: Field, mass: Field, base: Field, from_u: Field, from_v: Field
) -> None:
    """Write mass · (base + steered deviation) to the faces of one direction."""
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            row, by_u, by_v = out[k, j], steering[0, j], steering[1, j]
            for i in range(row.size):
                row[i] = mass[k] * (base[k] + by_u[i] * from_u[k] + by_v[i] * from_v[k])


@compiled()
def fill_vertical(east: Field, north: Field, up: Field) -> None:
    """Vertical flux by continuity, from the ground up: lateral inflow leaves through the top."""
    up[0] = 0.0
    for k in range(east.shape[0]):
        for j in range(up.shape[1]):
            below, above, e = up[k, j], up[k + 1, j], east[k, j]
            south, north_row = north[k, j], north[k, j + 1]
            for i in range(below.size):
                above[i] = below[i] - (e[i + 1] - e[i]) - (north_row[i] - south[i])
