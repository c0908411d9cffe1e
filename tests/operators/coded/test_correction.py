"""The correction from similar training fires helps where places differ, and only there."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.resources import Budget
from plumecast.operators.coded import correction
from plumecast.operators.coded.correction import fit_correction
from plumecast.operators.family import NOTHING, Conditions, TrainingSet
from support.convolved_fires import GRID, fires, parts, rough


@pytest.fixture(scope="module")
def world() -> xr.Dataset:
    return rough()


def unconditioned(fire: np.ndarray, targets: np.ndarray, groups: np.ndarray) -> TrainingSet:
    """Training snapshots of which nothing is known but their fire."""
    return TrainingSet(fire, targets, groups, NOTHING)


def error(surrogate: pc.Surrogate, test: xr.Dataset) -> float:
    return float(np.linalg.norm(surrogate.predict(test) - test.smoke) / np.linalg.norm(test.smoke))


@pytest.fixture(scope="module")
def corrected(world):
    return pc.fit_surrogate(parts(world)[0], "recommended", layers=1, correction=True)


def test_places_that_differ_are_learned_from_fires_nearby(world, corrected):
    train, test = parts(world)
    plain = pc.fit_surrogate(train, "recommended", layers=1)
    assert corrected.training["corrected"]
    assert error(corrected, test) < 0.8 * error(plain, test)
    assert corrected.training["leave_out_error"] < plain.training["leave_out_error"]


def test_a_fire_unlike_all_others_is_not_corrected(world, corrected):
    fire = world.isel(snapshot=[0]).copy()
    fire["time_since_ignition"] = 0.0 * fire.time_since_ignition + 30.0
    given = Conditions(covariates=np.array([[1.0, 0.0]], dtype=np.float32))
    own = corrected.operator.field_map.correction
    change = own.predict(fire.time_since_ignition.values, given)
    usual = own.predict(world.time_since_ignition.values[:1], given)
    assert np.abs(change).max() < 1e-3 * np.abs(usual).max()


def test_without_residuals_there_is_no_correction():
    """Targets that are predicted exactly leave no residual; a single group cannot be left out."""
    fire = fires(10)
    targets = fire[:, None]
    assert fit_correction(unconditioned(fire, targets, np.arange(10) % 5), targets) is None
    assert fit_correction(unconditioned(fire, targets, np.zeros(10)), 0.5 * targets) is None


def test_many_snapshots_are_sampled_by_whole_groups(monkeypatch):
    monkeypatch.setattr(correction, "VALUES", 8 * GRID[0] * GRID[1])
    fire = fires(20)
    groups = np.repeat(np.arange(10), 2)
    found = fit_correction(unconditioned(fire, fire[:, None], groups), 0.5 * fire[:, None])
    assert found.rows.size == 8
    assert np.unique(groups[found.rows]).size == 4


def test_uneven_groups_keep_to_the_bound_and_two_are_always_taken(monkeypatch):
    monkeypatch.setattr(correction, "ROWS", 120)
    shape = (700, 1, *GRID)
    uneven = np.repeat(np.arange(5), [300, 100, 100, 100, 100])
    rows = correction.correction_rows(uneven, shape, None)
    assert np.unique(uneven[rows]).size == 2
    even = np.repeat(np.arange(70), 10)
    assert correction.correction_rows(even, shape, None).size == 120


def test_one_fire_again_and_again_has_no_neighbours():
    fire = np.repeat(fires(1), 6, axis=0)
    over = np.random.default_rng(0).random((6, 1, *GRID)).astype(np.float32)
    assert fit_correction(unconditioned(fire, over, np.arange(6) % 3), 0.0 * over) is None


def test_a_kernel_that_nearly_interpolates_stays_exact(monkeypatch):
    """Dual weights are large there: in single precision they would cancel."""
    fire = fires(150, seed=3)
    place = fire.reshape(150, -1) @ np.linspace(0.0, 1.0, fire[0].size, dtype=np.float32)
    wave = np.sin(place / place.std())[:, None, None, None]
    over = (wave * np.ones((1, 1, *GRID))).astype(np.float32)
    found = fit_correction(unconditioned(fire, over, np.arange(150)), 0.0 * over)
    whole = found.coded.predict(fire)
    np.testing.assert_allclose(found.shared(1.0).predict(fire), whole, atol=1e-5)


def test_a_limit_below_what_it_needs_is_refused():
    fire = fires(10)
    training = unconditioned(fire, fire[:, None], np.arange(10))
    with pytest.raises(pc.PlumecastError, match="a correction from 10 snapshots needs at least"):
        fit_correction(training, 0.0 * fire[:, None], Budget(limit=10_000))
