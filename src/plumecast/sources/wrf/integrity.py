"""Is a file a whole NetCDF file that holds what is asked of it?"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from pathlib import Path

import netCDF4

from plumecast.base.errors import PlumecastError

_STREAMING = (2**32 - 1, 2**64 - 1)  # number of records not yet known
_CLASSIC = (b"CDF\1", b"CDF\2", b"CDF\5")  # how versions of the classic format begin
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
        if magic[:4] not in _CLASSIC:
            raise PlumecastError(f"{path}: not a NetCDF file")
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as header:
                missing = _classic_end(header) - size
        except (struct.error, IndexError) as error:
            raise PlumecastError(f"{path}: truncated inside its header; copy it again") from error
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


def _classic_end(header: mmap.mmap) -> int:
    """Bytes a classic NetCDF file must have, from its header (its list of variables)."""
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
