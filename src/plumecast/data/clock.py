"""Fires along time: the history of a snapshot, and blocks of whole fires.

When smoke was released follows from how much of each cell had burned by when. A snapshot may hold
this along the dimension `history` (burned shares at some hours): from readers that know the arrival
times, or for snapshots that are predicted without the others of their fire. Otherwise it follows
from all snapshots of the fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, HISTORY, HISTORY_HOURS, HISTORY_SHARE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.compute.burned import shares_of

LABELS = ("fire_id", "hours")

BurnedBy: TypeAlias = tuple[Array, Array]
"""Hours (K,) and the shares (K, ny, nx) of the cells that had burned by then; 0 at hour 0."""


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
    """Some snapshots of different fires; with `history` also what the others of their fires tell.

    Stores hold the snapshots of a fire one after the other, so that only neighbours are looked at.
    """
    block = fires.isel({SNAPSHOT: rows})
    known = FIRE in fires and set(LABELS) <= set(fires.variables)
    if not history or not known or fires["hours"].dims != (SNAPSHOT,):
        return block
    names, hours = fires["fire_id"].values, fires["hours"].values
    others = []
    for row in np.asarray(rows).tolist():
        first = last = row
        while first > 0 and names[first - 1] == names[row]:
            first -= 1
        while last + 1 < names.size and names[last + 1] == names[row]:
            last += 1
        others.append(first + np.argsort(hours[first : last + 1], kind="stable"))
    needed = np.unique(np.concatenate(others))
    places = [np.searchsorted(needed, own) for own in others]
    part = fires.isel({SNAPSHOT: needed})
    held = held_shares(part)
    if any(own is not None for own in held):
        return with_history(block, [pooled(held, own) for own in places])
    maps = part[FIRE].transpose(SNAPSHOT, ...).values
    return with_history(block, [burned_by(hours[needed[own]], maps[own]) for own in places])


def pooled(held: Sequence[BurnedBy | None], rows: Array) -> BurnedBy | None:
    """What all snapshots of a fire, given by their rows, hold together."""
    known = [own for row in rows if (own := held[int(row)]) is not None]
    if not known:
        return None
    hours = np.concatenate([item[0] for item in known])
    order = np.argsort(hours, kind="stable")
    return hours[order], np.concatenate([item[1] for item in known])[order]


def burned_by(hours: Array, maps: Array) -> BurnedBy:
    """The history that maps of a fire (K, ny, nx) at ascending hours (K,) tell.

    That of a single map has one node, which leaves the release of smoke to the map.
    """
    shares = shares_of(hours[None], maps[None])
    first = 1 if hours.size > 1 else -1
    return shares.hours[0, first:], shares.shares[0, first:]


def with_history(block: xr.Dataset, history: Sequence[BurnedBy | None]) -> xr.Dataset:
    """Snapshots that hold how much of their fires had burned by when; None for none."""
    most = max((own[0].size for own in history if own is not None), default=0)
    grid = tuple(dim for dim in block[FIRE].dims if dim != SNAPSHOT)
    shape = tuple(block.sizes[dim] for dim in grid)
    shares = np.zeros((len(history), most, *shape), dtype=np.float32)
    hours = np.full((len(history), most), np.nan)
    for row, own in enumerate(history):
        if own is not None:
            hours[row, : own[0].size], shares[row, : own[0].size] = own
    return block.drop_dims(HISTORY, errors="ignore").assign(
        {
            HISTORY_SHARE: ((SNAPSHOT, HISTORY, *grid), shares, {"units": "1"}),
            HISTORY_HOURS: ((SNAPSHOT, HISTORY), hours, {"units": "h"}),
        }
    )


def held_shares(block: xr.Dataset) -> list[BurnedBy | None]:
    """What every snapshot holds of its fire itself; None where it holds nothing."""
    count = block.sizes[SNAPSHOT]
    if HISTORY_SHARE not in block.variables:
        return [None] * count
    hours = block[HISTORY_HOURS].transpose(SNAPSHOT, HISTORY).values
    known = np.isfinite(hours)
    rows = np.flatnonzero(known.any(axis=1))
    shares = block[HISTORY_SHARE].isel({SNAPSHOT: rows}).transpose(SNAPSHOT, HISTORY, ...).values
    made: list[BurnedBy | None] = [None] * count
    for row, own in zip(rows.tolist(), shares, strict=True):
        made[row] = hours[row, known[row]], own[known[row]]
    return made
