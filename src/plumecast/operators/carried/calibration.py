"""Constants of the transport that depend on the model behind the smoke. Arrays only, no labels.

How far smoke spreads sideways, how high it rises and how fast it travels differ between models of
the atmosphere and between grids. Three constants are therefore chosen on the training fires: the
horizontal diffusivity, the height of plumes and the speed at which smoke travels, relative to the
plain transport. Carried smoke times one factor shall be close to the true smoke: the criterion is
the mean over snapshots of the relative errors of g and of ln(1 + g/ε), each at most 1, and of
1 − IoU of the footprints g > τ. The constants step along their ladders while the error falls.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from plumecast.compute.arrays import Array, to_numpy
from plumecast.compute.blocks import sampled_rows
from plumecast.operators.carried.release import FireHistory, FuelLoads, WeatherSeries
from plumecast.operators.carried.transport import DIFFUSIVITY, ColumnTransport

LADDERS: dict[str, tuple[float, ...]] = {
    "drift": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5),
    "rise": (0.25, 0.5, 1.0),
    "diffusivity": (DIFFUSIVITY, 500.0, 1000.0, 2000.0, 4000.0, 8000.0),
}
"""Values of every constant, ascending; those of `plan_transport` are among them."""

Constants = tuple[float, ...]
"""A value of every ladder, in their order."""

PLAIN: Constants = (1.0, 1.0, DIFFUSIVITY)
"""The constants of `plan_transport`."""

COARSE = (
    PLAIN,
    *itertools.product((0.6, 0.8, 1.0, 1.2), (0.5, 1.0), (DIFFUSIVITY, 1000.0, 4000.0)),
)
"""Constants that are compared first. A wide spread can stand in for slow travel, so that a descent
from one start may end beside the best."""

MOVES = tuple(move for move in itertools.product((1, -1, 0), repeat=3) if any(move))
"""Steps along the ladders of one or more constants, which can stand in for each other in part."""

ROUNDS = 3
"""Times that all moves are tried; a later round is short if the one before changed little."""

LEAST_GAIN = 0.002
"""A step must lower the error by this share of it: smaller gains are noise of few fires."""

SAMPLE = 32
"""Largest number of snapshots that are carried with every choice."""

SHORT = 24.0
"""Hours up to which all snapshots may be sampled. Of longer fires the younger half is, because the
time to carry smoke grows with the hours and the constants hardly depend on them."""

WIDEST = 4.0
"""Largest width of the diffusion in a step, in cells, that is tried: on fine grids a wider one
would take most of the time of a fit."""

THIN = 0.01
"""ε as a share of the smoke-weighted mean Σg² / Σg, so that the result does not depend on the unit;
about 1 µg m⁻³ in runs of WRF-Fire."""


def calibrate(
    transport: ColumnTransport,
    fire: Array,
    smoke: Array,
    weather: WeatherSeries,
    *,
    threshold: float,
    fuel: FuelLoads | None = None,
    history: FireHistory | None = None,
    put: Callable[[Array], Array] = np.asarray,
) -> ColumnTransport:
    """The transport with the constants that suit (M, ny, nx) fires and their smoke best.

    `threshold` is the smoke threshold τ. Fields are arrays, or objects that give one when indexed
    by rows. `put` copies an array to the device that computes.
    """
    short = np.flatnonzero(weather.until <= max(SHORT, float(np.median(weather.until))))
    rows = short[sampled_rows(short.size, SAMPLE)]
    air, loads = weather.at(rows), None if fuel is None else fuel.at(rows)
    past = None if history is None else history.at(rows)
    observed = np.maximum(np.asarray(smoke[rows], dtype=np.float64), 0.0)
    burning = put(np.asarray(fire[rows]))
    if not observed.any():
        return transport
    epsilon = THIN * float(np.sum(observed**2) / np.sum(observed))
    whole = replace(transport, groups=(transport.groups[0], transport.groups[-1]))

    @cache
    def error_of(constants: Constants) -> float:
        candidate = _with(whole, constants)
        if constants != PLAIN and candidate.spread_cells() > WIDEST:
            return np.inf
        carried = to_numpy(candidate.smoke(burning, air, loads, past))[:, 0]
        return _error(carried.astype(np.float64), observed, epsilon, threshold)

    best = min(COARSE, key=error_of)
    for _ in range(ROUNDS):
        before = best
        for move in MOVES:
            while (further := _moved(best, move)) is not None:
                if error_of(further) >= (1.0 - LEAST_GAIN) * error_of(best):
                    break
                best = further
        if best == before:
            break
    return _with(transport, best)


def _with(transport: ColumnTransport, constants: Constants) -> ColumnTransport:
    drift, rise, diffusivity = constants
    return replace(transport, diffusivity=diffusivity, rise=rise, drift=drift)


def _moved(constants: Constants, move: tuple[int, ...]) -> Constants | None:
    """The constants after a move along the ladders; None beyond their ends."""
    steps = zip(LADDERS.values(), constants, move, strict=True)
    places = [(ladder, ladder.index(value) + step) for ladder, value, step in steps]
    if any(not 0 <= place < len(ladder) for ladder, place in places):
        return None
    return tuple(ladder[place] for ladder, place in places)


def _error(carried: Array, smoke: Array, epsilon: float, threshold: float) -> float:
    """Mean over snapshots of the relative errors of g and of ln(1 + g/ε), and of 1 − IoU.

    Snapshots without smoke, true or carried, tell nothing and are left out. Smoke that misses the
    true one altogether has the error 1.
    """
    smoky = (carried > 0.0).any(axis=(1, 2)) & (smoke > 0.0).any(axis=(1, 2))
    carried, smoke = carried[smoky], smoke[smoky]
    products, squares = (np.sum(carried * other, axis=(1, 2)) for other in (smoke, carried))
    met = products > 0.0
    if not met.any():
        return 1.0
    factor = float(np.median(products[met] / squares[met]))
    guess, truth = factor * carried, smoke
    errors = []
    for one, other in ((guess, truth), (np.log1p(guess / epsilon), np.log1p(truth / epsilon))):
        wrong, size = (np.sum(values**2, axis=(1, 2)) for values in (one - other, other))
        errors.append(np.minimum(np.sqrt(wrong / size), 1.0))
    called, present = guess > threshold, truth > threshold
    both, either = (np.sum(own, axis=(1, 2)) for own in (called & present, called | present))
    missed = np.where(either > 0, 1.0 - both / np.maximum(either, 1), 0.0)  # 1 − IoU
    return float(np.mean([*errors, missed]))
