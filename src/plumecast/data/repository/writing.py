"""Write to an Icechunk repository: one writer at a time, and commits that survive a power loss.

A kill or a full disk at any moment leaves the last commit, or the beginning of a store without any
fire, which the next writer replaces.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumecast.base.errors import PlumecastError
from plumecast.base.files import flush_files, flush_folder
from plumecast.base.locks import has_locks, try_lock
from plumecast.data.repository.garbage import collect_garbage
from plumecast.data.repository.process import check_process

if TYPE_CHECKING:
    import icechunk

BRANCH = "main"
_OF_A_BEGINNING = {"refs", "snapshots"}
# Content of the lock file while a transaction goes on. The name of the machine is in it, because
# the locks of some network file systems do not hold between machines.
_UNFINISHED = f"unfinished on {platform.node()}\n"


class _LostRaceError(Exception):
    """The store has another newest version than at the start of the transaction."""


def is_icechunk(path: Path) -> bool:
    """Whether a folder is laid out as an Icechunk repository, or as the beginning of one."""
    if all((path / part).is_dir() for part in _OF_A_BEGINNING):
        return True
    return is_beginning(path) and any(path.iterdir())


def is_beginning(path: Path) -> bool:
    """Whether a folder is empty or a repository whose creation was cut off: no fire is in it.

    Such a repository has its first snapshot, which is empty, at most, and no branch.
    """
    if not path.is_dir() or {entry.name for entry in path.iterdir()} - _OF_A_BEGINNING:
        return False
    files = [entry for entry in path.rglob("*") if entry.is_file()]
    if any(file.name == "ref.json" and file.stat().st_size for file in files):
        return False
    names = {file.name.partition("#")[0] for file in files if file.parent == path / "snapshots"}
    return len(names) <= 1


def open_repository(path: Path) -> icechunk.Repository:
    """Open an existing repository; raises if it is none."""
    import icechunk

    try:
        return icechunk.Repository.open(_storage(path))
    except icechunk.IcechunkError as error:
        raise PlumecastError(f"{path} cannot be opened as an Icechunk store: {error}") from error


def _storage(path: Path) -> icechunk.Storage:
    import icechunk

    check_process(path)
    # Icechunk warns on every open that local commits need a single writer; `writer` ensures that.
    # Its errors are raised too.
    icechunk.set_logs_filter("off")
    return icechunk.local_filesystem_storage(str(path))


def create_repository(path: Path) -> None:
    """Create a repository unless there is one; the beginning of one is replaced."""
    import icechunk

    if not is_beginning(path) and path.exists():
        return
    for part in path.iterdir() if path.exists() else ():
        shutil.rmtree(part)
    icechunk.Repository.create(_storage(path))
    flush_files([*path.rglob("*"), path])
    flush_folder(path.parent)


@contextlib.contextmanager
def writer(path: str | Path) -> Iterator[Path]:
    """Write to a store as its only writer; yields its path with links followed.

    The lock is a file beside the store itself, so it is the same for every link to the store. A
    failure of the file system is one line.
    """
    import icechunk

    where = Path(os.path.realpath(path))
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        with _lock_file(where).open("a+") as lock:
            if not try_lock(lock):
                raise PlumecastError(
                    f"{path} is being written by another process; wait until it has finished"
                )
            yield where
    except (_LostRaceError, icechunk.ConflictError) as error:
        raise PlumecastError(
            f"{path} was changed by another process meanwhile, and nothing was added to it; run "
            "the same command again"
        ) from error
    except (OSError, icechunk.IcechunkError) as error:
        raise PlumecastError(
            f"{path} cannot be written ({_reason(error)}); check its permissions and the free space"
        ) from error


def _reason(error: Exception) -> str:
    """What the system said; in Icechunk's messages it is at the end of a line."""
    found = re.search(r"([^:\n]+) \(os error \d+\)", str(error))
    said = getattr(error, "strerror", None) or (found and found[1])
    return str(said or str(error).strip().split("\n")[0]).strip()


def _lock_file(where: Path) -> Path:
    return where.parent / f".{where.name}.lock"


class Transaction:
    """Changes of a store, for use within `writer`; those that are not committed are dropped.

    What an unfinished transaction on this machine wrote is removed at the start of the next one.
    """

    def __init__(self, where: Path) -> None:
        self._where, self._repository = where, open_repository(where)
        if has_locks() and _lock_file(where).read_text() == _UNFINISHED:
            collect_garbage(self._repository, where)
        _lock_file(where).write_text(_UNFINISHED)
        self._before = _files(where)
        self._session = self._repository.writable_session(BRANCH)
        self._tip = self._session.snapshot_id

    @property
    def store(self) -> Any:
        """The Zarr store to write to."""
        return self._session.store

    def commit(self, message: str, metadata: dict[str, Any] | None = None) -> str:
        """Make the changes the newest version of the store and return its id.

        All files are on the disk before the branch names them: otherwise a power loss could leave
        a branch that names files without content, and with it no fire at all.
        """
        version = str(self._session.flush(message, metadata))
        new = [Path(file) for file in _files(self._where) - self._before]
        flush_files([*new, *{file.parent for file in new}, self._where])
        self._move_branch(version)
        branch = self._where / "refs" / f"branch.{BRANCH}"
        flush_files([branch / "ref.json", branch])
        _lock_file(self._where).write_text("")
        return version

    def _move_branch(self, version: str) -> None:
        import icechunk

        try:
            self._repository.reset_branch(BRANCH, version, from_snapshot_id=self._tip)
        except icechunk.IcechunkError as error:
            if self._repository.lookup_branch(BRANCH) == self._tip:
                raise
            raise _LostRaceError from error


def _files(where: Path) -> set[str]:
    """Paths of the files that commits have added to a repository; texts, as there are many."""
    parts = ("chunks", "manifests", "snapshots", "transactions")
    folders = (where / part for part in parts)
    return {file.path for folder in folders if folder.is_dir() for file in os.scandir(folder)}
