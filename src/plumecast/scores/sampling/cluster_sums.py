"""Sums of fields by cluster (ignition) over a stream of blocks: what a clustered variance needs.

All clusters are kept while they are few. Beyond that they are put into groups by a hash of their
names, always whole: the groups are then the clusters of the variance (random groups). The result
does not depend on the order of the blocks, and a cluster may be spread over any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, is_numpy_array, like, to_numpy
from plumecast.scores.sampling.intervals import Estimate, group_sums, sums_mean

MOST = 256
"""Largest number of groups: with 255 degrees of freedom an interval is 0.5 % wider than with ∞."""

LEAST = 8
"""Smallest number of groups, on very large grids: an interval is 21 % wider than with ∞."""

MEMORY = 64e6
"""Bytes of the sums that the number of groups is chosen for."""


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Addable sums of V statistics of N cells by cluster."""

    keys: np.ndarray  # (C,) sorted names of the clusters, or of the groups they are in
    counts: np.ndarray  # (C,) number of fields
    sums: np.ndarray  # (C, V, N)
    most: int  # number of keys that are kept
    grouped: bool = False
    clusters: frozenset[str] = frozenset()  # names of all clusters

    def __add__(self, other: ClusterSums) -> ClusterSums:
        one, two = self, other
        if one.grouped != two.grouped:
            one, two = one.in_groups(), two.in_groups()
        keys = np.union1d(one.keys, two.keys)
        if keys.size > self.most and not one.grouped:
            return one.in_groups() + two.in_groups()
        clusters = one.clusters | two.clusters
        counts = np.zeros(keys.size, dtype=np.int64)
        sums = np.zeros((keys.size, *one.sums.shape[1:]))
        for part in (one, two):
            where = np.searchsorted(keys, part.keys)
            counts[where] += part.counts
            sums[where] += part.sums
        return ClusterSums(keys, counts, sums, self.most, one.grouped, clusters)

    def in_groups(self) -> ClusterSums:
        """The same sums by group."""
        if self.grouped:
            return self
        keys, index = np.unique(_groups(self.keys, self.most), return_inverse=True)
        counts = np.bincount(index, weights=self.counts).astype(np.int64)
        sums = group_sums(self.sums, index, keys.size)
        return ClusterSums(keys, counts, sums, self.most, True, self.clusters)

    def estimate(self, number: int) -> Estimate:
        """The mean (N,) of one of the V statistics, with the clustered error."""
        return sums_mean(self.sums[:, number], self.counts)


def block_cluster_sums(statistics: list[Array], names: np.ndarray, most: int) -> ClusterSums:
    """Sums by cluster of V statistics (m, N) of the fields of a block, on the host."""
    found, index = np.unique(names.astype(str), return_inverse=True)
    keys, grouped = found, found.size > most
    if grouped:
        keys, group = np.unique(_groups(found, most), return_inverse=True)
        index = group[index]
    sums = np.stack([_sums_of(part, index, keys.size) for part in statistics], axis=1)
    counts = np.bincount(index, minlength=keys.size)
    return ClusterSums(keys, counts, sums, most, grouped, frozenset(found.tolist()))


def groups_for(cells: int, statistics: int, limit: float = MEMORY) -> int:
    """Number of groups whose sums fit into a limit (bytes), from LEAST to MOST."""
    return int(np.clip(min(limit, MEMORY) / (8.0 * cells * max(statistics, 1)), LEAST, MOST))


def _sums_of(fields: Array, index: np.ndarray, count: int) -> np.ndarray:
    if is_numpy_array(fields):
        return group_sums(fields, index, count)
    xp = array_namespace(fields)
    member = like(np.equal.outer(np.arange(count), index).astype(np.float64), fields)
    return to_numpy(member @ xp.astype(fields, member.dtype))


def _groups(names: np.ndarray, most: int) -> np.ndarray:
    """The group of each name, as a string of digits; even and the same in every process."""
    numbers = [int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) for name in names]
    return np.array([f"{number % most:05d}" for number in numbers])
