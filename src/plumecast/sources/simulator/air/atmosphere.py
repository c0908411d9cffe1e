"""The air that carries the smoke: layers above ground and the air mass through every cell face.

Layers follow the terrain, each with the same depth and density everywhere, so a column holds
`mass` kg m⁻² of air per layer. Horizontal winds are given; the vertical air flux follows from
continuity, whatever the divergence of the winds, so that smoke-free and uniformly smoky air alike
stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numba import njit

from plumecast.base.constants import GRAVITY, R_DRY
from plumecast.base.errors import PlumecastError

Field = npt.NDArray[np.float64]

STEERING_HEIGHT = 600.0
"""Height over which the terrain's steering of the wind fades, m: about from valley to ridge."""


@dataclass(frozen=True)
class Layers:
    """Layers above ground, from the ground up; `edges` in m, `density` of air in kg m⁻³."""

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
        """Air in each layer, kg m⁻²."""
        return self.density * self.depth


def stretched_layers(
    count: int = 25, *, first: float = 60.0, top: float = 15_000.0, ground: float = 2000.0
) -> Layers:
    """`count` layers from the ground to `top` m, the lowest `first` m deep.

    Edges z_k = top (k / count)^p with the p ≥ 1 that puts z₁ at `first`. `ground` is the mean
    elevation above sea level, m: density is that of the standard atmosphere.
    """
    if count < 2 or not 0.0 < count * first <= top:
        raise PlumecastError(
            f"{count} layers of at least {first} m do not stretch to {top} m; "
            "lower `first` or `count`, or raise `top`"
        )
    power = np.log(top / first) / np.log(count)
    edges = top * (np.arange(count + 1) / count) ** power
    return Layers(edges, standard_density(ground + 0.5 * (edges[1:] + edges[:-1])))


def standard_density(height: npt.ArrayLike) -> Field:
    """ρ = p / (R T) of the ICAO standard atmosphere at `height` m above sea level, kg m⁻³.

    T = 288.15 K − 6.5 K/km · z to 11 km and constant above; p hydrostatic from 101,325 Pa.
    """
    z = np.asarray(height, dtype=float)
    temperature = 288.15 - 0.0065 * np.minimum(z, 11_000.0)
    exponent = GRAVITY / (R_DRY * 0.0065)
    pressure = 101_325.0 * (temperature / 288.15) ** exponent
    above = np.exp(-GRAVITY * np.maximum(z - 11_000.0, 0.0) / (R_DRY * temperature))
    return np.asarray(pressure * above / (R_DRY * temperature))


@dataclass(frozen=True, slots=True)
class AirFlux:
    """Air through the faces of every cell, kg s⁻¹ per m² of the cell's floor.

    East and north are positive towards x and y; up[0] is the ground and always 0.
    """

    east: Field  # (L, ny, nx + 1)
    north: Field  # (L, ny + 1, nx)
    up: Field  # (L + 1, ny, nx)


def empty_flux(shape: tuple[int, int, int]) -> AirFlux:
    """Air at rest on (L, ny, nx) cells."""
    count, ny, nx = shape
    return AirFlux(
        np.zeros((count, ny, nx + 1)), np.zeros((count, ny + 1, nx)), np.zeros((count + 1, ny, nx))
    )


@dataclass(frozen=True, slots=True)
class FaceSteering:
    """Deviation of the ground wind (u, v) on the faces: across east faces east[0] u + east[1] v."""

    east: Field  # (2, ny, nx + 1)
    north: Field  # (2, ny + 1, nx)


def no_steering(shape: tuple[int, int]) -> FaceSteering:
    """The wind of the profile everywhere on (ny, nx) cells."""
    ny, nx = shape
    return FaceSteering(np.zeros((2, ny, nx + 1)), np.zeros((2, ny + 1, nx)))


def face_steering(steering: Field, block: int) -> FaceSteering:
    """Steering maps of the fire grid → deviations on the faces of the smoke grid.

    `steering` (ny·block, nx·block, 2, 2) holds the map T of local wind = T (u, v). Blocks are
    averaged, T − I is averaged between the two cells of a face and kept at the outer faces.
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

    Across an east face m_k (u_k + d_k u') / Δx, u' being the steered deviation of the wind in the
    lowest layer and d_k its `steering_profile`; the same across north faces with v; upwards from
    continuity.
    """
    fade = steering_profile(layers)
    by_u, by_v = fade * wind[0][0], fade * wind[1][0]
    _fill(flux.east, steering.east, layers.mass / cell, wind[0], by_u, by_v)
    _fill(flux.north, steering.north, layers.mass / cell, wind[1], by_u, by_v)
    fill_vertical(flux.east, flux.north, flux.up)


def steering_profile(layers: Layers) -> Field:
    """d(z) = e^(−z/h) (1 − c z/h), h = `STEERING_HEIGHT`: how steering fades with height, (L,).

    c, near 1, makes Σ m d = 0: the air that the terrain gathers near the ground returns aloft, so
    that it lifts or sinks the air by up to h only and not all the way to the top.
    """
    z = layers.middle / STEERING_HEIGHT
    decay = np.exp(-z)
    c = np.sum(layers.mass * decay) / np.sum(layers.mass * decay * z)
    return np.asarray(decay * (1.0 - c * z))


@njit(cache=True)
def _fill(
    out: Field, steering: Field, mass: Field, base: Field, from_u: Field, from_v: Field
) -> None:
    for k in range(out.shape[0]):
        for j in range(out.shape[1]):
            row, by_u, by_v = out[k, j], steering[0, j], steering[1, j]
            for i in range(row.size):
                row[i] = mass[k] * (base[k] + by_u[i] * from_u[k] + by_v[i] * from_v[k])


@njit(cache=True)
def fill_vertical(east: Field, north: Field, up: Field) -> None:
    """Continuity from the ground up: what flows in sideways leaves through the top of the layer."""
    up[0] = 0.0
    for k in range(east.shape[0]):
        for j in range(up.shape[1]):
            below, above, e = up[k, j], up[k + 1, j], east[k, j]
            south, north_row = north[k, j], north[k, j + 1]
            for i in range(below.size):
                above[i] = below[i] - (e[i + 1] - e[i]) - (north_row[i] - south[i])
