"""The calibration table of a surrogate: cells by predicted and observed smoke, for each group.

The rows of the table, each pooled with its neighbours by the residual (`smoothed`), give for every
bin k of predicted smoke g the ratio ρ_k = E[observed] / g, and in the first bin, where nothing is
predicted, the mean m₀ of observed smoke (`expected_smoke`). Every cell of every group has the same
weight, so that for fires like those of the calibration the mean of the expected smoke is the mean
of the observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, bincount, device_of, like
from plumecast.compute.linalg import interpolation
from plumecast.scores.sampling import check_coverage
from plumecast.surrogate.error_bars.bands import (
    Bands,
    calibrated_bands,
    fire_promises,
    fire_thresholds,
    smoothed,
)
from plumecast.surrogate.error_bars.counting import (
    BINS,
    SCORE_BINS,
    Cells,
    bin_numbers,
    group_weights,
    positions,
    score_edges,
    smoke_at,
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


@lru_cache(maxsize=80)
def _bands(table: Calibration, number: int | None, coverage: float) -> Bands:
    """The bands of one time since ignition by its number, or of all times."""
    counts = table.counts if number is None else table.times[number].counts
    return calibrated_bands(counts, table.scored, coverage)


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
    sets: str = BY_FIRE  # rule of certain and possible smoke
    times: tuple[TimeTable, ...] = ()  # the same by time since ignition, ascending

    def bands(self, coverage: float) -> Bands:
        """The bands that contain a share `coverage` of the scored cells of an unseen group."""
        check_coverage(coverage, "interval")
        return _bands(self, None, float(coverage))

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
                low, high = ends(_bands(self, number, float(coverage)))
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
        edges = score_edges() if self.detects else self.edges
        certain, possible = fire_thresholds(self.scores, edges, 1.0 - coverage)
        return max(certain, possible), possible

    def promised(self, coverage: float) -> float:
        """The share of scored cells within the bands that can be promised: conformal risk control.

        1 − (n ℓ + 1) / (n + 1), for a group exchangeable with these n. ℓ is the mean loss of the
        groups; the worst loss of the unknown group is 1.
        """
        lost, count = self.bands(coverage).lost, self.smoky_groups
        return 1.0 - (count * lost + 1.0) / (count + 1.0)

    def promised_footprint(self, coverage: float) -> tuple[float, float]:
        """Shares of new fires that can be promised for certain and for possible smoke."""
        return fire_promises(self.scores, 1.0 - coverage)

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
        if self.sets != BY_FIRE:
            raise PlumecastError(f"error_bars.sets={self.sets!r} is unknown to this plumecast")
        check_groups(count, self.by)


def make_calibration(cells: Cells) -> Calibration:
    """The calibration table of counted cells; raises if too few groups have smoke."""
    groups, bins = tuple(sorted(cells.counts)), cells.bins
    smoke, scores = zip(*(cells.counts[group] for group in groups), strict=True)
    times = (
        TimeTable(part.hours / part.snapshots, part.snapshots, _stacked(part.counts, groups))
        for _, part in sorted(cells.times.items())
    )
    table = Calibration(
        groups=groups,
        by=bins.by,
        tau=bins.tau,
        edges=bins.edges,
        counts=np.stack(smoke).astype(np.int32),
        scores=np.stack(scores).astype(np.int32),
        detects=bins.detects,
        times=tuple(
            time
            for time in times
            if (time.counts[:, 1:, 1:].sum(axis=(1, 2)) > 0).sum() >= FEWEST  # have smoke
        ),
    )
    check_groups(table.smoky_groups, bins.by)
    return table


def _stacked(counts: Mapping[str, Array], groups: Sequence[str]) -> Array:
    """(G, K, K) counts of groups; 0 for those that have none."""
    none = np.zeros((BINS, BINS), dtype=np.int32)
    return np.stack([counts.get(group, none) for group in groups]).astype(np.int32)


def join_cells(table: Calibration, cells: Cells) -> Calibration:
    """The table with the cells of further groups, counted in its own bins.

    Those of a time since ignition are added to the nearest time of the table.
    """
    new = sorted(cells.counts)
    smoke, scores = zip(*(cells.counts[group] for group in new), strict=True)
    hours = np.array([time.hour for time in table.times])
    added = [_stacked({}, new) for _ in table.times]
    for part in cells.times.values() if table.times else ():
        nearest = int(np.argmin(np.abs(hours - part.hours / part.snapshots)))
        added[nearest] += _stacked(part.counts, new)
    return replace(
        table,
        groups=(*table.groups, *new),
        counts=np.concatenate([table.counts, np.stack(smoke).astype(np.int32)]),
        scores=np.concatenate([table.scores, np.stack(scores).astype(np.int32)]),
        times=tuple(
            replace(time, counts=np.concatenate([time.counts, more]))
            for time, more in zip(table.times, added, strict=True)
        ),
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


PARTS = 64
"""Largest number of parts that are left out in turn; more groups are put together in parts."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Coefficients of all groups (number 0), and with each of R parts of the groups left out."""

    edges: Array  # (K − 1,) of the bins
    groups: int  # of the calibration that have smoke
    ratio: Array  # (1 + R, K) ρ_k; m₀ in the first bin
    log: Array  # (1 + R, K) E[ln(observed + 1)] − ln(predicted + 1); in the first bin without that
    above: Array  # (1 + R, K, K + 1) P(observed position > 0 … K)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the spread over the parts."""
        return float(self.ratio.shape[0] - 2)


