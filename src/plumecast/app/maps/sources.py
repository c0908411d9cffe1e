"""What a map reads: a store, a prediction or statistics, on a grid that increases, as scenes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.maps.layers import LAYERS, PREDICTED, Scene, in_order, with_computed
from plumecast.base.checkpoints import INTERVAL, recorded_interval
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, IGNITION_TIME, SMOKE, SNAPSHOT
from plumecast.data.store import open_fields
from plumecast.scores.predicted_dose import dose_coords
from plumecast.scores.quantities import (
    DEFAULT,
    QUANTITIES,
    as_quantity,
    dose_attributes,
    refuse_other_interval,
)
from plumecast.scores.reading import Reading
from plumecast.surrogate.error_bars.interval import LOWER, UPPER

SCENARIO = "scenario"
MOST_CELLS = 8_000_000
"""Cells of all fields and times of a page that chooses its fires itself; a byte each at most."""

MOST_FIRES = 12

_NAMED = 5  # fires named in a message
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
    if SMOKE in data and recorded_interval(data[SMOKE].attrs) is not None:
        # Quantities that `predict` writes beside a sum: a map computes them from the sum.
        ends = (name for name in (SMOKE, LOWER, UPPER) if name in data)
        beside_sums = [f"{name}_{quantity}" for name in ends for quantity in QUANTITIES]
        data = data.drop_vars(beside_sums, errors="ignore")
    return data.sortby([name for name in _PLANE if not (np.diff(data[name].values) > 0).all()])


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
    return in_order(names)


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
    return first.assign(unlabelled(renamed)).assign_coords(dose_coords(fields))


def unlabelled(fields: xr.Dataset) -> dict[str, Any]:
    """Variables without their coordinates, so that they go to the rows of another source."""
    return {str(name): (item.dims, item.data, item.attrs) for name, item in fields.items()}


def _keys(data: xr.Dataset) -> list[tuple[str, float]]:
    hours = data["hours"].values if "hours" in data.variables else np.zeros(data.sizes[SNAPSHOT])
    return list(zip(data["fire_id"].values.astype(str).tolist(), hours.tolist(), strict=True))


def as_read(data: xr.Dataset, reading: Reading) -> xr.Dataset:
    """Snapshots whose smoke is a quantity that people read, with the layers that are computed.

    Fields that already are another quantity than the sum stay as they are.
    """
    others = {item.long_name for item in QUANTITIES.values() if item.needs_interval}
    sums = [
        name
        for name, layer in LAYERS.items()
        if layer.is_sum and name in data and SNAPSHOT in data[name].dims
        and data[name].attrs.get("long_name") not in others
    ]  # fmt: skip
    for name in sums:
        refuse_other_interval(data[name], reading.interval)
    recorded = [recorded_interval(data[name].attrs) for name in sums]
    stored = next((value for value in recorded if value is not None), None)
    interval = stored if reading.interval is None else reading.interval
    sources = {name: data[name].attrs for name in sums}
    for name in sums:
        attrs = {} if interval is None else {INTERVAL: interval}
        ends = {"long_name": data[name].attrs["long_name"]} if name in (LOWER, UPPER) else {}
        if name in (LOWER, UPPER):
            middle = PREDICTED if PREDICTED in data else SMOKE
            attrs |= dose_attributes(sources[middle]) if middle in sources else {}
        made = as_quantity(data[name].assign_attrs(attrs), reading.quantity_or(DEFAULT))
        data = data.assign({name: made.assign_attrs(ends)})
    return with_computed(data)


def choose_fires(data: xr.Dataset, wanted: Sequence[str], *, most: int) -> list[str]:
    """The wanted fires; without any, the largest ones that fit on a page, at most `most`.

    The size is the burned area, or the sum of the first field where that is unknown.
    """
    ids = data["fire_id"].values.astype(str)
    every = list(dict.fromkeys(ids.tolist()))
    unknown = [name for name in wanted if name not in every]
    if unknown:
        first = ", ".join(every[:_NAMED]) + (", …" if len(every) > _NAMED else "")
        raise ArgumentError("fire", unknown[0], f"it has {first}", problem="is not in the source")
    if wanted:
        return list(dict.fromkeys(wanted))
    if "burned_area" in data.variables:
        sizes = np.nan_to_num(np.asarray(data["burned_area"].values, dtype=np.float64))
    else:
        sizes = np.asarray(data[shown_fields(data)[0]].sum(("y", "x")).values, dtype=np.float64)
    largest = {name: float(sizes[ids == name].max()) for name in every}
    per_row = data.sizes["y"] * data.sizes["x"] * len(shown_fields(data))
    rows = {name: int((ids == name).sum()) for name in every}
    kept: list[str] = []
    for name in sorted(every, key=lambda fire: -largest[fire]):  # stable: the first of equals
        cells = per_row * sum(rows[fire] for fire in [*kept, name])
        if kept and (len(kept) == most or cells > MOST_CELLS):
            break
        kept.append(name)
    return kept


def fire_rows(data: xr.Dataset, fires: Sequence[str]) -> xr.Dataset:
    """The loaded snapshots of some fires, those of each in the order of their hours."""
    ids = data["fire_id"].values.astype(str)
    hours = data["hours"].values if "hours" in data.variables else np.arange(ids.size)
    rows = [
        int(row)
        for fire in fires
        for row in sorted(np.flatnonzero(ids == fire), key=lambda row: hours[row])
    ]
    return data.isel({SNAPSHOT: rows}).load()


def fire_scenes(data: xr.Dataset) -> tuple[list[Scene], dict[str, Mapping[str, Any]]]:
    """A scene for every fire of loaded snapshots, and the attributes of the fields."""
    ids = data["fire_id"].values.astype(str)
    names = shown_fields(data)
    values = {n: data[n].transpose(SNAPSHOT, "y", "x").values.astype(np.float32) for n in names}
    scenes = []
    for fire in dict.fromkeys(ids.tolist()):
        rows = ids == fire
        hours = data["hours"].values[rows] if "hours" in data.variables else None
        if hours is None and rows.sum() > 1:
            hours = np.arange(1.0, rows.sum() + 1.0)
        started = (
            str(data[IGNITION_TIME].values[rows][0]) if IGNITION_TIME in data.variables else ""
        )
        fields = {name: field[rows] for name, field in values.items()}
        scenes.append(Scene(fire, hours, fields, started or None))
    return scenes, {name: dict(data[name].attrs) for name in names}


def statistic_scenes(data: xr.Dataset) -> tuple[list[Scene], dict[str, Mapping[str, Any]]]:
    """Fields without snapshots: a scene for every scenario, a layer for every threshold."""
    shown: dict[str, xr.DataArray] = {}
    for name in shown_fields(data):
        shown |= _spread(name, data[name].load())
    labels = [str(value) for value in data[SCENARIO].values] if SCENARIO in data.dims else [""]
    scenes = []
    for number, label in enumerate(labels):
        fields = {
            name: (field.isel({SCENARIO: number}) if SCENARIO in field.dims else field)
            .transpose("y", "x").values.astype(np.float32)[None]
            for name, field in shown.items()
        }  # fmt: skip
        scenes.append(Scene(label, None, fields))
    return scenes, {name: dict(field.attrs) for name, field in shown.items()}


def _spread(name: str, field: xr.DataArray) -> dict[str, xr.DataArray]:
    """A field with further dimensions, such as thresholds, as one field for each value."""
    further = [str(dim) for dim in field.dims if dim not in (SCENARIO, "y", "x")]
    if not further:
        return {name: field}
    dim = further[0]
    parts: dict[str, xr.DataArray] = {}
    for number in range(field.sizes[dim]):
        value = field[dim].values[number] if dim in field.coords else number
        text = f"{value:g}" if isinstance(value, int | float | np.number) else str(value)
        part = field.isel({dim: number}, drop=True)
        meaning = f"{field.attrs.get('long_name', name)}, {dim} {text}"
        parts |= _spread(f"{name} {dim}={text}", part.assign_attrs(long_name=meaning))
    return parts
