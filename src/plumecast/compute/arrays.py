"""Arrays of the numerics: NumPy by default, any namespace of the array-API standard otherwise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

import array_api_compat
import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace as array_namespace
from array_api_compat import is_array_api_obj as is_array_api_obj
from array_api_compat import is_cupy_array as is_cupy_array
from array_api_compat import is_numpy_array as is_numpy_array
from array_api_compat import is_numpy_namespace as is_numpy_namespace
from array_api_compat import is_torch_array as is_torch_array

device_of = array_api_compat.device

Array: TypeAlias = Any
"""An array of any array-API namespace; shapes are given in the docstrings."""

Field: TypeAlias = npt.NDArray[np.float64]
"""Real values on a grid, along a profile or in time; comments give the shape and the unit."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""True or false for every cell."""

_Value = TypeVar("_Value")


class RowSource(Protocol):
    """A matrix whose rows are read slice by slice, for instance from a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, N)."""
        ...

    def read(self, rows: slice) -> Array:
        """The rows as an array."""
        ...


Rows: TypeAlias = Array | RowSource
"""An in-memory matrix, or one whose rows are read slice by slice."""


def read_rows(matrix: Rows, rows: slice) -> Array:
    """A slice of the rows of a matrix, as an array."""
    if is_array_api_obj(matrix):
        return matrix[rows, ...]  # type: ignore[index]
    return matrix.read(rows)


def contiguous(array: Array) -> Array:
    """The array in row-major order.

    BLAS may round differently in another order, and saved arrays are loaded in this one.
    """
    if is_numpy_array(array):
        return np.ascontiguousarray(array)
    if is_cupy_array(array):
        import cupy

        return cupy.ascontiguousarray(array)
    return array.contiguous() if is_torch_array(array) else array


def like(values: Any, other: Array, dtype: Any = None) -> Array:
    """Values as an array in the namespace and on the device of `other`."""
    if is_numpy_array(other):
        return np.asarray(values, dtype=dtype)
    return array_namespace(other).asarray(values, dtype=dtype, device=device_of(other))


def to_complex(real: Array, imaginary: Array) -> Array:
    """Single-precision complex array from its real and imaginary parts, in one pass."""
    if is_numpy_array(real):
        out = np.empty(real.shape, dtype=np.complex64)
        out.real, out.imag = real, imaginary
        return out
    xp = array_namespace(real)
    if is_torch_array(real):
        return xp.complex(real, imaginary)
    return xp.astype(real, xp.complex64) + 1j * xp.astype(imaginary, xp.complex64)


def as_pair(array: Array) -> Array:
    """(…) complex → (…, 2) real and imaginary parts."""
    if is_numpy_array(array):
        return np.ascontiguousarray(array).view(array.real.dtype).reshape(*array.shape, 2)
    xp = array_namespace(array)
    if is_torch_array(array):
        return xp.view_as_real(array)
    return xp.stack([xp.real(array), xp.imag(array)], axis=-1)


def clip(array: Array, lowest: float, highest: float) -> Array:
    """min(max(array, lowest), highest).

    The methods of NumPy and CuPy arrays need one pass, the array-API function several.
    """
    if is_numpy_array(array) or is_cupy_array(array):
        return array.clip(lowest, highest)
    return array_namespace(array).clip(array, lowest, highest)


def take_rows(array: Array, rows: np.ndarray) -> Array:
    """The rows of an array by their indices, which are on the host."""
    if is_numpy_array(array):
        return array[rows]
    return array_namespace(array).take(array, like(rows, array), axis=0)


