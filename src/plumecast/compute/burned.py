"""How much of every cell of a fire has burned by when: the burned share φ(t). Arrays only.

The age of a cell, its mean time since ignition f, is a mean over its area. So df/dt = φ, and f is
the integral of φ since ignition. φ follows from arrival times at a fine resolution
(`shares_of_arrival`), or from several maps of f (`shares_of`).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, clip, like
from plumecast.compute.linalg import integration, interpolation


@dataclass(frozen=True, slots=True)
class Shares:
    """Burned shares (M, K, ny, nx) at the hours (M, K), linear in between."""

    hours: Array  # on the host, ascending from 0
    shares: Array

    @classmethod
    def since_ignition(cls, hours: Array, shares: Array) -> Shares:
        """Shares (M, K, ny, nx) at the hours (M, K) after ignition, when nothing had burned."""
        xp = array_namespace(shares)
        return cls(
            np.concatenate([np.zeros_like(hours[:, :1]), hours], axis=1),
            xp.concat([xp.zeros_like(shares[:, :1, ...]), shares], axis=1),
        )

    def by(self, hours: Array) -> Array:
        """(n, M) hours → (n, M, ny, nx) shares."""
        return self._combined(interpolation(self.hours, np.asarray(hours).T))

    def ages(self, hours: Array) -> Array:
        """(n, M) hours → (n, M, ny, nx) ages: the integral of the share since ignition."""
        return self._combined(integration(self.hours, np.asarray(hours, dtype=np.float64).T))

    def _combined(self, weights: Array) -> Array:
        """(M, n, K) weights of the nodes → (n, M, ny, nx)."""
        xp = array_namespace(self.shares)
        count, nodes, *grid = self.shares.shape
        flat = xp.reshape(self.shares, (count, nodes, -1))
        made = xp.permute_dims(like(weights.astype(np.float32), self.shares) @ flat, (1, 0, 2))
        return xp.reshape(made, (*made.shape[:2], *grid))


def shares_of(hours: Array, ages: Array) -> Shares:
    """Burned shares of (M, K, ny, nx) ages at the hours (M, K), which rise from 0.

    The mean share between two snapshots holds at the middle of the two. It is extrapolated to the
    last snapshot, and never falls.
    """
    xp = array_namespace(ages)
    hours = np.asarray(hours, dtype=np.float64)
    begin = np.concatenate([np.zeros_like(hours[:, :1]), hours], axis=1)
    gaps = np.diff(begin, axis=1)
    before = xp.concat([xp.zeros_like(ages[:, :1, ...]), ages[:, :-1, ...]], axis=1)
    spread = np.where(gaps > 0.0, gaps, np.inf).astype(np.float32)[..., None, None]
    means = clip((ages - before) / like(spread, ages), 0.0, 1.0)
    middles = np.concatenate([np.zeros_like(hours[:, :1]), begin[:, :-1] + 0.5 * gaps], axis=1)
    shares = xp.concat([xp.zeros_like(means[:, :1, ...]), means], axis=1)
    apart = middles[:, -1] - middles[:, -2]
    ahead = 0.5 * gaps[:, -1] / np.where(apart > 0.0, apart, np.inf)
    ahead = like(ahead.astype(np.float32)[:, None, None, None], ages)
    last, second = shares[:, -1:, ...], shares[:, -2:-1, ...]
    end = clip(last + ahead * (last - second), 0.0, 1.0)
    rising = [shares[:, :1, ...]]
    for number in range(1, shares.shape[1]):
        rising.append(xp.maximum(rising[-1], shares[:, number : number + 1, ...]))
    shares = xp.concat([*rising, xp.maximum(rising[-1], end)], axis=1)
    return Shares(np.concatenate([middles, hours[:, -1:]], axis=1), shares)


CANDIDATES = 8
"""Hours per node that nodes are chosen from: so many evenly in time, and evenly in burned area."""

SMALL_SHARE, SMALL_ERROR = 2e-3, 2e-3
"""Of all that has burned by the end of a gap: the least area that errors are divided by, and an
error for an hour, below which no further node is needed."""


def shares_of_arrival(
    arrival: Array, target: Array, part: Array, cells: int, *, ends: Array, most: int
) -> tuple[Array, Array]:
    """Burned shares (n, most, cells) at `most` hours (n, most) in each gap up to the `ends` (n,).

    `part` (p,) of the target cells `target` (p,) burn at the hours `arrival` (p,). The first gap
    begins at hour 0, where the share is 0; what burns at once is spread until the next node. The
    last node of a gap is its end. Further ones are added where interpolation between the nodes so
    far is worst: by the area that is in error, integrated over time, and divided by the root of the
    area that has burned, so that the first hours of a fire that grows large are not neglected.
    Hours are NaN where fewer suffice. A gap does not depend on what burns later.
    """
    ends = np.maximum(np.asarray(ends, dtype=np.float64), SHORTEST)
    hours = np.full((ends.size, most), np.nan)
    made = np.zeros((ends.size, most, cells), dtype=np.float32)
    even = np.linspace(0.0, 1.0, CANDIDATES * most)
    gap_of = np.searchsorted(ends, arrival)
    before, begin = np.zeros(cells), 0.0
    for row, end in enumerate(ends.tolist()):
        own = np.flatnonzero(gap_of == row)
        by_area = np.quantile(arrival[own], even) if own.size else even[:0]
        times = np.unique(np.concatenate([begin + even * (end - begin), by_area, [begin, end]]))
        burned, place = np.unique(target[own], return_inverse=True)
        index = np.searchsorted(times, arrival[own]) * burned.size + place
        grown = np.bincount(index, part[own], minlength=times.size * burned.size)
        shares = before[burned] + np.cumsum(grown.reshape(times.size, burned.size), axis=0)
        area = before.sum() + (shares - before[burned]).sum(axis=1)
        shares[0] = before[burned]  # what burns at hour 0 is released after it
        scale = np.maximum(area, SMALL_SHARE * area[-1]) * area[-1]
        nodes = _gap_nodes(times, shares, scale, most)
        hours[row, : nodes.size] = times[nodes]
        before[burned] = shares[-1]
        made[row, : nodes.size] = np.minimum(before, 1.0)
        made[row, : nodes.size, burned] = np.minimum(shares[nodes], 1.0).T
        begin = end
    return hours, made


SHORTEST = 1e-3
"""Hours that a fire lasts at least."""


def _gap_nodes(times: Array, shares: Array, scale: Array, most: int) -> Array:
    """Indices, ascending, of at most `most` of the times in a gap; the last one is its end.

    Areas in error are divided by the root of `scale`.
    """
    chosen, open_gaps = [times.size - 1], list[tuple[float, int, int, int]]()
    scale = np.sqrt(np.where(scale > 0.0, scale, 1.0))

    def consider(begin: int, end: int) -> None:
        if end - begin > 1:
            inner = slice(begin + 1, end)
            along = (times[inner] - times[begin]) / (times[end] - times[begin])
            between = shares[begin] + along[:, None] * (shares[end] - shares[begin])
            error = np.abs(between - shares[inner]).sum(axis=1) / scale[inner]
            lasting = float(error @ (times[begin + 2 : end + 1] - times[begin : end - 1])) / 2.0
            heappush(open_gaps, (-lasting, begin, begin + 1 + int(error.argmax()), end))

    consider(0, times.size - 1)
    while open_gaps and len(chosen) < most:
        error, begin, worst, end = heappop(open_gaps)
        if -error < SMALL_ERROR:
            break
        chosen.append(worst)
        consider(begin, worst)
        consider(worst, end)
    return np.sort(chosen)
