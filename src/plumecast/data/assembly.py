"""Snapshots as readers and the simulator assemble them: fires one after another, burned shares.

Sources know arrival times at a fine resolution. A snapshot keeps the share of every smoke cell that
had burned at a few hours since the snapshot before; carried smoke and fires at any hour follow from
them (`compute.burned`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.names import HISTORY, HISTORY_HOURS, HISTORY_SHARE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.burned import shares_of_arrival
from plumecast.compute.regrid import Weights


def concat_snapshots(
    parts: Sequence[xr.Dataset], *, combine_attrs: Literal["identical", "override"] = "identical"
) -> xr.Dataset:
    """Concatenate datasets on one grid along the snapshots; the first gives the grid.

    With "identical", attributes that differ raise; with "override", those of the first dataset are
    kept, and lists, such as names of ignitions, are joined.
    """
    if len(parts) == 1:
        return parts[0]
    return xr.concat(
        parts, SNAPSHOT, data_vars="minimal", coords="minimal", compat="override", join="exact",
        combine_attrs=_of_the_first if combine_attrs == "override" else combine_attrs,
    )  # fmt: skip


def _of_the_first(attrs: Sequence[dict[str, Any]], context: object = None) -> dict[str, Any]:
    kept = dict(attrs[0])
    for name in [name for name, value in kept.items() if isinstance(value, list)]:
        kept[name] = sorted({item for part in attrs for item in part.get(name, [])})
    return kept


PER_SNAPSHOT, PER_FIRE = 3, 16
"""Hours at which a snapshot keeps burned shares: since the one before, or of the whole fire."""

BurnedShares: TypeAlias = tuple[Array, Array]
"""Hours (k, n), NaN for none, and burned shares (k, n, cells) of k snapshots."""


def block_parts(burned: Array, rows: int, columns: int) -> Weights:
    """The burned cells of a grid as parts of its blocks of `rows` by `columns` cells.

    >>> block_parts(np.array([[False, True], [True, True]]), 1, 2).target
    array([0, 1, 1])
    """
    y, x = np.nonzero(burned)
    target = (y // rows) * (burned.shape[1] // columns) + x // columns
    share = np.full(y.size, 1.0 / (rows * columns))
    cells = (burned.shape[0] // rows) * (burned.shape[1] // columns)
    return Weights(target, np.arange(y.size), share, cells, 0.0)


def burned_shares(
    arrival: Array, parts: Weights, ends: Array, *, most: int, aggregate: str = "mean"
) -> BurnedShares:
    """What snapshots at the hours `ends` (k,) keep of a fire with the arrivals (n,) of its parts.

    With `aggregate="max"`, whole cells burn when the first of their parts does.
    """
    parts = parts if aggregate == "mean" else parts.first(arrival)
    return shares_of_arrival(
        arrival[parts.source], parts.target, parts.share, parts.cells, ends=ends, most=most
    )


def with_burned_shares(snapshots: xr.Dataset, kept: BurnedShares) -> xr.Dataset:
    """Snapshots on a grid (y, x) with what they keep of their fires."""
    hours, shares = kept
    shape = (*hours.shape, snapshots.sizes["y"], snapshots.sizes["x"])
    fields: dict[str, Any] = {
        HISTORY_SHARE: ((SNAPSHOT, HISTORY, "y", "x"), shares.reshape(shape), {"units": "1"}),
        HISTORY_HOURS: ((SNAPSHOT, HISTORY), hours, {"units": "h"}),
    }
    return snapshots.assign(fields)
