"""Check the path of a result before the work that makes it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from plumecast.base.errors import PlumecastError
from plumecast.base.files import refuse_existing


def check_output(
    path: str | Path,
    kind: Literal["file", "folder", "store"] = "file",
    *,
    endings: Sequence[str] = (),
    overwrite: bool = True,
    inputs: Iterable[str | Path | None] = (),
) -> Path:
    """The path; raises if a result could not be written there.

    The checks: the ending, if only some are known; that the path is none of the `inputs`; without
    `overwrite`, that nothing exists there; that it is not a file where a folder is needed, or a
    folder where a file is; and that its folder, or the nearest one that exists, can be written. A
    "store" is a folder that fires are appended to; its lock is a file beside it.
    """
    where = Path(path)
    if endings and where.suffix not in endings:
        raise PlumecastError(
            f"{where}: unknown file ending '{where.suffix}'; use {_either(endings)}"
        )
    for source in inputs:
        if source is not None and _same(where, Path(source)):
            raise PlumecastError(f"{where} is an input of this command; choose another output path")
    if not overwrite:
        refuse_existing(where)
    if where.exists() and not where.is_file() and not where.is_dir():
        return where  # a special file, such as /dev/stdout
    if kind == "file" and where.is_dir():
        raise PlumecastError(f"{where} is a folder; give the path of a file")
    if kind != "file" and where.is_file():
        raise PlumecastError(f"{where} is a file; give the path of a folder")
    if kind != "folder" or not where.exists():
        _check_writable(Path(os.path.realpath(where)).parent, where)
    if kind != "file" and where.exists():
        _check_writable(where, where)
    return where


def _either(endings: Sequence[str]) -> str:
    *others, last = [ending or "no ending" for ending in endings]
    return f"{', '.join(others)} or {last}" if others else last


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


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
