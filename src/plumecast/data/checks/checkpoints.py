"""The interval between the checkpoints of a store."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, equal_interval, recorded_interval
from plumecast.base.names import SMOKE
from plumecast.data.schema import further_outputs


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
