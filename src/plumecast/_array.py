"""The array type of the numerics: NumPy by default, any array-API namespace in principle."""

from __future__ import annotations

from typing import Any, TypeAlias

from array_api_compat import array_namespace, is_numpy_namespace

Array: TypeAlias = Any
"""An array of any array-API namespace; shapes are given in the docstrings."""

__all__ = ["Array", "array_namespace", "is_numpy_namespace"]