@dataclass(frozen=True, slots=True)
class ExpectedBlock:
    """Statistics expected of a block of fields (m, N), in the order of `expected_block`."""

    fields: list[Array]  # V times (m, N)
    changes: Array  # (V, R, N) what the sum over the block changes if a part is left out


def expected_smoke(calibration: Calibration, most: int = PARTS) -> Expected:
    """The coefficients of a calibration, with at most `most` parts (at least 2)."""
    counts = calibration.counts
    each = smoothed(counts, np.ones(len(counts)))
    part = np.arange(len(counts)) % max(2, min(most, PARTS, len(counts)))
    parts = np.stack([each[part == number].sum(axis=0) for number in range(part.max() + 1)])
    rows = parts.sum(axis=0) - np.concatenate([np.zeros_like(parts[:1]), parts])
    total = rows.sum(axis=-1, keepdims=True)
    shares = np.divide(rows, total, out=np.zeros_like(rows), where=total > 1e-9)
    shares = np.where(total > 1e-9, shares, shares[0])  # a row of one part only has no spread
    middle = smoke_at(np.arange(BINS) + 0.5, calibration.edges)
    observed = np.append(0.0, middle[1:])
    ratio = shares @ observed / np.append(1.0, middle[1:])
    log = shares @ np.log1p(observed) - np.log1p(observed)
    above = np.concatenate([shares[..., ::-1].cumsum(axis=-1)[..., ::-1], 0.0 * total], axis=-1)
    return Expected(calibration.edges, calibration.smoky_groups, ratio, log, above)


