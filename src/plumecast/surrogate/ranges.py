"""What the training fires of a surrogate cover: hours, burned area, wind, weather, place, basis."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.compute.arrays import Array, read_rows, to_device_of, to_numpy
from plumecast.compute.blocks import Runner, map_over, row_blocks, sampled_rows
from plumecast.data.covariates import read_fuel_maps, read_scalar, read_wind
from plumecast.data.layout import Layout
from plumecast.data.training import TrainingMatrices
from plumecast.operators.family import Operator

SAMPLE = 512
"""Training snapshots from which the share of the basis and the peak smoke are computed."""

CALM = 0.5  # m/s; the strongest training wind at a height counts as at least this

BLOCK_VALUES = 300_000  # field values read at a time; limits on memory do not count them


def training_ranges(
    data: TrainingMatrices, operator: Operator, runner: Runner | None = None
) -> dict[str, Any]:
    """What the training fires cover, as plain numbers that are saved with a surrogate.

    `hours` (age of the oldest cell of a snapshot, at most its coordinate), `burned_cells`,
    `growth` (mean growth of the burned area, cells per hour), `wind_speed`, `peak` (largest output)
    and `represented` (share of a fire in the basis) are [lowest, highest]. `region` is the bounding
    box of the burned cells, [first, last] index along each dimension. `fuel_load` is the mean over
    the burned cells, of operators that use it. Of hourly weather, `profile_wind` has [height,
    strongest wind] for every height, `weakest_wind` the same of the snapshot whose strongest wind
    is the weakest, and `boundary_layer_depth` the [lowest, highest] of the largest depth of a
    snapshot.
    """
    count, cells = data.inputs.shape
    sample = sampled_rows(count, SAMPLE)
    blocks = row_blocks(count, max(1, BLOCK_VALUES // cells))
    parts = list(map_over(_block_ranges, (data, operator, sample), blocks, runner))
    found: dict[str, Any] = {}
    for name in sorted({name for part in parts for name in part}):
        low, high = zip(*(part[name] for part in parts if name in part), strict=True)
        found[name] = [np.min(low, axis=0).tolist(), np.max(high, axis=0).tolist()]
    if "region" in found:
        found["region"] = [list(pair) for pair in zip(*found["region"], strict=True)]
    if "profile_wind" in found:
        heights = data.snapshots["height"].values.tolist()
        weakest, strongest = found["profile_wind"]
        for name, speeds in (("profile_wind", strongest), ("weakest_wind", weakest)):
            found[name] = [list(pair) for pair in zip(heights, speeds, strict=True)]
    hours = snapshot_hours(data.snapshots)
    if "hours" in found and hours is not None:
        found["hours"][1] = max(found["hours"][1], float(hours.max()))
    wind = read_wind(data.snapshots) if operator.needs_wind else None
    if wind is not None:
        speed = np.hypot(*wind.T)
        found["wind_speed"] = [float(speed.min()), float(speed.max())]
    return found


def merge_ranges(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The ranges of two sets of fires together, as far as both or either know them."""

    def widest(pair: Sequence[Any], further: Sequence[Any]) -> list[Any]:
        return [min(pair[0], further[0]), max(pair[1], further[1])]

    merged = dict(other) | dict(one)
    for name in set(one) & set(other):
        if name in ("profile_wind", "weakest_wind"):
            heights, speeds = np.array(one[name]).T
            also = np.interp(heights, *np.array(other[name]).T)
            both = (np.maximum if name == "profile_wind" else np.minimum)(speeds, also)
            merged[name] = np.stack([heights, both], axis=1).tolist()
        elif name == "region":
            merged[name] = [widest(*pairs) for pairs in zip(one[name], other[name], strict=True)]
        else:
            merged[name] = widest(one[name], other[name])
    return merged


def strongest_weather(data: xr.Dataset, sizes: Mapping[Hashable, int]) -> dict[str, Array]:
    """Strongest wind at every height, (M, Z), and largest boundary-layer depth, (M,), of every row.

    They are those of the hours of its fire, where these are known; NaN counts as 0. Without hourly
    weather along the dimensions `sizes` of the rows, there are none.
    """
    along = (*sizes, "weather_hour")
    if "weather_hour" not in data.variables or data.sizes.get("weather_hour", 0) == 0:
        return {}
    times, hours = data["weather_hour"].values, snapshot_hours(data, sizes)
    during = np.ones((math.prod(sizes.values()), times.size), dtype=bool)
    if hours is not None:
        during = times <= np.maximum(hours, times.min())[:, None]

    def read(names: Sequence[str], *dims: Hashable) -> list[Array] | None:
        known = [data[name] for name in names if name in data.variables]
        if len(known) < len(names) or any(set(item.dims) != set(dims) for item in known):
            return None
        shape = (*during.shape, *(data.sizes[dim] for dim in dims[len(along) :]))
        return [item.transpose(*dims).values.reshape(shape).astype(np.float64) for item in known]

    strongest: dict[str, Array] = {}
    winds = read(("wind_u", "wind_v"), *along, "height") if "height" in data.variables else None
    if winds is not None:
        speed = np.nan_to_num(np.hypot(*winds))
        strongest["profile_wind"] = speed.max(axis=1, where=during[..., None], initial=0.0)
    depth = read(("boundary_layer_depth",), *along)
    if depth is not None:
        deepest = np.nan_to_num(depth[0]).max(axis=1, where=during, initial=0.0)
        strongest["boundary_layer_depth"] = deepest
    return strongest


