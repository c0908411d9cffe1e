"""Smoke transport: emission, advection, mixing and deposition in a box that follows the smoke.

    ∂(ρ q)/∂t + ∇·(ρ u q) = ∇·(ρ K ∇q) + emission − deposition

The state is the smoke mass of every cell, kg m⁻² of its floor. One step adds the emission, sweeps
x, y, z (every second step z, y, x: Strang's symmetric splitting over two steps) and mixes. Every
kilogram is accounted for: emitted = airborne + deposited + left the domain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from plumecast.sources.simulator.air.advection import (
    Box,
    slope_weights,
    sweep_x,
    sweep_y,
    sweep_z,
    turnover_rates,
)
from plumecast.sources.simulator.air.atmosphere import AirFlux, Layers
from plumecast.sources.simulator.air.mixing import mix

Field: TypeAlias = npt.NDArray[np.float64]

COURANT = 0.9
"""Share of its air that a cell may lose in one sweep."""

STRONG_MIXING = 0.1
"""Share of its air that a layer must exchange with the next for the box to reach over both."""

EMPTY = 1.0e-14
"""Smoke of a cell, kg m⁻², below which the rim of the plume is emptied: ten picograms, 10⁻⁷ of the
smoke that is ever recorded. Their mass is booked as having left."""


@dataclass(frozen=True, slots=True)
class Plume:
    """The smoke of one fire and its account; `smoke` is overwritten by `advance`."""

    smoke: Field  # (L, ny, nx) kg m⁻²
    cell: float  # m
    box: Box  # cells that may hold smoke
    emitted: float = 0.0  # kg
    deposited: float = 0.0
    left: float = 0.0
    steps: int = 0

    @property
    def airborne(self) -> float:
        """Smoke in the domain's air, kg."""
        return float(self.smoke.sum()) * self.cell**2

    @property
    def imbalance(self) -> float:
        """(emitted − airborne − deposited − left) / emitted; 0 without emission."""
        rest = self.emitted - self.airborne - self.deposited - self.left
        return rest / self.emitted if self.emitted else rest


@dataclass(frozen=True, slots=True)
class Source:
    """Emission of some columns, constant over a time."""

    columns: npt.NDArray[np.int64]  # (n, 2) row and column
    rate: Field  # (n, L) kg s⁻¹ into each layer


@dataclass(frozen=True, slots=True)
class Turbulence:
    """What mixes the smoke and what takes it to the ground."""

    between: Field  # (L − 1,) ρK/Δz between layers, kg m⁻² s⁻¹
    ground: float = 0.0  # ρ v_d at the ground, kg m⁻² s⁻¹
    horizontal: float = 0.0  # diffusivity along the layers, m² s⁻¹


def no_source(layers: int) -> Source:
    """No emission."""
    return Source(np.zeros((0, 2), dtype=np.int64), np.zeros((0, layers)))


def clean_air(shape: tuple[int, int, int], cell: float) -> Plume:
    """No smoke on (L, ny, nx) cells of `cell` m."""
    return Plume(np.zeros(shape), cell, np.zeros(5, dtype=np.int64))


def smoky_air(smoke: Field, cell: float) -> Plume:
    """A given field of smoke, (L, ny, nx) kg m⁻², booked as emitted."""
    emitted = float(smoke.sum()) * cell**2
    return Plume(smoke.copy(), cell, _everywhere(smoke.shape), emitted=emitted)


