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
    says `nothing`.
    """
    if not isinstance(paths, str | Path):
        found = [Path(path) for path in paths]
    elif Path(paths).is_dir():
        found = sorted(path for path in Path(paths).iterdir() if belongs(path))
    elif Path(paths).exists():
        found = [Path(paths)]
    else:
        pattern = Path(paths)
        found = sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    if not found:
        raise PlumecastError(f"{paths}: {nothing}")
    return found
