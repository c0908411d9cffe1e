"""Smoke to expect given predicted smoke: right on average, with the error of the calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from plumecast.scores.sampling import (
    cluster_mean,
    jackknife_variance,
    probability_interval,
    with_variance,
)
from plumecast.surrogate.error_bars.calibration import (
    Calibration,
    expected_block,
    expected_smoke,
    make_calibration,
)
from plumecast.surrogate.error_bars.counting import CellBins, make_edges

TAU, PEAK, THRESHOLD = 0.05, 150.0, 3.0

BIN_TOLERANCE = 0.02
"""Observed smoke is known to a bin, a factor of 1.3: means of it err by about (ln 1.3)² / 8."""

ROUNDING = 1e-9


def population(rng, ignitions: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(2 C, N) predicted and observed smoke, and the ignitions; predictions are twice too large.

    Each ignition has a size and an error of its own, and 3 % of the smoke is not predicted.
    """
    shape = (ignitions, 2, cells)
    size, error = rng.normal(0.0, (0.3, 0.3), (ignitions, 2)).T[:, :, None, None]
    smoky = rng.random((ignitions, 1, cells)) < 0.6
    observed = smoky * np.exp(1.0 + size + rng.normal(0.0, 0.5, shape))
    predicted = 2.0 * observed * np.exp(error + rng.normal(0.0, 0.3, shape))
    predicted = np.where(rng.random(shape) < 0.03, 0.0, predicted)
    names = np.repeat([f"fire-{number:05d}" for number in range(ignitions)], 2)
    return predicted.reshape(-1, cells), observed.reshape(-1, cells), names


def calibrated(predicted, observed, names) -> Calibration:
    bins = CellBins("ignition_id", TAU, make_edges(TAU, PEAK), detects=False)
    block = xr.Dataset(coords={"ignition_id": ("snapshot", names)})
    return make_calibration(bins.count(block, predicted, predicted, observed))


@pytest.fixture(scope="module")
def many():
    return population(np.random.default_rng(0), 400, 50)


def test_a_perfect_surrogate_is_not_changed(many):
    _, observed, names = many
    expected = expected_smoke(calibrated(observed, observed, names))
    found = expected_block(expected, observed, (THRESHOLD,), np.full(len(observed), 0.5))
    np.testing.assert_allclose(found.fields[0], np.log1p(observed), rtol=ROUNDING)
    np.testing.assert_allclose(found.fields[1], 0.5 * observed, rtol=ROUNDING)
    np.testing.assert_allclose(found.changes[:2], 0.0, atol=ROUNDING)
    above = (0.5 * observed > THRESHOLD).mean()
    assert found.fields[2].mean() == pytest.approx(above, abs=BIN_TOLERANCE)


def test_a_bias_of_two_is_removed(many):
    predicted, observed, names = many
    expected = expected_smoke(calibrated(*many))
    factors = np.tile([1.0, 0.25], len(names) // 2)
    found = expected_block(expected, predicted, (0.5,), factors)
    quantity = factors[:, None] * observed
    assert found.fields[0].mean() == pytest.approx(np.log1p(observed).mean(), rel=BIN_TOLERANCE)
    assert found.fields[1].mean() == pytest.approx(quantity.mean(), rel=BIN_TOLERANCE)
    assert found.fields[2].mean() == pytest.approx((quantity > 0.5).mean(), rel=BIN_TOLERANCE)
    assert (factors[:, None] * predicted).mean() > 1.8 * quantity.mean()


def test_changes_are_those_of_a_calibration_without_the_part(many):
    """All rows have the cells of every ignition, so that the pooling of rows is the same."""
    predicted, observed, names = (part[:24] for part in many)
    table = calibrated(predicted, observed, names)
    expected = expected_smoke(table)
    found = expected_block(expected, predicted, (THRESHOLD,))
    others = replace(expected, **{
        name: getattr(expected, name)[[5]] for name in ("ratio", "log", "above")
    })  # fmt: skip
    without = expected_block(others, predicted, (THRESHOLD,))
    for number, field in enumerate(found.fields):
        change = (without.fields[number] - field).sum(axis=0)
        np.testing.assert_allclose(found.changes[number, 4], change, atol=1e-6)
    left = [row for row in range(12) if row != 4]
    again = replace(table, counts=table.counts[left], scores=table.scores[left])
    fewer = expected_smoke(replace(again, groups=tuple(table.groups[row] for row in left)))
    bulk = slice(25, 35)  # bins of common smoke
    np.testing.assert_allclose(fewer.ratio[0, bulk], expected.ratio[5, bulk], rtol=0.05)


def test_many_groups_are_left_out_in_parts(many):
    expected = expected_smoke(calibrated(*many), most=16)
    assert expected.ratio.shape[0] == 17
    assert expected.freedom == 15
    whole = expected_smoke(calibrated(*many))
    np.testing.assert_allclose(expected.ratio[0], whole.ratio[0], rtol=ROUNDING)
    errors = [np.sqrt(jackknife_variance(part.ratio[1:])) for part in (expected, whole)]
    assert 0.6 < (errors[0] / errors[1])[25:35].mean() < 1.6, "16 parts tell it to 1 / √30"


def test_intervals_cover_though_the_surrogate_is_biased():
    """60 repetitions with 16 groups: 95 % has a standard error of 2.8 %."""
    truth = population(np.random.default_rng(1), 20_000, 2)[1]
    wanted = truth.mean(), (truth > THRESHOLD).mean()
    rng, hits = np.random.default_rng(16), np.zeros(2)
    for _ in range(60):
        expected = expected_smoke(calibrated(*population(rng, 16, 40)))
        predicted, _, names = population(rng, 60, 1)
        block = expected_block(expected, predicted, (THRESHOLD,))
        means = [
            with_variance(
                cluster_mean(block.fields[number], names),
                jackknife_variance(block.changes[number] / len(names)),
                expected.freedom,
            )
            for number in (1, 2)
        ]
        ends = means[0].interval(0.95), probability_interval(means[1], 60, len(names), 0.95)
        hits += [low[0] <= true <= high[0] for (low, high), true in zip(ends, wanted, strict=True)]
    assert (np.abs(hits / 60 - 0.95) <= 0.06).all(), hits / 60


def test_the_block_stays_on_its_device(many):
    """The same sums in PyTorch as in NumPy, on tensors that never become NumPy arrays."""
    torch = pytest.importorskip("torch")
    predicted = many[0][:60]
    expected = expected_smoke(calibrated(*many))
    factors = np.tile([1.0, 0.25], 30)
    host = expected_block(expected, predicted, (0.5, THRESHOLD), factors)
    there = expected_block(expected, torch.from_numpy(predicted), (0.5, THRESHOLD), factors)
    pairs = zip([*there.fields, there.changes], [*host.fields, host.changes], strict=True)
    for found, wanted in pairs:
        assert torch.is_tensor(found)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=ROUNDING, atol=ROUNDING)
