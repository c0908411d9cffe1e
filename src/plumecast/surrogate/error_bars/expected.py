"""Observed smoke to expect given predicted smoke, from the calibration table. Arrays only.

The rows of the table, each pooled with its neighbours by the residual (`smoothed`), give for every
bin k of predicted smoke g the ratio ρ_k = E[observed] / g, and in the first bin, where nothing is
predicted, the mean m₀ of observed smoke. Every cell of every group has the same weight, so that for
fires like those of the calibration the mean of the expected smoke is the mean of the observed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, bincount, device_of, like
from plumecast.surrogate.error_bars.bands import smoothed
from plumecast.surrogate.error_bars.calibration import Calibration
from plumecast.surrogate.error_bars.counting import BINS, positions, smoke_at

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
