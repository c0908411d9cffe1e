"""New snapshots in a spectral operator: their sums are added, and the systems are solved again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumecast.compute.resources import DEFAULT_BUDGET
from plumecast.operators.family import NOTHING, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.fit import fit_spectral, update_spectral
from plumecast.operators.spectral.systems import Systems, layer_sums, solve_totals
from plumecast.operators.spectral.transform import choose_frequencies
from support.convolved_fires import fires, plume

DOUBLE = 1e-8  # relative, in double precision: the same sums in another order
SINGLE = 2e-3  # relative to the largest weight: sums in single precision, penalties from 1e-5


def noise(shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@pytest.fixture(scope="module")
def frequencies():
    return choose_frequencies((6, 6))


def linear(frequencies, rows: int, seed: int) -> Equations:
    """Two targets that are nearly linear in three channels."""
    x = noise((frequencies.count, rows, 3), seed)
    y = x @ noise((frequencies.count, 3, 2), 99) + 0.1 * noise((frequencies.count, rows, 2), seed)
    return Equations.of(x, y)


@pytest.mark.parametrize("pointwise", [False, True])
@pytest.mark.parametrize("scenarios", [1, 2])
def test_weights_follow_from_totals_and_choices(frequencies, scenarios, pointwise):
    parts = [[linear(frequencies, 8, 10 * s + fold) for fold in range(3)] for s in range(scenarios)]
    systems = Systems(parts, frequencies, pointwise)
    expected, _, choices = systems.solve()
    found = solve_totals(systems.totals(), frequencies, choices)
    for own, known in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, known, rtol=DOUBLE, atol=DOUBLE)


def test_saved_sums_plus_new_ones_are_the_sums_of_all(frequencies):
    """The fit to all snapshots with the same choices, to 1e-8 in double precision."""
    old, new = [linear(frequencies, 8, seed) for seed in range(3)], linear(frequencies, 5, 7)
    systems = Systems([list(old)], frequencies, pointwise=True)
    *_, choices = systems.solve()
    saved = layer_sums(systems.totals(), choices)
    grown = saved.totals(np.zeros(1))[0] + new
    found = solve_totals([grown], frequencies, choices)[0]
    everything = old[0] + old[1] + old[2] + new
    np.testing.assert_allclose(grown.gram, everything.gram, rtol=DOUBLE, atol=DOUBLE)
    expected = solve_totals([everything], frequencies, choices)[0]
    assert np.abs(found - expected).max() < DOUBLE * np.abs(expected).max()
    before = solve_totals(systems.totals(), frequencies, choices)[0]
    assert np.abs(found - before).max() > 1e-3, "new snapshots change the weights"


def training(rows: slice) -> TrainingSet:
    fire = fires(24)[rows]
    targets = plume(fire)[:, None]
    return TrainingSet(fire, targets, np.arange(fire.shape[0]), NOTHING, leading=1)


@pytest.fixture(scope="module")
def fitted():
    old = training(slice(0, 16))
    return fit_spectral(old, fit_lift(old.fire, bins=3), layers=2, updatable=True)


def update(fitted, sums, rows: slice):
    return update_spectral(fitted, sums, training(rows), DEFAULT_BUDGET)


def test_one_layer_equals_a_fit_to_all_snapshots_with_the_same_choices():
    """A fit from scratch: sums that begin at zero, and all snapshots at once."""
    old = training(slice(0, 16))
    one, _, sums = fit_spectral(old, fit_lift(old.fire, bins=3), layers=1, updatable=True)
    empty = replace(sums, gram=0 * sums.gram, cross=0 * sums.cross, size=0 * sums.size)
    expected, _ = update(one, empty, slice(0, 24))
    found = one
    for start in (16, 20):
        found, sums = update(found, sums, slice(start, start + 4))
    weights = expected.layers[0].weights
    assert np.abs(found.layers[0].weights - weights).max() < SINGLE * np.abs(weights).max()
    difference = np.abs(one.layers[0].weights - weights).max()
    assert difference > 2 * SINGLE * np.abs(weights).max(), "new snapshots change the weights"


def test_an_update_predicts_new_fires_better_and_keeps_the_first_layer(fitted):
    whole, _, sums = fitted
    updated, grown = update(whole, sums, slice(16, 24))
    new = training(slice(16, 24))
    wrong = [np.linalg.norm(each.predict(new.fire) - new.targets) for each in (whole, updated)]
    assert wrong[1] < wrong[0]
    assert np.array_equal(whole.layers[0].weights, updated.layers[0].weights)
    assert (grown.size > sums.size).any()
