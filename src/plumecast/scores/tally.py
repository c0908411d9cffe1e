"""How well predicted smoke exceeds a threshold where the observed smoke does. Arrays only.

The counts of cells can be added over blocks of snapshots; the scores follow from their sums.

So can the scores of blocks of snapshots, from which medians follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.compute.arrays import Array, array_namespace, to_numpy
from plumecast.compute.blocks import add_up
from plumecast.scores.footprint import ratio, row_errors, score_rows
from plumecast.scores.roc import iou_at


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

    def share(part: int, whole: int) -> float:
        return part / whole if whole else math.nan

    return Exceedance(
        float(threshold),
        hit_rate=share(hits, present),
        false_alarm_ratio=share(called - hits, called),
        bias=share(called, present),
        iou=hits / either if either else 1.0,
        quantity=quantity,
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """Scores of every snapshot of a block, and sums over its cells."""

    each: Mapping[str, np.ndarray]  # by name, one value per snapshot
    above: np.ndarray  # (T, 3) of `exceedance_counts`: at the smoke threshold first
    wrong: float  # Σ (ĝ − g)²
    size: float  # Σ g²
    seconds: float = math.nan  # of the prediction

    @property
    def relative_error(self) -> float:
        """‖ĝ − g‖ / ‖g‖ over all snapshots and cells (Frobenius)."""
        return ratio(self.wrong, self.size)

    def median(self, name: str) -> float:
        """Median of a score over the snapshots for which it is defined."""
        return known_median(self.each[name])


def join_tallies(blocks: Iterable[Tally]) -> Tally:
    """The sum of the tallies of consecutive blocks, of which there is at least one."""
    tallies = list(blocks)
    return Tally(
        {name: np.concatenate([tally.each[name] for tally in tallies]) for name in tallies[0].each},
        add_up(tally.above.copy() for tally in tallies),
        sum(tally.wrong for tally in tallies),
        sum(tally.size for tally in tallies),
        sum(tally.seconds for tally in tallies),
    )


def tally_rows(
    smoke: Array,
    detected: Array,
    observed: Array,
    *,
    tau: float | None = None,
    alpha: float | None = None,
    seconds: float = math.nan,
) -> Tally:
    """Tally of (M, N) predicted smoke and detection scores against observed smoke.

    Without a smoke threshold `tau` there are only errors; without a decision threshold `alpha` of
    the detection score there is no deployable IoU.
    """
    xp = array_namespace(smoke, detected, observed)
    wrong = float(xp.sum((smoke - observed) ** 2))
    each: dict[str, np.ndarray] = {}
    if tau is not None:
        each = score_rows(detected, observed, tau, alpha)
        each["smoke_iou"] = to_numpy(iou_at(smoke, observed > tau, tau))
    each["relative_error"] = row_errors(smoke, observed)
    each["mass_ratio"] = mass_ratios(smoke, observed)
    above = exceedance_counts(smoke, observed, [] if tau is None else [tau])
    return Tally(each, above, wrong, float(xp.sum(observed**2)), seconds)


def mass_ratios(predicted: Array, observed: Array) -> np.ndarray:
    """(M,) total predicted over total observed smoke of (M, N) fields; NaN without smoke.

    >>> mass_ratios(np.array([[1.0, 2.0], [1.0, 0.0]]), np.array([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [0.75, nan]
    """
    xp = array_namespace(predicted, observed)
    made, true = (to_numpy(xp.sum(field, axis=1)) for field in (predicted, observed))
    ratios = np.full(true.shape, np.nan)
    np.divide(made, true, out=ratios, where=true > 0.0)
    return ratios


def known_values(values: xr.DataArray | Array) -> np.ndarray:
    """The values that are not NaN, as a flat array."""
    array = np.asarray(values)
    return np.asarray(array[~np.isnan(array)])


def known_median(values: xr.DataArray | Array) -> float:
    """Median of the values that are not NaN; NaN where there are none.

    >>> known_median(np.array([1.0, np.nan, 3.0]))
    2.0
    """
    known = known_values(values)
    return float(np.median(known)) if known.size else math.nan
