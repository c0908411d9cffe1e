"""Corrected means: least squares, limits that are known, and coverage by repetition."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.scores.sampling import Estimate, cluster_mean, cluster_sums, control_variate

EXACT = Estimate(np.array(1.3), np.array(0.0), 1e9)  # cheap fires without number
ROUNDING = 1e-10


def test_one_sample_per_cluster_is_a_regression_with_leave_one_out_errors():
    """Against least squares in matrices, with the covariance HC3 (MacKinnon and White 1985)."""
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 1.0, size=20)
    y = 0.4 * x + 0.3 * rng.normal(size=20)
    found = control_variate(y, x, np.ones(20, dtype=int), EXACT)
    design = np.stack([np.ones(20), x], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ design.T @ y
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    rest = (y - design @ coefficients) / (1.0 - leverage)
    covariance = inverse @ (design.T * rest**2) @ design @ inverse
    at = np.array([1.0, 1.3])
    np.testing.assert_allclose(found.estimate.mean, at @ coefficients, rtol=ROUNDING)
    np.testing.assert_allclose(found.estimate.error, np.sqrt(at @ covariance @ at), rtol=ROUNDING)
    np.testing.assert_allclose(found.correlation, np.corrcoef(x, y)[0, 1], rtol=ROUNDING)
    assert found.estimate.freedom == pytest.approx(18.0)


def test_a_perfect_surrogate_has_the_error_of_the_cheap_fires():
    values = np.random.default_rng(1).normal(size=12)
    cheap = Estimate(np.array(0.1), np.array(0.05), 300.0)
    found = control_variate(values, 2.0 * values, np.ones(12, dtype=int), cheap)
    assert found.coefficient == pytest.approx(0.5, rel=0.02)  # shrunk by the cheap fires' error
    assert found.estimate.error < 0.5 * 0.05 * 1.1
    assert found.variance_ratio < 0.05


def test_a_useless_surrogate_leaves_plain_monte_carlo():
    rng = np.random.default_rng(2)
    y, x = rng.normal(size=(2, 30))
    x -= y * (x @ y) / (y @ y)
    found = control_variate(y, x, np.ones(30, dtype=int), EXACT)
    assert not found.used
    np.testing.assert_allclose(found.estimate.mean, y.mean())
    assert found.estimate.freedom == 29.0
    wrong_way = control_variate(y, -y, np.ones(30, dtype=int), EXACT)
    assert not wrong_way.used


def test_truth_without_spread_is_not_certain():
    cheap = Estimate(np.array(0.2), np.array(0.01), 99.0)
    found = control_variate(np.zeros(4), np.zeros(4), np.ones(4, dtype=int), cheap)
    assert found.estimate.error == pytest.approx(0.01 * np.sqrt(100 / 4))
    assert found.estimate.mean == 0.0


def test_one_true_ignition_is_refused():
    with pytest.raises(pc.PlumecastError, match="truth has 1 ignition; an interval needs"):
        control_variate(np.ones(1), np.ones(1), np.ones(1, dtype=int), EXACT)


@pytest.mark.parametrize("true", [8, 32])
def test_intervals_cover_the_mean_though_the_surrogate_is_twice_too_large(true):
    """500 repetitions: a coverage of 95 % has a standard error of 1 %."""
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(true), 4)
    hits, narrower = [], []
    for _ in range(500):
        shared, own = rng.normal(size=true)[clusters], rng.normal(size=clusters.size)
        truth = np.exp(0.4 * shared + 0.3 * own)
        predicted = 2.0 * truth * np.exp(0.15 * rng.normal(size=true))[clusters]
        mean = np.exp(0.5 * (0.4**2 + 0.3**2))
        cheap_mean = 2.0 * mean * np.exp(0.5 * 0.15**2)
        cheap = Estimate(cheap_mean + 0.02 * rng.normal(), np.array(0.02), 500.0)
        sums, counts = cluster_sums(truth, clusters)
        found = control_variate(sums, cluster_sums(predicted, clusters)[0], counts, cheap)
        low, high = found.estimate.interval(0.95)
        hits.append(low <= mean <= high)
        plain = cluster_mean(truth, clusters).interval(0.95)
        narrower.append((high - low) / (plain[1] - plain[0]))
    assert 0.93 <= np.mean(hits) <= 0.98
    assert np.median(narrower) < 0.7
