"""Fires along time: the earlier maps of a snapshot, and blocks of whole fires.

How smoke was released follows from earlier maps of the same fire. They are the other snapshots of
the fire, and maps that a snapshot holds itself along the dimension `earlier`: those of readers that
know the arrival times, or of snapshots that are predicted without the others of their fire.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from plumecast.base.names import EARLIER, EARLIER_FIRE, EARLIER_HOURS, FIRE, SNAPSHOT
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


def take_final(fires: xr.Dataset, rows: Array, *, earlier: bool) -> xr.Dataset:
    """Some snapshots of different fires; with `earlier` also the maps of their fires before.

    Stores hold the snapshots of a fire one after the other, so that only neighbours are looked at.
    """
    block = fires.isel({SNAPSHOT: rows})
    if not earlier or FIRE not in fires or not set(LABELS) <= set(fires.variables):
        return block
    if fires["hours"].dims != (SNAPSHOT,):
        return block
    names, hours = fires["fire_id"].values, fires["hours"].values
    before = []
    for row in np.asarray(rows).tolist():
        own = [row]
        for step in (-1, 1):
            near = row + step
            while 0 <= near < names.size and names[near] == names[row]:
                own.append(near)
                near += step
        kept = [near for near in own if hours[near] < hours[row]]
        before.append(sorted(kept, key=lambda near: hours[near]))
    needed = sorted({near for own in before for near in own})
    if not needed:
        return block
    place = {row: number for number, row in enumerate(needed)}
    maps = fires[FIRE].isel({SNAPSHOT: np.array(needed)}).transpose(SNAPSHOT, ...).values
    own_maps = [[(float(hours[near]), maps[place[near]]) for near in own] for own in before]
    return with_earlier(block, own_maps)


def with_earlier(block: xr.Dataset, maps: Sequence[Sequence[tuple[float, Array]]]) -> xr.Dataset:
    """Snapshots with earlier maps: for each its (hours, time since ignition), in any order.

    Maps that the snapshots hold already are kept.
    """
    known = [[*own, *extra] for own, extra in zip(earlier_maps(block), maps, strict=True)]
    most = max(map(len, known), default=0)
    if most == 0:
        return block
    grid = tuple(dim for dim in block[FIRE].dims if dim != SNAPSHOT)
    shape = tuple(block.sizes[dim] for dim in grid)
    fields = np.zeros((len(known), most, *shape), dtype=np.float32)
    hours = np.full((len(known), most), np.nan)
    for row, own in enumerate(known):
        for number, (time, field) in enumerate(own):
            hours[row, number], fields[row, number] = time, field
    return block.drop_dims(EARLIER, errors="ignore").assign(
        {
            EARLIER_FIRE: ((SNAPSHOT, EARLIER, *grid), fields, {"units": "h"}),
            EARLIER_HOURS: ((SNAPSHOT, EARLIER), hours, {"units": "h"}),
        }
    )


def earlier_maps(block: xr.Dataset) -> list[list[tuple[float, Array]]]:
    """The earlier maps that every snapshot holds itself: hours and time since ignition."""
    count = block.sizes[SNAPSHOT]
    if EARLIER_FIRE not in block.variables:
        return [[] for _ in range(count)]
    hours = block[EARLIER_HOURS].transpose(SNAPSHOT, EARLIER).values
    fields = block[EARLIER_FIRE].transpose(SNAPSHOT, EARLIER, ...).values
    return [
        [(float(time), fields[row, n]) for n, time in enumerate(hours[row]) if np.isfinite(time)]
        for row in range(count)
    ]
