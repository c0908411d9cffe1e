"""What the training fires of a surrogate cover: hours, burned area, wind, place, basis."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.compute.arrays import Array, read_rows, to_device_of, to_numpy
from plumecast.compute.blocks import Runner, map_over, row_blocks, sampled_rows
from plumecast.data.covariates import read_scalar, read_wind
from plumecast.data.layout import Layout
from plumecast.data.training import TrainingMatrices
from plumecast.operators.family import Operator

SAMPLE = 512
"""Training snapshots from which the share of the basis and the peak smoke are computed."""

BLOCK_VALUES = 300_000  # field values read at a time; limits on memory do not count them


def training_ranges(
    data: TrainingMatrices, operator: Operator, runner: Runner | None = None
) -> dict[str, Any]:
    """What the training fires cover, as plain numbers that are saved with a surrogate.

    `hours` (age of the oldest cell of a snapshot, at most its coordinate), `burned_cells`,
    `wind_speed`, `peak` (largest output) and `represented` (share of a fire in the basis) are
    [lowest, highest]. `region` is the bounding box of the burned cells, [first, last] index along
    each dimension.
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
    hours = snapshot_hours(data.snapshots)
    if "hours" in found and hours is not None:
        found["hours"][1] = max(found["hours"][1], float(hours.max()))
    wind = read_wind(data.snapshots) if operator.needs_wind else None
    if wind is not None:
        speed = np.hypot(*wind.T)
        found["wind_speed"] = [float(speed.min()), float(speed.max())]
    return found


def snapshot_hours(data: xr.Dataset, sizes: Mapping[Hashable, int] | None = None) -> Array | None:
    """(M,) coordinate `hours` of every row, see `read_scalar`; None if it is unknown.

    A cell that has burned in part has a smaller mean age, so the ages alone miss small fires.
    """
    try:
        return read_scalar(data, "hours", sizes).astype(np.float64)
    except (PlumecastError, ValueError):  # missing, NaN, or not a number
        return None


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
            shape = data.input_layout.fields[data.input_layout.names.index(FIRE)].shape
            places = np.stack(np.nonzero(burned.any(axis=0).reshape(shape)), axis=1)
            found["region"] = places
    here = sample[(sample >= rows.start) & (sample < rows.stop)] - rows.start
    if here.size:
        outputs = read_rows(data.outputs, rows)[here]
        found["peak"] = np.abs(outputs).max(axis=1)
        share = represented_share(operator, inputs[here])
        if share is not None and np.isfinite(share).any():
            found["represented"] = share[np.isfinite(share)]
    return {name: (values.min(axis=0), values.max(axis=0)) for name, values in found.items()}


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
