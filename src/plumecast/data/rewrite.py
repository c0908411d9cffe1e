"""Change what is in a store: labels, variables, snapshots that were read again, leftovers."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import find_leftovers, remove_leftover
from plumecast.base.names import SNAPSHOT
from plumecast.compute.blocks import row_blocks
from plumecast.data.checksums import CHECKSUMS, checksums_after_relabelling
from plumecast.data.repository import (
    BRANCH,
    Freed,
    Transaction,
    collect_garbage,
    is_beginning,
    is_icechunk,
    open_repository,
    writer,
)
from plumecast.data.schema import FIELD_NAMES, validate_snapshots
from plumecast.data.store import OPEN_OPTIONS, open_snapshots, plain_coordinates, write_fire
from plumecast.data.writers import like_stored, quiet_zarr
from plumecast.weather.snapshots import with_mean_winds

_BLOCK = 256  # snapshots copied at once

NewLabels = Mapping[str, Mapping[str, str]]
"""New labels by coordinate, such as drought, and by `fire_id`."""


def relabel_fires(path: str | Path, labels: NewLabels) -> str:
    """Change labels of stored fires as one commit; return the commit id.

    Fires and coordinates that `labels` does not name stay as they are; the fields are not read.
    """
    import zarr

    where = Path(path)
    with writer(where) as real:
        transaction = Transaction(real)
        stored = open_snapshots(where, fields=())
        fires = stored.fire_id.values.astype(str).tolist()
        group = zarr.open_group(transaction.store, mode="r+")
        named: set[str] = set()
        for name, by_fire in labels.items():
            if name not in stored.variables:
                raise PlumecastError(f"{where} has no label '{name}'; ingest into another store")
            before = stored[name].values.astype(str).tolist()
            now = [by_fire.get(fire, old) for fire, old in zip(fires, before, strict=True)]
            with quiet_zarr():
                group[name][:] = np.array(now, dtype=object)  # type: ignore[index]
            named |= {fire for fire in by_fire if fire in fires}
        changed = plain_coordinates(xr.open_zarr(transaction.store, **OPEN_OPTIONS))
        if CHECKSUMS in changed.variables:
            with quiet_zarr():
                texts = checksums_after_relabelling(changed)
                group[CHECKSUMS][:] = texts  # type: ignore[index]
        return transaction.commit(f"relabel {', '.join(sorted(named))}")


def replace_fires(
    path: str | Path,
    fires: Iterable[xr.Dataset],
    *,
    check_kept: Callable[[frozenset[str]], object] = lambda kept: None,
    fields: Sequence[str] = FIELD_NAMES,
) -> frozenset[str]:
    """Replace or add fires as one commit; return the `fire_id`s that were written.

    `fires` yields the snapshots of one fire at a time. Stored fires that it does not yield are
    kept; `check_kept` may raise because of them, and the store then stays as it was.
    """
    where = Path(path)
    done: set[str] = set()
    with writer(where) as real:
        transaction = Transaction(real)
        before = open_snapshots(where, fields=fields)
        first: xr.Dataset | None = None
        for fire in fires:
            checked = with_mean_winds(validate_snapshots(fire, fields))
            if first is not None:
                checked = like_stored(first, checked, where)
            write_fire(transaction.store, checked, first=first is None)
            first = checked if first is None else first
            done |= set(checked.fire_id.values.astype(str).tolist())
        if first is None:
            return frozenset()
        rows = np.flatnonzero(~np.isin(before.fire_id.values.astype(str), sorted(done)))
        kept = before.isel({SNAPSHOT: rows})
        check_kept(frozenset(kept.fire_id.values.astype(str).tolist()))
        if rows.size:
            kept = like_stored(first, kept, where)
        for block in row_blocks(rows.size, _BLOCK):
            write_fire(transaction.store, kept.isel({SNAPSHOT: block}).load(), first=False)
        transaction.commit(f"replace {', '.join(sorted(done))}")
    return frozenset(done)


def rewrite_fires(
    path: str | Path,
    change: Callable[[xr.Dataset], xr.Dataset],
    *,
    message: str,
    fields: Sequence[str] = (),
) -> str:
    """Write all snapshots again, changed block by block, as one commit; return the commit id."""
    where = Path(path)
    with writer(where) as real:
        transaction = Transaction(real)
        before = open_snapshots(where, fields=fields)
        for rows in row_blocks(before.sizes[SNAPSHOT], _BLOCK):
            block = change(before.isel({SNAPSHOT: rows}).load())
            write_fire(transaction.store, block, first=rows.start == 0)
        return transaction.commit(message)


def drop_variable(path: str | Path, name: str) -> str:
    """Remove a variable that all snapshots share, such as a map, as one commit."""
    return rewrite_fires(path, lambda block: block.drop_vars(name), message=f"remove {name}")


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
        # Before the newest, without the empty one that every repository begins with.
        count = max(0, sum(1 for _ in repository.ancestry(branch=BRANCH)) - 2)
        if old_versions and not dry_run:
            repository.expire_snapshots(dt.datetime.now(dt.UTC))
        return Tidied(leftovers, collect_garbage(repository, real, dry_run=dry_run), count)
