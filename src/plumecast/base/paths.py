"""Paths that a user names: of input (a file, folder, glob or list), and of results.

Workers read paths of input too. The path of a result is checked before the work that makes it.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from plumecast.base.errors import PlumecastError
from plumecast.base.files import STREAMS, refuse_existing, refuse_special

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


# -- results

Content = Literal["a saved surrogate", "an HTML page", "scores", "settings", "a table of fires"]


def check_output(
    path: str | Path,
    kind: Literal["file", "folder", "store"] = "file",
    *,
    content: Content | None = None,
    endings: Sequence[str] = (),
    overwrite: bool = True,
    inputs: Iterable[str | Path | None] = (),
) -> Path:
    """The path; raises if a result could not be written there.

    The checks: the ending, if only some are known; that the path is none of the `inputs`; without
    `overwrite`, that nothing exists there; that it is no device, pipe or socket (except STREAMS,
    for a text); that it is not a file where a folder is needed, or a folder where a file is; that
    a file which would be replaced has the same `content`; and that its folder, or the nearest one
    that exists, can be written. A "store" is a folder that fires are appended to; its lock is a
    file beside it.
    """
    where = Path(path)
    if endings and where.suffix not in endings:
        *others, last = [ending or "no ending" for ending in endings]
        either = f"{', '.join(others)} or {last}" if others else last
        raise PlumecastError(f"{where}: unknown file ending '{where.suffix}'; use {either}")
    for source in [Path(item) for item in inputs if item is not None]:
        if _same(where, source):
            raise PlumecastError(f"{where} is an input of this command; choose another output path")
        inside = Path(os.path.realpath(source)) in Path(os.path.realpath(where)).parents
        if inside and any((source / name).exists() for name in STORE_PARTS):
            raise PlumecastError(
                f"{where} lies within {source}, an input of this command; choose another "
                "output path"
            )
    if not overwrite:
        refuse_existing(where)
    if str(where) in STREAMS and content not in (None, "a saved surrogate"):
        return where
    refuse_special(where)
    if kind == "file" and where.is_dir():
        raise PlumecastError(f"{where} is a folder; give the path of a file")
    if kind != "file" and where.is_file():
        raise PlumecastError(f"{where} is a file; give the path of a folder")
    if content is not None and where.is_file() and not _holds(where, content):
        raise PlumecastError(
            f"{where} exists and is not {content}; remove it or choose another output path"
        )
    if kind != "folder" or not where.exists():
        _check_writable(Path(os.path.realpath(where)).parent, where)
    if kind != "file" and where.exists():
        _check_writable(where, where)
    return where


def _holds(path: Path, content: Content) -> bool:
    """Whether a file has a kind of content, or is empty."""
    with path.open("rb") as file:
        head = file.read(512)
    if not head:
        return True
    if content == "a saved surrogate":  # a safetensors file: 8 bytes of length, then JSON
        return head[8:9] == b"{"
    if content == "an HTML page":
        return head.lstrip()[:14].lower() == b"<!doctype html"
    if head.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    if content == "a table of fires":
        return isinstance(record, list)
    return isinstance(record, dict) and content in record  # scores, or settings


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


STORE_PARTS = ("zarr.json", ".zgroup", "refs")
"""What a folder that is a Zarr store or an Icechunk repository holds."""


def _check_writable(folder: Path, where: Path) -> None:
    """Raise if no file can be created in a folder or, if it does not exist, in the nearest above.

    A file without a name is created, because permissions alone do not tell.
    """
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not nearest.is_dir():
        raise PlumecastError(f"{where} cannot be written: {nearest} is not a folder")
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        raise PlumecastError(
            f"{where} cannot be written: no file can be created in {nearest} ({error.strerror}); "
            "choose another output path"
        ) from None
