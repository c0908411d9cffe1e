"""The calibration table of a surrogate: cells by predicted and observed smoke, for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.linalg import interpolation
from plumecast.scores.sampling import check_coverage
from plumecast.surrogate.error_bars.bands import Bands, calibrated_bands, group_weights
from plumecast.surrogate.error_bars.bins import BINS, bin_numbers, positions, smoke_at
from plumecast.surrogate.error_bars.counting import SCORE_BINS, Cells, score_edges
from plumecast.surrogate.error_bars.footprint import (
    fire_promises,
    fire_thresholds,
    mean_losses,
    mean_thresholds,
)

FEWEST = 5
"""Groups below which nothing is calibrated: the promise for 90 % would be less than 75 %."""

BY_FIRE = "fire"
"""Rule of the sets: certain and possible smoke hold in a share of the fires (`fire_thresholds`)."""


@dataclass(frozen=True, slots=True, eq=False)
class TimeTable:
    """Counts of the cells of snapshots of one time since ignition."""

    hour: float  # their mean
    snapshots: int
    counts: Array  # (G, K, K), as those of all times


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Counts of cells that fits without their group have predicted.

    Row k, column j of a group's table has the number of cells with predicted smoke in bin k and
    observed smoke in bin j. Groups are ignitions unless `by` names another coordinate. Cells count
    as *scored* if predicted or observed smoke exceeds τ: all others are nearly 0 in both.
    """

    groups: tuple[str, ...]
    by: str
    tau: float  # smoke threshold, one of the edges
    edges: Array  # (K − 1,)
    counts: Array  # (G, K, K)
    scores: Array  # (G, B, 2), by detection score (or predicted smoke) and observed smoke > τ
    detects: bool  # whether `scores` are of a detection score
    sets: str | None = None  # rule of the sets; None in earlier files, for the mean over fires
    times: tuple[TimeTable, ...] = ()  # the same by time since ignition, ascending

    def bands(self, coverage: float) -> Bands:
        """The bands that contain a share `coverage` of the scored cells of an unseen group."""
        check_coverage(coverage, "interval")
        return _bands(self, float(coverage))

    def interval(
        self, predicted: Array, coverage: float, hours: Array | None = None
    ) -> tuple[Array, Array]:
        """Lower and upper smoke of predicted smoke of any shape, 0 ≤ lower ≤ predicted ≤ upper.

        `hours` (M,) are those since ignition of (M, …) predictions. The bands of the times before
        and after are then interpolated, so that they are continuous in the hours.
        """
        where = positions(predicted, self.edges)

        def ends(bands: Bands) -> tuple[Array, Array]:
            lower, upper = (smoke_at(end, self.edges) for end in bands.at(where))
            return lower, upper

        if hours is None or len(self.times) < 2 or not np.isfinite(hours).all():
            lower, upper = ends(self.bands(coverage))
        else:
            check_coverage(coverage, "interval")
            nodes = np.array([table.hour for table in self.times])
            weights = interpolation(nodes, np.asarray(hours, dtype=np.float64))  # (M, C)
            lower = upper = np.zeros(np.shape(predicted))
            for number in range(nodes.size):
                share = weights[:, number].reshape((-1,) + (1,) * (np.ndim(predicted) - 1))
                low, high = ends(_time_bands(self, number, float(coverage)))
                lower, upper = lower + share * low, upper + share * high
        return np.minimum(lower, predicted), np.maximum(upper, predicted)

    def coverage(self, bands: Bands, *, every_cell: bool = False) -> Array:
        """(G,) share of the scored cells of each group (or of every cell) within the bands.

        NaN for groups without such cells. The bands may have been calibrated on these groups.
        """
        kept = np.ones((BINS, BINS), dtype=bool) if every_cell else self.scored
        cells = self.counts * kept
        total = cells.sum(axis=(1, 2))
        inside = (cells * bands.covered()).sum(axis=(1, 2))
        return np.where(total > 0, inside / np.maximum(total, 1), np.nan)

    @property
    def smoky_groups(self) -> int:
        """Number of groups with scored cells."""
        return int((group_weights(self.counts, self.scored) > 0).sum())

    @property
    def scored(self) -> Array:
        """(K, K) whether cells of a bin have predicted or observed smoke above τ."""
        first = int(bin_numbers(np.array(self.tau), self.edges)) + 1
        number = np.arange(BINS)
        return (number[:, None] >= first) | (number[None, :] >= first)

    def footprint_thresholds(self, coverage: float) -> tuple[float, float]:
        """Scores above which smoke is certain, and above which it is possible."""
        check_coverage(coverage, "interval")
        chosen = fire_thresholds if self.sets == BY_FIRE else mean_thresholds
        certain, possible = chosen(self.scores, self._score_edges, 1.0 - coverage)
        return max(certain, possible), possible

    def promised(self, coverage: float) -> float:
        """The share of scored cells within the bands that can be promised (`_promise`)."""
        return _promise(self.bands(coverage).lost, self.smoky_groups)

    def promised_footprint(self, coverage: float) -> tuple[float, float]:
        """Shares that can be promised of certain and of possible smoke.

        They are shares of new fires with `BY_FIRE`, and otherwise mean shares: of the certain cells
        that have smoke, and of the smoky cells that are possible.
        """
        if self.sets == BY_FIRE:
            return fire_promises(self.scores, 1.0 - coverage)
        thresholds = self.footprint_thresholds(coverage)
        certain, possible = mean_losses(self.scores, self._score_edges, thresholds)
        return _promise(certain, len(self.groups)), _promise(possible, len(self.groups))

    @property
    def _score_edges(self) -> Array:
        return score_edges() if self.detects else self.edges

    def most_promised(self) -> float:
        """The largest share that any bands of n groups can promise, n / (n + 1)."""
        return self.smoky_groups / (self.smoky_groups + 1.0)

    def check(self) -> None:
        """Raise if the arrays do not fit together or hold other values than counts."""
        count = len(self.groups)
        size = SCORE_BINS if self.detects else BINS
        shapes = {"edges": (BINS - 1,), "counts": (count, BINS, BINS), "scores": (count, size, 2)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.shape != shape:
                raise PlumecastError(f"error_bars.{name} does not have the shape {shape}")
            if not np.isfinite(array).all() or (array < 0).any():
                raise PlumecastError(f"error_bars.{name} has values that are NaN or negative")
        for table in self.times:
            if np.shape(table.counts) != shapes["counts"] or (table.counts < 0).any():
                raise PlumecastError("error_bars.times do not have the counts of every group")
        if (np.diff([table.hour for table in self.times]) <= 0.0).any():
            raise PlumecastError("error_bars.times are not in the order of their hours")
        if not (np.diff(self.edges) > 0).all() or self.tau not in self.edges:
            raise PlumecastError("error_bars.edges do not rise, or do not contain the threshold")
        if self.sets not in (None, BY_FIRE):
            raise PlumecastError(f"error_bars.sets={self.sets!r} is unknown to this plumecast")
        check_groups(count, self.by)


def make_calibration(cells: Cells) -> Calibration:
    """The calibration table of counted cells; raises if too few groups have smoke."""
    groups, bins = tuple(sorted(cells.counts)), cells.bins
    smoke, scores = zip(*(cells.counts[group] for group in groups), strict=True)
    table = Calibration(
        groups=groups,
        by=bins.by,
        tau=bins.tau,
        edges=bins.edges,
        counts=np.stack(smoke).astype(np.int32),
        scores=np.stack(scores).astype(np.int32),
        detects=bins.detects,
        sets=BY_FIRE,
        times=_time_tables(cells, groups),
    )
    check_groups(table.smoky_groups, bins.by)
    return table


def _time_tables(cells: Cells, groups: Sequence[str]) -> tuple[TimeTable, ...]:
    """The tables of times of which enough groups have smoke."""
    none = np.zeros((BINS, BINS), dtype=np.int32)
    made = []
    for _, part in sorted(cells.times.items()):
        counts = np.stack([part.counts.get(group, none) for group in groups]).astype(np.int32)
        made.append(TimeTable(part.hours / part.snapshots, part.snapshots, counts))
    return tuple(
        table for table in made if (table.counts[:, 1:, 1:].sum(axis=(1, 2)) > 0).sum() >= FEWEST
    )


def join_cells(table: Calibration, cells: Cells) -> Calibration:
    """The table with the cells of further groups, counted in its own bins."""
    new = sorted(cells.counts)
    smoke, scores = zip(*(cells.counts[group] for group in new), strict=True)
    return replace(
        table,
        groups=(*table.groups, *new),
        counts=np.concatenate([table.counts, np.stack(smoke).astype(np.int32)]),
        scores=np.concatenate([table.scores, np.stack(scores).astype(np.int32)]),
        times=_joined_times(table, cells, new),
    )


def _joined_times(table: Calibration, cells: Cells, new: Sequence[str]) -> tuple[TimeTable, ...]:
    """Every time with the cells of new groups at the nearest time."""
    hours = np.array([own.hour for own in table.times])
    none = np.zeros((BINS, BINS), dtype=np.int32)
    added = [np.stack([none] * len(new)) for _ in table.times]
    for part in cells.times.values() if table.times else ():
        nearest = int(np.argmin(np.abs(hours - part.hours / part.snapshots)))
        for row, group in enumerate(new):
            added[nearest][row] += part.counts.get(group, none).astype(np.int32)
    return tuple(
        replace(own, counts=np.concatenate([own.counts, more]))
        for own, more in zip(table.times, added, strict=True)
    )


def groups_in_words(by: str) -> str:
    """What the groups of a calibration are called, for messages."""
    return "ignitions" if by == "ignition_id" else f"groups of {by}"


def check_groups(count: int, by: str) -> None:
    """Raise if there are too few groups to promise anything useful."""
    if count < FEWEST:
        raise PlumecastError(
            f"error bars need smoke of at least {FEWEST} {groups_in_words(by)} that a fit has not "
            f"seen, this one had {count}"
        )


def _promise(lost: float, count: int) -> float:
    """1 − (n ℓ + 1) / (n + 1), for a group exchangeable with these n: conformal risk control.

    ℓ is the mean loss of the groups; the worst loss of the unknown group is 1.
    """
    return 1.0 - (count * lost + 1.0) / (count + 1.0)


@lru_cache(maxsize=64)
def _time_bands(table: Calibration, number: int, coverage: float) -> Bands:
    return calibrated_bands(table.times[number].counts, table.scored, coverage)


@lru_cache(maxsize=16)
def _bands(table: Calibration, coverage: float) -> Bands:
    return calibrated_bands(table.counts, table.scored, coverage)
