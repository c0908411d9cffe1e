"""Means and probabilities over clusters, plain and corrected by a surrogate: least squares, limits
that are known, coverage by repetition, and prediction-powered inference (ppi-python 0.2.3, whose
numbers are written down and computed again where it is installed)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import plumecast as pc
from plumecast.scores.field_statistics import block_cluster_sums
from plumecast.scores.sampling import (
    ControlVariate,
    Estimate,
    cluster_mean,
    cluster_sums,
    control_variate,
    effective_samples,
    share_interval,
)


def test_clusters_of_one_sample_give_the_interval_of_a_sample_mean():
    values = np.random.default_rng(0).normal(size=(12, 3))
    found = cluster_mean(values, np.arange(12))
    np.testing.assert_allclose(found.mean, values.mean(axis=0))
    np.testing.assert_allclose(found.error, stats.sem(values, axis=0))
    low, high = found.interval(0.9)
    want = stats.t.interval(0.9, 11, values.mean(axis=0), stats.sem(values, axis=0))
    np.testing.assert_allclose((low, high), want)


def test_clustered_intervals_cover_as_stated():
    """Clusters of different sizes; 2,000 repetitions have a standard error of 0.5 %."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, size=30)
    clusters = np.repeat(np.arange(30), sizes)
    hits = 0
    for _ in range(2000):
        values = rng.normal(size=30)[clusters] + 0.5 * rng.normal(size=clusters.size)
        low, high = cluster_mean(values, clusters).interval(0.95)
        hits += bool(low <= 0.0 <= high)
    assert 0.93 <= hits / 2000 <= 0.97


def test_wilson_agrees_with_scipy():
    for hits, count in [(0, 1), (0, 30), (3, 30), (30, 30)]:
        want = stats.binomtest(hits, count).proportion_ci(0.9, method="wilson")
        found = share_interval(np.array(hits / count), count, 0.9)
        np.testing.assert_allclose(found, (want.low, want.high), atol=1e-12)


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


