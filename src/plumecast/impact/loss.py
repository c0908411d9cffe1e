"""Energy that plants lose to the smoke of many fires, from tables of energy by optical depth.

Within an interval between snapshots the smoke is constant, and the sun moves. The power is computed
at the middle of steps of at most half an hour, for nodes of the optical depth and of the albedo;
any number of fires, plants and samples of the optics is then a matter of interpolation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from plumecast.base.errors import PlumecastError
from plumecast.impact.optics import (
    KNOWN_DEPTH,
    LARGEST_ZENITH,
    REFERENCE,
    SKIES,
    Air,
    Optics,
    SkyTable,
    largest_aod,
    optical_depth,
    tabulate,
)
from plumecast.impact.plants import Exposure, Ignition, Panels, Plants, ac_power, sun_position

STEP = 0.5
"""Longest step in hours within which the sun stands still."""

NODES = 24  # optical depths at which the sky is computed
FINE = 160  # optical depths between which energy is interpolated linearly
_SCALE = 0.3  # optical depth above which nodes grow apart in proportion to it
_BLOCK = 2_000_000  # values computed at once
_ROUNDED = 0.05  # hours that the ends of intervals are rounded to: three minutes
_INTERVALS = 200  # distinct intervals tabulated at once
_SSA_NODES = 5  # a polynomial of degree 4 in the albedo


def aod_nodes(background: float, largest: float, count: int = NODES) -> np.ndarray:
    """Optical depths from the background to background + `largest`, denser where it is small."""
    top = np.arcsinh(max(largest, 1e-3) / _SCALE)
    return np.asarray(background + _SCALE * np.sinh(np.linspace(0.0, top, count)))


@dataclass(frozen=True, slots=True)
class EnergyTable:
    """AC energy in MWh of P plants in U intervals, for smoke of any optical depth and albedo.

    Interpolation changes the lost energy by less than 0.01 % of the energy under a clear sky up to
    an optical depth of 6, and by less than 0.1 % up to 30.
    """

    energy: np.ndarray  # (U, P, FINE, S)
    largest: float  # optical depth of smoke at the last node
    ssas: np.ndarray  # (S,)

    def clear(self, ssa: float) -> np.ndarray:
        """(U, P) energy without smoke."""
        return np.asarray(self.energy[:, :, 0] @ lagrange(self.ssas, ssa))

    def lost(
        self, interval: np.ndarray, plant: np.ndarray, aod: np.ndarray, ssa: float
    ) -> np.ndarray:
        """(n,) energy lost by smoke of optical depth `aod` (n,) at pairs of interval and plant.

        Never negative: a panel with the sun behind it gains a little from scattered light, which
        is no loss.
        """
        at = np.arcsinh(aod / _SCALE) / np.arcsinh(self.largest / _SCALE) * (FINE - 1)
        low = np.clip(at.astype(np.int64), 0, FINE - 2)
        share = np.minimum(at - low, 1.0)
        nodes = (np.zeros_like(low), low, low + 1)
        weights = lagrange(self.ssas, ssa)
        if aod.size > self.energy.size // 40:  # mixing the whole table is then less work
            mixed = self.energy @ weights
            clear, left, right = (mixed[interval, plant, node] for node in nodes)
        else:
            clear, left, right = (self.energy[interval, plant, node] @ weights for node in nodes)
        return np.asarray(np.maximum(clear - (left + share * (right - left)), 0.0))


def lagrange(nodes: np.ndarray, at: float) -> np.ndarray:
    """Weights of the polynomial interpolation from `nodes` to `at`.

    >>> lagrange(np.array([0.0, 1.0, 2.0]), 3.0).tolist()
    [1.0, -3.0, 3.0]
    """
    weights = [
        np.prod([(at - other) / (node - other) for other in nodes if other != node])
        for node in nodes
    ]
    return np.array(weights, dtype=np.float64)


def energy_table(
    intervals: np.ndarray, plants: Plants, ignition: Ignition, sky: SkyTable, panels: Panels
) -> EnergyTable:
    """The energies in intervals (U, 2) of hours since ignition; `sky.aods` are `aod_nodes`."""
    nodes = (sky.aods.size, sky.ssas.size)
    coarse = np.zeros((len(intervals) * len(plants.names), *nodes))
    for time, plant, seen, weight, owner in _sunlit(
        intervals, plants, ignition, nodes[0] * nodes[1]
    ):
        beam, diffuse = sky.at(seen.zenith, plants.pressure[plant])
        power = ac_power(seen, beam, diffuse, extra=sky.extra, panels=panels)
        amount = weight[time] * plants.megawatts[plant]
        rows = owner[time] * len(plants.names) + plant
        np.add.at(coarse, rows, power * amount[:, np.newaxis, np.newaxis])
    largest = float(sky.aods[-1] - sky.aods[0])
    place = np.linspace(0.0, 1.0, FINE)
    fine = PchipInterpolator(np.linspace(0.0, 1.0, nodes[0]), coarse, axis=1)(place)
    shape = (len(intervals), len(plants.names), FINE, nodes[1])
    return EnergyTable(fine.reshape(shape), largest, sky.ssas)


def _sunlit(
    intervals: np.ndarray, plants: Plants, ignition: Ignition, values: int
) -> Iterator[tuple[np.ndarray, np.ndarray, Exposure, np.ndarray, np.ndarray]]:
    """Pairs of a time and a plant with the sun above the horizon, a block at a time.

    Yields the row of the time, that of the plant, how the panels see the sun, and of all times the
    hours that they stand for and the interval that they belong to.
    """
    counts = np.ceil((intervals[:, 1] - intervals[:, 0]) / STEP - 1e-9).astype(np.int64)
    counts = np.maximum(counts, 1)
    owner = np.repeat(np.arange(len(intervals)), counts)
    weight = ((intervals[:, 1] - intervals[:, 0]) / counts)[owner]
    within = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    hours = intervals[owner, 0] + (within + 0.5) * weight
    zenith, azimuth = sun_position(ignition, hours, plants.latitude, plants.longitude)
    times, places = np.nonzero(zenith < LARGEST_ZENITH)
    size = max(1, int(_BLOCK // values))
    for start in range(0, times.size, size):
        time, plant = times[start : start + size], places[start : start + size]
        seen = Exposure(
            zenith[time, plant], azimuth[time, plant], plants.tilt[plant], plants.azimuth[plant]
        )
        yield time, plant, seen, weight, owner


@dataclass(frozen=True, slots=True)
class SmokeAt:
    """Mean concentrations (M, P) of the column between snapshots, µg m⁻³, and their times."""

    concentration: np.ndarray
    begin: np.ndarray  # (M,) hours since ignition
    end: np.ndarray
    fire: np.ndarray  # (M,) index of the fire
    names: np.ndarray  # (F,) of the fires
    ignitions: np.ndarray  # (F,) of the fires
    last: np.ndarray  # (F,) hours of the fires
    depth: float  # of the column, m
    lower: np.ndarray | None = None  # band of the concentration
    upper: np.ndarray | None = None

    def at(self, rows: np.ndarray, later: np.ndarray) -> SmokeAt:
        """Some of the snapshots, with times that are `later` by so many hours."""
        return replace(
            self,
            concentration=self.concentration[rows],
            begin=self.begin[rows] + later,
            end=self.end[rows] + later,
            fire=self.fire[rows],
            lower=None if self.lower is None else self.lower[rows],
            upper=None if self.upper is None else self.upper[rows],
        )


@dataclass(frozen=True, slots=True)
class LossSettings:
    """What the loss depends on beside the smoke."""

    plants: Plants
    ignition: Ignition
    optics: Optics
    panels: Panels
    mee: np.ndarray  # (N,) sampled efficiencies
    ssa: np.ndarray  # (N,) sampled albedos


@dataclass(frozen=True, slots=True)
class Losses:
    """Sums over the snapshots of each fire, in MWh, unless stated otherwise."""

    clear: np.ndarray  # (F, P) energy under a clear sky
    lost: np.ndarray  # (F, P)
    lower: np.ndarray | None  # (F, P) at the ends of the band of the smoke
    upper: np.ndarray | None
    by_optics: np.ndarray  # (N, P) sums over all fires
    beyond: float  # lost where the optical depth exceeds KNOWN_DEPTH, all fires and plants
    models: np.ndarray  # (K, 2) lost by each of SKIES, and by the reference in the same intervals

    def __add__(self, other: Losses) -> Losses:
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        both: list[Any] = [None if a is None or b is None else a + b for a, b in pairs]
        return Losses(*both)


def losses(smoke: SmokeAt, settings: LossSettings) -> Losses:
    """The losses of all fires; equal intervals of different fires are computed once."""
    spans = _ROUNDED * np.round(np.stack([smoke.begin, smoke.end], axis=1) / _ROUNDED)
    distinct, which = np.unique(spans, axis=0, return_inverse=True)
    which = which.reshape(-1)
    optics = settings.optics
    most = max(optics.mee, optics.mee_range[1]) * max(
        float(item.max()) for item in (smoke.concentration, smoke.upper) if item is not None
    )
    largest = float(optical_depth(np.array(most), smoke.depth, 1.0, optics.growth))
    if not np.isfinite(largest):
        raise PlumecastError("the smoke at the plants is not finite; check the prediction")
    skies = {name: _sky(name, largest, settings) for name in SKIES}
    total: Losses | None = None
    for start in range(0, len(distinct), _INTERVALS):
        rows = np.flatnonzero((which >= start) & (which < start + _INTERVALS))
        intervals = distinct[start : start + _INTERVALS]
        tables = {
            name: energy_table(intervals, settings.plants, settings.ignition, sky, settings.panels)
            for name, sky in skies.items()
        }
        part = _block(smoke, rows, which[rows] - start, tables, settings)
        total = part if total is None else total + part
    if total is None:
        raise PlumecastError("there are no fires; give at least one")
    return total


def _sky(name: str, largest: float, settings: LossSettings) -> SkyTable:
    """A model of the sky, tabulated up to the largest optical depth of smoke."""
    optics = settings.optics
    limit = largest_aod(name, optics) - optics.background
    ssas = np.array([optics.ssa])
    if name == REFERENCE and optics.ssa_range[0] < optics.ssa_range[1]:
        ssas = np.linspace(*optics.ssa_range, _SSA_NODES)
    nodes = aod_nodes(optics.background, min(largest, max(limit, 1e-3)))
    air = Air(day=settings.ignition.day, albedo=settings.panels.albedo)
    return tabulate(name, nodes, ssas, settings.plants.pressure, optics, air)


def _block(
    smoke: SmokeAt,
    rows: np.ndarray,
    interval: np.ndarray,
    tables: dict[str, EnergyTable],
    settings: LossSettings,
) -> Losses:
    """The losses of some snapshots, whose intervals are those of the tables."""
    table, optics, count = tables[REFERENCE], settings.optics, len(settings.plants.names)
    shape = (smoke.names.size, count)

    def depth_of(concentration: np.ndarray, mee: float = optics.mee) -> np.ndarray:
        return optical_depth(concentration, smoke.depth, mee, optics.growth)

    def per_fire(band: np.ndarray | None) -> np.ndarray | None:
        if band is None:
            return None
        row, plant = np.nonzero(band[rows])
        lost = table.lost(interval[row], plant, depth_of(band[rows][row, plant]), optics.ssa)
        cell = smoke.fire[rows][row] * count + plant
        return np.bincount(cell, lost, shape[0] * count).reshape(shape)

    clear = np.zeros(shape)
    np.add.at(clear, smoke.fire[rows], table.clear(optics.ssa)[interval])
    row, plant = np.nonzero(smoke.concentration[rows])
    here, concentration = interval[row], smoke.concentration[rows][row, plant]
    aod = depth_of(concentration)
    lost = table.lost(here, plant, aod, optics.ssa)
    by_optics = np.stack(
        [
            np.bincount(plant, table.lost(here, plant, depth_of(concentration, mee), ssa), count)
            for mee, ssa in zip(settings.mee, settings.ssa, strict=True)
        ]
    )
    models = []
    for name, other in tables.items():
        inside = aod + optics.background <= largest_aod(name, optics)
        here_lost = other.lost(here[inside], plant[inside], aod[inside], optics.ssa)
        models.append((float(here_lost.sum()), float(lost[inside].sum())))
    central = per_fire(smoke.concentration)
    assert central is not None
    beyond = float(lost[aod > KNOWN_DEPTH].sum())
    ends = per_fire(smoke.lower), per_fire(smoke.upper)
    return Losses(clear, central, *ends, by_optics, beyond, np.array(models))
