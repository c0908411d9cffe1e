"""Remove files of a repository that no version of the store needs."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import icechunk

_UNNAMED = re.compile(r".+#\d+")  # a file under its temporary name; its writer was killed


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


def count_old_versions(repository: icechunk.Repository, branch: str) -> int:
    """Versions before the newest, without the empty one that every repository begins with."""
    return max(0, sum(1 for _ in repository.ancestry(branch=branch)) - 2)


def forget_old_versions(repository: icechunk.Repository) -> None:
    """Leave only the newest version in the history, so that garbage is what it does not need."""
    repository.expire_snapshots(dt.datetime.now(dt.UTC))
