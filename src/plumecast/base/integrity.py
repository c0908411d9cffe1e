"""What was written is what is read: checksums of arrays, values and files, and their errors.

A snapshot store has a CRC-32 of every field of every snapshot (`data.checksums`). A NetCDF file
ends with the hash of all its bytes, and a saved surrogate has that of its values in its header.
What a check finds in a fire is a `Finding`.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
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
    if isinstance(error, UnicodeEncodeError):  # of a path that the library cannot take
        return False
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


# -- a NetCDF file that is complete: the NetCDF library reads zeros past a truncated end

_STREAMING = (2**32 - 1, 2**64 - 1)  # record count of a file whose writer did not know it
_CLASSIC = (b"CDF\1", b"CDF\2", b"CDF\5")  # first bytes of the versions of the classic format
_TYPE_BYTES = (0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8)  # size of each type number of the classic format


def check_complete(path: Path, known: set[tuple[bytes, int]]) -> None:
    """Raise if the file is not NetCDF, or is a classic file shorter than its header requires.

    The NetCDF library silently reads zeros past the end of a truncated classic file; it detects a
    truncated HDF5-based file itself. The files of one run have equal headers. A file with the same
    first bytes (format and record count) and size as a complete one is therefore complete, and its
    long header is not read again. `known` stores these pairs.
    """
    with path.open("rb") as file:
        magic = file.read(12)
        size = path.stat().st_size
        if magic[1:4] == b"HDF" or (magic, size) in known:
            return
        if magic[:4] not in _CLASSIC:
            raise PlumecastError(f"{path}: not a NetCDF file")
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as header:
                missing = _classic_end(header) - size
        except (struct.error, IndexError, ValueError) as error:  # ValueError: an empty file
            raise PlumecastError(f"{path}: truncated inside its header; copy it again") from error
    if missing > 0:
        raise PlumecastError(f"{path}: truncated, {missing} bytes are missing; copy it again")
    known.add((magic, size))


def _classic_end(header: mmap.mmap) -> int:
    """Size in bytes that the header (list of variables) of a classic NetCDF file implies."""
    version, at = header[3], 4
    number = struct.Struct(">Q" if version == 5 else ">I")
    offset = struct.Struct(">I" if version == 1 else ">Q")
    tag = struct.Struct(">I")

    def integer(kind: struct.Struct) -> int:
        nonlocal at
        at += kind.size
        return int(kind.unpack_from(header, at - kind.size)[0])

    def skip(size: int) -> None:
        nonlocal at
        at += size + -size % 4

    def items() -> range:
        integer(tag)
        return range(integer(number))

    def skip_attributes() -> None:
        for _ in items():
            skip(integer(number))
            size = _TYPE_BYTES[integer(tag)]
            skip(size * integer(number))

    records = integer(number)
    lengths: list[int] = []
    for _ in items():
        skip(integer(number))
        lengths.append(integer(number))
    skip_attributes()
    fixed_end, record_ends, record_size = 0, [0], 0
    for _ in items():
        skip(integer(number))
        dims = [integer(number) for _ in range(integer(number))]
        skip_attributes()
        integer(tag)  # type
        size, begin = integer(number), integer(offset)
        if dims and lengths[dims[0]] == 0:
            record_ends.append(begin + size)
            record_size += size
        else:
            fixed_end = max(fixed_end, begin + size)
    if records in (0, *_STREAMING):
        return fixed_end
    return max(fixed_end, max(record_ends) + (records - 1) * record_size)


# -- what a check found, as readers and stores report it

PASSED = "passed"
"""The recorded text of a fire without findings."""

_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem that a check found in a fire."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def write_findings(findings: tuple[Finding, ...]) -> str:
    """The findings of a fire as one text, for a store."""
    return _SEPARATOR.join(map(str, findings)) or PASSED


def read_findings(text: str) -> tuple[Finding, ...]:
    """The findings that `write_findings` wrote."""
    if text == PASSED:
        return ()
    return tuple(
        Finding(check, message)
        for check, _, message in (part.partition(": ") for part in text.split(_SEPARATOR))
    )
