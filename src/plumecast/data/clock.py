"""Fires along time: the history of a snapshot, and blocks of whole fires.

When smoke was released follows from how much of each cell had burned by when. A snapshot may hold
this along the dimension `history` (burned shares at some hours): from readers that know the arrival
times, or for snapshots that are predicted without the others of their fire. Otherwise it follows
from all snapshots of the fire. What is held counts only if it agrees with the maps: snapshots are
left out, and maps are edited.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, equal_interval, recorded_interval
from plumecast.base.names import FIRE, HISTORY, HISTORY_HOURS, HISTORY_SHARE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, is_numpy_array
from plumecast.compute.blocks import row_blocks
from plumecast.compute.burned import SHORTEST, Shares, shares_of
from plumecast.compute.dose import previous_snapshot
from plumecast.data.covariates import read_scalar
from plumecast.data.lazy_store import lazy_variable
from plumecast.data.schema import further_outputs

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
    needed = np.flatnonzero(np.isin(runs, runs[rows]))
    told = Histories.of(fires.isel({SNAPSHOT: needed}))
    numbers = told.of_every()
    places = np.searchsorted(needed, np.asarray(rows)).tolist()
    return with_history(block, [told.read(numbers[place]) for place in places])


GROWTH_TOLERANCE = 0.1
"""Ages of one fire may fall, or grow faster than time, by this share of the time between two
snapshots: WRF moves arrival times a little. More means that two fires have one name."""

AGE_TOLERANCE, NODE_TOLERANCE = 0.1, 0.25
"""Shares that a fire holds are used if the ages that they give at each snapshot are wrong, on
average over what has burned, by at most this part of the age, and this part of the longest time
between two shares of a snapshot: cells that burn at once between two are wrong by that. Whole fires
of the simulator and of WRF, with snapshots every 1 to 6 h, need at most .6 of this, last snapshots
alone .7 to 6.7, and these at most .8 once they are completed. Fires moved by two cells need 1.3."""


@dataclass(frozen=True, slots=True)
class Histories:
    """What tells the histories of fires: maps of their snapshots, and the shares that these hold.

    Numbers below M are those of maps. Next are those of the shares, and last two for each snapshot
    that stand for the shares of snapshots that are missing before it.
    """

    ages: Array  # (M, ny, nx), or an object that gives them when indexed by rows
    names: Array  # (M,)
    before: Array  # (M,) rows of the snapshots before of the fire; −1 for none
    times: Array  # of all numbers
    held: Sequence[Array]  # M arrays of the numbers of shares
    whole: Array  # (M,) whether a snapshot holds the history since ignition (`with_history`)
    shares: xr.DataArray  # (M, history, ny, nx)
    places: Array  # (n, 2) rows and nodes of the shares

    @classmethod
    def of(
        cls, data: xr.Dataset, ages: Array | None = None, grid: Sequence[Hashable] | None = None
    ) -> Histories:
        """Those of snapshots with fire_id and hours; `ages` (M, ny, nx) are by default read."""
        grid = [dim for dim in data[FIRE].dims if dim != SNAPSHOT] if grid is None else grid
        ages = data[FIRE].transpose(SNAPSHOT, *grid).values if ages is None else ages
        names, hours = (read_scalar(data, name, None) for name in LABELS)
        names, hours, count = names.astype(str), hours.astype(np.float64), ages.shape[0]
        shares, nodes_at = data.get(HISTORY_SHARE, xr.DataArray()), np.empty((count, 0))
        lead = [dim for dim in shares.dims if dim not in (HISTORY, *grid)]
        sizes = [shares.sizes.get(dim) for dim in (*lead, *grid)]
        if HISTORY in shares.dims and sizes == list(ages.shape):
            shares = shares.transpose(*lead, HISTORY, *grid)
            nodes_at = data[HISTORY_HOURS].transpose(*lead, HISTORY).values.astype(np.float64)
        rows, nodes = np.nonzero(nodes_at > 0.0)  # NaN where there is none
        held = np.split(count + np.arange(rows.size), np.searchsorted(rows, np.arange(1, count)))
        times = np.concatenate([hours, nodes_at[rows, nodes]])
        before = previous_snapshot(names, hours)
        for row in np.flatnonzero(before >= 0).tolist():
            gap = hours[row] - hours[before[row]]
            possible = gap > 0.0  # of two fires with one name, hours are the same,
            if is_numpy_array(ages):  # stored fires were checked when they were written
                grown, slack = ages[row] - ages[before[row]], GROWTH_TOLERANCE * gap
                possible &= grown.min() >= -slack and grown.max() <= gap + slack  # or ages fall
            before[row] = before[row] if possible else -1
        begin = np.where(before >= 0, hours[before], 0.0)
        first = np.array([times[own[0]] if own.size else 0.0 for own in held])
        filled = begin[:, None] + (first - begin)[:, None] * np.array([1.0, 2.0]) / 3.0
        return cls(
            ages,
            names,
            before,
            np.concatenate([times, filled.ravel()]),
            held,
            (nodes_at == 0.0).any(axis=1),
            shares,
            np.stack([rows, nodes], axis=1),
        )

    @property
    def hours(self) -> Array:
        """(M,) hours of the snapshots."""
        return self.times[: len(self.held)]

    def of_every(self) -> list[Array]:
        """The numbers that tell each snapshot its history (`of_fire`)."""
        order, made = np.lexsort((self.hours, self.names)), dict[int, Array]()
        names = self.names[order]
        for rows in np.split(order, np.flatnonzero(names[1:] != names[:-1]) + 1):
            made |= dict(zip(rows.tolist(), self.of_fire(rows), strict=True))
        return [made[row] for row in range(order.size)]

    def of_fire(self, rows: Array) -> list[Array]:
        """Numbers, ascending in time, that tell each of the rows of a name its history.

        They are the shares that the fire holds, if need be completed, if these agree with its maps;
        else all its maps; else none, so that a single map is read by itself. Rows ascend in time.
        If they cannot be of one fire, each stands alone.
        """
        one = not (self.before[rows[1:]] != rows[:-1]).any()
        if self.whole[rows].all():
            whole = [self._distinct(self.held[row]) for row in rows]
            hours = [self.times[own] for own in whole]
            shared = one and all(np.array_equal(own, hours[0]) for own in hours)
            return [whole[0]] * rows.size if shared else whole
        if not one:
            return [self._agreeing(rows[k : k + 1]) for k in range(rows.size)]
        shares = self._agreeing(rows)
        maps = rows if rows.size > 1 else rows[:0]
        return [shares if shares.size else self._distinct(maps)] * rows.size

    def _agreeing(self, rows: Array) -> Array:
        """Numbers of the shares that rows of one fire hold, as they are or completed.

        None if the ages that they give are not those of the maps.
        """
        rows = np.sort(rows)
        held = self._distinct(np.concatenate([self.held[row] for row in rows]))
        if not held.size:
            return held
        maps, hours = self[rows], self.hours[rows][:, None]
        between = max(np.diff(self.times[self.held[row]]).max(initial=0.0) for row in rows)
        holding = np.array([row for row in rows if self.held[row].size])
        filled = self._first_filled + 2 * holding[:, None] + np.arange(2)
        for numbers in (held, self._distinct(np.append(held, filled))):
            told = self.read(numbers)
            slack = AGE_TOLERANCE * maps + NODE_TOLERANCE * between * told.by(hours)[:, 0]
            wrong = np.abs(told.ages(hours)[:, 0] - maps)
            if (wrong.sum(axis=(1, 2)) <= slack.sum(axis=(1, 2))).all():
                return numbers
        return held[:0]

    @property
    def _first_filled(self) -> int:
        """The first number of shares that are filled in, two before those of each snapshot."""
        return len(self.held) + len(self.places)

    def _filled(self, row: int) -> Array:
        """(2, ny, nx) shares after the snapshot before, and before the first that `row` holds.

        The age of a cell at the end of this gap tells how long before the end it burned on average.
        All of it burns evenly within a third of the gap about this hour.
        """
        own, before = self.held[row], self.before[row]
        earlier = self.held[before][-1:] if before >= 0 else own[:0]
        shares = self[own]
        start = self[earlier][0] if earlier.size else np.zeros_like(shares[0])
        begin, end = (self.hours[before] if before >= 0 else 0.0), self.times[own[0]]
        later = Shares(self.times[own][None], shares[None]).ages(self.hours[[row]][:, None])[0, 0]
        aged = self[np.array([row])][0] - later - (end - begin) * start
        aged = aged - self[np.array([before])][0] if before >= 0 else aged
        grown = shares[0] - start
        since = aged / np.where(grown > 0.0, grown, np.inf)  # hours before the end
        part = 3.0 * since / max(end - begin, SHORTEST) - np.array([1.5, 0.5])[:, None, None]
        return np.asarray(start + grown * np.clip(part, 0.0, 1.0))

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
        """Maps and shares by their numbers."""
        count, first = len(self.held), self._first_filled
        made = np.empty((numbers.size, *self.ages.shape[1:]), dtype=np.float32)
        of_maps, filled = numbers < count, numbers >= first
        if of_maps.any():
            made[of_maps] = self.ages[numbers[of_maps]]
        held = ~(of_maps | filled)
        if held.any():
            rows, nodes = self.places[numbers[held] - count].T
            rows, place = np.unique(rows, return_inverse=True)
            made[held] = self.shares.isel({self.shares.dims[0]: rows}).values[place, nodes]
        rows, parts = np.divmod(numbers - first, 2)
        for row in np.unique(rows[filled]).tolist():
            own = filled & (rows == row)
            made[own] = self._filled(row)[parts[own]]
        return made


def with_history(block: xr.Dataset, history: Sequence[Shares]) -> xr.Dataset:
    """Snapshots that hold how much of their fires had burned by when, from ignition on.

    A first node at hour 0 tells that the history is whole. Snapshots may share one: it is read when
    it is needed.
    """
    most = max((own.hours.size for own in history), default=0)
    grid = tuple(dim for dim in block[FIRE].dims if dim != SNAPSHOT)
    dims = (SNAPSHOT, HISTORY, *grid)
    hours = np.full((len(history), most), np.nan)
    for row, own in enumerate(history):
        hours[row, : own.hours.size] = own.hours
    shape = (len(history), most, *(block.sizes[dim] for dim in grid))
    like = xr.Variable(dims, np.broadcast_to(np.float32(0.0), shape), {"units": "1"})
    return block.drop_dims(HISTORY, errors="ignore").assign(
        {
            HISTORY_SHARE: lazy_variable(like, _SharedHistories(tuple(history), shape[1:])),
            HISTORY_HOURS: ((SNAPSHOT, HISTORY), hours, {"units": "h"}),
        }
    )


@dataclass(frozen=True, slots=True)
class _SharedHistories:
    """Reads the shares of snapshots, several of which may have one history."""

    history: tuple[Shares, ...]
    shape: tuple[int, ...]

    def __call__(self, key: tuple[int | slice | Array, ...]) -> Array:
        rows = np.arange(len(self.history))[key[0]]
        made = np.zeros((rows.size, *self.shape), dtype=np.float32)
        for out, row in zip(made, np.atleast_1d(rows), strict=True):
            own = self.history[row]
            out[: own.hours.size] = own.shares[0]
        dims = [f"axis {number}" for number in range(made.ndim)]  # xarray indexes orthogonally
        return xr.Variable(dims, made)[(slice(None) if rows.ndim else 0, *key[1:])].values


def checkpoint_interval(snapshots: xr.Dataset) -> float | None:
    """Hours between the checkpoints that smoke is a sum over; None if unknown or not the same.

    It is the recorded one or, in data that records none, the one between the hours of each fire.
    """
    recorded = recorded_interval(snapshots[SMOKE].attrs) if SMOKE in snapshots else None
    if recorded is not None or not {"fire_id", "hours"} <= set(snapshots.variables):
        return recorded
    fires, hours = snapshots.fire_id.values.astype(str), snapshots.hours.values
    if hours.dtype.kind not in "fiu":
        return None
    order = np.lexsort((hours, fires))
    same = fires[order][1:] == fires[order][:-1]
    return equal_interval(np.diff(hours[order].astype(np.float64))[same].tolist())


def record_interval(snapshots: xr.Dataset) -> xr.Dataset:
    """The snapshots with the interval as an attribute of their smoke, where it is known."""
    interval = checkpoint_interval(snapshots)
    if interval is None or SMOKE not in snapshots:
        return snapshots
    names = [SMOKE, *further_outputs(snapshots)]
    return snapshots.assign(
        {name: snapshots[name].assign_attrs({INTERVAL: interval}) for name in names}
    )
