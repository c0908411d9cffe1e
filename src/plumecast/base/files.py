"""Atomic writes: a file or folder appears whole under its name, or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import random
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plumecast.base.errors import PlumecastError

_ATTEMPTS = 500  # to replace a folder that other processes replace at the same time
_PAUSE = 0.01  # s at most between attempts, drawn at random so that writers do not keep in step


@contextlib.contextmanager
def atomic_write(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary path at which the block creates a file or a folder.

    When the block ends, the result is flushed to disk and renamed to `path`. When it raises, `path`
    stays as it was and the temporary files are removed. Every writer has a temporary folder of its
    own beside `path`, so several may write to one path: the last one to finish wins or, without
    `overwrite`, raises. Missing parent folders are made, links are followed, and a special file
    such as /dev/stdout is written directly.
    """
    if not overwrite:
        refuse_existing(Path(path))
    target = Path(os.path.realpath(path))
    if _is_special(target):
        yield target
        return
    with temporary_folder(target) as folder:
        partial = folder / target.name
        yield partial
        publish(partial, target, overwrite=overwrite)


def _is_special(path: Path) -> bool:
    """Whether a path is neither file nor folder, from one look: others may replace it meanwhile."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def temporary_folder(beside: Path) -> Iterator[Path]:
    """A hidden, uniquely named folder next to a path; it is removed at the end."""
    beside.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=beside.parent, prefix=f".{beside.name}."))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(partial: Path, target: Path, *, overwrite: bool = True) -> None:
    """Flush a finished file or folder to disk and rename it to `target` on the same file system.

    `partial` must be inside a `temporary_folder`, where a folder that is replaced is put.
    """
    for path in [partial, *partial.rglob("*")]:
        if path.is_file():
            _flush(path)
    if not overwrite:
        refuse_existing(target)
    if partial.is_dir() and overwrite:
        _replace_folder(partial, target)
    else:
        partial.replace(target)


def refuse_existing(path: Path) -> Path:
    """The path itself; raises if something exists there."""
    if path.exists():
        raise PlumecastError(f"{path} exists; remove it or choose another path")
    return path


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8, atomically."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: str | Path, content: Any) -> None:
    """Write a JSON file, atomically. NaN and infinity, which JSON lacks, become null."""
    text = json.dumps(_finite(content), indent=2, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _flush(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


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
