"""The array type of the numerics: NumPy by default, any array-API namespace in principle."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_numpy_array, is_numpy_namespace, is_torch_array

Array: TypeAlias = Any
"""An array of any array-API namespace; shapes are given in the docstrings."""


def contiguous(array: Array) -> Array:
    """The array in row-major order: what is saved and what is used then multiply alike."""
    if is_numpy_array(array):
        return np.ascontiguousarray(array)
    return array.contiguous() if is_torch_array(array) else array


__all__ = ["Array", "array_namespace", "contiguous", "is_numpy_namespace"]
