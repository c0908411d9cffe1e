"""Intervals of means and probabilities: coverage by repetition, and limits that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import plumecast as pc
from plumecast.scores.sampling import (
    cluster_mean,
    effective_samples,
    share_interval,
    sums_mean,
)


def test_clusters_of_one_sample_give_the_interval_of_a_sample_mean():
    values = np.random.default_rng(0).normal(size=(12, 3))
    found = cluster_mean(values, np.arange(12))
    np.testing.assert_allclose(found.mean, values.mean(axis=0))
    np.testing.assert_allclose(found.error, stats.sem(values, axis=0))
    low, high = found.interval(0.9)
    want = stats.t.interval(0.9, 11, values.mean(axis=0), stats.sem(values, axis=0))
    np.testing.assert_allclose((low, high), want)


def test_repeated_samples_of_a_cluster_do_not_narrow_the_interval():
    values = np.random.default_rng(1).normal(size=10)
    once = cluster_mean(values, np.arange(10))
    often = cluster_mean(np.repeat(values, 7), np.repeat(np.arange(10), 7))
    np.testing.assert_allclose(once.error, often.error)


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


def test_a_single_cluster_says_nothing():
    low, high = cluster_mean(np.array([1.0, 2.0]), np.array(["a", "a"])).interval()
    assert (low, high) == (-np.inf, np.inf)


def test_sums_and_samples_agree():
    values = np.random.default_rng(3).normal(size=(9, 2))
    clusters = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4])
    sums = np.stack([values[clusters == c].sum(axis=0) for c in range(5)])
    one, two = cluster_mean(values, clusters), sums_mean(sums, np.bincount(clusters))
    np.testing.assert_allclose(one.error, two.error)


def test_wilson_agrees_with_scipy():
    for hits, count in [(0, 1), (0, 30), (3, 30), (30, 30)]:
        want = stats.binomtest(hits, count).proportion_ci(0.9, method="wilson")
        found = share_interval(np.array(hits / count), count, 0.9)
        np.testing.assert_allclose(found, (want.low, want.high), atol=1e-12)


def test_effective_samples_are_the_clusters_where_all_agree():
    share = cluster_mean(np.zeros((20, 2)), np.repeat(np.arange(4), 5))
    np.testing.assert_array_equal(effective_samples(share, 4, 20), [4.0, 4.0])


def test_a_coverage_beyond_one_is_refused():
    with pytest.raises(pc.PlumecastError, match=r"coverage=90 is not within"):
        cluster_mean(np.arange(3.0), np.arange(3)).interval(90)
