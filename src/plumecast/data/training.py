"""Training snapshots as matrices, in memory or read from their store, and their provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SIMULATION, SNAPSHOT, is_smoke
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array, Rows, read_rows
from plumecast.compute.blocks import Runner, row_blocks
from plumecast.compute.memory import show_memory
from plumecast.data.layout import Layout, fit_layout
from plumecast.data.row_source import StoredFields, StoredRows
from plumecast.data.samples import along_snapshots, field_names, sample_dimension
from plumecast.data.schema import check_values
from plumecast.data.split import group_rows
from plumecast.data.store import DATA_VERSION

IN_MEMORY_BYTES = 40
"""Bytes of working memory per field value for families that need all snapshots in memory."""

_BLOCK = 256  # snapshots read at once


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
        return _on_grid(self.inputs, self.input_layout), _on_grid(self.outputs, self.output_layout)

    def groups(self, by: str) -> list[Array]:
        """The rows of each group, by the grouping coordinate `by`."""
        if by not in self.snapshots.variables:
            raise PlumecastError(
                f"choosing a penalty leaves one '{by}' out at a time, but the training data has no "
                f"such coordinate; add it, leave out single ones with group_by='{SNAPSHOT}', or "
                "give the penalty"
            )
        return group_rows(self.snapshots[by].values)

    def lowest_input(self) -> tuple[str, float]:
        """The input with the smallest value, and that value."""
        return _lowest(self.inputs, self.input_layout)

    def lowest_output(self) -> tuple[str, float]:
        """The output with the smallest value, and that value."""
        return _lowest(self.outputs, self.output_layout)


def _lowest(matrix: Rows, layout: Layout) -> tuple[str, float]:
    """The field with the smallest value; 0 for fields of the contract, which were checked."""
    if all(part.name == FIRE or is_smoke(part.name, part.attrs) for part in layout.fields):
        return layout.names[0], 0.0
    smallest = dict.fromkeys(layout.names, np.inf)
    for rows in row_blocks(matrix.shape[0], _BLOCK):
        for name, values in zip(layout.names, layout.split(read_rows(matrix, rows)), strict=True):
            smallest[name] = min(smallest[name], float(values.min()))
    name = min(smallest, key=lambda name: smallest[name])
    return name, smallest[name]


def _on_grid(rows: Array | StoredRows, layout: Layout) -> Array:
    shapes = {part.shape for part in layout.fields}
    grid = (layout.size,) if len(shapes) > 1 else layout.fields[0].shape
    if len(shapes) == 1 and len(layout.fields) > 1:
        grid = (len(layout.fields), *grid)
    return StoredFields(rows, grid) if isinstance(rows, StoredRows) else rows.reshape(-1, *grid)


def training_size(
    train: xr.Dataset, inputs: str | Sequence[str], outputs: str | Sequence[str]
) -> tuple[int, int]:
    """Number of snapshots, and of input and output cells together; missing variables count 0."""
    rows = train.sizes.get(SNAPSHOT, 0)
    known = [train[n] for n in (*field_names(inputs), *field_names(outputs)) if n in train]
    return rows, sum(item.size // max(rows, 1) for item in known)


def training_matrices(
    train: xr.Dataset,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
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
    input_layout = fit_layout(train, input_names)
    output_layout = fit_layout(train, output_names, scaled=scaled)
    check_values(train, [*input_names, *output_names], runner)
    if stored:
        if by is not None and by in train.variables:
            train = train.isel({SNAPSHOT: np.concatenate(group_rows(train[by].values))})
        return TrainingMatrices(
            snapshots=train,
            input_layout=input_layout,
            output_layout=output_layout,
            inputs=StoredRows(input_layout, train),
            outputs=StoredRows(output_layout, train),
        )
    return TrainingMatrices(
        snapshots=train,
        input_layout=input_layout,
        output_layout=output_layout,
        inputs=input_layout.to_matrix(train),
        outputs=output_layout.to_matrix(train),
    )


def provenance(train: xr.Dataset) -> dict[str, Any]:
    """Provenance of a fit: package and data version, source, number of snapshots, their groups."""
    record: dict[str, Any] = {
        "plumecast": __version__,
        "data_version": train.attrs.get(DATA_VERSION),
        "source": train.attrs.get("source"),
        "snapshots": int(train.sizes[SNAPSHOT]),
    }
    simulated = _simulation(train.attrs.get(SIMULATION))
    if simulated is not None:
        record[SIMULATION] = simulated
    for name in ("fire_id", "ignition_id"):
        if name in train.variables:
            record[name] = np.unique(train[name].values.astype(str)).tolist()
    return record


def _simulation(text: Any) -> dict[str, Any] | None:
    """The embedded simulator's settings; None if another source uses the attribute differently."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return None
    return found if isinstance(found, dict) else None
