"""Write to an Icechunk repository: one writer at a time, and commits that survive a power loss.

A kill or a full disk at any moment leaves the last commit, or the beginning of a store without any
fire, which the next writer replaces.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import os
import platform
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import flush_files, flush_folder, sole_writer
from plumecast.data.lazy_store import lazy_variable

if TYPE_CHECKING:
    import icechunk

LONGEST_WAIT = 2.0
"""Seconds that the end of a process waits at most for threads of Icechunk."""

_USED_IN: list[int] = []  # id of the first process to use Icechunk; a forked child inherits it
_UNNAMED = re.compile(r".+#\d+")  # a file under its temporary name; its writer was killed

BRANCH = "main"
_OF_A_BEGINNING = {"refs", "snapshots"}


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
    """Write to a store as its only writer; a failure of the file system is one line."""
    import icechunk

    try:
        with sole_writer(path) as where:
            yield where
    except (_LostRaceError, icechunk.ConflictError) as error:
        raise PlumecastError(
            f"{path} was changed by another process meanwhile, and nothing was added to it; run "
            "the same command again"
        ) from error
    except (OSError, icechunk.IcechunkError) as error:
        # What the system said; in Icechunk's messages it is at the end of a line.
        system = re.search(r"([^:\n]+) \(os error \d+\)", str(error))
        said = getattr(error, "strerror", None) or (system and system[1])
        reason = str(said or str(error).strip().split("\n")[0]).strip()
        raise PlumecastError(
            f"{path} cannot be written ({reason}); check its permissions and the free space"
        ) from error


class Transaction:
    """Changes of a store, for use within `writer`; those that are not committed are dropped.

    What an unfinished transaction on this machine wrote is removed at the start of the next one. A
    file beside the store marks it and names the machine, because the locks of some network file
    systems do not hold between machines.
    """

    def __init__(self, where: Path) -> None:
        self._where, self._repository = where, open_repository(where)
        self._mark = where.parent / f".{where.name}.unfinished"
        if self._mark.exists() and self._mark.read_text() == platform.node():
            collect_garbage(self._repository, where)
        self._mark.write_text(platform.node())
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
        import icechunk

        version = str(self._session.flush(message, metadata))
        new = [Path(file) for file in _files(self._where) - self._before]
        flush_files([*new, *{file.parent for file in new}, self._where])
        try:
            self._repository.reset_branch(BRANCH, version, from_snapshot_id=self._tip)
        except icechunk.IcechunkError as error:
            if self._repository.lookup_branch(BRANCH) == self._tip:
                raise
            raise _LostRaceError from error
        branch = self._where / "refs" / f"branch.{BRANCH}"
        flush_files([branch / "ref.json", branch])
        self._mark.unlink(missing_ok=True)
        return version


def _files(where: Path) -> set[str]:
    """Paths of the files that commits have added to a repository; texts, as there are many."""
    parts = ("chunks", "manifests", "snapshots", "transactions")
    folders = (where / part for part in parts)
    return {file.path for folder in folders if folder.is_dir() for file in os.scandir(folder)}


# -- garbage: files of a repository that no version of the store needs


@dataclass(frozen=True, slots=True)
class Freed:
    """What was removed, or would be."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Freed) -> Freed:
        return Freed(self.files + other.files, self.bytes + other.bytes)


def collect_garbage(
    repository: icechunk.Repository, where: Path, *, dry_run: bool = False
) -> Freed:
    """Remove what no version needs. Only the writer of the store may do so.

    The files of a transaction that goes on are not yet needed by any version either.
    """
    unnamed = [path for path in where.rglob("*#*") if _UNNAMED.fullmatch(path.name)]
    freed = Freed(len(unnamed), sum(path.stat().st_size for path in unnamed))
    if not dry_run:
        for path in unnamed:
            path.unlink()
    found = repository.garbage_collect(dt.datetime.now(dt.UTC), dry_run=dry_run)
    files = (
        found.chunks_deleted
        + found.manifests_deleted
        + found.snapshots_deleted
        + found.attributes_deleted
        + found.transaction_logs_deleted
    )
    return freed + Freed(files, found.bytes_deleted)


# -- threads
#
# Icechunk's threads exist only in the process that started them, and outlive its last read. A
# forked child that calls Icechunk, even to open another store, would wait for those threads for
# ever. They cannot be started again, so the child gets an error.
#
# A thread that hands over a result is still within Python for an instant after it. If the
# interpreter ends in that instant, the whole process is aborted (exit code 134) although its work
# is done. The end therefore waits for such threads.


def check_process(path: object) -> None:
    """Raise if this process was forked from one that had used Icechunk."""
    if not _USED_IN:
        _USED_IN.append(os.getpid())
        atexit.register(wait_for_threads)
    if _USED_IN[0] != os.getpid():
        raise PlumecastError(
            f"{path} cannot be read in a process that was forked after a store was opened; start "
            "processes with multiprocessing.get_context('spawn'), or open stores only in them"
        )


def wait_for_threads(seconds: float = LONGEST_WAIT) -> None:
    """Return when no thread that Python did not start runs Python code, or after some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        own = {thread.ident for thread in threading.enumerate()}
        if set(sys._current_frames()) <= own:
            return
        time.sleep(0.001)


@dataclass(frozen=True, slots=True)
class _GuardedField:
    """Reads a variable of an Icechunk session. Both can be pickled, for workers."""

    variable: xr.Variable
    path: str

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        check_process(self.path)
        return np.asarray(self.variable[key].values)


def guard_fields(snapshots: xr.Dataset, path: object) -> xr.Dataset:
    """The data set with variables that check the process before they are read."""
    guarded = {
        name: lazy_variable(item, _GuardedField(item, str(path)))
        for name, item in snapshots.variables.items()
        if name not in snapshots.indexes
    }
    return snapshots.assign(guarded).set_coords(list(snapshots.coords))
