"""Fires along time: the history of a snapshot, and blocks of whole fires.

When smoke was released follows from how much of each cell had burned by when. A snapshot may hold
this along the dimension `history` (burned shares at some hours): from readers that know the arrival
times, or for snapshots that are predicted without the others of their fire. Otherwise it follows
from all snapshots of the fire.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, HISTORY, HISTORY_HOURS, HISTORY_SHARE, SNAPSHOT
from plumecast.compute.arrays import Array, is_numpy_array
from plumecast.compute.blocks import row_blocks
from plumecast.compute.burned import SHORTEST, Shares, shares_of
from plumecast.data.conditions.covariates import read_scalar

LABELS = ("fire_id", "hours")


def fire_blocks(fires: xr.Dataset, size: int) -> Iterator[slice | Array]:
    """Rows in blocks of about `size` snapshots that do not split a fire, in the order of the rows.

    A fire with more snapshots than `size` is a block of its own. Fires whose snapshots do not
    follow one another are split.
    """
    count = fires.sizes[SNAPSHOT]
    if "fire_id" not in fires.variables or fires["fire_id"].dims != (SNAPSHOT,):
        yield from row_blocks(count, size)
        return
    names = fires["fire_id"].values
    ends = np.append(np.flatnonzero(names[1:] != names[:-1]) + 1, count)
    begin = 0
    while begin < count:
        fitting = ends[(ends > begin) & (ends <= begin + size)]
        end = int(fitting[-1] if fitting.size else ends[ends > begin][0])
        yield slice(begin, end)
        begin = end


def whole_fires(names: Array, size: int) -> Iterator[Array]:
    """Rows in blocks of at least one fire, which hold all snapshots of each of their fires.

    >>> [rows.tolist() for rows in whole_fires(np.array(["b", "a", "b", "c"]), 2)]
    [[0, 2], [1, 3]]
    """
    _, first, member = np.unique(names.astype(str), return_index=True, return_inverse=True)
    order = np.argsort(first[member], kind="stable")
    ends = np.flatnonzero(np.append(np.diff(first[member][order]) != 0, True)) + 1
    begin = 0
    for number, end in enumerate(ends):
        if number + 1 == ends.size or ends[number + 1] - begin > size:
            yield order[begin:end]
            begin = int(end)


def by_fire(fires: xr.Dataset) -> xr.Dataset:
    """The snapshots of each fire one after the other, so that blocks do not split a fire.

    Snapshots that follow one another already stay as they are.
    """
    if "fire_id" not in fires.variables or fires["fire_id"].dims != (SNAPSHOT,):
        return fires
    names = fires["fire_id"].values
    runs = int((names[1:] != names[:-1]).sum()) + 1
    if names.size == 0 or runs == np.unique(names).size:
        return fires
    (order,) = whole_fires(names, names.size)
    made = fires.isel({SNAPSHOT: order})
    made.encoding = fires.encoding  # the files that it was opened from
    return made


def take_final(fires: xr.Dataset, rows: Array, *, history: bool) -> xr.Dataset:
    """Some snapshots; with `history` they hold that of their fires, which the others tell, too.

    Stores hold the snapshots of a fire one after the other, so that only neighbours are looked at.
    """
    block = fires.isel({SNAPSHOT: rows})
    known = FIRE in fires and set(LABELS) <= set(fires.variables)
    if not history or not known or fires["hours"].dims != (SNAPSHOT,):
        return block
    names = fires["fire_id"].values
    runs = np.cumsum(np.append(False, names[1:] != names[:-1]))  # number of the fire of every row
    wanted = np.asarray(rows)
    needed = np.flatnonzero(np.isin(runs, runs[wanted]))
    told = Histories.of(fires.isel({SNAPSHOT: needed}))
    by_row: dict[int, Array] = {}
    for own in np.split(np.arange(needed.size), np.flatnonzero(np.diff(runs[needed])) + 1):
        ordered = own[np.argsort(told.hours[own], kind="stable")]
        by_row |= dict(zip(needed[ordered].tolist(), told.of_fire(ordered), strict=True))
    return with_history(block, [told.read(by_row[row]) for row in wanted.tolist()])


GROWTH_TOLERANCE = 0.1
"""Ages of one fire may fall, or grow faster than time, by this share of the time between two
snapshots: WRF moves arrival times a little. More means that two fires have one name."""

AGE_TOLERANCE, SMALL_AGE = 0.1, 0.02
"""Shares that a fire holds are used if the ages that they give are right but for this part of the
sum over each map, and this part of the sum over its oldest. Of 68 whole fires, simulated or of WRF,
with snapshots every 1 to 6 h, none needs more than .6 of this; their last snapshots alone need 1.1
to 6.7 times as much, because they hold nothing of the hours before the snapshot before."""


@dataclass(frozen=True, slots=True)
class Histories:
    """What tells the histories of fires: maps of their snapshots, and the shares that these hold.

    Numbers below M are those of maps, the others of burned shares.
    """

    ages: Array  # (M, ny, nx), or an object that gives them when indexed by rows
    names: Array  # (M,)
    times: Array  # of all numbers
    held: Sequence[Array]  # M arrays of the numbers of shares
    whole: Array  # (M,) whether a snapshot holds the history since ignition (`with_history`)
    shares: xr.DataArray | None = None  # (M, history, ny, nx)
    places: Array | None = None  # (n, 2) rows and nodes of the shares

    @classmethod
    def of(
        cls, data: xr.Dataset, ages: Array | None = None, grid: Sequence[Hashable] | None = None
    ) -> Histories:
        """Those of snapshots with fire_id and hours; `ages` (M, ny, nx) are by default read."""
        grid = [dim for dim in data[FIRE].dims if dim != SNAPSHOT] if grid is None else grid
        ages = data[FIRE].transpose(SNAPSHOT, *grid).values if ages is None else ages
        count = ages.shape[0]
        names, hours = (read_scalar(data, name, None) for name in LABELS)
        hours = hours.astype(np.float64)
        held = data.get(HISTORY_SHARE, xr.DataArray())
        lead = [dim for dim in held.dims if dim not in (HISTORY, *grid)]
        sizes = [held.sizes.get(dim) for dim in (*lead, *grid)]
        if HISTORY not in held.dims or sizes != list(ages.shape):
            nothing = [np.empty(0, dtype=np.int64)] * count
            return cls(ages, names.astype(str), hours, nothing, np.zeros(count, dtype=bool))
        known = data[HISTORY_HOURS].transpose(*lead, HISTORY).values.astype(np.float64)
        rows, nodes = np.nonzero(known > 0.0)  # NaN where there is none
        return cls(
            ages,
            names.astype(str),
            np.concatenate([hours, known[rows, nodes]]),
            np.split(count + np.arange(rows.size), np.searchsorted(rows, np.arange(1, count))),
            (known == 0.0).any(axis=1),
            held.transpose(*lead, HISTORY, *grid),
            np.stack([rows, nodes], axis=1),
        )

    @property
    def hours(self) -> Array:
        """(M,) hours of the snapshots."""
        return self.times[: len(self.held)]

    def of_fire(self, rows: Array) -> list[Array]:
        """Numbers, ascending in time, that tell each of the rows of a name its history.

        They are the shares that the fire holds if these agree with its maps, else all its maps,
        else none: a single map is read by itself. Rows ascend in time. If they cannot be of one
        fire, with the same hour or with ages that do not grow with time, each stands alone.
        """
        whole = rows[self.whole[rows]]
        if whole.size:  # one may hold it for the others, too
            return [self._distinct(self.held[row if self.whole[row] else whole[0]]) for row in rows]
        if not self._are_one_fire(rows):
            return [self._agreeing(rows[k : k + 1]) for k in range(rows.size)]
        shares = self._agreeing(rows)
        maps = rows if rows.size > 1 else rows[:0]
        return [shares if shares.size else self._distinct(maps)] * rows.size

    def _agreeing(self, rows: Array) -> Array:
        """Numbers of the shares that rows of one fire hold; none if they give other ages."""
        numbers = self._distinct(np.concatenate([self.held[row] for row in rows]))
        if not numbers.size:
            return numbers
        maps = self[rows]
        ages = np.asarray(self.read(numbers).ages(self.hours[rows][:, None])[:, 0])
        wrong, right = (np.abs(part).sum(axis=(1, 2)) for part in (ages - maps, maps))
        slack = AGE_TOLERANCE * right + SMALL_AGE * right.max()
        return numbers if (wrong <= slack).all() else numbers[:0]

    def _are_one_fire(self, rows: Array) -> bool:
        """Whether rows, ascending in time, can be snapshots of one fire."""
        gaps = np.diff(self.hours[rows])
        if (gaps <= 0.0).any():
            return False
        if is_numpy_array(self.ages):  # stored fires were checked when they were written
            for before, after, gap in zip(rows[:-1], rows[1:], gaps, strict=True):
                grown = self.ages[after] - self.ages[before]
                slack = GROWTH_TOLERANCE * gap
                if grown.min() < -slack or grown.max() > gap + slack:
                    return False
        return True

    def _distinct(self, numbers: Array) -> Array:
        """Numbers, ascending in time, without those within seconds before another one."""
        numbers = numbers[np.argsort(self.times[numbers], kind="stable")]
        return numbers[np.diff(self.times[numbers], append=np.inf) > SHORTEST]

    def read(self, numbers: Array) -> Shares:
        """The history (1, K, ny, nx) that maps or shares tell; without any, ignition alone."""
        if not numbers.size:
            return Shares(np.zeros((1, 1)), np.zeros((1, 1, *self.ages.shape[1:]), np.float32))
        is_maps = numbers[0] < len(self.held)
        told = shares_of if is_maps else Shares.since_ignition
        return told(self.times[numbers][None], self[numbers][None])

    def __getitem__(self, numbers: Array) -> Array:
        """Maps and shares by their numbers, maps first."""
        count = len(self.held)
        of_maps, of_shares = numbers[numbers < count], numbers[numbers >= count] - count
        parts = [np.asarray(self.ages[of_maps], dtype=np.float32)] if of_maps.size else []
        if of_shares.size:
            assert self.shares is not None
            assert self.places is not None
            places = self.places[of_shares]
            rows, place = np.unique(places[:, 0], return_inverse=True)
            loaded = self.shares.isel({self.shares.dims[0]: rows}).values
            parts.append(loaded[place, places[:, 1]].astype(np.float32, copy=False))
        return np.concatenate(parts)


def with_history(block: xr.Dataset, history: Sequence[Shares | None]) -> xr.Dataset:
    """Snapshots that hold how much of their fires had burned by when, from ignition on.

    A first node at hour 0 tells that the history is whole. Others of the fire, with None, share it.
    """
    most = max((own.hours.size for own in history if own is not None), default=0)
    grid = tuple(dim for dim in block[FIRE].dims if dim != SNAPSHOT)
    shape = tuple(block.sizes[dim] for dim in grid)
    shares = np.zeros((len(history), most, *shape), dtype=np.float32)
    hours = np.full((len(history), most), np.nan)
    for row, own in enumerate(history):
        if own is not None:
            hours[row, : own.hours.size], shares[row, : own.hours.size] = own.hours, own.shares[0]
    return block.drop_dims(HISTORY, errors="ignore").assign(
        {
            HISTORY_SHARE: ((SNAPSHOT, HISTORY, *grid), shares, {"units": "1"}),
            HISTORY_HOURS: ((SNAPSHOT, HISTORY), hours, {"units": "h"}),
        }
    )
