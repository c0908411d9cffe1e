"""Free the disk of what killed processes left behind, and of versions that nobody needs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from plumecast.base.errors import PlumecastError
from plumecast.base.files import find_leftovers, remove_leftover
from plumecast.data.repository.garbage import (
    Freed,
    collect_garbage,
    count_old_versions,
    forget_old_versions,
)
from plumecast.data.repository.writing import (
    BRANCH,
    is_beginning,
    is_icechunk,
    open_repository,
    writer,
)


@dataclass(frozen=True, slots=True)
class Tidied:
    """What was removed, or would be."""

    leftovers: Freed
    """Temporary folders of killed processes."""
    garbage: Freed = field(default_factory=Freed)
    """Files of the store that no version needs."""
    old_versions: int = 0
    """Versions before the newest: how many there were."""


def tidy_store(path: str | Path, *, old_versions: bool = False, dry_run: bool = False) -> Tidied:
    """Remove temporary folders of killed processes and, in an Icechunk store, unneeded files.

    With `old_versions`, only the newest version is kept; whoever reads an older one at this moment
    will fail. With `dry_run`, nothing is removed, and what only old versions need is not counted.
    Folders of processes that work, and stores that are being written, are left alone.
    """
    where = Path(os.path.realpath(path))
    if not where.exists():
        raise PlumecastError(f"{path} does not exist")
    folders = find_leftovers(where.parent, where.name)
    is_store = is_icechunk(where) and not is_beginning(where)
    if where.is_dir() and not is_store:
        folders += find_leftovers(where)
    sizes = [remove_leftover(folder, dry_run=dry_run) for folder in folders]
    leftovers = sum((Freed(1, size) for size in sizes if size is not None), Freed())
    if not is_store:
        return Tidied(leftovers)
    with writer(path) as real:
        repository = open_repository(real)
        count = count_old_versions(repository, BRANCH)
        if old_versions and not dry_run:
            forget_old_versions(repository)
        return Tidied(leftovers, collect_garbage(repository, real, dry_run=dry_run), count)
