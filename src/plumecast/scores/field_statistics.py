"""Streaming statistics of many fields: sums and counts of blocks. Arrays only, no labels.

The results of blocks can be added in any order: counts are then exact, sums equal up to rounding.
Quantiles come from counts in logarithmic bins (see `scores.roc`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumecast.compute.arrays import (
    Array,
    array_namespace,
    bincount,
    device_of,
    like,
    to_numpy,
)
from plumecast.scores.roc import CEILING, FLOOR
from plumecast.scores.sampling.cluster_sums import ClusterSums, block_cluster_sums

if TYPE_CHECKING:
    from plumecast.operators.pca import Basis

QUANTILE_ERROR = 0.025
"""Largest relative error of a quantile: the ends of a bin differ by this from its middle."""


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

    def __add__(self, other: FieldSums) -> FieldSums:
        bins = None if self.bins is None or other.bins is None else self.bins + other.bins
        changes = None
        if self.changes is not None and other.changes is not None:
            changes = self.changes + other.changes
        return FieldSums(
            self.count + other.count,
            self.plain + other.plain,
            self.log + other.log,
            self.log_squares + other.log_squares,
            self.above + other.above,
            bins,
            _both(self.clusters, other.clusters),
            changes,
        )


def _both(one: ClusterSums | None, other: ClusterSums | None) -> ClusterSums | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, slots=True)
class CodeSums:
    """First and second moments of codes, which give the mean and variance of decoded fields."""

    count: int
    plain: Array  # (q,)
    outer: Array  # (q, q), Σ b bᵀ
    clusters: ClusterSums | None = None  # of the codes

    def __add__(self, other: CodeSums) -> CodeSums:
        return CodeSums(
            self.count + other.count,
            self.plain + other.plain,
            self.outer + other.outer,
            _both(self.clusters, other.clusters),
        )

    def moments(self, basis: Basis) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the decoded fields in every cell, (N,) each."""
        modes, mean = to_numpy(basis.modes), to_numpy(self.plain) / self.count
        spread = to_numpy(self.outer) / self.count - np.outer(mean, mean)
        field = mean @ modes if basis.mean is None else mean @ modes + to_numpy(basis.mean)
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
