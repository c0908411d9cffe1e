"""Sizes of stored arrays: absurd ones are refused before memory is asked for, gaps are found."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError

LARGEST_AXIS = 2**24
"""Most values of a coordinate: more snapshots, or cells along an axis, are a damaged number."""

LARGEST_BLOCK = 2**28
"""Most values that are read at once: of a coordinate with several dimensions, or of a chunk."""

_NEVER_EMPTY = ("x", "y", "hours", "burned_area")


def refuse_absurd_shapes(shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise if a variable that is read at once has more values than any grid or store has."""
    for name, shape in shapes.items():
        if len(shape) == 1 and shape[0] > LARGEST_AXIS:
            raise PlumecastError(
                f"'{name}' has {shape[0]:.3g} values, more than {LARGEST_AXIS:.3g}; its metadata "
                "are damaged"
            )
        _refuse_block(name, shape)


def _refuse_block(name: str, shape: Sequence[int]) -> None:
    if math.prod(shape) > LARGEST_BLOCK:
        raise PlumecastError(
            f"'{name}' would be read in pieces of {math.prod(shape):.3g} values, more than "
            f"{LARGEST_BLOCK:.3g}; its metadata are damaged"
        )


def refuse_absurd_zarr(path: Path) -> None:
    """Raise if the metadata of a Zarr store ask for absurd coordinates or chunks."""
    for file in sorted([*path.glob("*/zarr.json"), *path.glob("*/.zarray")]):
        array = _read_json(file)
        shape, chunk = array.get("shape", []), _chunk_shape(array)
        if _all_whole(shape) and len(shape) == 1:
            refuse_absurd_shapes({file.parent.name: shape})
        if _all_whole(chunk):
            _refuse_block(file.parent.name, chunk)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise PlumecastError(
            f"{file} is no valid JSON ({error}); restore it from a copy of the store"
        ) from error
    return content if isinstance(content, dict) else {}


def _chunk_shape(array: Mapping[str, Any]) -> Any:
    """The shape of a chunk, in the metadata of Zarr 2 or 3."""
    part: Any = array.get("chunk_grid", {})
    for key in ("configuration", "chunk_shape"):
        part = part.get(key, {}) if isinstance(part, dict) else {}
    return part or array.get("chunks", [])


def _all_whole(shape: Any) -> bool:
    return isinstance(shape, list) and all(isinstance(size, int) for size in shape)


def refuse_missing_chunks(path: Path, snapshots: xr.Dataset) -> None:
    """Raise if a coordinate of a Zarr store without checksums lacks a chunk: it reads as 0.

    A chunk of zeros may be left out by a writer, so only coordinates that are never all zero or
    empty are looked at.
    """
    import zarr

    group = zarr.open_group(path, mode="r")
    for name, item in snapshots.variables.items():
        never_empty = name in _NEVER_EMPTY or item.dtype.kind in "OTU"
        array = group.get(str(name))
        if never_empty and item.ndim == 1 and isinstance(array, zarr.Array):
            lost = array.nchunks - array.nchunks_initialized
            if lost:
                raise PlumecastError(
                    f"{lost} of {array.nchunks} chunks of '{name}' are missing; restore the store "
                    "from a copy"
                )
