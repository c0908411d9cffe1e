"""Fires along time: the earlier maps of a fire, and rows of whole fires.

How smoke was released follows from the earlier maps of the same fire. A Dataset may hold them along
a second dimension, `earlier`, so that one snapshot of a fire can be predicted without the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from plumecast.base.names import EARLIER, EARLIER_FIRE, EARLIER_HOURS, EARLIER_ID, FIRE, SNAPSHOT
from plumecast.compute.arrays import Array

LABELS = ("fire_id", "hours")


def take_fires(fires: xr.Dataset, rows: slice | Array, *, earlier: bool) -> xr.Dataset:
    """Some snapshots; with `earlier` also the maps of the same fires before them.

    Stores hold the snapshots of a fire one after the other, so that only neighbours are looked at.
    """
    block = fires.isel({SNAPSHOT: rows})
    if not earlier or FIRE not in fires or not set(LABELS) <= set(fires.variables):
        return block
    count = fires.sizes[SNAPSHOT]
    asked = np.arange(count)[rows]
    if asked.size == count or fires["hours"].dims != (SNAPSHOT,):
        return block
    names, hours = fires["fire_id"].values, fires["hours"].values
    own, found = set(asked.tolist()), set()
    for row in asked.tolist():
        for step in (-1, 1):
            near = row + step
            while 0 <= near < count and names[near] == names[row] and near not in found:
                if near in own:
                    break
                if hours[near] < hours[row]:
                    found.add(near)
                near += step
    if not found:
        return block
    return with_earlier(block, fires.isel({SNAPSHOT: np.array(sorted(found))}))


def with_earlier(block: xr.Dataset, maps: xr.Dataset) -> xr.Dataset:
    """Snapshots with earlier maps of their fires, which are snapshots too."""
    grid = [dim for dim in maps[FIRE].dims if dim != SNAPSHOT]
    field = maps[FIRE].transpose(SNAPSHOT, *grid)
    return block.assign(
        {
            EARLIER_FIRE: ((EARLIER, *grid), field.data),
            EARLIER_ID: (EARLIER, maps["fire_id"].values.astype(str)),
            EARLIER_HOURS: (EARLIER, maps["hours"].values.astype(np.float64)),
        }
    )


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
        last = number + 1 == ends.size
        if last or ends[number + 1] - begin > size:
            yield order[begin:end]
            begin = int(end)
