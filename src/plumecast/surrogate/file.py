"""Save and load a fitted value as one safetensors file, without pickle.

A value is a tree of frozen dataclasses, tuples, dictionaries, numbers, texts and arrays. The arrays
become the tensors of the file; everything else goes into its JSON header, with a format version and
a checksum of both. Loading builds only the classes in a given list and runs no code from the file.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.files import atomic_write
from plumecast.base.integrity import digest_of
from plumecast.base.version import __version__

FORMAT = 2
"""The format of the files; those of plumecast 0.1 have format 1 and are not read."""

Classes = Mapping[str, Callable[..., Any]]
"""What builds a value, by the name of its class in the file."""

_KEY = "plumecast"


def save_value(value: Any, path: str | Path) -> Path:
    """Write a dataclass to one file, atomically."""
    import safetensors.numpy

    where = Path(path)
    arrays: dict[str, np.ndarray] = {}
    tree = _flatten(value, "", arrays)
    header = {"format": FORMAT, "version": __version__, "value": tree}
    header["checksum"] = digest_of(header, arrays)
    content = safetensors.numpy.save(arrays, metadata={_KEY: json.dumps(header)})
    with atomic_write(where) as partial:
        partial.write_bytes(content)
    return where


def load_value(path: str | Path, classes: Classes) -> Any:
    """Read a value that `save_value` wrote; raises if it holds other classes than `classes`."""
    header, arrays = _read(Path(path))
    try:
        return _unflatten(header["value"], arrays, classes)
    except PlumecastError as error:
        raise PlumecastError(f"{path}: {error}") from None
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise PlumecastError(
            f"{path} does not describe a known value ({error}); train again"
        ) from error


def is_saved(path: str | Path) -> bool:
    """Whether a file looks like a saved value; reads only its first bytes."""
    with Path(path).open("rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{"  # safetensors: 8 bytes of length, then JSON


def read_header(path: str | Path) -> dict[str, Any]:
    """The verified header of a file: format, version, checksum and the value without its arrays."""
    return _read(Path(path))[0]


def _read(where: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    import safetensors

    needed = "here a surrogate is needed, as `plumecast train` saves"
    if where.is_dir():
        raise PlumecastError(f"{where} is a folder; {needed}")
    if not where.is_file():
        raise PlumecastError(f"{where} does not exist or is not a file")
    with where.open("rb") as file:
        magic = file.read(4)
    if magic == b"\x89HDF" or magic.startswith(b"CDF"):
        raise PlumecastError(f"{where} is a NetCDF file; {needed}")

    try:
        with safetensors.safe_open(where, framework="np") as file:
            metadata = file.metadata() or {}
            # Copied, so that loaded arrays have the memory layout and alignment of fitted ones.
            arrays = {name: np.array(file.get_tensor(name), order="C") for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise PlumecastError(
            f"{where} is truncated, damaged or not a saved surrogate ({error})"
        ) from error
    if _KEY not in metadata:
        raise PlumecastError(f"{where} is a safetensors file, but not one of plumecast's")
    try:
        header = json.loads(metadata[_KEY])
        written, checksum, _ = header["format"], header["checksum"], header["value"]
        covered = {name: header[name] for name in header if name != "checksum"}
        expected = digest_of(covered, arrays)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise PlumecastError(f"{where} has a damaged header; train again") from error
    if written != FORMAT:
        raise PlumecastError(
            f"{where} has format {written} (plumecast {header.get('version')}), this plumecast "
            f"{__version__} reads format {FORMAT}; train again, or use that version of plumecast"
        )
    if checksum != expected:
        raise PlumecastError(f"{where} was altered: its checksum does not match; train again")
    return header, arrays


def _flatten(value: Any, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            item.name: _flatten(getattr(value, item.name), f"{prefix}{item.name}.", arrays)
            for item in dataclasses.fields(value)
            if not (item.default is None and getattr(value, item.name) is None)
        }
        return {"@class": type(value).__name__, **fields}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        name = prefix.rstrip(".")
        arrays[name] = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
        return {"@array": name}
    if isinstance(value, tuple):
        return {"@tuple": [_flatten(v, f"{prefix}{i}.", arrays) for i, v in enumerate(value)]}
    if isinstance(value, Mapping):
        return {str(k): _flatten(v, f"{prefix}{k}.", arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [_flatten(v, f"{prefix}{i}.", arrays) for i, v in enumerate(value)]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{prefix.rstrip('.')}: a {type(value).__name__} cannot be saved")


def _unflatten(tree: Any, arrays: Mapping[str, np.ndarray], classes: Classes) -> Any:
    if isinstance(tree, list):
        return [_unflatten(item, arrays, classes) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "@array" in tree:
        return arrays[tree["@array"]]
    if "@tuple" in tree:
        return tuple(_unflatten(item, arrays, classes) for item in tree["@tuple"])
    items = {k: _unflatten(v, arrays, classes) for k, v in tree.items() if k != "@class"}
    if "@class" not in tree:
        return items
    if tree["@class"] not in classes:
        raise PlumecastError(f"the file holds a '{tree['@class']}', unknown to this plumecast")
    return classes[tree["@class"]](**items)
