"""Streaming statistics of many fields: sums and counts of blocks. Arrays only, no labels.

The results of blocks can be added in any order: counts are then exact, sums equal up to rounding.

Sums by cluster (ignition) are what a clustered variance needs. All clusters are kept while they are
few. Beyond that they are put into groups by a hash of their names (`group_name`), always whole: the
groups are then the clusters of the variance (random groups). A cluster may be spread over blocks.

Quantiles come from counts in logarithmic bins (see `scores.roc`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from plumecast.base.ignitions import group_name
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    bincount,
    device_of,
    is_numpy_array,
    like,
    to_numpy,
)
from plumecast.scores.roc import CEILING, FLOOR
from plumecast.scores.sampling import Estimate, group_sums, sums_mean

QUANTILE_ERROR = 0.025
"""Largest relative error of a quantile: the ends of a bin differ by this from its middle."""

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

    def joined(self, ignitions: Mapping[str, str]) -> ClusterSums:
        """The sums by ignition, of which several clusters may be one; groups stay as they are."""
        names = frozenset(ignitions[name] for name in self.clusters)
        if len(names) == len(self.clusters):
            return self
        if self.grouped and len(names) > 1:
            return replace(self, clusters=names)
        labels = [min(names)] * self.keys.size if self.grouped else map(ignitions.get, self.keys)
        keys, index = np.unique(np.array(list(labels)), return_inverse=True)
        counts = np.bincount(index, weights=self.counts).astype(np.int64)
        sums = group_sums(self.sums, index, keys.size)
        return ClusterSums(keys, counts, sums, self.most, False, names)

    def estimate(self, number: int) -> Estimate:
        """The mean (N,) of one of the V statistics, with the clustered error."""
        return sums_mean(self.sums[:, number], self.counts)


def block_cluster_sums(statistics: list[Array], names: np.ndarray, most: int) -> ClusterSums:
    """Sums by cluster of V statistics (m, N) of the fields of a block, on the host."""
    clusters, index = np.unique(names.astype(str), return_inverse=True)
    keys, grouped = clusters, clusters.size > most
    if grouped:
        keys, group = np.unique(_groups(clusters, most), return_inverse=True)
        index = group[index]

    def sums_of(part: Array) -> np.ndarray:
        if is_numpy_array(part):
            return group_sums(part, index, keys.size)
        xp = array_namespace(part)
        member = like(np.equal.outer(np.arange(keys.size), index).astype(np.float64), part)
        return to_numpy(member @ xp.astype(part, member.dtype))

    sums = np.stack([sums_of(part) for part in statistics], axis=1)
    counts = np.bincount(index, minlength=keys.size)
    return ClusterSums(keys, counts, sums, most, grouped, frozenset(clusters.tolist()))


def groups_for(cells: int, statistics: int, limit: float = MEMORY) -> int:
    """Number of groups whose sums fit into a limit (bytes), from LEAST to MOST."""
    return int(np.clip(min(limit, MEMORY) / (8.0 * cells * max(statistics, 1)), LEAST, MOST))


def _groups(names: np.ndarray, most: int) -> np.ndarray:
    """The group of each name, as a string of digits; even and the same in every process."""
    hashed = (blake2b(group_name(name).encode(), digest_size=8) for name in names)
    numbers = [int.from_bytes(one.digest()) for one in hashed]
    return np.array([f"{number % most:05d}" for number in numbers])


@dataclass(frozen=True, slots=True)
class FieldSums:
    """Addable statistics of `count` fields of N cells.

    q = a g is a quantity of smoke g, with a factor a of every field; it may be g itself.
    """

    count: int
    plain: Array  # (N,), Σ q
    log: Array  # (N,), Σ ln(g + 1)
    log_squares: Array  # (N,), Σ ln²(g + 1)
    above: Array  # (T, N) integers, number of fields with q > threshold
    bins: Array | None  # (N, B) integers, number of fields per bin of q; bin 0 is q ≤ FLOOR
    clusters: ClusterSums | None = None  # of ln(g + 1), q, and q > each threshold
    changes: Array | None = None  # (V, R, N), of these sums if a part of a calibration is left out
    ends: Array | None = None  # (2, N), Σ of the ends of the intervals of q, of one ignition only

    def __add__(self, other: FieldSums) -> FieldSums:
        return FieldSums(*_added(self, other))


def _added(one: Any, other: Any) -> list[Any]:
    """The sums of the fields of two values; None where either has none."""
    pairs = (
        (getattr(one, item.name), getattr(other, item.name)) for item in dataclasses.fields(one)
    )
    return [None if a is None or b is None else a + b for a, b in pairs]


@dataclass(frozen=True, slots=True)
class CodeSums:
    """First and second moments of codes, which give the mean and variance of decoded fields."""

    count: int
    plain: Array  # (q,)
    outer: Array  # (q, q), Σ b bᵀ
    clusters: ClusterSums | None = None  # of the codes

    def __add__(self, other: CodeSums) -> CodeSums:
        return CodeSums(*_added(self, other))

    def moments(
        self, modes: np.ndarray, offset: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the fields `codes @ modes + offset` in every cell, (N,) each."""
        mean = to_numpy(self.plain) / self.count
        spread = to_numpy(self.outer) / self.count - np.outer(mean, mean)
        field = mean @ modes if offset is None else mean @ modes + offset
        return field, np.maximum(np.sum(modes * (spread @ modes), axis=0), 0.0)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster (ignition) of every field of a block, and how many are kept apart."""

    names: np.ndarray  # (m,)
    most: int


def code_sums(codes: Array, clusters: Clusters | None = None) -> CodeSums:
    """The moments of a block of (m, q) codes."""
    xp = array_namespace(codes)
    own = None
    if clusters is not None:
        own = block_cluster_sums([codes], clusters.names, clusters.most)
    return CodeSums(int(codes.shape[0]), xp.sum(codes, axis=0), codes.T @ codes, own)


def field_sums(
    fields: Array,
    thresholds: tuple[float, ...],
    *,
    quantiles: bool,
    read: Array | None = None,
    error: float = QUANTILE_ERROR,
    factors: np.ndarray | None = None,
    clusters: Clusters | None = None,
    expected: tuple[list[Array], Array] | None = None,
) -> FieldSums:
    """The statistics of a block of non-negative (m, N) fields.

    The logarithm is that of `fields`. `factors` (m,) turn these, or `read` in
    their place, into the quantity of means, thresholds and quantiles. The sums by
    cluster are of `expected` statistics instead, if they are given; their changes come with them.
    """
    xp = array_namespace(fields)
    log = xp.log1p(fields)
    read = fields if read is None else read
    scaled = read if factors is None else scaled_by(read, factors)
    passed = [scaled > threshold for threshold in thresholds]
    above = [xp.count_nonzero(part, axis=0) for part in passed]
    empty = xp.zeros((0, fields.shape[1]), dtype=xp.int64, device=device_of(fields))
    own = None
    if clusters is not None:
        statistics = [log, scaled, *passed] if expected is None else expected[0]
        own = block_cluster_sums(statistics, clusters.names, clusters.most)
    return FieldSums(
        count=int(fields.shape[0]),
        plain=xp.sum(scaled, axis=0, dtype=xp.float64),
        log=xp.sum(log, axis=0, dtype=xp.float64),
        log_squares=xp.sum(log**2, axis=0, dtype=xp.float64),
        above=xp.stack(above) if above else empty,
        bins=count_bins(scaled, error) if quantiles else None,
        clusters=own,
        changes=None if expected is None else expected[1],
    )


def scaled_by(fields: Array, factors: np.ndarray) -> Array:
    """Fields (m, N), each times its factor, on their device and in their precision."""
    return fields * like(factors, fields, dtype=fields.dtype)[:, None]


def bin_count(error: float) -> int:
    """Number of bins for a relative error: one for zero, the others from FLOOR to CEILING."""
    return math.ceil(math.log(CEILING / FLOOR) / _step(error)) + 1


def _step(error: float) -> float:
    """Width of a bin in ln g: the middle of a bin differs by at most `error` from its ends."""
    return 2.0 * math.log1p(error)


def count_bins(fields: Array, error: float) -> Array:
    """Number of fields in each bin of each cell, (N, B)."""
    xp = array_namespace(fields)
    cells, bins = fields.shape[1], bin_count(error)
    steps = xp.log(xp.clip(fields, FLOOR, CEILING) / FLOOR) / _step(error)
    # Bin 0 holds values up to FLOOR; bin k ≥ 1 is (FLOOR·e^((k−1)·step), FLOOR·e^(k·step)].
    number = xp.astype(xp.clip(xp.ceil(steps), 0.0, float(bins - 1)), xp.int64)
    offset = xp.arange(cells, dtype=xp.int64, device=device_of(fields)) * bins
    index = xp.reshape(number + offset[None, :], (-1,))
    return xp.reshape(bincount(index, cells * bins), (cells, bins))


def quantile_fields(bins: Array, shares: tuple[float, ...], error: float) -> np.ndarray:
    """(S, N) quantiles of every cell for the probabilities p in `shares`.

    The quantile is the middle of the bin that holds the ⌈p·n⌉-th smallest value. Its relative error
    is at most `error` between FLOOR and CEILING; it is 0 at or below FLOOR.
    """
    total = np.cumsum(to_numpy(bins), axis=1)
    rows = []
    for share in shares:
        rank = np.maximum(np.ceil(share * total[:, -1:]), 1.0)
        number = np.argmax(total >= rank, axis=1)
        middle = FLOOR * np.exp((number - 0.5) * _step(error))
        rows.append(np.where(number == 0, 0.0, middle))
    return np.stack(rows) if rows else np.empty((0, total.shape[0]))
