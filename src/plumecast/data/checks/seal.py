"""The seal of a NetCDF file: the hash of all its bytes, after its end.

HDF5 trusts the addresses in a file: in a damaged one it may loop for ever or crash. A hash that is
checked first keeps damaged files away from it. HDF5 ignores bytes after the end of its data, and
drops them when a program changes the file: a changed file has no seal instead of a wrong one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from plumecast.data.checks.damage import RESTORE, DamagedError

_MARK = b"\nplumecast sha256 "
_LENGTH = len(_MARK) + 64
_PART = 6  # bytes of the mark by which a truncated seal is known
_BLOCK = 1 << 24  # bytes read at once


def seal(path: Path) -> None:
    """Append the hash of a finished file."""
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