def expected_block(
    expected: Expected,
    smoke: Array,
    thresholds: tuple[float, ...],
    factors: Array | None = None,
    *,
    read: Array | None = None,
) -> ExpectedBlock:
    """What is expected of ln(g + 1), of the quantity q = a g, and of q > each threshold.

    The smoke g (m, N) is predicted and on any device, where the results stay; `factors` a (m,) on
    the host turn it, or `read` in its place, into the quantity. Coefficients are interpolated
    between the middles of the bins, but not into the first one.
    """
    scale = np.ones(smoke.shape[0]) if factors is None else np.asarray(factors, dtype=np.float64)
    cells = _Cells.of(smoke, expected.edges)
    log = cells.linear(
        expected.log, np.ones_like(scale), base=array_namespace(smoke).log1p(cells.smoke)
    )
    cells = cells if read is None else _Cells.of(read, expected.edges)
    mean = cells.linear(expected.ratio, scale, times=cells.smoke)
    found = [log, mean, *(cells.exceeding(expected, scale, level) for level in thresholds)]
    fields, changes = zip(*found, strict=True)
    return ExpectedBlock(list(fields), array_namespace(smoke).stack(changes))


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a block with predicted smoke, and the two bins that each lies between."""

    shape: tuple[int, int]  # (m, N)
    index: Array  # (n,) in the flat block
    row: Array  # (n,)
    column: Array  # (n,)
    smoke: Array  # (n,)
    low: Array  # (n,) number of the lower bin, from 1
    share: Array  # (n,) of the bin above it

    @classmethod
    def of(cls, smoke: Array, edges: Array) -> _Cells:
        xp = array_namespace(smoke)
        count, cells = int(smoke.shape[0]), int(smoke.shape[1])
        flat = xp.reshape(smoke, (-1,))
        index = xp.nonzero(flat > float(edges[0]))[0]
        own = xp.astype(xp.take(flat, index, axis=0), xp.float64)
        place = xp.clip(positions(own, edges) - 0.5, 1.0, BINS - 1.0)
        low = xp.clip(xp.astype(place, xp.int64), None, BINS - 2)
        row = index // cells
        column = index - cells * row
        return cls((count, cells), index, row, column, own, low, place - low)

    def linear(
        self, table: Array, scale: Array, *, times: Array | float = 1.0, base: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """Field base + scale · times · table[0], and the changes of its sum for the other tables.

        Cells without predicted smoke have scale · table[0, 0]. `table` and `scale` are on the host.
        """
        xp = array_namespace(self.smoke)
        by_row, first = like(scale, self.smoke), like(table[0], self.smoke)
        weight = xp.take(by_row, self.row, axis=0) * times
        lower, upper = (xp.take(first, self.low + step, axis=0) for step in (0, 1))
        field = xp.repeat(by_row * float(table[0, 0]), self.shape[1])
        field[self.index] = base + weight * (lower * (1.0 - self.share) + upper * self.share)
        return xp.reshape(field, self.shape), self._changes(table[1:] - table[0], weight, by_row)

    def _changes(self, tables: Array, weight: Array, scale: Array) -> Array:
        """(R, N) sums over the rows of tables (R, K) at the cells, times their weights."""
        xp = array_namespace(self.smoke)
        count = self.shape[1]
        index = self.column * BINS + self.low
        sums = bincount(index, count * BINS, weight * (1.0 - self.share))
        sums = sums + bincount(index + 1, count * BINS, weight * self.share)
        by_bin = xp.reshape(sums, (count, BINS))
        smoky = bincount(self.column, count, xp.take(scale, self.row, axis=0))
        by_bin[:, 0] = xp.sum(scale) - smoky
        return like(tables, self.smoke) @ xp.matrix_transpose(by_bin)

    def exceeding(self, expected: Expected, scale: Array, threshold: float) -> tuple[Array, Array]:
        """P(observed > threshold / scale), and its changes; linear between the edges of bins."""
        level = np.full(scale.shape, np.inf)
        np.divide(threshold, scale, out=level, where=scale > 0.0)
        edge = np.clip(positions(np.minimum(level, 1e300), expected.edges), 1.0, float(BINS))
        first = np.minimum(edge.astype(np.int64), BINS - 1)
        xp, where = array_namespace(self.smoke), device_of(self.smoke)
        field = xp.zeros(self.shape, dtype=xp.float64, device=where)
        left_out = expected.ratio.shape[0] - 1
        changes = xp.zeros((left_out, self.shape[1]), dtype=xp.float64, device=where)
        for number in np.unique([first, first + 1]):
            share = np.clip(1.0 - np.abs(edge - number), 0.0, 1.0)
            if share.any():
                part, change = self.linear(expected.above[:, :, number], share)
                field += part
                changes += change
        return field, changes
