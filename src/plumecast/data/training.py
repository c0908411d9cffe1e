"""Training snapshots as matrices, in memory or read from their store, and their provenance.

Fields of any kind are taken: arrays, DataArrays, and Datasets with another sample dimension than
`snapshot`. Predictions keep the sample dimensions of their input, so that only training data passes
through here.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import (
    DATA_VERSION,
    FIRE,
    GRID,
    SIMULATION,
    SMOKE,
    SNAPSHOT,
    TABLE,
    WEATHER_NAMES,
    is_smoke,
)
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array, Rows, read_rows, to_numpy
from plumecast.compute.blocks import Runner, row_blocks
from plumecast.compute.resources import show_memory
from plumecast.data.layout import Layout, fit_layout
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import check_ground, check_values
from plumecast.data.split import group_rows
from plumecast.weather.snapshots import check_weather_values

INPUT, OUTPUT = "input", "output"
"""Names of the variables that are made of arrays."""

SAMPLE = "sample"
"""Sample dimension of arrays, and the coordinate that groups them."""

GROUP = "group"
"""Coordinate of group labels that are given as an array."""

Names = str | Sequence[str]


IN_MEMORY_BYTES = 40
"""Bytes of working memory per field value for families that need all snapshots in memory."""

_BLOCK = 256  # snapshots read at once


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
            raise ArgumentError(
                "sample_dim",
                given,
                problem=f"is not a dimension of '{lacking[0].name}', which has {lacking[0].dims}",
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
    grids = "grid", "grid" if x.shape == y.shape else "output_grid"
    variables = {
        name: ((SAMPLE, *(f"{grid}_{axis}" for axis in range(values.ndim - 1))), values)
        for name, grid, values in zip((INPUT, OUTPUT), grids, (x, y), strict=True)
    }
    return xr.Dataset(variables), INPUT, OUTPUT


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The (M, N) matrix of a layout's fields; rows are read from the store when needed."""

    layout: Layout
    snapshots: xr.Dataset

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, N)."""
        return (int(self.snapshots.sizes[SNAPSHOT]), self.layout.size)

    def read(self, rows: slice | Array) -> Array:
        """The rows as a float64 matrix; raises if the store changed since it was opened."""
        check_unchanged(self.snapshots)
        return self.layout.to_matrix(self.snapshots.isel({SNAPSHOT: rows}))


@dataclass(frozen=True, slots=True)
class StoredFields:
    """(M, *grid) fields of one variable; indexing reads rows from the store."""

    rows: StoredRows
    grid: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, *grid)."""
        return (self.rows.shape[0], *self.grid)

    def __getitem__(self, rows: Array | slice) -> Array:
        return self.rows.read(rows).reshape(-1, *self.grid)


@dataclass(frozen=True, slots=True)
class TrainingMatrices:
    """Training snapshots as matrices, with the layouts that label their columns."""

    snapshots: xr.Dataset
    input_layout: Layout
    output_layout: Layout
    inputs: Array  # (M, N), in memory or StoredRows
    outputs: Array  # (M, Ñ), in memory or StoredRows

    def in_memory(self, limit: int | None = None) -> TrainingMatrices:
        """The same with matrices in memory; raises if they need more bytes than `limit`."""
        if isinstance(self.inputs, StoredRows) and isinstance(self.outputs, StoredRows):
            count, cells = self.inputs.shape[0], self.inputs.shape[1] + self.outputs.shape[1]
            needed = IN_MEMORY_BYTES * count * cells
            if limit is not None and needed > limit:
                raise PlumecastError(
                    f"this family holds all {count} snapshots in memory, about "
                    f"{show_memory(needed)}; raise the limit of {show_memory(limit)}, or choose "
                    "the preset recommended or a coded one"
                )
            rows = slice(0, count)
            return replace(self, inputs=self.inputs.read(rows), outputs=self.outputs.read(rows))
        return self

    def on_grids(self) -> tuple[Array, Array]:
        """Inputs and outputs as (M, *grid) fields.

        Several variables on one grid are (M, K, *grid); on different grids they stay flat, (M, N).
        """
        made = []
        pairs = (self.inputs, self.input_layout), (self.outputs, self.output_layout)
        for rows, layout in pairs:
            grid, *others = {part.shape for part in layout.fields}
            if others:
                grid = (layout.size,)
            elif len(layout.fields) > 1:
                grid = (len(layout.fields), *grid)
            stored = isinstance(rows, StoredRows)
            made.append(StoredFields(rows, grid) if stored else rows.reshape(-1, *grid))
        return made[0], made[1]

    def groups(self, by: str) -> list[Array]:
        """The rows of each group, by the grouping coordinate `by`."""
        if by not in self.snapshots.variables:
            raise PlumecastError(
                f"choosing a penalty leaves one '{by}' out at a time, but the training data has no "
                f"such coordinate; add it, leave out single ones with group_by='{SNAPSHOT}', or "
                "give the penalty"
            )
        return group_rows(self.snapshots[by].values)

    def lowest(self, side: Literal["inputs", "outputs"]) -> tuple[str, float]:
        """The input or output with the smallest value; 0 for fields of the contract."""
        layout = self.input_layout if side == "inputs" else self.output_layout
        if all(part.name == FIRE or is_smoke(part.name, part.attrs) for part in layout.fields):
            return layout.names[0], 0.0  # they were checked
        matrix: Rows = getattr(self, side)
        smallest = dict.fromkeys(layout.names, np.inf)
        for rows in row_blocks(matrix.shape[0], _BLOCK):
            parts = zip(layout.names, layout.split(read_rows(matrix, rows)), strict=True)
            for name, values in parts:
                smallest[name] = min(smallest[name], float(values.min()))
        return min(smallest.items(), key=lambda item: item[1])


