"""The only bridge between labelled fields and (M, N) matrices whose rows are snapshots.

A layout records what the columns mean: the variables, their grids and units. It turns fields into
a matrix, and back, by a transpose and a reshape.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.data.schema import same_unit

GRID_TOLERANCE = 1e-6
"""Two grids are the same if their coordinates agree to this fraction of the largest coordinate
(rounding to float32 changes them by about a tenth of that)."""

LARGEST = 1e18
"""Values beyond it are no data: fill values are 9.97e36 or 1e20. Their squares fit into float32."""

_BLOCK = 256  # snapshots read at once, because a field may be larger than memory


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A numeric coordinate of a grid: its dimensions, values and attributes."""

    dims: tuple[str, ...]
    values: Array
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Field:
    """One variable on one grid, without the values of its snapshots."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    attrs: dict[str, Any]
    coords: dict[str, Coordinate]
    scale: float = 1.0  # the matrix holds values divided by it

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a matrix: one or several fields side by side."""

    fields: tuple[Field, ...]

    @property
    def size(self) -> int:
        """Number of columns N."""
        return sum(part.size for part in self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables in the order of their columns."""
        return tuple(part.name for part in self.fields)

    def __str__(self) -> str:
        """The fields with their grids, as in "smoke (y: 80, x: 100)"."""
        sizes = [zip(part.dims, part.shape, strict=True) for part in self.fields]
        grids = [", ".join(f"{dim}: {count}" for dim, count in grid) for grid in sizes]
        return ", ".join(f"{name} ({grid})" for name, grid in zip(self.names, grids, strict=True))

    def to_matrix(
        self, data: Mapping[Hashable, xr.DataArray] | xr.Dataset, *, as_stored: bool = False
    ) -> Array:
        """Labelled fields on this layout's grids → float64 matrix (M, N).

        With `as_stored`, a single field in float32 that is not scaled stays so.
        """
        blocks: list[Array] = []
        lead: list[Hashable] | None = None
        for part in self.fields:
            if part.name not in data:
                raise PlumecastError(
                    f"variable '{part.name}' is missing; found {sorted(map(str, data))}"
                )
            array = checked_field(data[part.name], part)
            lead = leading_dims(array, part) if lead is None else lead
            single = as_stored and len(self.fields) == 1 and array.dtype == np.float32
            values = to_rows(array, part, lead, np.float32 if single else np.float64)
            blocks.append(values if part.scale == 1.0 else values / np.float64(part.scale))
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)

    def split(self, matrix: Array) -> list[Array]:
        """(M, N) matrix → one (M, *shape) array per field, in its own units."""
        ends = np.cumsum([part.size for part in self.fields])[:-1]
        return [
            (block if part.scale == 1.0 else block * part.scale).reshape(-1, *part.shape)
            for part, block in zip(self.fields, np.split(matrix, ends, axis=1), strict=True)
        ]


def fit_layout(data: xr.Dataset, names: Sequence[str], *, scaled: bool = True) -> Layout:
    """The layout of the named variables of a data set, sampled along `snapshot`.

    Several variables are each divided by their root mean square, so that the basis does not depend
    on their units, unless `scaled` is False. A single variable is not scaled.
    """
    fields = []
    for name in names:
        if name not in data:
            raise PlumecastError(
                f"variable '{name}' is missing; found {sorted(map(str, data.data_vars))}"
            )
        array = data[name]
        if SNAPSHOT not in array.dims:
            raise PlumecastError(
                f"variable '{name}' has no dimension '{SNAPSHOT}': {array.dims}; name the sample "
                "dimension with sample_dim=…"
            )
        fields.append(_describe(array, scale=_rms(array) if scaled and len(names) > 1 else 1.0))
    return Layout(tuple(fields))


def _rms(array: xr.DataArray) -> float:
    total = 0.0
    for start in range(0, array.sizes[SNAPSHOT], _BLOCK):
        values = array.isel({SNAPSHOT: slice(start, start + _BLOCK)}).values
        total += float(np.sum(np.square(values, dtype=np.float64)))
    size = math.sqrt(total / array.size)
    if size == 0.0:
        raise PlumecastError(f"variable '{array.name}' is zero in every snapshot; leave it out")
    return size


def _describe(array: xr.DataArray, scale: float) -> Field:
    dims = tuple(str(dim) for dim in array.dims if dim != SNAPSHOT)
    # Those of the dimensions first, then the others by name: the order in which Zarr lists the
    # variables of a store varies between openings.
    names = [*(dim for dim in dims if dim in array.coords)]
    names += sorted({str(name) for name in array.coords} - set(dims))
    coords = {
        str(name): Coordinate(
            tuple(map(str, coord.dims)), np.asarray(coord.values), dict(coord.attrs)
        )
        for name, coord in ((name, array.coords[name]) for name in names)
        if set(coord.dims) <= set(dims) and coord.dtype.kind in "fiu"
    }
    shape = tuple(array.sizes[dim] for dim in dims)
    return Field(str(array.name), dims, shape, dict(array.attrs), coords, scale)


def checked_field(array: xr.DataArray, expected: Field) -> xr.DataArray:
    """The array itself; raises if its grid or its units are not the expected ones."""
    if any(dim not in array.dims for dim in expected.dims):
        raise PlumecastError(
            f"'{expected.name}' needs the dimensions {expected.dims}, but got {tuple(array.dims)}"
        )
    shape = tuple(array.sizes[dim] for dim in expected.dims)
    if shape != expected.shape:
        raise PlumecastError(
            f"'{expected.name}' is on another grid: {expected.dims} = {shape}, the surrogate has "
            f"{expected.shape}; regrid the field first"
        )
    for dim in expected.dims:
        if dim not in array.coords or dim not in expected.coords:
            continue
        places, wanted = array.coords[dim].values.astype(np.float64), expected.coords[dim].values
        step = float(np.min(np.abs(np.diff(wanted)))) if wanted.size > 1 else 1.0
        apart = float(np.max(np.abs(places - wanted)))
        if not apart <= GRID_TOLERANCE * max(step, float(np.max(np.abs(wanted)))):
            raise PlumecastError(
                f"'{expected.name}' is on another grid: its coordinate '{dim}' differs by up to "
                f"{apart:g} from the surrogate's ({wanted[0]:g} … {wanted[-1]:g}); regrid the "
                "field first"
            )
    units, wanted_unit = array.attrs.get("units"), expected.attrs.get("units")
    if units is not None and wanted_unit is not None and not same_unit(units, wanted_unit):
        raise PlumecastError(
            f"'{expected.name}' is in '{units}', the surrogate expects '{wanted_unit}'"
        )
    return array


def leading_dims(array: xr.DataArray, expected: Field) -> list[Hashable]:
    """The sample dimensions of an array, in order: those that are not dimensions of its grid."""
    return [dim for dim in array.dims if dim not in expected.dims]


def to_rows(
    array: xr.DataArray,
    expected: Field,
    lead: Sequence[Hashable],
    dtype: type[np.floating[Any]] = np.float64,
) -> Array:
    """A field → (M, N) with the sample dimensions `lead` flattened; all must be finite."""
    if set(lead) != set(leading_dims(array, expected)):
        raise PlumecastError(
            f"'{expected.name}' has dimensions {array.dims}; all inputs must have the same sample "
            f"dimensions {tuple(lead)}"
        )
    values = array.transpose(*lead, *expected.dims).values
    if values.dtype.kind not in "fiu":
        raise PlumecastError(f"'{expected.name}' holds {values.dtype}, not numbers")
    rows = np.ascontiguousarray(values, dtype=dtype).reshape(-1, expected.size)
    _check_rows(rows, expected)
    return rows


def _check_rows(rows: Array, expected: Field) -> None:
    """Raise for a value that is NaN, infinite, a fill value, or a negative time since ignition."""
    least = 0.0 if expected.name == FIRE else -LARGEST
    if not rows.size or (rows.min() >= least and rows.max() <= LARGEST):  # False for NaN
        return
    for wrong, what, advice in (
        (~np.isfinite(rows), "NaN or infinite values", "; fill or drop them"),
        (
            np.abs(rows) > LARGEST,
            f"values beyond ±{LARGEST:g}",
            ": fill values of a file? Fill or drop them",
        ),
        (rows < 0.0, "negative values", "; it counts from ignition and is 0 where unburned"),
    ):
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            cell = ", ".join(map(str, np.array(np.unravel_index(column, expected.shape)).tolist()))
            raise PlumecastError(
                f"'{expected.name}' holds {np.count_nonzero(wrong)} {what}, first in row {row}, "
                f"cell ({cell}): {rows[row, column]:g}{advice}"
            )


def grid_template(field: Field) -> xr.Dataset:
    """The coordinates of a field's grid, as a target for regridding."""
    return xr.Dataset(
        coords={name: (part.dims, part.values, part.attrs) for name, part in field.coords.items()}
    )


def from_rows(
    rows: Array, expected: Field, like: xr.DataArray, lead: Sequence[Hashable]
) -> xr.DataArray:
    """(M, *shape) values → a field on the expected grid, with the sample coordinates of `like`."""
    sizes = [like.sizes[dim] for dim in lead]
    coords: dict[Hashable, Any] = {
        name: (part.dims, part.values, part.attrs) for name, part in expected.coords.items()
    }
    coords |= {
        name: coord
        for name, coord in like.coords.items()
        if set(coord.dims) <= set(lead) and name not in coords
    }
    return xr.DataArray(
        rows.reshape(*sizes, *expected.shape),
        dims=[*lead, *expected.dims],
        coords=coords,
        name=expected.name,
        attrs=dict(expected.attrs),
    )
