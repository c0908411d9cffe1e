"""Fields of any kind as snapshots: arrays, DataArrays, and Datasets with another sample dimension.

Training works along the dimension `snapshot`. Predictions keep the sample dimensions of their
input, so that only training data passes through here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, GRID, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, to_numpy

INPUT, OUTPUT = "input", "output"
"""Names of the variables that are made of arrays."""

SAMPLE = "sample"
"""Sample dimension of arrays, and the coordinate that groups them."""

GROUP = "group"
"""Coordinate of group labels that are given as an array."""

Names = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Samples:
    """Training data along `snapshot`, with the names of its variables and grouping coordinate."""

    snapshots: xr.Dataset
    inputs: Names
    outputs: Names
    group_by: str


def field_names(names: Names) -> list[str]:
    """One or several names, as a list."""
    return [names] if isinstance(names, str) else list(names)


def read_samples(
    train: Any,
    y: Any = None,
    *,
    inputs: Names = FIRE,
    outputs: Names = SMOKE,
    sample_dim: str | None = None,
    group_by: str | Array = "ignition_id",
) -> Samples:
    """A Dataset, or inputs and outputs `y` as arrays (M, *grid), as snapshots.

    `group_by` is a coordinate or an array of M labels. Where there is no such coordinate, samples
    along another dimension than `snapshot` are groups of their own.
    """
    if not isinstance(train, xr.Dataset):
        if y is None:
            raise PlumecastError("y is missing; give inputs and outputs (X, y), or a Dataset")
        train, inputs, outputs = _from_pair(train, y)
    elif y is not None:
        raise PlumecastError("y is for arrays; a Dataset names its outputs with outputs=…")
    names = [*field_names(inputs), *field_names(outputs)]
    dim = sample_dimension(train, names, sample_dim)
    snapshots = along_snapshots(train, dim)
    count = snapshots.sizes[SNAPSHOT]
    if not isinstance(group_by, str):
        labels = to_numpy(group_by)
        if labels.shape != (count,):
            raise PlumecastError(
                f"group_by has shape {labels.shape}; give one label for each of {count} samples"
            )
        return Samples(snapshots.assign_coords({GROUP: (SNAPSHOT, labels)}), inputs, outputs, GROUP)
    known = group_by in snapshots.variables
    if not known and (dim != SNAPSHOT or group_by == dim):
        snapshots = snapshots.assign_coords({dim: (SNAPSHOT, np.arange(count))})
        group_by = dim
    return Samples(snapshots, inputs, outputs, group_by)


def sample_dimension(train: xr.Dataset, names: Sequence[str], given: str | None = None) -> str:
    """The sample dimension: the given one, `snapshot`, or the first one of all variables."""
    found = [train[name] for name in names if name in train]
    if given is not None:
        lacking = [array for array in found if given not in array.dims]
        if lacking:
            raise PlumecastError(
                f"sample_dim='{given}' is not a dimension of '{lacking[0].name}', which has "
                f"{lacking[0].dims}"
            )
        return given
    if SNAPSHOT in train.dims or not found:
        return SNAPSHOT
    first = {str(array.dims[0]) for array in found if array.ndim > 1}
    grid = {entry.name for entry in GRID}
    if len(first) != 1 or first & grid:
        raise PlumecastError(
            f"there are no training snapshots: no dimension '{SNAPSHOT}' among "
            f"{', '.join(map(str, train.dims))}; name the sample dimension with sample_dim=…"
        )
    return first.pop()


def along_snapshots(train: xr.Dataset, dim: str) -> xr.Dataset:
    """The same data with its sample dimension named `snapshot`."""
    if dim == SNAPSHOT:
        return train
    if SNAPSHOT in train.variables or SNAPSHOT in train.dims:
        raise PlumecastError(
            f"the data has both sample_dim='{dim}' and '{SNAPSHOT}'; rename or drop '{SNAPSHOT}'"
        )
    return train.rename({dim: SNAPSHOT})


def _from_pair(inputs: Any, outputs: Any) -> tuple[xr.Dataset, str, str]:
    """Inputs and outputs, two DataArrays or two arrays (M, *grid), as a Dataset."""
    if isinstance(inputs, xr.DataArray) and isinstance(outputs, xr.DataArray):
        names = str(inputs.name or INPUT), str(outputs.name or OUTPUT)
        pair = [array.rename(name) for array, name in zip((inputs, outputs), names, strict=True)]
        try:
            return xr.merge(pair, join="exact", compat="equals"), *names
        except ValueError as error:
            raise PlumecastError(
                f"'{names[0]}' and '{names[1]}' do not fit together ({error}); rename the "
                "dimensions that differ"
            ) from error
    x, y = to_numpy(inputs), to_numpy(outputs)
    if x.ndim < 2 or y.ndim < 2 or x.shape[0] != y.shape[0]:
        raise PlumecastError(
            f"inputs {x.shape} and outputs {y.shape} must be (M, *grid) with the same M samples"
        )
    same = x.shape == y.shape
    return (
        xr.Dataset(
            {
                INPUT: ((SAMPLE, *(f"grid_{i}" for i in range(x.ndim - 1))), x),
                OUTPUT: (
                    (
                        SAMPLE,
                        *(f"{'grid' if same else 'output_grid'}_{i}" for i in range(y.ndim - 1)),
                    ),
                    y,
                ),
            }
        ),
        INPUT,
        OUTPUT,
    )