def check_group_count(count: int, group_by: str) -> None:
    """Raise if there are too few groups to leave one out."""
    if count < 2:
        raise PlumecastError(
            "this surrogate leaves fires out to choose its penalties; it needs at least 2 "
            f"'{group_by}', the training data has {count}; add fires, change --fractions or "
            "--seed of the split, or train on all of them with --all"
        )


def training_size(train: xr.Dataset, inputs: Names, outputs: Names) -> tuple[int, int]:
    """Number of snapshots, and of input and output cells together; missing variables count 0."""
    rows = train.sizes.get(SNAPSHOT, 0)
    known = [train[n] for n in (*field_names(inputs), *field_names(outputs)) if n in train]
    return rows, sum(item.size // max(rows, 1) for item in known)


def training_matrices(
    train: xr.Dataset,
    inputs: Names,
    outputs: Names,
    *,
    stored: bool = False,
    by: str | None = "ignition_id",
    scaled: bool = True,
    runner: Runner | None = None,
) -> TrainingMatrices:
    """Check training snapshots and turn their fields into matrices.

    `scaled` divides each of several outputs by its root mean square (`fit_layout`). With `stored`,
    rows are read from the store when needed, sorted by the grouping coordinate `by`.
    """
    input_names, output_names = field_names(inputs), field_names(outputs)
    train = along_snapshots(train, sample_dimension(train, [*input_names, *output_names]))
    if SNAPSHOT not in train.dims or train.sizes[SNAPSHOT] == 0:
        raise PlumecastError("there are no training snapshots")
    layouts = fit_layout(train, input_names), fit_layout(train, output_names, scaled=scaled)
    check_values(train, [*input_names, *output_names], runner)
    if all(name in train and train[name].dims == TABLE[name].dims for name in WEATHER_NAMES):
        check_weather_values(train)
    check_ground(train)
    if not stored:
        return TrainingMatrices(train, *layouts, *(layout.to_matrix(train) for layout in layouts))
    if by is not None and by in train.variables:
        train = train.isel({SNAPSHOT: np.concatenate(group_rows(train[by].values))})
    return TrainingMatrices(train, *layouts, *(StoredRows(layout, train) for layout in layouts))


def provenance(train: xr.Dataset) -> dict[str, Any]:
    """Provenance of a fit: package and data version, source, number of snapshots, their groups."""
    record: dict[str, Any] = {
        "plumecast": __version__,
        "data_version": train.attrs.get(DATA_VERSION),
        "source": train.attrs.get("source"),
        "snapshots": int(train.sizes[SNAPSHOT]),
    }
    with contextlib.suppress(TypeError, ValueError):  # another source may use the attribute
        simulated = json.loads(train.attrs.get(SIMULATION))  # type: ignore[arg-type]
        record |= {SIMULATION: simulated} if isinstance(simulated, dict) else {}
    for name in ("fire_id", "ignition_id"):
        if name in train.variables:
            record[name] = np.unique(train[name].values.astype(str)).tolist()
    return record
