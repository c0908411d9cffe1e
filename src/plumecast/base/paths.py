"""Paths that a user names (a file, folder, glob or list) and paths that are sent to workers."""

from __future__ import annotations

import mmap
import platform
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from plumecast.base.errors import PlumecastError

_STREAMING = (2**32 - 1, 2**64 - 1)  # record count of a file whose writer did not know it
_CLASSIC = (b"CDF\1", b"CDF\2", b"CDF\5")  # first bytes of the versions of the classic format
_TYPE_BYTES = (0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8)  # size of each type number of the classic format

Paths: TypeAlias = str | Path | Sequence[str | Path]


def find_files(paths: Paths, *, belongs: Callable[[Path], bool], nothing: str) -> list[Path]:
    """The files that `paths` names, sorted by name or in the order of a list.

    A folder means those of its entries that `belongs` accepts. If nothing is found, the error ends
    with the text `nothing`. An entry of a list that matches nothing is kept, so that the reader's
    error names it.
    """
    if isinstance(paths, str | Path):
        found = _matching(Path(paths), belongs)
    else:
        found = [file for path in paths for file in _matching(Path(path), belongs) or [Path(path)]]
    if not found:
        raise PlumecastError(f"{paths}: {nothing}")
    return found


def check_regular(path: str | Path) -> Path:
    """The path; raises if it is neither a file nor a folder, such as a pipe or a device.

    Opening a pipe (FIFO) that nobody writes to would wait for ever. A path that does not exist is
    left to the reader.
    """
    where = Path(path)
    if where.exists() and not where.is_file() and not where.is_dir():
        raise PlumecastError(
            f"{where} is a pipe, socket or device; write its content to a file and give that"
        )
    return where


class WorkerPath(NamedTuple):
    """A path to read in this process or on a worker, perhaps one on another machine."""

    path: Path
    must_exist: bool = False  # the submitting process saw it

    def checked(self) -> Path:
        """The path; raises if this machine cannot see a path that the submitting process saw."""
        if self.must_exist:
            check_visible(self.path)
        return self.path


def worker_path(path: str | Path, *, remote: bool) -> WorkerPath:
    """The path as given or, if workers read it, absolute: they may run in another folder."""
    given = Path(path)
    return WorkerPath(given.absolute(), _exists(given)) if remote else WorkerPath(given)


def check_visible(path: str | Path) -> None:
    """Raise if this machine cannot see a file or folder that the submitting process saw."""
    if not _exists(Path(path)):
        raise PlumecastError(
            f"{path} is not there on {platform.node()}: it was moved or removed, or this cluster "
            "worker does not share the file system of the process that submitted the work"
        )


def _exists(path: Path) -> bool:
    """Whether a path is a file or a folder that is not empty.

    Some libraries create the folder that they look for, so an empty one does not count.
    """
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _matching(path: Path, belongs: Callable[[Path], bool]) -> list[Path]:
    if path.is_dir():
        return sorted(entry for entry in path.iterdir() if belongs(entry))
    if path.exists():
        return [path]
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


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
