"""What a user names on a command line or in a call: a folder, a glob, a file or a list of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from plumecast.errors import PlumecastError

Paths: TypeAlias = str | Path | Sequence[str | Path]


def find_files(paths: Paths, *, belongs: Callable[[Path], bool], nothing: str) -> list[Path]:
    """The files meant by `paths`: sorted by name, or in the order of a list.

    A folder stands for those of its entries that `belongs` accepts. Where there are none the error
    says `nothing`; an entry of a list that matches nothing is kept, for its reader to name.
    """
    if isinstance(paths, str | Path):
        found = _matching(Path(paths), belongs)
    else:
        found = [file for path in paths for file in _matching(Path(path), belongs) or [Path(path)]]
    if not found:
        raise PlumecastError(f"{paths}: {nothing}")
    return found


def _matching(path: Path, belongs: Callable[[Path], bool]) -> list[Path]:
    if path.is_dir():
        return sorted(entry for entry in path.iterdir() if belongs(entry))
    if path.exists():
        return [path]
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