def advance(
    plume: Plume, seconds: float, *, flux: AirFlux, layers: Layers, turbulence: Turbulence,
    source: Source, ambient: float = 0.0,
) -> Plume:  # fmt: skip
    """The plume after `seconds` of constant wind, mixing and emission, in as many steps as needed.

    `ambient` is the mixing ratio of the air that flows in, kg/kg. The smoke array of `plume` is
    reused.
    """
    smoke = plume.smoke
    box = _joined(plume.box, source) if ambient == 0.0 else _everywhere(smoke.shape)
    rates = turnover_rates(flux.east, flux.north, flux.up, layers.mass)
    rates += 2.0 * turbulence.horizontal / plume.cell**2
    strong = np.flatnonzero(seconds * turbulence.between > STRONG_MIXING * layers.mass[1:])
    mixed = int(strong[-1]) + 2 if strong.size else 0
    remaining, steps, deposited, left = seconds, plume.steps, 0.0, 0.0
    while remaining > 0.0 and (box[0] > 0 or source.rate.any()):
        fastest = rates[: max(int(box[0]) + 1, mixed)].max()
        count = max(int(np.ceil(remaining * fastest / COURANT)), 1)
        dt = remaining / count
        emit(smoke, source.columns, source.rate * (dt / plume.cell**2))
        left += fit_box(smoke, box, mixed) if ambient == 0.0 else 0.0
        spread = dt * turbulence.horizontal / plume.cell**2
        left += _sweep(smoke, flux, layers, dt, box, spread, ambient, forward=steps % 2 == 0)
        deposited += mix(smoke, layers.mass, turbulence.between, turbulence.ground, dt, box)
        remaining = remaining - dt if count > 1 else 0.0
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
    """Sweep x, y, z, or backwards z, y, x, in place; returns the smoke that left."""
    air = np.empty_like(smoke)
    fill_air(air, layers.mass, box)
    sweeps = (
        (sweep_x, flux.east, spread * layers.mass),
        (sweep_y, flux.north, spread * layers.mass),
        (sweep_z, flux.up, slope_weights(layers.depth)),
    )
    left = 0.0
    for sweep, through, setting in sweeps if forward else sweeps[::-1]:
        left += sweep(smoke, air, through, dt, box, setting, ambient)
    return left


def _everywhere(shape: tuple[int, ...]) -> Box:
    count, ny, nx = shape
    return np.array([count, 0, ny, 0, nx])


def _joined(box: Box, source: Source) -> Box:
    """The smallest box that holds `box` and the emitting cells."""
    emitting = source.rate.any(axis=1)
    if not emitting.any():
        return box.copy()
    rows, columns = source.columns[emitting].T
    top = int(np.flatnonzero(source.rate.any(axis=0))[-1]) + 1
    new = np.array([top, rows.min(), rows.max() + 1, columns.min(), columns.max() + 1])
    return np.where([1, 0, 1, 0, 1], np.maximum(box, new), np.minimum(box, new)) if box[0] else new


@njit(cache=True)
def emit(smoke: Field, columns: npt.NDArray[np.int64], amount: Field) -> None:
    """Add `amount` (n, L) kg m⁻² to the layers of n columns in place; a column may come twice."""
    for c in range(columns.shape[0]):
        for k in range(amount.shape[1]):
            smoke[k, columns[c, 0], columns[c, 1]] += amount[c, k]


@njit(cache=True)
def fill_air(air: Field, mass: Field, box: Box) -> None:
    """The layers' own air in every cell of the box."""
    for k in range(box[0]):
        air[k, box[1] : box[2], box[3] : box[4]] = mass[k]


@njit(cache=True, error_model="numpy")
def fit_box(smoke: Field, box: Box, mixed: int) -> float:
    """Shrink the box in place to the cells above `EMPTY`, then widen it by one cell to each side.

    It is at least `mixed` layers high, so that mixing is not cut off within the boundary layer.
    Returns the smoke of the cells it emptied; an all-empty box becomes 0 layers high.
    """
    count, ny, nx = smoke.shape
    dropped = 0.0
    while box[0] > 0 and smoke[box[0] - 1, box[1] : box[2], box[3] : box[4]].max() <= EMPTY:
        box[0] -= 1
        dropped += _empty(smoke[box[0], box[1] : box[2], box[3] : box[4]])
    if box[0] == 0:
        return dropped
    while smoke[: box[0], box[1], box[3] : box[4]].max() <= EMPTY:
        dropped += _empty(smoke[: box[0], box[1], box[3] : box[4]])
        box[1] += 1
    while smoke[: box[0], box[2] - 1, box[3] : box[4]].max() <= EMPTY:
        box[2] -= 1
        dropped += _empty(smoke[: box[0], box[2], box[3] : box[4]])
    while smoke[: box[0], box[1] : box[2], box[3]].max() <= EMPTY:
        dropped += _empty(smoke[: box[0], box[1] : box[2], box[3]])
        box[3] += 1
    while smoke[: box[0], box[1] : box[2], box[4] - 1].max() <= EMPTY:
        box[4] -= 1
        dropped += _empty(smoke[: box[0], box[1] : box[2], box[4]])
    box[0] = min(max(box[0] + 1, mixed), count)
    box[1], box[2] = max(box[1] - 1, 0), min(box[2] + 1, ny)
    box[3], box[4] = max(box[3] - 1, 0), min(box[4] + 1, nx)
    return dropped


@njit(cache=True)
def _empty(cells: Field) -> float:
    total: float = cells.sum()
    cells[:] = 0.0
    return total
