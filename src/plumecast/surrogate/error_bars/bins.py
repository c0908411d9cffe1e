"""Logarithmic bins of smoke, and positions on the same scale."""

from __future__ import annotations

import math

import numpy as np

from plumecast.compute.arrays import Array, array_namespace

BINS = 48
"""Number of bins; the first is for smoke of at most the lowest edge, most of it exactly 0."""

BELOW = 30.0
"""The lowest edge is about τ / 30: smoke predicted just below τ is often observed above it."""

ABOVE = 3.0
"""The highest edge is about three times the largest training smoke."""

LEAST = 1e-6
"""Smallest smoke threshold of the bins, as a share of the largest smoke: a smaller one is a trace
(data without a smoke floor), and bins down to it would be too wide."""


def scored_threshold(tau: float, peak: float) -> float:
    """The smoke threshold, at least a millionth of the largest smoke."""
    return max(float(tau), LEAST * peak)


def make_edges(tau: float, peak: float) -> Array:
    """(K − 1,) upper edges of all bins but the last, τ r^(k − m), k = 0 … K − 2; one is τ."""
    ratio = (BELOW * max(ABOVE * peak / tau, ABOVE)) ** (1.0 / (BINS - 2))
    own = int(np.ceil(np.log(BELOW) / np.log(ratio)))
    edges = tau * ratio ** (np.arange(BINS - 1) - float(own))
    edges[own] = tau
    return edges


def bin_numbers(smoke: Array, edges: Array) -> Array:
    """Bin of every value: the number of edges below it, so that τ itself is no smoke.

    >>> bin_numbers(np.array([0.0, 1.0, 1.5, 9.0]), np.array([1.0, 2.0, 4.0]))
    array([0, 0, 1, 3])
    """
    return np.searchsorted(edges, smoke, side="left")


def positions(smoke: Array, edges: Array) -> Array:
    """u(g): g / e₀ up to the lowest edge e₀, then 1 + ln(g / e₀) / ln r; bin k has k < u ≤ k + 1.

    >>> positions(np.array([0.0, 0.5, 1.0, 2.0, 8.0]), np.array([1.0, 2.0, 4.0]))
    array([0. , 0.5, 1. , 2. , 4. ])
    """
    xp = array_namespace(smoke)
    lowest, step = float(edges[0]), math.log(edges[1] / edges[0])
    above = 1.0 + xp.log(xp.clip(smoke, lowest, None) / lowest) / step
    return xp.where(smoke > lowest, above, xp.clip(smoke, 0.0, None) / lowest)


def smoke_at(position: Array, edges: Array) -> Array:
    """The inverse of `positions`."""
    lowest, step = edges[0], np.log(edges[1] / edges[0])
    above = lowest * np.exp((np.maximum(position, 1.0) - 1.0) * step)
    return np.where(position > 1.0, above, np.clip(position, 0.0, None) * lowest)
