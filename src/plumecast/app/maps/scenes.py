"""Scenes of opened fields: fires with their times, scenarios, or one set of statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.drawing.content import Scene
from plumecast.app.maps.sources import shown_fields
from plumecast.base.errors import PlumecastError
from plumecast.base.names import IGNITION_TIME, SMOKE, SNAPSHOT

SCENARIO = "scenario"
MOST_CELLS = 8_000_000
"""Cells of all fields and times of a page that chooses its fires itself; a byte each at most."""

MOST_FIRES = 12

_NAMED = 5  # fires named in a message


def choose_fires(data: xr.Dataset, wanted: Sequence[str], *, most: int) -> list[str]:
    """The wanted fires; without any, the largest ones that fit on a page, at most `most`.

    The size is the burned area, or the sum of the first field where that is unknown.
    """
    ids = data["fire_id"].values.astype(str)
    every = list(dict.fromkeys(ids.tolist()))
    unknown = [name for name in wanted if name not in every]
    if unknown:
        known = ", ".join(every[:_NAMED]) + (", …" if len(every) > _NAMED else "")
        raise PlumecastError(f"fire={unknown[0]!r} is not in the source; it has {known}")
    if wanted:
        return list(dict.fromkeys(wanted))
    sizes = _sizes(data)
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


def _sizes(data: xr.Dataset) -> np.ndarray:
    """(M,) size of every snapshot: its burned area or, where that is unknown, its first field."""
    if "burned_area" in data.variables:
        found: np.ndarray = np.nan_to_num(data["burned_area"].values.astype(float))
    else:
        found = data[shown_fields(data)[0]].sum(("y", "x")).values.astype(float)
    return found


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
    for name in _mean_first(shown_fields(data)):
        shown |= _spread(name, data[name].load())
    fields = {name: _by_scenario(field) for name, field in shown.items()}
    labels = [str(value) for value in data[SCENARIO].values] if SCENARIO in data.dims else [""]
    scenes = [
        Scene(label, None, {name: field[number][None] for name, field in fields.items()})
        for number, label in enumerate(labels)
    ]
    return scenes, {name: dict(field.attrs) for name, field in shown.items()}


def _mean_first(names: Sequence[str]) -> list[str]:
    first = ["difference", f"mean_{SMOKE}"]
    return sorted(names, key=lambda name: (name not in first, names.index(name)))


def _spread(name: str, field: xr.DataArray) -> dict[str, xr.DataArray]:
    """A field with further dimensions, such as thresholds, as one field for each value."""
    further = [str(dim) for dim in field.dims if dim not in (SCENARIO, "y", "x")]
    if not further:
        return {name: field}
    dim = further[0]
    found: dict[str, xr.DataArray] = {}
    for number in range(field.sizes[dim]):
        value = field[dim].values[number] if dim in field.coords else number
        text = f"{value:g}" if isinstance(value, int | float | np.number) else str(value)
        part = field.isel({dim: number}, drop=True)
        meaning = f"{field.attrs.get('long_name', name)}, {dim} {text}"
        found |= _spread(f"{name} {dim}={text}", part.assign_attrs(long_name=meaning))
    return found


def _by_scenario(field: xr.DataArray) -> np.ndarray:
    dims = [dim for dim in (SCENARIO,) if dim in field.dims]
    values: np.ndarray = field.transpose(*dims, "y", "x").values.astype(np.float32)
    return values if dims else values[None]
