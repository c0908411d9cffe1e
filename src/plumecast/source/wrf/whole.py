"""Is a file a whole NetCDF file that holds what is asked of it?"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import netCDF4

from plumecast.errors import PlumecastError

_STREAMING = (2**32 - 1, 2**64 - 1)  # number of records not yet known
_CLASSIC = (1, 2, 5)  # versions of the classic format
_TYPE_BYTES = (0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8)  # by the classic format's type number
_SHOWN = 40  # variables named when one is missing


def open_whole(path: Path, known: set[tuple[bytes, int]]) -> netCDF4.Dataset:
    """The file, or an error that names it; `known` remembers what `check_whole` has seen."""
    check_whole(path, known)
    try:
        return netCDF4.Dataset(path)
    except OSError as error:
        raise PlumecastError(f"{path}: damaged or truncated NetCDF file ({error})") from error


def check_whole(path: Path, known: set[tuple[bytes, int]]) -> None:
    """Refuse what is no NetCDF file, and a classic file shorter than its header says.

    The library reads zeros past the end of a truncated classic file without a word; a truncated
    HDF5-based file it refuses itself. The files of one run differ in values only: one with as many
    records and bytes as another that was whole is whole, so its long header is not read again.
    """
    with path.open("rb") as file:
        magic = file.read(12)
        size = path.stat().st_size
        if magic[1:4] == b"HDF" or (magic, size) in known:
            return
        if magic[:3] != b"CDF" or magic[3] not in _CLASSIC:
            raise PlumecastError(f"{path}: not a NetCDF file")
        missing = _classic_end(file) - size
    if missing > 0:
        raise PlumecastError(f"{path}: truncated, {missing} bytes are missing; copy it again")
    known.add((magic, size))


def require(dataset: netCDF4.Dataset, path: Path, names: Iterable[str]) -> None:
    """Every name is a variable of the file, else an error that says what is there."""
    missing = [name for name in names if name not in dataset.variables]
    if missing:
        there = sorted(dataset.variables)
        more = f" … ({len(there)} in all)" if len(there) > _SHOWN else ""
        found = ", ".join(there[:_SHOWN]) + more
        raise PlumecastError(f"{path}: no variable {', '.join(missing)}; found {found or 'none'}")


def _classic_end(file: BinaryIO) -> int:
    """Bytes a classic NetCDF file must have, from its header (its list of variables)."""
    file.seek(3)
    version = file.read(1)[0]

    def integer(width: int) -> int:
        raw = file.read(width)
        if len(raw) < width:
            raise PlumecastError(f"{file.name}: truncated inside its header; copy it again")
        return int(struct.unpack(">I" if width == 4 else ">Q", raw)[0])

    count_width = 8 if version == 5 else 4
    offset_width = 4 if version == 1 else 8

    def count() -> int:
        return integer(count_width)

    def skip(size: int) -> None:
        file.seek(size + -size % 4, 1)

    def items() -> range:
        integer(4)  # the list's tag
        return range(count())

    def skip_attributes() -> None:
        for _ in items():
            skip(count())
            kind = integer(4)
            if kind >= len(_TYPE_BYTES):
                raise PlumecastError(f"{file.name}: its header is damaged; copy it again")
            skip(_TYPE_BYTES[kind] * count())

    records = count()
    lengths: list[int] = []
    for _ in items():
        skip(count())
        lengths.append(count())
    skip_attributes()
    fixed_end, record_ends, record_size = 0, [0], 0
    for _ in items():
        skip(count())
        dims = [count() for _ in range(count())]
        skip_attributes()
        integer(4)  # type
        size, begin = count(), integer(offset_width)
        if dims and lengths[dims[0]] == 0:
            record_ends.append(begin + size)
            record_size += size
        else:
            fixed_end = max(fixed_end, begin + size)
    if records in (0, *_STREAMING):
        return fixed_end
    return max(fixed_end, max(record_ends) + (records - 1) * record_size)
