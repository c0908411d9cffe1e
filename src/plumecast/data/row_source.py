"""Fields that stay in their store: matrices read by rows, smoke floors applied on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import Runner
from plumecast.data.layout import Layout
from plumecast.data.lazy_store import lazy_variable
from plumecast.data.schema import SMOKE_FLOOR, check_floor
from plumecast.data.unchanged import check_unchanged


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The (M, N) matrix of a layout's fields, read from their store by rows."""

    layout: Layout
    snapshots: xr.Dataset
    runner: Runner | None = None  # who works on blocks of these rows; None: this process

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, N)."""
        return (int(self.snapshots.sizes[SNAPSHOT]), self.layout.size)

    def read(self, rows: slice | Array) -> Array:
        """The rows as a float64 matrix; a store that changed since it was opened is refused."""
        check_unchanged(self.snapshots)
        return self.layout.to_matrix(self.snapshots.isel({SNAPSHOT: rows}))


@dataclass(frozen=True, slots=True)
class StoredFields:
    """(M, *grid) fields of one variable; indexed by rows, it reads them."""

    rows: StoredRows
    grid: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, *grid)."""
        return (self.rows.shape[0], *self.grid)

    @property
    def runner(self) -> Runner | None:
        """Who works on blocks of these rows."""
        return self.rows.runner

    def __getitem__(self, rows: Array | slice) -> Array:
        return self.rows.read(rows).reshape(-1, *self.grid)


@dataclass(frozen=True, slots=True)
class _Floored:
    """A stored variable whose values below a floor read as zero."""

    variable: xr.Variable
    floor: float

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        values = np.asarray(self.variable[key].values)
        return np.where(values < self.floor, 0.0, values).astype(values.dtype, copy=False)


def floor_as_read(snapshots: xr.Dataset, floor: float, name: str = SMOKE) -> xr.Dataset:
    """`apply_smoke_floor` for fields that stay in their store: applied to what is read."""
    check_floor(floor)
    smoke = snapshots[name].variable
    lazy = lazy_variable(smoke, _Floored(smoke, floor))
    lazy.attrs[SMOKE_FLOOR] = floor
    return snapshots.assign({name: lazy})
