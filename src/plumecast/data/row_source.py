"""Matrices whose rows are read from a store when needed, and the smoke floor applied on reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.data.layout import Layout
from plumecast.data.lazy_store import check_unchanged, lazy_variable
from plumecast.data.schema import SMOKE_FLOOR, check_floor


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
class _Floored:
    """Reads a stored variable and sets values below a floor to zero."""

    variable: xr.Variable
    floor: float

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        values = np.asarray(self.variable[key].values)
        return np.where(values < self.floor, 0.0, values).astype(values.dtype, copy=False)


def floor_as_read(snapshots: xr.Dataset, floor: float, name: str = SMOKE) -> xr.Dataset:
    """`apply_smoke_floor` for lazily read fields: the floor is applied on reading."""
    check_floor(floor)
    smoke = snapshots[name].variable
    lazy = lazy_variable(smoke, _Floored(smoke, floor))
    lazy.attrs[SMOKE_FLOOR] = floor
    return snapshots.assign({name: lazy})