def samples(clusters: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = np.array([f"i{number:04d}" for number in rng.integers(clusters, size=6 * clusters)])
    level = {name: rng.normal() for name in np.unique(names)}
    shared = np.array([level[name] for name in names])
    return shared[:, None] + 0.3 * rng.normal(size=(names.size, 3)), names


def summed(values, names, rows, most):
    parts = [block_cluster_sums([values[own], values[own] > 0.0], names[own], most) for own in rows]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def test_few_clusters_give_the_clustered_mean_whatever_the_blocks():
    values, names = samples(20)
    for rows in (np.array_split(np.arange(120), 7), [np.arange(120)[::-1]]):
        found = summed(values, names, rows, 64)
        for number, part in enumerate((values, values > 0.0)):
            want = cluster_mean(part, names)
            np.testing.assert_allclose(found.estimate(number).mean, want.mean, rtol=ROUNDING)
            np.testing.assert_allclose(found.estimate(number).error, want.error, rtol=1e-9)


def test_many_clusters_are_grouped_whole_and_in_any_order():
    values, names = samples(600)
    order = np.random.default_rng(1).permutation(names.size)
    one = summed(values, names, np.array_split(np.arange(names.size), 11), 64)
    other = summed(values, names, np.array_split(order, 5), 64)
    assert one.grouped
    assert one.keys.size == 64
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_allclose(one.sums, other.sums, atol=1e-9)
    assert len(one.clusters) == np.unique(names).size
    # The error of 64 groups has a standard error of 1 / √126 = 9 %; three of them.
    want = cluster_mean(values, names)
    np.testing.assert_allclose(one.estimate(0).error, want.error, rtol=0.27)
    np.testing.assert_allclose(one.estimate(0).mean, want.mean, rtol=1e-9)


TRUE, CHEAP, FACTORS = 20_000, 200_000, (1.0, 2.0)
SHIFT = 0.01
"""The fires with true smoke have 1 % more of it than the others, half the width of the interval."""

CLASSICAL = (1.197534246164223, 1.2194743431713386)
TUNED = (1.1946037760503345, 1.206749812739511)
"""The intervals of 95 % of the mean of the true smoke alone, and with the best coefficient, which
are the same for all factors of the predictions."""

WIDTH_TOLERANCE = 0.02
"""Theirs takes the variance of the predictions from both samples, ours from the fires with true
smoke; ours also counts that the coefficient is estimated. Here that is 1.2 % of the width."""


def spread(first: int, count: int, step: float) -> np.ndarray:
    """Standard normal values without chance: quantiles at the fractions of (i + ½) · step."""
    return ndtri((np.arange(first, first + count) + 0.5) * step % 1.0)


def make_fires(factor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True smoke, its prediction, and the predictions of other fires."""
    parts = []
    for first, count, shift in ((1, TRUE, SHIFT), (TRUE + 1, CHEAP, 0.0)):
        smoke = np.exp(0.6 * spread(first, count, 0.7548776662466927) + shift)
        error = np.exp(0.3 * spread(first, count, 0.5698402909980532))
        parts.append((smoke, factor * smoke * error))
    (smoke, predicted), (_, others) = parts
    return smoke, predicted, others


def corrected(fires) -> ControlVariate:
    smoke, predicted, others = fires
    cheap = cluster_mean(others, np.arange(others.size))
    return control_variate(smoke, predicted, np.ones(smoke.size, dtype=int), cheap)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_corrected_interval_is_that_of_power_tuned_inference(factor):
    found = corrected(make_fires(factor))
    low, high = TUNED
    own = found.estimate.interval(0.95)
    np.testing.assert_allclose(own, (low, high), rtol=0.0, atol=WIDTH_TOLERANCE * (high - low))
    assert high - low < 0.6 * (CLASSICAL[1] - CLASSICAL[0])
    assert abs(found.estimate.mean - make_fires(factor)[0].mean()) > 0.2 * (high - low)


def test_the_uncorrected_interval_is_the_classical_one():
    smoke, _, others = make_fires(1.0)
    useless = np.exp(spread(1, TRUE, 0.41421356237309515))
    found = corrected((smoke, useless, others))
    assert not found.used
    width = CLASSICAL[1] - CLASSICAL[0]
    np.testing.assert_allclose(
        found.estimate.interval(0.95), CLASSICAL, rtol=0.0, atol=WIDTH_TOLERANCE * width
    )


@pytest.mark.parametrize("factor", FACTORS)
def test_the_oracle_gives_the_numbers_that_are_written_down(factor):
    oracle = pytest.importorskip("ppi_py", reason="needs ppi-python: pip install --group oracles")
    fires = make_fires(factor)
    ends = np.ravel(oracle.ppi_mean_ci(*fires, alpha=0.05))
    np.testing.assert_allclose(ends, TUNED, rtol=1e-9)
    plain = np.ravel(oracle.classical_mean_ci(fires[0], alpha=0.05))
    np.testing.assert_allclose(plain, CLASSICAL, rtol=1e-9)
    found = corrected(fires)
    same = oracle.ppi_mean_pointestimate(*fires, lam=float(found.coefficient))
    np.testing.assert_allclose(found.estimate.mean, same[0], rtol=1e-9)


def test_samples_that_all_agree_are_not_certain():
    cheap = Estimate(np.array(0.2), np.array(0.01), 99.0)
    found = control_variate(np.zeros(4), np.zeros(4), np.ones(4, dtype=int), cheap).estimate
    assert (found.mean, found.error) == (0.0, pytest.approx(0.01 * np.sqrt(100 / 4)))
    share = cluster_mean(np.zeros((20, 2)), np.repeat(np.arange(4), 5))
    np.testing.assert_array_equal(effective_samples(share, 4, 20), [4.0, 4.0])


def test_one_cluster_says_nothing_and_a_coverage_beyond_one_is_refused():
    low, high = cluster_mean(np.array([1.0, 2.0]), np.array(["a", "a"])).interval()
    assert (low, high) == (-np.inf, np.inf)
    with pytest.raises(pc.PlumecastError, match="truth has 1 ignition; an interval needs"):
        control_variate(np.ones(1), np.ones(1), np.ones(1, dtype=int), EXACT)
    with pytest.raises(pc.PlumecastError, match=r"coverage=90 is not within"):
        cluster_mean(np.arange(3.0), np.arange(3)).interval(90)
