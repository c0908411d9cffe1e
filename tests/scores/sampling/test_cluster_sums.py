"""Sums by cluster: the clustered mean, in any order of blocks."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np

from plumecast.scores.field_statistics import LEAST, MOST, block_cluster_sums, groups_for
from plumecast.scores.sampling import cluster_mean

ROUNDING = 1e-12


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


def test_another_namespace_gives_the_same():
    values, names = samples(9)
    one = block_cluster_sums([values], names, 64)
    other = block_cluster_sums([strict.asarray(values)], names, 64)
    np.testing.assert_allclose(one.sums, other.sums, rtol=ROUNDING)


def test_the_number_of_groups_keeps_to_memory():
    assert groups_for(100, 3) == MOST
    assert groups_for(10**7, 3) == LEAST
    assert groups_for(1000, 2, 1e6) == 62
