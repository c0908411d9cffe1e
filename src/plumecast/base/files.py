"""Atomic writes: a file or folder appears whole under its name, or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import random
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from plumecast.base.errors import PlumecastError

STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/null")
"""Paths that a text may be written to, though they are no files."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that is full, or of a file that is larger than allowed."""

_ATTEMPTS = 500  # to replace a folder that other processes replace at the same time
_PAUSE = 0.01  # s at most between attempts, drawn at random so that writers do not keep in step
_EXISTS = "{} exists; remove it or choose another path"
_OWNER = ".owner"  # file in a temporary folder that its process keeps locked
_MOVES = ".moves"  # file in a temporary folder: the renames that `published_together` began
_FLUSHES = 8  # files flushed at a time: the file system joins their writes
_NO_FLUSH = (errno.EINVAL, errno.ENOTSUP)  # file systems that cannot flush folders
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


@contextlib.contextmanager
def atomic_write(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary path at which the block creates a file or a folder.

    When the block ends, the result is flushed to disk and renamed to `path`. When it raises, `path`
    stays as it was and the temporary files are removed. Every writer has a temporary folder of its
    own beside `path`, so several may write to one path: the last one to finish wins or, without
    `overwrite`, raises. Missing parent folders are made and links are followed. A device, a pipe or
    a socket is refused.
    """
    if not overwrite:
        refuse_existing(Path(path))
    refuse_special(Path(path))
    target = Path(os.path.realpath(path))
    try:
        with temporary_folder(target) as folder:
            partial = folder / target.name
            yield partial
            publish(partial, target, overwrite=overwrite)
    except OSError as error:
        if error.errno not in FULL:
            raise
        # The error of a full disk names the temporary file, or none.
        raise OSError(error.errno, error.strerror, str(path)) from error


def refuse_special(path: Path) -> None:
    """Raise if a path is neither file nor folder, from one look: others may replace it meanwhile.

    A device would be replaced or overwritten, and a pipe blocks until somebody reads it.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise PlumecastError(f"{path} is a device, a pipe or a socket; choose another output path")


@contextlib.contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """A hidden, uniquely named folder next to a path; it is removed at the end.

    Folders that killed processes left there for the same path are removed first.
    """
    beside.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(PermissionError):  # a folder that can be written but not listed
        for leftover in find_leftovers(beside.parent, beside.name):
            remove_leftover(leftover)
    folder, owner = _owned_folder(beside)
    try:
        yield folder
    finally:
        owner.close()
        shutil.rmtree(folder, ignore_errors=True)


def _owned_folder(beside: Path) -> tuple[Path, IO[str]]:
    """A new folder and its locked owner file.

    Another process may take the folder for a leftover before it is locked; then another is made.
    """
    while True:
        folder = Path(tempfile.mkdtemp(dir=beside.parent, prefix=f".{beside.name}."))
        try:
            owner = (folder / _OWNER).open("x")
        except FileNotFoundError:
            continue
        try:
            locked = try_lock(owner)
        except OSError:  # no locks on this file system: nobody can take the folder for a leftover
            return folder, owner
        if locked and os.fstat(owner.fileno()).st_nlink:
            return folder, owner
        owner.close()


def try_lock(file: IO[Any]) -> bool:
    """Lock an open file until it is closed; False if another process has locked it.

    The system releases the lock of a process that ends, however it ends. Raises OSError where the
    file system has no locks.
    """
    from filelock import lock_descriptor  # here, because it imports asyncio

    return lock_descriptor(file.fileno(), blocking=False)


@contextlib.contextmanager
def sole_writer(path: str | Path) -> Iterator[Path]:
    """Write to a file or folder as its only writer; yields its path with links followed.

    The lock is a file beside it, so it is the same for every link. Only writers that ask for it are
    kept out. Raises OSError where the file system has no locks.
    """
    where = Path(os.path.realpath(path))
    where.parent.mkdir(parents=True, exist_ok=True)
    with (where.parent / f".{where.name}.lock").open("a+") as lock:
        if not try_lock(lock):
            raise PlumecastError(
                f"{path} is being written by another process; wait until it has finished"
            )
        yield where


def find_leftovers(folder: Path, target: str | None = None) -> list[Path]:
    """Temporary folders in a folder, of one target or of all; their processes may still work."""
    name = ".+" if target is None else re.escape(target)
    pattern = re.compile(rf"\.{name}\.[a-z0-9_]{{8}}")
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
    return [path for path in map(Path, sorted(found)) if (path / _OWNER).is_file()]


def remove_leftover(folder: Path, *, dry_run: bool = False) -> int | None:
    """Remove a temporary folder unless its process works; the bytes freed, or None if it is kept.

    Renames that a kill cut off are finished first: what is in the folder may be the only copy. A
    process holds a lock on its folder while it works. Where there are no locks, folders are kept.
    """
    try:
        with (folder / _OWNER).open("r+") as owner:
            if not try_lock(owner):
                return None
            if not dry_run:
                _finish_renames(folder)
            size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
            if not dry_run:
                shutil.rmtree(folder, ignore_errors=True)
            return size
    except OSError:  # no owner, no lock on this file system, or removed meanwhile
        return None


def _finish_renames(folder: Path) -> None:
    """Finish the renames of a process that was killed between them.

    A folder that is replaced is first moved away, after the new one is whole and flushed.
    """
    name = folder.name[1:-9]
    target, partial = folder.parent / name, folder / name
    moved_away = [item for item in folder.iterdir() if item.name.endswith(".replaced")]
    if moved_away and not target.exists():
        (partial if partial.exists() else moved_away[0]).rename(target)
    try:
        moves = json.loads((folder / _MOVES).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # ValueError: it was cut off before any rename
        return
    for waiting, target in ((Path(one), Path(two)) for one, two in moves):
        # Another command may have written the target since.
        if waiting.exists() and not (target.exists() and _newer(target, waiting)):
            _rename(waiting, target, overwrite=True)


def _newer(one: Path, other: Path) -> bool:
    return one.stat().st_mtime_ns > other.stat().st_mtime_ns


@dataclass(slots=True)
class _Group:
    """Files that are to appear together: where each waits, its target, and `overwrite`."""

    stack: contextlib.ExitStack
    folders: dict[Path, Path] = field(default_factory=dict)  # by the folder of the target
    waiting: list[tuple[Path, Path, bool]] = field(default_factory=list)

    def add(self, partial: Path, target: Path, *, overwrite: bool) -> None:
        if target.parent not in self.folders:
            folder = self.stack.enter_context(temporary_folder(target))
            self.folders[target.parent] = folder / "together"
            self.folders[target.parent].mkdir()
        place = self.folders[target.parent] / target.name
        partial.rename(place)
        self.waiting.append((place, target, overwrite))

    def publish(self) -> None:
        for _, target, overwrite in self.waiting:
            if not overwrite:
                refuse_existing(target)
        moves = json.dumps([(str(place), str(target)) for place, target, _ in self.waiting])
        for folder in self.folders.values():
            (folder.parent / _MOVES).write_text(moves, encoding="utf-8")
        flush_files([path for folder in self.folders.values() for path in folder.parent.iterdir()])
        for place, target, overwrite in self.waiting:
            _rename(place, target, overwrite=overwrite)
        for parent in self.folders:
            flush_folder(parent)


_GROUP: ContextVar[_Group | None] = ContextVar("group", default=None)


@contextlib.contextmanager
def published_together() -> Iterator[None]:
    """What is written in the block appears under its names at the end, all of it or nothing.

    Until then it waits, flushed, in temporary folders. A kill before the end leaves nothing. A kill
    between the renames at the end leaves a list of them, and whoever next meets one of the files
    (`refuse_existing`, another writer, `plumecast tidy`) finishes them.
    """
    if _GROUP.get() is not None:
        yield
        return
    with contextlib.ExitStack() as stack:
        group = _Group(stack)
        token = _GROUP.set(group)
        try:
            yield
        finally:
            _GROUP.reset(token)
        group.publish()


def publish(partial: Path, target: Path, *, overwrite: bool = True) -> None:
    """Flush a finished file or folder to disk and rename it to `target` on the same file system.

    Within `published_together` the rename comes later. `partial` must be inside a
    `temporary_folder`, where a folder that is replaced is put.
    """
    flush_files([partial, *partial.rglob("*")])
    group = _GROUP.get()
    if group is not None:
        group.add(partial, target, overwrite=overwrite)
        return
    _rename(partial, target, overwrite=overwrite)
    flush_folder(target.parent)


def _rename(partial: Path, target: Path, *, overwrite: bool) -> None:
    if not overwrite:
        _publish_new(partial, target)
    elif partial.is_dir():
        _replace_folder(partial, target)
    else:
        partial.replace(target)


def _publish_new(partial: Path, target: Path) -> None:
    """Rename a file or folder; of several processes that do so at once, one succeeds."""
    refuse_existing(target)
    try:
        if partial.is_dir():
            partial.rename(target)  # fails if a folder with files is there
        else:
            os.link(partial, target)  # unless the name is taken, which a rename cannot do
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise PlumecastError(_EXISTS.format(target)) from None
        if error.errno not in _NO_LINKS or partial.is_dir():
            raise
        partial.replace(target)


def refuse_existing(path: Path) -> Path:
    """The path itself; raises if something exists there, alone or with what belongs to it."""
    if path.exists():
        with contextlib.suppress(OSError):  # a folder that cannot be listed
            for folder in find_leftovers(path.parent):
                if (folder / _MOVES).is_file():
                    remove_leftover(folder)
        raise PlumecastError(_EXISTS.format(path))
    return path


def write_text(path: str | Path, text: str, *, overwrite: bool = True) -> None:
    """Write a text file in UTF-8, atomically; or print the text, if the path is one of STREAMS.

    Bytes of file names that are not UTF-8 are escaped: in JSON they read back as they were.
    """
    if str(path) in STREAMS:
        # Not by the path: that of a redirected output would be opened, and emptied, again.
        stream = {"/dev/stdout": sys.stdout, "/dev/stderr": sys.stderr}.get(str(path))
        if stream is not None:
            stream.write(text)
            stream.flush()
        return
    with atomic_write(path, overwrite=overwrite) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")


def write_json(path: str | Path, content: Any) -> None:
    """Write a JSON file, atomically. NaN and infinity, which JSON lacks, become null."""
    text = json.dumps(finite(content), indent=2, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def finite(value: Any) -> Any:
    """Plain values with None in the place of NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def flush_files(paths: Iterable[Path]) -> None:
    """Write files, and the names in folders, from the system's memory to the disk."""
    with ThreadPoolExecutor(_FLUSHES) as threads:
        list(threads.map(_flush, paths))


def _flush(path: Path) -> None:
    if path.is_dir():
        flush_folder(path)
    elif path.is_file():
        with path.open("r+b") as file:
            os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Make the names in a folder survive a power loss: new files, renamed files."""
    if os.name != "posix":  # other systems cannot open folders
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise
    finally:
        os.close(folder)


def _replace_folder(partial: Path, target: Path) -> None:
    """Rename a folder; a folder with files in it cannot be replaced, so it is moved away first."""
    for attempt in range(_ATTEMPTS):
        replaced = partial.with_name(f"{partial.name}.{attempt}.replaced")
        with contextlib.suppress(FileNotFoundError):
            target.rename(replaced)
        try:
            partial.rename(target)
        except OSError as error:
            # Another writer was faster. Its folder may be gone again by now: ask the error, not the
            # file system, whether it was there.
            taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY)
            if taken and attempt + 1 < _ATTEMPTS:
                time.sleep(random.uniform(0.0, _PAUSE))
                continue
            if replaced.exists() and not target.exists():
                replaced.rename(target)
            raise
        return
