"""Calibrated bands contain the asked share of cells of groups that were not used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.surrogate.error_bars.bands import expected_loss
from plumecast.surrogate.error_bars.calibration import Calibration, make_calibration
from plumecast.surrogate.error_bars.counting import (
    BINS,
    CellBins,
    Cells,
    bin_numbers,
    make_edges,
    positions,
    smoke_at,
)

TAU, PEAK = 0.5, 200.0

COVERAGE_TOLERANCE = 0.03
"""160 calibration and 400 test groups whose own coverages spread by about 0.12: the standard error
of the mean is 0.12 √(1/160 + 1/400) ≈ 0.011, and bins add up to 0.01."""


SET_TOLERANCE = 0.03
"""60 tables of 19 groups: the share of new groups that hold has a standard deviation of
√(0.9 · 0.1 / 21) = 0.065 over tables, 0.009 in the mean; bins of scores add up to 0.01."""


def simulated(rng, groups: int, cells: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """(G, N) predicted and observed smoke: groups differ in bias, and much of both is 0."""
    predicted = np.exp(rng.normal(1.0, 1.5, (groups, cells))) * (rng.random((groups, cells)) < 0.4)
    bias = rng.normal(0.0, 0.3, (groups, 1))
    observed = predicted * np.exp(bias + rng.normal(0.0, 0.5, predicted.shape))
    lost = rng.random(predicted.shape) < 0.03
    return predicted, np.where(lost, 0.0, np.minimum(observed, PEAK))


def calibrated(predicted: np.ndarray, observed: np.ndarray) -> Calibration:
    names = [f"fire-{i:03d}" for i in range(len(predicted))]
    bins = CellBins("ignition_id", TAU, make_edges(TAU, PEAK), detects=False)
    block = xr.Dataset(coords={"ignition_id": ("snapshot", names)})
    return make_calibration(bins.count(block, predicted, predicted, observed))


@pytest.fixture(scope="module")
def table() -> Calibration:
    return calibrated(*simulated(np.random.default_rng(1), 160))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_new_groups_are_covered(table, coverage):
    predicted, observed = simulated(np.random.default_rng(2), 400)
    lower, upper = table.interval(predicted, coverage)
    inside = (lower <= observed) & (observed <= upper)
    scored = (predicted > TAU) | (observed > TAU)
    shares = (inside & scored).sum(axis=1) / scored.sum(axis=1)
    assert abs(shares.mean() - coverage) < COVERAGE_TOLERANCE
    bands = table.bands(coverage)
    everywhere = table.coverage(bands, every_cell=True).mean()
    assert everywhere > table.coverage(bands).mean()  # cells that are 0 in both flatter
    wide = table.interval(predicted[:3], 0.95)
    assert (wide[0] <= lower[:3]).all()
    assert (wide[1] >= upper[:3]).all()


def test_bands_are_continuous_monotone_and_contain_the_prediction(table):
    predicted = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 4000)])
    lower, upper = table.interval(predicted, 0.9)
    assert (lower >= 0.0).all()
    assert (lower <= predicted).all()
    assert (predicted <= upper).all()
    assert (np.diff(lower) >= 0.0).all()
    assert (np.diff(upper) >= 0.0).all()
    jumps = np.abs(np.diff(positions(np.stack([lower, upper]), table.edges), axis=1))
    steps = np.diff(positions(predicted, table.edges))
    assert (jumps <= BINS * steps.max()).all()  # no jump: the slope is at most K


def test_few_odd_cells_of_thin_smoke_do_not_widen_all_bands():
    """Ends that must not decrease follow the rows with many cells, not a row with few."""
    predicted, observed = simulated(np.random.default_rng(1), 160)
    thick = np.array([20.0, 50.0])
    before = calibrated(predicted, observed).interval(thick, 0.9)
    predicted[:, :2], observed[:, :2] = TAU / 10.0, 150.0
    after = calibrated(predicted, observed).interval(thick, 0.9)
    np.testing.assert_allclose(after, before, rtol=0.5)  # more is uncovered, so the level rises
    assert (after[0] > 0.0).all()


def test_one_more_group_is_expected_to_lose_as_much_as_the_worst():
    losses = np.array([[0.0, 0.1], [0.2, 0.1], [0.1, 0.1]])
    np.testing.assert_allclose(expected_loss(losses), [0.5 / 4.0, 0.4 / 4.0])


@pytest.mark.parametrize("groups", [8, 16])
def test_few_groups_give_bands_that_cover_new_ones(groups):
    """20 tables, each with 40 new groups; their mean coverage has a standard error of 0.014."""
    rng, shares = np.random.default_rng(11), []
    for _ in range(20):
        table = calibrated(*simulated(rng, groups, cells=200))
        new = calibrated(*simulated(rng, 40, cells=200))
        shares.append(np.mean(new.coverage(table.bands(0.9))))
    assert 0.87 <= np.mean(shares) <= 0.95


def test_the_promise_is_that_of_risk_control():
    """The unknown group may lose all its cells: 1 − (Σ ℓᵢ + 1) / (n + 1)."""
    table = calibrated(*simulated(np.random.default_rng(3), 9))
    lost = table.bands(0.9).lost
    assert 0.0 < lost < 0.1  # the mean; with the worst loss added it is 0.1
    assert table.promised(0.9) == pytest.approx(1.0 - (9.0 * lost + 1.0) / 10.0)
    assert table.promised(0.9) > table.promised(0.8)
    assert table.most_promised() == pytest.approx(0.9)


def set_losses(table, predicted, observed, coverage) -> tuple[np.ndarray, np.ndarray]:
    """(G,) share of certain cells without smoke, and of smoky cells that are not possible."""
    certain, possible = table.footprint_thresholds(coverage)
    assert possible <= certain
    smoky, inside = observed > TAU, predicted > certain
    wrong = (inside & ~smoky).sum(axis=1) / np.maximum(inside.sum(axis=1), 1)
    return wrong, (smoky & (predicted <= possible)).sum(axis=1) / smoky.sum(axis=1)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_sets_hold_for_their_share_of_new_groups(table, coverage):
    losses = set_losses(table, *simulated(np.random.default_rng(5), 400), coverage)
    for lost in losses:
        assert np.mean(lost <= 1.0 - coverage) > coverage - COVERAGE_TOLERANCE


def test_possible_smoke_is_not_larger_than_it_must_be():
    """Every smoky cell has an own score: the share of groups that hold is 1 − k / (n + 1)."""
    rng, held = np.random.default_rng(12), []
    for _ in range(60):
        table = calibrated(*drifting(rng, 19))
        missed = set_losses(table, *drifting(rng, 100), 0.9)[1]
        held.append(np.mean(missed <= 0.1))
    assert table.promised_footprint(0.9)[1] == pytest.approx(0.9)
    assert abs(np.mean(held) - 0.9) < SET_TOLERANCE


def drifting(rng, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Smoke in all cells, predicted with a bias of the group."""
    observed = np.exp(rng.normal(2.0, 0.5, (groups, 200)))
    return np.minimum(observed * np.exp(rng.normal(0.0, 1.0, (groups, 1))), PEAK), observed


