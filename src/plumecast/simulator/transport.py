"""Smoke transport: emission, advection, mixing and deposition, in a box that follows the smoke.

    ∂(ρ q)/∂t + ∇·(ρ u q) = ∇·(ρ K ∇q) + emission − deposition

The state is the smoke mass of every cell in kg m⁻² of its floor. One step adds the emission, sweeps
along x, y, z (in every second step z, y, x, which is Strang splitting over two steps) and mixes.
Mixing and deposition (`physics.turbulence`) are solved by backward Euler: positive, without new
extrema and conservative for any step. The mass budget is closed: emitted = airborne + deposited +
left the domain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Field
from plumecast.simulator import compiled
from plumecast.simulator.advection import (
    Box,
    slope_weights,
    sweep_x,
    sweep_y,
    sweep_z,
    turnover_rates,
)
from plumecast.simulator.atmosphere import AirFlux, Layers

COURANT = 0.9
"""Largest share of its air that a cell may lose in one sweep."""

STRONG_MIXING = 0.1
"""The box includes a layer that exchanges more than this share of its air with the layer below."""

NEGLIGIBLE = 1.0e-14
"""Smoke of a cell, kg m⁻², below which cells at the edge of the plume are emptied.

It is ten picograms per m², 10⁻⁷ of the smallest smoke that is recorded. The removed mass counts as
having left the domain.
"""


@dataclass(frozen=True, slots=True)
class SmokeState:
    """Smoke of one fire and its mass budget; `advance` overwrites the array `smoke`."""

    smoke: Field  # (L, ny, nx) kg m⁻²
    cell: float  # m
    box: Box  # cells that may contain smoke
    emitted: float = 0.0  # kg
    deposited: float = 0.0  # kg
    left: float = 0.0  # kg, through the boundary of the domain
    steps: int = 0

    @property
    def airborne(self) -> float:
        """Smoke in the air of the domain, kg."""
        return float(self.smoke.sum()) * self.cell**2

    @property
    def imbalance(self) -> float:
        """(emitted − airborne − deposited − left) / emitted; 0 without emission."""
        rest = self.emitted - self.airborne - self.deposited - self.left
        return rest / self.emitted if self.emitted else rest


@dataclass(frozen=True, slots=True)
class Source:
    """Constant emission of some columns."""

    columns: npt.NDArray[np.int64]  # (n, 2) row and column
    rate: Field  # (n, L) kg s⁻¹ into each layer


@dataclass(frozen=True, slots=True)
class Turbulence:
    """Coefficients of mixing and deposition."""

    between: Field  # (L − 1,) ρK/Δz between layers, kg m⁻² s⁻¹
    ground: float = 0.0  # ρ v_d at the ground, kg m⁻² s⁻¹
    horizontal: float = 0.0  # diffusivity along the layers, m² s⁻¹


def clean_air(shape: tuple[int, int, int], cell: float) -> SmokeState:
    """State without smoke on (L, ny, nx) cells of `cell` m."""
    return SmokeState(np.zeros(shape), cell, np.zeros(5, dtype=np.int64))


def advance(
    plume: SmokeState, seconds: float, *, flux: AirFlux, layers: Layers, turbulence: Turbulence,
    source: Source, ambient: float = 0.0,
) -> SmokeState:  # fmt: skip
    """State after `seconds` of constant wind, mixing and emission.

    The number of steps follows from the Courant condition. `ambient` is the mixing ratio of the
    inflow, kg/kg. The smoke array of `plume` is overwritten.
    """
    smoke = plume.smoke
    count, ny, nx = smoke.shape
    whole = np.array([count, 0, ny, 0, nx])
    box = _extended_box(plume.box, source) if ambient == 0.0 else whole
    rates = turnover_rates(flux.east, flux.north, flux.up, layers.mass)
    rates += 2.0 * turbulence.horizontal / plume.cell**2
    strong = np.flatnonzero(seconds * turbulence.between > STRONG_MIXING * layers.mass[1:])
    mixed = int(strong[-1]) + 2 if strong.size else 0
    remaining, steps, deposited, left = seconds, plume.steps, 0.0, 0.0
    while remaining > 0.0 and (box[0] > 0 or source.rate.any()):
        fastest = rates[: max(int(box[0]) + 1, mixed)].max()
        parts = max(int(np.ceil(remaining * fastest / COURANT)), 1)
        dt = remaining / parts
        add_emission(smoke, source.columns, source.rate * (dt / plume.cell**2))
        left += fit_box(smoke, box, mixed) if ambient == 0.0 else 0.0
        spread = dt * turbulence.horizontal / plume.cell**2
        left += _sweep(smoke, flux, layers, dt, box, spread, ambient, forward=steps % 2 == 0)
        deposited += mix(smoke, layers.mass, turbulence.between, turbulence.ground, dt, box)
        remaining = remaining - dt if parts > 1 else 0.0
        steps += 1
    return replace(
        plume,
        box=box,
        emitted=plume.emitted + float(source.rate.sum()) * seconds,
        deposited=plume.deposited + deposited * plume.cell**2,
        left=plume.left + left * plume.cell**2,
        steps=steps,
    )


def _sweep(
    smoke: Field, flux: AirFlux, layers: Layers, dt: float, box: Box, spread: float,
    ambient: float, *, forward: bool,
) -> float:  # fmt: skip
    """Sweep in place in the order x, y, z (`forward`) or z, y, x; returns the smoke that left."""
    air = np.empty_like(smoke)
    reset_air(air, layers.mass, box)
    sweeps = (
        (sweep_x, flux.east, spread * layers.mass),
        (sweep_y, flux.north, spread * layers.mass),
        (sweep_z, flux.up, slope_weights(layers.depth)),
    )
    left = 0.0
    for sweep, through, setting in sweeps if forward else sweeps[::-1]:
        left += sweep(smoke, air, through, dt, box, setting, ambient)
    return left


def _extended_box(box: Box, source: Source) -> Box:
    """The smallest box that contains `box` and the emitting cells."""
    emitting = source.rate.any(axis=1)
    if not emitting.any():
        return box.copy()
    rows, columns = source.columns[emitting].T
    top = int(np.flatnonzero(source.rate.any(axis=0))[-1]) + 1
    new = np.array([top, rows.min(), rows.max() + 1, columns.min(), columns.max() + 1])
    return np.where([1, 0, 1, 0, 1], np.maximum(box, new), np.minimum(box, new)) if box[0] else new


@compiled()
def add_emission(smoke: Field, columns: npt.NDArray[np.int64], amount: Field) -> None:
    """Add `amount` (n, L) kg m⁻² to n columns in place; a column may occur more than once."""
    for c in range(columns.shape[0]):
        for k in range(amount.shape[1]):
            smoke[k, columns[c, 0], columns[c, 1]] += amount[c, k]


@compiled()
def reset_air(air: Field, mass: Field, box: Box) -> None:
    """Set the air mass of every cell in the box to that of its layer."""
    for k in range(box[0]):
        air[k, box[1] : box[2], box[3] : box[4]] = mass[k]


@compiled(error_model="numpy")
def fit_box(smoke: Field, box: Box, mixed: int) -> float:
    """Shrink the box in place to cells above `NEGLIGIBLE`, then widen it by one cell on each side.

    The box is at least `mixed` layers high, so that mixing reaches through the boundary layer.
    Returns the smoke of the cells that were emptied. A box without smoke becomes 0 layers high.
    """
    count, ny, nx = smoke.shape
    dropped = 0.0
    while box[0] > 0 and smoke[box[0] - 1, box[1] : box[2], box[3] : box[4]].max() <= NEGLIGIBLE:
        box[0] -= 1
        dropped += _clear(smoke[box[0], box[1] : box[2], box[3] : box[4]])
    if box[0] == 0:
        return dropped
    while smoke[: box[0], box[1], box[3] : box[4]].max() <= NEGLIGIBLE:
        dropped += _clear(smoke[: box[0], box[1], box[3] : box[4]])
        box[1] += 1
    while smoke[: box[0], box[2] - 1, box[3] : box[4]].max() <= NEGLIGIBLE:
        box[2] -= 1
        dropped += _clear(smoke[: box[0], box[2], box[3] : box[4]])
    while smoke[: box[0], box[1] : box[2], box[3]].max() <= NEGLIGIBLE:
        dropped += _clear(smoke[: box[0], box[1] : box[2], box[3]])
        box[3] += 1
    while smoke[: box[0], box[1] : box[2], box[4] - 1].max() <= NEGLIGIBLE:
        box[4] -= 1
        dropped += _clear(smoke[: box[0], box[1] : box[2], box[4]])
    box[0] = min(max(box[0] + 1, mixed), count)
    box[1], box[2] = max(box[1] - 1, 0), min(box[2] + 1, ny)
    box[3], box[4] = max(box[3] - 1, 0), min(box[4] + 1, nx)
    return dropped


@compiled()
def _clear(cells: Field) -> float:
    """Empty the cells and return their smoke."""
    total: float = cells.sum()
    cells[:] = 0.0
    return total


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
