"""Sets of cells with certain and with possible smoke, at a stated confidence.

Each set is the cells whose score lies above a threshold. With the risk α = 1 − coverage, at most a
share α of the cells of `certain_smoke` of a fire are to have no smoke, and at most a share α of its
smoky cells are to lie outside of `possible_smoke`; each in a share 1 − α of new fires. Every group
has a threshold at which this holds for itself, and `rank`, a finite-sample quantile, chooses
among them (split conformal, with one number per group).

Tables of earlier files have thresholds of the *mean* share over fires instead: `mean_thresholds`.
"""

from __future__ import annotations

import numpy as np

from plumecast.compute.arrays import Array
from plumecast.surrogate.error_bars.bands import expected_loss


def _above(scores: Array) -> Array:
    """(G, B, 2) numbers of cells in higher bins than b: with a score above the edge of bin b."""
    return np.asarray(scores[:, ::-1].cumsum(axis=1)[:, ::-1] - scores)


def false_shares(scores: Array) -> Array:
    """(G, B) share of the cells with a score above edge b that have no smoke; 0 of none."""
    above = _above(scores)
    total = above.sum(axis=-1)
    return np.divide(above[..., 0], total, out=np.zeros(total.shape), where=total > 0)


def missed_shares(scores: Array) -> Array:
    """(G, B) share of the smoky cells with a score of at most edge b; 0 of none."""
    smoky = scores[..., 1].sum(axis=1, keepdims=True)
    kept = np.divide(_above(scores)[..., 1], smoky, out=np.ones(scores.shape[:2]), where=smoky > 0)
    return np.asarray(1.0 - kept)


def rank(groups: int, risk: float) -> int:
    """k = ⌊α (n + 1)⌋, at least 1: a new group is worse than the k-th worst of n with k / (n + 1).

    With fewer than 1 / α − 1 groups that is more than α; the worst group is then the best choice.

    >>> rank(8, 0.1), rank(19, 0.1), rank(64, 0.1)
    (1, 2, 6)
    """
    return max(1, int(np.floor(risk * (groups + 1) + 1e-9)))


def fire_thresholds(scores: Array, edges: Array, risk: float) -> tuple[float, float]:
    """Thresholds of certain and of possible smoke that hold for all groups but the k − 1 worst.

    The groups of possible smoke are those with smoke; without any, all cells are possible.
    """
    certain = np.sort(_certain_of_each(scores, edges, risk))[::-1]
    possible = np.sort(_possible_of_each(scores[_smoky(scores)], edges, risk))
    chosen = possible[rank(possible.size, risk) - 1] if possible.size else -1.0
    return float(certain[rank(certain.size, risk) - 1]), float(chosen)


def fire_promises(scores: Array, risk: float) -> tuple[float, float]:
    """Share 1 − k / (n + 1) of new fires for which each of the `fire_thresholds` holds."""
    certain, possible = (
        1.0 - rank(groups, risk) / (groups + 1.0)
        for groups in (len(scores), int(_smoky(scores).sum()))
    )
    return certain, possible


def _smoky(scores: Array) -> Array:
    """(G,) whether a group has cells with observed smoke."""
    return np.asarray(scores[..., 1].sum(axis=1) > 0)


def _certain_of_each(scores: Array, edges: Array, risk: float) -> Array:
    """(G,) the lowest edge at which, and at all higher ones, the false share is at most the risk.

    Infinite if there is none: no cell is certain then.
    """
    bad = false_shares(scores)[:, : edges.size] > risk
    first = edges.size - np.argmax(bad[:, ::-1], axis=1)
    first = np.where(bad.any(axis=1), first, 0)
    return np.append(edges, np.inf)[first]


def _possible_of_each(scores: Array, edges: Array, risk: float) -> Array:
    """(G,) the highest edge with a share of missed smoke of at most the risk; −1 if there is none.

    The share does not decrease with the edge.
    """
    good = (missed_shares(scores)[:, : edges.size] <= risk).sum(axis=1)
    return np.append(-1.0, edges)[good]


def mean_thresholds(scores: Array, edges: Array, risk: float) -> tuple[float, float]:
    """Thresholds of certain and of possible smoke for the mean share over groups.

    The share of an unknown group is that of `expected_loss`.
    """
    certain = certain_threshold(scores, edges, risk)
    return certain, possible_threshold(scores, edges, risk)


def mean_losses(
    scores: Array, edges: Array, thresholds: tuple[float, float]
) -> tuple[float, float]:
    """Mean share of certain cells without smoke, and of smoky cells that are not possible."""
    certain, possible = (
        float(shares_at(shares, edges, threshold).mean())
        for shares, threshold in zip(
            (false_shares(scores), missed_shares(scores)), thresholds, strict=True
        )
    )
    return certain, possible


def certain_threshold(scores: Array, edges: Array, risk: float) -> float:
    """The lowest score above which, here and at all higher scores, the false share is ≤ risk.

    Above the last edge nothing is left, so that the share is 0.
    """
    safe = expected_loss(false_shares(scores))[: edges.size] <= risk
    bad = np.flatnonzero(~safe)
    first = bad[-1] + 1 if bad.size else 0
    return float(edges[first]) if first < edges.size else float("inf")


def possible_threshold(scores: Array, edges: Array, risk: float) -> float:
    """The highest score with a share of missed smoke ≤ risk; −1 if no edge has it."""
    good = np.flatnonzero(expected_loss(missed_shares(scores))[: edges.size] <= risk)
    return float(edges[good[-1]]) if good.size else -1.0


def shares_at(shares: Array, edges: Array, threshold: float) -> Array:
    """(G,) the (G, B) shares at a threshold, which is one of the edges; 0 if it is none.

    No cell has a score above an infinite threshold, and all are above −1: none is false, or missed.
    """
    known = edges[0] <= threshold <= edges[-1]
    return shares[:, np.searchsorted(edges, threshold)] if known else np.zeros(len(shares))
