"""Open what a map shows: a store, a prediction, or statistics, on a grid that increases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.app.drawing.layers import DIFFERENCE, LOWER, PREDICTED, UPPER
from plumecast.base.checkpoints import INTERVAL, recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.data.store import open_fields
from plumecast.scores.predicted_dose import dose_coords
from plumecast.scores.quantities import (
    QUANTITIES,
    as_quantity,
    dose_attributes,
    find_quantity,
    refuse_other_interval,
)

SUMS = (SMOKE, PREDICTED, LOWER, UPPER)
"""Fields that are sums over checkpoints, unless they say that they are another quantity."""

_PLANE = ("y", "x")


def open_source(source: xr.Dataset | str | Path) -> xr.Dataset:
    """The fields of a source with dimensions y and x; raises if a map cannot show them."""
    if isinstance(source, xr.Dataset):
        data, where = source, "the Dataset"
    else:
        data, where = open_fields(source), str(source)
    missing = [name for name in _PLANE if name not in data.coords]
    if missing:
        raise PlumecastError(
            f"{where}: no coordinate {missing[0]}, which a map needs: y and x in metres"
        )
    if not shown_fields(data):
        raise PlumecastError(f"{where}: no field on y and x; give a store, a prediction, ensemble "
                             "statistics or a comparison")  # fmt: skip
    if SNAPSHOT in data.dims and "fire_id" not in data.variables:
        numbered = [str(row) for row in range(data.sizes[SNAPSHOT])]
        data = data.assign_coords(fire_id=(SNAPSHOT, numbered))
    data = data.drop_vars(_restated(data))
    return data.sortby([name for name in _PLANE if not _increases(data[name].values)])


def _restated(data: xr.Dataset) -> list[str]:
    """Quantities that `predict` writes beside a sum; a map computes them from the sum."""
    if SMOKE not in data or recorded_interval(data[SMOKE].attrs) is None:
        return []
    beside_sums = [
        f"{name}_{quantity}"
        for name in (SMOKE, LOWER, UPPER) if name in data
        for quantity in QUANTITIES
    ]  # fmt: skip
    return [name for name in beside_sums if name in data]


def _increases(values: np.ndarray) -> bool:
    return bool((np.diff(values) > 0).all())


def shown_fields(data: xr.Dataset) -> list[str]:
    """Names of the fields that a map can show."""
    names = [
        str(name)
        for name, item in data.data_vars.items()
        if set(_PLANE) <= set(item.dims)
        and name not in ("lat", "lon")
        and item.dtype.kind in "fiub"
    ]
    if SNAPSHOT in data.dims:
        names = [name for name in names if set(data[name].dims) == {SNAPSHOT, *_PLANE}]
    return order(names)


def beside(observed: xr.Dataset, predicted: xr.Dataset) -> xr.Dataset:
    """Snapshots of a store with the predicted ones of the same fires and hours.

    Smoke of the second is called `predicted`; its other fields keep their names.
    """
    if SNAPSHOT not in observed.dims or SNAPSHOT not in predicted.dims:
        raise PlumecastError("two sources must both have snapshots; give a store and a prediction")
    if any(not np.array_equal(observed[name].values, predicted[name].values) for name in _PLANE):
        raise PlumecastError("the two sources are on different grids; predict on that of the store")
    keys = [_keys(data) for data in (observed, predicted)]
    rows = {key: row for row, key in enumerate(keys[1])}
    common = [row for row, key in enumerate(keys[0]) if key in rows]
    if not common:
        raise PlumecastError(
            "the two sources have no fire and hour in common; give the prediction of this store"
        )
    first = observed.isel({SNAPSHOT: common})
    second = predicted.isel({SNAPSHOT: [rows[keys[0][row]] for row in common]})
    # A prediction of the time mean has its smoke as smoke_mean.
    smoke = [n for n in (SMOKE, f"{SMOKE}_mean", f"{SMOKE}_dose") if n in second][:1]
    fields = second[[name for name in shown_fields(second) if name != FIRE]]
    renamed = fields.rename(dict.fromkeys(smoke, PREDICTED))
    return first.assign(
        {str(name): (item.dims, item.data, item.attrs) for name, item in renamed.data_vars.items()}
    ).assign_coords(dose_coords(fields))


def _keys(data: xr.Dataset) -> list[tuple[str, float]]:
    hours = data["hours"].values if "hours" in data.variables else np.zeros(data.sizes[SNAPSHOT])
    return list(zip(data["fire_id"].values.astype(str).tolist(), hours.tolist(), strict=True))


def as_read(data: xr.Dataset, quantity: str, interval: float | None) -> xr.Dataset:
    """Snapshots whose smoke is a quantity that people read; the difference is added.

    Fields that already are another quantity than the sum stay as they are.
    """
    find_quantity(quantity)
    known = {item.long_name for item in QUANTITIES.values() if item.needs_interval}
    sums = [n for n in SUMS if n in data and data[n].attrs.get("long_name") not in known]
    sums = [n for n in sums if SNAPSHOT in data[n].dims]
    for name in sums:
        refuse_other_interval(data[name], interval)
    recorded = [recorded_interval(data[name].attrs) for name in sums]
    known_interval = next((value for value in recorded if value is not None), None)
    found = known_interval if interval is None else interval
    sources = {name: data[name].attrs for name in sums}
    for name in sums:
        stated = {} if found is None else {INTERVAL: found}
        ends = {"long_name": data[name].attrs["long_name"]} if name in (LOWER, UPPER) else {}
        if name in (LOWER, UPPER):
            of = PREDICTED if PREDICTED in data else SMOKE
            stated |= dose_attributes(sources[of]) if of in sources else {}
        made = as_quantity(data[name].assign_attrs(stated), quantity)
        data = data.assign({name: made.assign_attrs(ends)})
    if SMOKE in data and PREDICTED in data:
        units = {n: data[n].attrs.get("units") for n in (SMOKE, PREDICTED)}
        if units[SMOKE] != units[PREDICTED]:
            raise PlumecastError(
                f"the prediction is in {units[PREDICTED]}, the observed smoke in {units[SMOKE]}; "
                "choose the quantity of the prediction"
            )
        meaning = {"long_name": "predicted − observed smoke", "units": units[SMOKE] or ""}
        data[DIFFERENCE] = (data[PREDICTED] - data[SMOKE]).assign_attrs(meaning)
    return data


def order(names: Sequence[str]) -> list[str]:
    """Fields in the order of a list: smoke, what is predicted, differences, the rest, the fire."""
    first = [SMOKE, f"{SMOKE}_mean", PREDICTED, DIFFERENCE, LOWER, UPPER]
    places = {name: number for number, name in enumerate(first)} | {FIRE: len(first) + 1}
    return sorted(names, key=lambda name: places.get(name, len(first)))
