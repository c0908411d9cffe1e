"""What a user names on a command line or in a call: a folder, a glob, a file or a list of files."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from plumecast.base.errors import PlumecastError

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


class Sought(NamedTuple):
    """A path for whoever reads it, perhaps a worker on another machine, in another folder."""

    path: Path
    seen: bool = False  # by the process that started the run

    def there(self) -> Path:
        """The path; what was seen must be seen here too."""
        if self.seen:
            refuse_unseen(self.path)
        return self.path


def sought(path: str | Path, *, elsewhere: bool) -> Sought:
    """A path to be read here or, from its root, elsewhere."""
    given = Path(path)
    return Sought(given.absolute(), _is_there(given)) if elsewhere else Sought(given)


def refuse_unseen(path: str | Path) -> None:
    """Raise where a file or folder is not seen that the process which started the run has seen."""
    if not _is_there(Path(path)):
        raise PlumecastError(
            f"{path} is not there on {platform.node()}: it was moved or removed, or this is a "
            "worker of a cluster without the file system of the process you started"
        )


def _is_there(path: Path) -> bool:
    """A file, or a folder with something in it: some libraries make the folder they look for."""
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _matching(path: Path, belongs: Callable[[Path], bool]) -> list[Path]:
    if path.is_dir():
        return sorted(entry for entry in path.iterdir() if belongs(entry))
    if path.exists():
        return [path]
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
