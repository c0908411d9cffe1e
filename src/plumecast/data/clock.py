"""Fires along time: the history of a snapshot, and blocks of whole fires.

How smoke was released follows from all maps of a fire. They are the snapshots of the fire, or maps
that a snapshot holds itself along the dimension `history`: those of readers that know the arrival
times, or of snapshots that are predicted without the others of their fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, HISTORY, HISTORY_FIRE, HISTORY_HOURS, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks

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
    """Some snapshots of different fires; with `history` also the other maps of their fires.

    Stores hold the snapshots of a fire one after the other, so that only neighbours are looked at.
    Snapshots that hold maps themselves keep these.
    """
    block = fires.isel({SNAPSHOT: rows})
    known = FIRE in fires and set(LABELS) <= set(fires.variables)
    if not history or not known or HISTORY_FIRE in fires or fires["hours"].dims != (SNAPSHOT,):
        return block
    names, hours = fires["fire_id"].values, fires["hours"].values
    others = []
    for row in np.asarray(rows).tolist():
        first = last = row
        while first > 0 and names[first - 1] == names[row]:
            first -= 1
        while last + 1 < names.size and names[last + 1] == names[row]:
            last += 1
        others.append(range(first, last + 1))
    needed = sorted({row for own in others for row in own})
    place = {row: number for number, row in enumerate(needed)}
    maps = fires[FIRE].isel({SNAPSHOT: np.array(needed)}).transpose(SNAPSHOT, ...).values
    return with_history(
        block, [[(float(hours[row]), maps[place[row]]) for row in own] for own in others]
    )


def with_history(block: xr.Dataset, maps: Sequence[Sequence[tuple[float, Array]]]) -> xr.Dataset:
    """Snapshots that hold maps of their fires: for each its (hours, time since ignition)."""
    most = max(map(len, maps), default=0)
    grid = tuple(dim for dim in block[FIRE].dims if dim != SNAPSHOT)
    shape = tuple(block.sizes[dim] for dim in grid)
    fields = np.zeros((len(maps), most, *shape), dtype=np.float32)
    hours = np.full((len(maps), most), np.nan)
    for row, own in enumerate(maps):
        for number, (time, field) in enumerate(own):
            hours[row, number], fields[row, number] = time, field
    return block.drop_dims(HISTORY, errors="ignore").assign(
        {
            HISTORY_FIRE: ((SNAPSHOT, HISTORY, *grid), fields, {"units": "h"}),
            HISTORY_HOURS: ((SNAPSHOT, HISTORY), hours, {"units": "h"}),
        }
    )


def held_maps(block: xr.Dataset) -> list[list[tuple[float, Array]]]:
    """The maps that every snapshot holds itself: hours and time since ignition."""
    count = block.sizes[SNAPSHOT]
    if HISTORY_FIRE not in block.variables:
        return [[] for _ in range(count)]
    hours = block[HISTORY_HOURS].transpose(SNAPSHOT, HISTORY).values
    fields = block[HISTORY_FIRE].transpose(SNAPSHOT, HISTORY, ...).values
    return [
        [(float(time), fields[row, n]) for n, time in enumerate(hours[row]) if np.isfinite(time)]
        for row in range(count)
    ]
