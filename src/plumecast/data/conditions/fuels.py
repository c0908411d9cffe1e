"""The fuel load of snapshots: the different maps, and the map of every snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import GROUND, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks

FUEL_LOAD = GROUND[0].name

_BLOCK = 256  # maps read at once


def read_fuel_maps(
    data: xr.Dataset,
    grid: Sequence[Hashable],
    sizes: Mapping[Hashable, int] | None = None,
) -> tuple[Array, Array] | None:
    """(U, *grid) different maps of fuel load, float32, and (M,) the number of the map of each row.

    Rows are all combinations of the dimensions in `sizes`, in C order; by default the snapshots. A
    map is that of all rows along the dimensions that it lacks. None where there is no fuel load on
    the dimensions `grid`. Memory is needed for the different maps alone.
    """
    if FUEL_LOAD not in data.variables:
        return None
    rows = {SNAPSHOT: data.sizes[SNAPSHOT]} if sizes is None else dict(sizes)
    variable = data[FUEL_LOAD].variable
    own = [dim for dim in rows if dim in variable.dims]
    if set(variable.dims) != {*own, *grid}:
        return None
    maps: list[Array] = []
    known: dict[bytes, int] = {}
    numbers = []
    for row, one in enumerate(_maps(variable.transpose(*own, *grid), own)):
        key = hashlib.blake2b(one).digest()
        if key not in known:
            _check(one, _who(data, row) if own == [SNAPSHOT] else "")
            known[key] = len(maps)
            maps.append(one.copy())
        numbers.append(known[key])
    lengths = [size if dim in own else 1 for dim, size in rows.items()]
    wide = np.broadcast_to(np.array(numbers, np.intp).reshape(lengths), list(rows.values()))
    shape = [variable.sizes[dim] for dim in grid]
    return (np.stack(maps) if maps else np.empty((0, *shape), np.float32)), wide.reshape(-1)


def _maps(variable: xr.Variable, own: Sequence[Hashable]) -> Iterator[Array]:
    """The maps of a variable (*own, *grid) one after another, float32."""
    if not own:
        yield np.ascontiguousarray(variable.values, dtype=np.float32)
        return
    for part in row_blocks(variable.sizes[own[0]], _BLOCK):
        values = np.ascontiguousarray(variable.isel({own[0]: part}).values, dtype=np.float32)
        yield from values.reshape(-1, *values.shape[len(own) :])


def _check(load: Array, who: str) -> None:
    wrong = ~(np.isfinite(load) & (load >= 0.0))
    if wrong.any():
        raise PlumecastError(
            f"'{FUEL_LOAD}'{who} is {load[wrong][0]:g} in {int(wrong.sum())} of {wrong.size} "
            "cells; give 0 where nothing burns"
        )


def _who(data: xr.Dataset, row: int) -> str:
    if "fire_id" in data.variables and data["fire_id"].dims == (SNAPSHOT,):
        return f" of fire '{data['fire_id'].values[row]}'"
    return f" of snapshot {row}"