def assembled(
    parts: Iterable[tuple[np.ndarray, Array]], shape: tuple[int, ...], other: Array
) -> Array:
    """Float32 array on the device of `other`, from parts (row indices, values of those rows).

    Parts may come in any order, but every row must be given exactly once. On the host they are
    written as they arrive, so that only one part is in memory beside the result.
    """
    if is_numpy_array(other):
        out = np.empty(shape, dtype=np.float32)
        for rows, values in parts:
            out[rows] = values
        return out
    xp = array_namespace(other)
    indices, blocks = [np.empty(0, dtype=np.int64)], []
    for rows, values in parts:
        indices.append(rows)
        blocks.append(xp.astype(values, xp.float32, copy=False))
    if not blocks:
        return xp.zeros(shape, dtype=xp.float32, device=device_of(other))
    order = np.argsort(np.concatenate(indices))
    joined = xp.concat(blocks, axis=0)
    in_order = bool(np.all(np.diff(order) == 1))
    return joined if in_order else take_rows(joined, order)


def positive_part(array: Array) -> Array:
    """max(array, 0); a NumPy array is overwritten."""
    if is_numpy_array(array):
        return np.maximum(array, 0.0, out=array)
    return array_namespace(array).clip(array, 0.0, None)


def bincount(index: Array, length: int, weights: Array | None = None) -> Array:
    """(length,) number of occurrences of 0…length−1, or sums of their weights, on the device.

    The array API has no such function; namespaces other than NumPy, PyTorch and CuPy count on
    the host.
    """
    xp = array_namespace(index)
    if _beyond_standard(index):
        return xp.bincount(index, weights, minlength=length)
    own = None if weights is None else to_numpy(weights)
    return like(np.bincount(to_numpy(index), own, minlength=length), index)


def write_sum(out: Array, one: Array, other: Array) -> None:
    """Write one + other into `out`, a view of an array, without a copy where there is a way."""
    if _beyond_standard(out):
        array_namespace(out).add(one, other, out=out)
    else:
        out[...] = one + other


def write_difference(out: Array, one: Array, other: Array) -> None:
    """Write one − other into `out`, as `write_sum` does."""
    if _beyond_standard(out):
        array_namespace(out).subtract(one, other, out=out)
    else:
        out[...] = one - other


def _beyond_standard(array: Array) -> bool:
    """Whether the namespace has `bincount` and the argument `out`, which the standard lacks."""
    return bool(is_numpy_array(array) or is_torch_array(array) or is_cupy_array(array))


def to_numpy(array: Array) -> np.ndarray:
    """The array on the host, as a NumPy array."""
    if is_torch_array(array):
        host: np.ndarray = array.detach().cpu().numpy()
        return host
    if is_cupy_array(array):
        copied: np.ndarray = array.get()
        return copied
    return np.asarray(array)


def arrays_in(value: Any) -> Iterator[Array]:
    """Every array in a tree of dataclasses, tuples and dictionaries."""
    if is_array_api_obj(value):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from arrays_in(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays_in(item)
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))


def bytes_in(tree: Any) -> int:
    """Bytes of all arrays in a tree."""
    return sum(math.prod(a.shape) * getattr(a.dtype, "itemsize", 8) for a in arrays_in(tree))


def to_device_of(tree: Any, values: np.ndarray) -> Array:
    """NumPy values on the device and in the precision of the tree's first floating-point array."""
    for array in arrays_in(tree):
        if array_namespace(array).isdtype(array.dtype, "real floating"):
            # Converted on the device: fewer bytes are copied, and the host is slower at it.
            placed = like(values, array)
            return array_namespace(placed).astype(placed, array.dtype, copy=False)
    return values


def map_arrays(value: _Value, change: Callable[[Array], Array]) -> _Value:
    """The same tree of dataclasses, tuples and dictionaries with every array changed."""
    if is_array_api_obj(value):
        changed: _Value = change(value)
        return changed
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: map_arrays(getattr(value, field.name), change)
            for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **fields)
    if isinstance(value, tuple | list):
        return type(value)(map_arrays(item, change) for item in value)
    if isinstance(value, dict):
        return type(value)({k: map_arrays(item, change) for k, item in value.items()})
    return value