@pytest.mark.parametrize("score", [0.0, 9.0 * PEAK])
def test_sets_that_are_empty_or_full_lose_nothing(score):
    """One score for all cells: either none is certain, or all are possible."""
    rng = np.random.default_rng(8)
    observed = np.where(rng.random((6, 200)) < 0.5, 5.0, 0.0)
    table = calibrated(np.full(observed.shape, score), observed)
    certain, possible = table.footprint_thresholds(0.9)
    assert certain == np.inf if score else possible == -1.0
    assert table.promised_footprint(0.9) == pytest.approx((6.0 / 7.0, 6.0 / 7.0))


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, float("nan"), "much", True])
def test_a_coverage_that_is_no_share_is_refused(table, coverage):
    with pytest.raises(PlumecastError, match=r"interval=.* is not within \(0, 1\)"):
        table.bands(coverage)
    with pytest.raises(PlumecastError, match=r"at least 5 ignitions .* had 4"):
        calibrated(*simulated(np.random.default_rng(4), 4))
    with pytest.raises(PlumecastError, match=r"error_bars\.sets='other' is unknown"):
        replace(table, sets="other").check()


def test_groups_unlike_all_others_are_covered_by_wider_bands():
    """Smoke that was never predicted, three times as much in each group as in the one before."""
    predicted, observed = np.zeros((6, 50)), np.zeros((6, 50))
    observed[:, :5] = TAU * 3.0 ** np.arange(1, 7)[:, None]
    table = calibrated(predicted, observed)
    bands = table.bands(0.95)
    assert bands.level > 1.0  # the largest of the other groups is not enough
    assert np.mean(table.coverage(bands)) >= 0.95


def test_positions_and_smoke_are_inverse():
    edges = make_edges(TAU, PEAK)
    smoke = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 200)])
    np.testing.assert_allclose(smoke_at(positions(smoke, edges), edges), smoke, rtol=1e-12)
    assert edges.shape == (BINS - 1,)
    number = int(bin_numbers(np.array(TAU), edges))
    assert edges[number] == TAU  # τ itself is no smoke
    assert bin_numbers(np.array(np.nextafter(TAU, 1.0)), edges) == number + 1


def test_counts_of_blocks_add_up():
    rng = np.random.default_rng(7)
    predicted, observed = simulated(rng, 6)
    bins = CellBins("ignition_id", TAU, make_edges(TAU, PEAK), detects=False)

    def count(rows: slice) -> Cells:
        names = ["a", "a", "b", "b", "c", "a"][rows]
        block = xr.Dataset(coords={"ignition_id": ("snapshot", names)})
        return bins.count(block, predicted[rows], predicted[rows], observed[rows])

    whole, parts = count(slice(0, 6)), count(slice(0, 3)) + count(slice(3, 6))
    for group, counts in whole.counts.items():
        for one, other in zip(counts, parts.counts[group], strict=True):
            np.testing.assert_array_equal(one, other)
