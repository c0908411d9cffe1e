"""Scores of blocks of snapshots that are added, and their medians. Arrays only, no labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.compute.arrays import Array, array_namespace, to_numpy
from plumecast.compute.blocks import add_up
from plumecast.scores.exceedance import exceedance_counts
from plumecast.scores.footprint import ratio, row_errors, score_rows
from plumecast.scores.roc import iou_at


@dataclass(frozen=True, slots=True)
class Tally:
    """Scores of every snapshot of a block, and sums over its cells."""

    each: Mapping[str, np.ndarray]  # by name, one value per snapshot
    above: np.ndarray  # (T, 3) of `exceedance_counts`: at the smoke threshold first
    wrong: float  # Σ (ĝ − g)²
    size: float  # Σ g²
    seconds: float = math.nan  # of the prediction

    def __add__(self, other: Tally) -> Tally:
        """The tally of both blocks, the snapshots of this one first."""
        return join_tallies([self, other])

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
    above = exceedance_counts(smoke, observed, [] if tau is None else [tau])
    return Tally(each, above, wrong, float(xp.sum(observed**2)), seconds)


def known_values(values: xr.DataArray | Array) -> np.ndarray:
    """The values that are not NaN, as a flat array."""
    array = np.asarray(values)
    known: np.ndarray = array[~np.isnan(array)]
    return known


def known_median(values: xr.DataArray | Array) -> float:
    """Median of the values that are not NaN; NaN where there are none.

    >>> known_median(np.array([1.0, np.nan, 3.0]))
    2.0
    """
    known = known_values(values)
    return float(np.median(known)) if known.size else math.nan
