"""How well predicted smoke exceeds a threshold where the observed smoke does. Arrays only.

The counts of cells can be added over blocks of snapshots; the scores follow from their sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array, array_namespace


@dataclass(frozen=True, slots=True)
class Exceedance:
    """Scores of smoke above one threshold, over all cells of all snapshots together.

    With a hits, b false alarms and c misses: the hit rate (probability of detection) is
    a / (a + c), the false alarm ratio b / (a + b), the frequency bias (a + b) / (a + c) and the IoU
    (critical success index) a / (a + b + c). The first and third are NaN if no cell is observed
    above the threshold, the second if none is predicted above it; the IoU is then 1 if neither is.

    >>> exceedance_of(35.0, np.array([6, 8, 9])).false_alarm_ratio
    0.25
    """

    threshold: float  # of the quantity
    hit_rate: float
    false_alarm_ratio: float
    bias: float
    iou: float
    quantity: str = "sum"  # as in records without it


def exceedance_counts(predicted: Array, observed: Array, thresholds: Sequence[float]) -> np.ndarray:
    """(T, 3) numbers of cells above each threshold: in both fields, predicted, observed."""
    xp = array_namespace(predicted, observed)
    rows = []
    for threshold in thresholds:
        called, present = predicted > threshold, observed > threshold
        kinds = (called & present, called, present)
        rows.append([int(xp.count_nonzero(kind)) for kind in kinds])
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


def exceedance_of(threshold: float, counts: np.ndarray, quantity: str = "sum") -> Exceedance:
    """The scores from the (3,) counts of `exceedance_counts`."""
    hits, called, present = (int(number) for number in counts)
    either = called + present - hits
    return Exceedance(
        float(threshold),
        hit_rate=_share(hits, present),
        false_alarm_ratio=_share(called - hits, called),
        bias=_share(called, present),
        iou=hits / either if either else 1.0,
        quantity=quantity,
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
