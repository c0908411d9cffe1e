"""Paths that a user names (a file, folder, glob or list) and paths that are sent to workers."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from plumecast.base.errors import PlumecastError

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
