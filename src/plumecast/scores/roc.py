"""Receiver operating characteristics (ROC) of many snapshots at once. Arrays only, no labels.

Rows are snapshots. A cell is predicted to hold smoke where its prediction exceeds a decision
threshold α ≥ 0; sweeping α traces the curve (FPR, TPR).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, device_of, is_numpy_namespace, to_numpy
from plumecast.compute.blocks import add_up


@dataclass(frozen=True, slots=True)
class RocScores:
    """Scores of every snapshot over all decision thresholds, each (M,)."""

    auc: Array  # NaN where all cells or no cells have smoke
    iou: Array  # at the point of the curve nearest (0, 1)
    decision_threshold: Array  # α of that point
    true_positive_rate: Array
    false_positive_rate: Array


@dataclass(frozen=True, slots=True)
class RocCurves:
    """The ROC curves of all snapshots: cells in descending order of prediction, (M, N)."""

    predicted: Array  # sorted, descending
    true_positives: Array  # counts among the first k+1 cells
    false_positives: Array
    is_point: Array  # False where no threshold separates a cell from the next, of equal prediction


def roc_curves(predicted: Array, observed: Array) -> RocCurves:
    """Curves of (M, N) predictions against boolean observations."""
    xp = array_namespace(predicted, observed)
    order = xp.argsort(predicted, axis=1, descending=True, stable=True)
    ranked = xp.take_along_axis(predicted, order, axis=1)
    # Counts are float64 because they are only divided; they are exact up to 2⁵³ cells.
    hits = xp.astype(xp.take_along_axis(observed, order, axis=1), xp.float64)
    true_positives = xp.cumulative_sum(hits, axis=1)
    false_positives = xp.cumulative_sum(1.0 - hits, axis=1)
    last = xp.ones((ranked.shape[0], 1), dtype=xp.bool, device=device_of(ranked))
    is_point = xp.concat([ranked[:, :-1] > ranked[:, 1:], last], axis=1)
    return RocCurves(ranked, true_positives, false_positives, is_point)


def roc_scores(predicted: Array, observed: Array) -> RocScores:
    """AUC by the trapezoidal rule, and IoU at the point nearest (0, 1), of every row.

    The curve runs from (0, 0) to (1, 1); cells of equal prediction make one point, and points are
    joined by straight lines. The IoU considers only points with α ≥ 0, so a cell with a prediction
    of zero is never called smoke. Without observed smoke, the AUC is undefined (NaN) and the IoU is
    1 if none is predicted either, 0 otherwise, at α = 0.
    """
    xp = array_namespace(predicted, observed)
    curves = roc_curves(predicted, observed)
    cells = predicted.shape[1]
    positives = curves.true_positives[:, -1:]
    negatives = cells - positives
    undefined = (positives == 0) | (negatives == 0)
    tpr = curves.true_positives / xp.where(positives == 0, 1.0, positives)
    fpr = curves.false_positives / xp.where(negatives == 0, 1.0, negatives)
    auc = xp.where(undefined[:, 0], xp.nan, _area(fpr, tpr, curves.is_point))

    allowed = curves.is_point & (curves.predicted > 0.0)
    distance = xp.where(allowed, fpr**2 + (1.0 - tpr) ** 2, xp.inf)
    # With α at or above the largest prediction no cell is called: the point (0, 0), at distance 1.
    best = xp.argmin(distance, axis=1)[:, None]
    none = ~(xp.take_along_axis(distance, best, axis=1) < 1.0)

    def at_best(values: Array) -> Array:
        chosen = xp.take_along_axis(values, best, axis=1)
        return xp.where(none, xp.zeros_like(chosen), chosen)[:, 0]

    true_positives = at_best(curves.true_positives)
    false_positives = at_best(curves.false_positives)
    following = xp.concat([curves.predicted[:, 1:], xp.zeros_like(curves.predicted[:, :1])], axis=1)
    below = xp.clip(xp.take_along_axis(following, best, axis=1)[:, 0], 0.0, None)
    largest = xp.clip(curves.predicted[:, 0], 0.0, None)
    alpha = xp.where(none[:, 0], largest, below)

    empty = positives[:, 0] == 0
    any_predicted = curves.predicted[:, 0] > 0.0
    iou = true_positives / (positives[:, 0] + false_positives + xp.astype(empty, xp.float64))
    iou = xp.where(empty, xp.astype(~any_predicted, xp.float64), iou)
    return RocScores(
        auc=auc,
        iou=iou,
        decision_threshold=xp.where(empty, xp.zeros_like(alpha), alpha),
        true_positive_rate=at_best(tpr),
        false_positive_rate=at_best(fpr),
    )


def _area(fpr: Array, tpr: Array, is_point: Array) -> Array:
    """Trapezoidal area under the points of each row; cells that are no points are skipped.

    Both rates never decrease, so a cumulative maximum gives the coordinates of the previous point.
    """
    xp = array_namespace(fpr)
    zero = xp.zeros_like(fpr[:, :1])

    def previous(rate: Array) -> Array:
        at_points = xp.where(is_point, rate, xp.zeros_like(rate))
        return _running_max(xp.concat([zero, at_points[:, :-1]], axis=1))

    width = fpr - previous(fpr)
    height = 0.5 * (tpr + previous(tpr))
    return xp.sum(xp.where(is_point, width * height, xp.zeros_like(fpr)), axis=1)


def _running_max(values: Array) -> Array:
    """Cumulative maximum along rows; other namespaces than NumPy take log₂ N shifted maxima."""
    xp = array_namespace(values)
    if is_numpy_namespace(xp):
        return np.maximum.accumulate(values, axis=1)
    shift = 1
    while shift < values.shape[1]:
        values = xp.concat(
            [values[:, :shift], xp.maximum(values[:, shift:], values[:, :-shift])], axis=1
        )
        shift *= 2
    return values


def pooled_roc(predicted: Array, observed: Array, points: int = 120) -> list[tuple[float, float]]:
    """The curve (FPR, TPR) of all cells of all rows together, by at most `points` of its points.

    They lie evenly along the curve from (0, 0) to (1, 1), most of whose points are in its corners.
    There is none if all cells, or no cells, have smoke. NumPy arrays only.
    """
    if not observed.any() or observed.all():
        return []
    curve = roc_curves(predicted.reshape(1, -1).astype(np.float64), observed.reshape(1, -1))
    at = np.flatnonzero(curve.is_point[0])
    true, false = curve.true_positives[0], curve.false_positives[0]
    fpr, tpr = false[at] / false[-1], true[at] / true[-1]
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(fpr), np.diff(tpr)))])
    kept = np.unique(np.searchsorted(way, np.linspace(0.0, way[-1], points)).clip(0, way.size - 1))
    return [(0.0, 0.0), *zip(fpr[kept].tolist(), tpr[kept].tolist(), strict=True), (1.0, 1.0)]


def iou_at(predicted: Array, observed: Array, alpha: float) -> Array:
    """IoU of every row at one decision threshold; 1 where no smoke is observed or predicted."""
    xp = array_namespace(predicted, observed)
    called = predicted > alpha
    both = xp.sum(xp.astype(called & observed, xp.float64), axis=1)
    either = xp.sum(xp.astype(called | observed, xp.float64), axis=1)
    return xp.where(either == 0, 1.0, both / xp.where(either == 0, 1.0, either))


Visit: TypeAlias = Callable[[Callable[[Array, Array], np.ndarray]], Iterable[np.ndarray]]
"""A pass over the data: applies a function to the (m, N) predictions and observations of each
block; results in the order of the blocks."""


def decision_threshold_over(visit: Visit, candidates: Iterable[float]) -> float:
    """The decision threshold with the largest mean IoU over all rows of all blocks.

    `visit` makes one pass over blocks of predictions and boolean observations. The thresholds tried
    are 0, the `candidates` and quantiles of the positive predictions. If no prediction is positive,
    all thresholds are equal and the largest candidate is returned. The first pass counts the
    predictions in fixed bins, the second sums the IoU of every threshold. Both are sums, so the
    result does not depend on the blocks.
    """
    above = add_up(visit(_count_predictions))
    asked = [float(alpha) for alpha in candidates]
    if int(above[0]) == 0:
        return max(asked, default=0.0)
    quantiles = edges_at(np.linspace(0.0, 0.995, 120).tolist(), above, bin_edges(np.empty(0)))
    tried = sorted({0.0, *asked, *quantiles})
    sums = add_up(visit(partial(_sum_ious, np.asarray(tried))))
    # The rounding of sums depends on the blocks and must not decide between equal thresholds.
    best = np.flatnonzero(sums >= sums.max() * (1.0 - 1e-12))
    return tried[int(best[0])]


def _count_predictions(guess: Array, footprint: Array) -> np.ndarray:
    return to_numpy(count_above(guess, bin_edges(guess)))


def _sum_ious(alphas: np.ndarray, guess: Array, footprint: Array) -> np.ndarray:
    xp = array_namespace(guess, footprint)
    if is_numpy_namespace(xp):
        return iou_sums(guess, footprint, alphas)
    return np.array([float(xp.sum(iou_at(guess, footprint, alpha))) for alpha in alphas.tolist()])


def iou_sums(predicted: Array, observed: Array, alphas: Array) -> np.ndarray:
    """Sum over rows of `iou_at` for many ascending decision thresholds at once, (A,).

    A prediction exceeds the first k thresholds. Cells are counted by k; cumulative sums from the
    largest k give the hits and calls of every threshold. NumPy arrays only.
    """
    total = np.zeros(alphas.size)
    for guess, truth in zip(predicted, observed, strict=True):
        exceeded = np.searchsorted(alphas, guess, side="left")  # thresholds below the prediction
        calls, hits = (
            np.cumsum(np.bincount(kind, minlength=alphas.size + 1)[::-1])[::-1][1:]
            for kind in (exceeded, exceeded[truth])
        )
        either = calls + np.count_nonzero(truth) - hits
        total += np.where(either == 0, 1.0, hits / np.where(either == 0, 1, either))
    return total


# -- Quantiles of data in blocks, from counts in logarithmic bins
#
# The bins are fixed, so the counts of blocks can be added in any order with identical results. A
# quantile is known to within one bin: its relative error is at most RATIO − 1. This is DDSketch
# (Masson, Rim and Lee, 2019) without collapsing bins. Values at or below FLOOR count as zero.

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
    quantiles = []
    for share in shares:
        enough = np.count_nonzero(above >= (1.0 - share) * above[0])
        quantiles.append(float(edges[max(int(enough) - 1, 0)]))
    return quantiles
