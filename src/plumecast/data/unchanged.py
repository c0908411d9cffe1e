"""Is a store still what was opened, and is it there: for whoever reads another block of it."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.paths import refuse_unseen

_STAMP = "plumecast_stamp"  # in a data set's encoding, which is never written


def remember(snapshots: xr.Dataset, path: Path) -> xr.Dataset:
    """The same data set, which knows the file or store it was opened from, and its state."""
    where = path.absolute()  # a worker may be in another folder
    snapshots.encoding[_STAMP] = (str(where), _stamp(where))
    return snapshots


def check_unchanged(snapshots: xr.Dataset) -> None:
    """Refuse to go on with a file or Zarr store that is gone or was written to since it was opened.

    An Icechunk store is read at the commit it was opened at, whatever is added meanwhile.
    """
    path, stamp = snapshots.encoding.get(_STAMP, (None, None))
    if path is None:
        return
    refuse_unseen(path)
    if _stamp(Path(path)) != stamp:
        raise PlumecastError(f"{path} changed while it was read; wait for its writer and run again")


def _stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Sizes and times of a file, or of the metadata of a Zarr store, which change as it grows.

    An Icechunk store has none of that.
    """
    names = ("zarr.json", ".zarray", ".zattrs", ".zmetadata")
    found = [part for name in names for part in (*path.glob(name), *path.glob(f"*/{name}"))]
    parts = [path] if path.is_file() else found
    known = [(str(part), part.stat()) for part in sorted(parts)]
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in known)
