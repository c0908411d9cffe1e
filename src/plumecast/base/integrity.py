"""What was written is what is read: checksums of arrays, values and files, and their errors.

A snapshot store has a CRC-32 of every field of every snapshot (`data.checksums`). A NetCDF file
ends with the hash of all its bytes, and a saved surrogate has that of its values in its header.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError, PlumecastWarning

RESTORE = "restore it from a copy, or make it again from its sources"
"""What to do about a damaged store."""


_LONGEST_REASON = 200  # characters of an error; some libraries quote whole files
_MARK = b"\nplumecast sha256 "
_LENGTH = len(_MARK) + 64
_PART = 6  # bytes of the mark by which a truncated seal is known
_BLOCK = 1 << 24  # bytes read at once


class DamagedError(PlumecastError):
    """A store does not hold what was written to it."""


class ChangedWarning(PlumecastWarning):
    """The attributes of a store were changed after it was written."""


def is_damage(error: Exception) -> bool:
    """Whether Zarr, Icechunk, their codecs and the NetCDF library raise this for damaged data.

    They parse metadata without checking it first, so that any of these may come up. A panic of the
    Rust code of Icechunk has a class that cannot be imported.
    """
    import icechunk

    known = (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError,
            RuntimeError, ArithmeticError, MemoryError, ImportError, struct.error,
            icechunk.IcechunkError)  # fmt: skip
    return isinstance(error, known) or type(error).__name__ == "RustPanic"


def short_reason(error: Exception) -> str:
    """The first line of an error, or its kind if it says nothing."""
    lines = [line.strip(" x×|") for line in str(error).splitlines() if line.strip(" x×|")]
    return lines[0][:_LONGEST_REASON] if lines else type(error).__name__


def field_checksums(values: np.ndarray) -> np.ndarray:
    """(M,) CRC-32 of each row of a field (M, …), of its bytes in little-endian order."""
    rows = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    data = rows.reshape(rows.shape[0], math.prod(rows.shape[1:])).view(np.uint8)
    return np.array([zlib.crc32(row) for row in data], dtype=np.uint32)  # type: ignore[arg-type]


def digest_of(record: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of plain values and of named arrays with their types and shapes."""
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return f"sha256:{digest.hexdigest()}"


def seal(path: Path) -> None:
    """Append the hash of a finished NetCDF file, after its end.

    HDF5 trusts the addresses in a file: in a damaged one it may loop for ever or crash. A hash that
    is checked first keeps damaged files away from it. HDF5 ignores bytes after the end of its data,
    and drops them when a program changes the file: a changed file has no seal, not a wrong one.
    """
    digest = hashlib.sha256()
    with path.open("r+b") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
        file.write(_MARK + digest.hexdigest().encode())


def check_seal(path: Path) -> str:
    """The hash of a file without its seal; raises if the seal, where there is one, does not fit."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left = path.stat().st_size - _LENGTH
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
        sealed, end = digest.hexdigest(), file.read()
    if end == _MARK + sealed.encode():
        return sealed
    if _MARK in end or any(end.endswith(_MARK[:count]) for count in range(_PART, len(_MARK))):
        raise DamagedError(f"{path} is damaged or truncated: its hash differs; {RESTORE}")
    digest.update(end)
    return digest.hexdigest()