def stated_measures(
    ranges: Mapping[str, Any], data: Any, like: xr.DataArray, lead: Sequence[Hashable]
) -> dict[str, Array]:
    """(M,) of the measures that the data states beside its fields: `hours`, and of the weather.

    `data` are labelled fields, `like` one of them with the sample dimensions `lead`. The winds are
    the largest ratios over the heights, to the strongest and to the weakest wind of training.
    """
    sizes = {dim: like.sizes[dim] for dim in lead}
    hours = snapshot_hours(like.coords.to_dataset(), sizes)
    found = {} if hours is None else {"hours": hours}
    known = [name for name in ("profile_wind", "boundary_layer_depth") if name in ranges]
    if not known or not isinstance(data, xr.Dataset):
        return found
    weather = strongest_weather(data, sizes)
    if "profile_wind" in weather and "profile_wind" in known:
        heights, strongest = np.array(ranges["profile_wind"]).T
        limit = np.interp(data["height"].values, heights, strongest)
        found["profile_wind"] = np.max(weather["profile_wind"] / np.maximum(limit, CALM), axis=1)
        if "weakest_wind" in ranges:
            limit = np.interp(data["height"].values, *np.array(ranges["weakest_wind"]).T)
            ratios = weather["profile_wind"] / np.maximum(limit, 1e-6)
            found["weakest_wind"] = np.max(ratios, axis=1)
    if "boundary_layer_depth" in weather and "boundary_layer_depth" in known:
        found["boundary_layer_depth"] = weather["boundary_layer_depth"]
    return found


def snapshot_hours(data: xr.Dataset, sizes: Mapping[Hashable, int] | None = None) -> Array | None:
    """(M,) coordinate `hours` of every row, see `read_scalar`; None if it is unknown.

    A cell that has burned in part has a smaller mean age, so the ages alone miss small fires.
    Raises for hours before the ignition.
    """
    try:
        hours = read_scalar(data, "hours", sizes).astype(np.float64)
    except (PlumecastError, ValueError):  # missing, NaN, or not a number
        return None
    if (hours < 0.0).any():
        raise PlumecastError(
            f"'hours' is {hours[hours < 0.0][0]:g} of a snapshot; expected the hours since "
            "ignition, at least 0"
        )
    return hours


def _block_ranges(
    shared: tuple[TrainingMatrices, Operator, Array], rows: slice
) -> dict[str, tuple[Any, Any]]:
    """(lowest, highest) of every measure in some training snapshots that have fire."""
    data, operator, sample = shared
    inputs = read_rows(data.inputs, rows)
    found: dict[str, Array] = {}
    columns = fire_columns(data.input_layout)
    if columns is not None:
        fire = inputs[:, columns]
        burned = fire != 0.0
        burning = burned.any(axis=1)
        if burning.any():
            found["hours"] = fire.max(axis=1)[burning]
            found["burned_cells"] = burned.sum(axis=1)[burning]
            stated = snapshot_hours(data.snapshots.isel({SNAPSHOT: rows}))
            found["growth"] = mean_growth(fire, stated)[burning]
            shape = data.input_layout.fields[data.input_layout.names.index(FIRE)].shape
            places = np.stack(np.nonzero(burned.any(axis=0).reshape(shape)), axis=1)
            found["region"] = places
            dims = data.input_layout.fields[data.input_layout.names.index(FIRE)].dims
            loads = read_fuel_maps(data.snapshots.isel({SNAPSHOT: rows}), dims)
            if operator.uses_fuel and loads is not None:
                found["fuel_load"] = mean_load(burned, *loads)[burning]
    here = sample[(sample >= rows.start) & (sample < rows.stop)] - rows.start
    if here.size:
        outputs = read_rows(data.outputs, rows)[here]
        found["peak"] = np.abs(outputs).max(axis=1)
        share = represented_share(operator, inputs[here])
        if share is not None and np.isfinite(share).any():
            found["represented"] = share[np.isfinite(share)]
    some = data.snapshots.isel({SNAPSHOT: rows})
    found |= strongest_weather(some, {SNAPSHOT: some.sizes[SNAPSHOT]})
    return {name: (values.min(axis=0), values.max(axis=0)) for name, values in found.items()}


def mean_growth(fire: Array, hours: Array | None) -> Array:
    """(M,) mean growth of the burned area in cells per hour, of (M, N) ages; NaN without fire.

    The sum of the ages is the integral of the burned area over time, because an age is a mean over
    its cell. Divided by the hours (M,) it is the mean burned area, and by the hours again a growth.
    Fires within a cell, whose number of burned cells says nothing, differ in it. Without hours, the
    oldest age is taken for them.
    """
    oldest = fire.max(axis=1).astype(np.float64)
    since = oldest if hours is None else np.maximum(oldest, hours)
    total = fire.sum(axis=1, dtype=np.float64)
    return np.where((fire != 0.0).any(axis=1), total / np.maximum(since, 1e-6) ** 2, np.nan)


def mean_load(burned: Array, maps: Array, number: Array) -> Array:
    """(M,) mean fuel load over the burned cells (M, N); NaN without fire.

    `maps` (U, *grid) are the different maps, `number` (M,) is that of the map of every row.
    """
    cells = burned.sum(axis=1)
    mean = np.full(cells.size, np.nan)
    for own in np.unique(number):
        rows = np.flatnonzero((number == own) & (cells > 0))
        load = np.asarray(maps[own], dtype=np.float64).ravel()
        mean[rows] = burned[rows] @ load / cells[rows]
    return mean


def fire_columns(layout: Layout) -> slice | None:
    """The columns of the time since ignition; None if it is not an input."""
    start = 0
    for part in layout.fields:
        if part.name == FIRE:
            return slice(start, start + part.size)
        start += part.size
    return None


def represented_share(operator: Operator, inputs: Array) -> Array | None:
    """(M,) share of each input that the operator's basis represents; NaN for zero inputs."""
    share = operator.represented(to_device_of(operator, inputs))
    return None if share is None else to_numpy(share)
