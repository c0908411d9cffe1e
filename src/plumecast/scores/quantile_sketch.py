"""Quantiles of data in blocks, from counts in logarithmic bins. Arrays only, no labels.

The bins are fixed, so the counts of blocks can be added in any order with identical results. A
quantile is known to within one bin: its relative error is at most RATIO − 1. This is DDSketch
(Masson, Rim and Lee, 2019) without collapsing bins. Values at or below FLOOR count as zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, device_of

FLOOR, CEILING = 1e-9, 1e12
RATIO = 1.02
BINS = math.ceil(math.log(CEILING / FLOOR) / math.log(RATIO))


def bin_edges(other: Array) -> Array:
    """Lower edges of the bins, FLOOR · RATIOᵏ, (BINS,), on the device of `other`."""
    xp = array_namespace(other)
    steps = xp.arange(BINS, dtype=xp.float64, device=device_of(other))
    return FLOOR * xp.exp(steps * math.log(RATIO))


def count_above(values: Array, edges: Array) -> Array:
    """Number of values above each edge, (len(edges),) integers; counts of blocks can be added."""
    xp = array_namespace(values, edges)
    ranked = xp.sort(xp.reshape(xp.astype(values, edges.dtype, copy=False), (-1,)))
    return ranked.shape[0] - xp.searchsorted(ranked, edges, side="right")


def edges_at(shares: Sequence[float], above: np.ndarray, edges: np.ndarray) -> list[float]:
    """Quantiles of the positive values, as lower edges of bins, for probabilities p in `shares`.

    For each p, the largest edge with at least a fraction 1 − p of the positive values above it.
    `above` has the number of values above each edge, in descending order.
    """
    found = []
    for share in shares:
        enough = np.count_nonzero(above >= (1.0 - share) * above[0])
        found.append(float(edges[max(int(enough) - 1, 0)]))
    return found
