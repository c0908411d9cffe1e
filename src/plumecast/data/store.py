"""Snapshots on disk: an Icechunk repository that grows by one commit per fire.

A killed run leaves whole fires; resuming asks which are there and adds the rest. The commit id is
the version of the data in every result. Plain Zarr and NetCDF can be read, and exported to.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.io
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.data.lazy_store import open_netcdf
from plumecast.data.schema import FIELD_NAMES, check_structure, validate_snapshots
from plumecast.data.unchanged import remember
from plumecast.data.writers import CHUNK_SNAPSHOTS, plain, quiet_zarr, write_blocks

if TYPE_CHECKING:
    import icechunk

DATA_VERSION = "data_version"
"""Attribute that carries the commit id (Icechunk) or the hash (NetCDF) of what was opened."""

_BRANCH = "main"

# Lazy, and hours stay numbers: some versions of xarray would make them time differences.
_AS_STORED: dict[str, Any] = {"consolidated": False, "chunks": None, "decode_timedelta": False}


class EmptyStoreError(PlumecastError):
    """A store that was made but holds no fire."""


def open_snapshots(path: str | Path, *, fields: Sequence[str] = FIELD_NAMES) -> xr.Dataset:
    """Open a snapshot store (Icechunk, Zarr or NetCDF) lazily and check its structure.

    Coordinates are read at once, fields when they are used. `fields` names the variables a
    surrogate will use when they are not the contract's own.
    """
    where = Path(path)
    if not where.exists():
        raise PlumecastError(f"{where} does not exist")
    if is_icechunk(where):
        snapshots = _open_icechunk(where.absolute())
    elif (where / "zarr.json").exists() or (where / ".zgroup").exists():
        snapshots = _open_zarr(where.absolute())
    elif where.is_dir():
        raise PlumecastError(f"{where} is a folder, but neither an Icechunk nor a Zarr store")
    else:
        snapshots = _open_netcdf(where)
    try:
        checked = check_structure(_plain_coordinates(snapshots), fields)
    except PlumecastError as error:
        raise PlumecastError(f"{where}: {error}") from None
    return remember(checked, where)


def is_icechunk(path: Path) -> bool:
    """Whether a folder is laid out as an Icechunk repository."""
    return all((path / part).is_dir() for part in ("refs", "snapshots"))


def _open_icechunk(path: Path) -> xr.Dataset:
    repository = _repository(path)
    session = repository.readonly_session(_BRANCH)
    try:
        snapshots = xr.open_zarr(session.store, **_AS_STORED)
    except FileNotFoundError:
        raise EmptyStoreError(f"{path} holds no fire yet") from None
    if SNAPSHOT not in snapshots.dims:
        raise EmptyStoreError(f"{path} holds no fire yet")
    versioned: xr.Dataset = snapshots.assign_attrs({DATA_VERSION: str(session.snapshot_id)})
    return versioned


def _open_zarr(path: Path) -> xr.Dataset:
    try:
        snapshots: xr.Dataset = xr.open_zarr(path, **_AS_STORED)
    except (OSError, ValueError, KeyError) as error:
        raise PlumecastError(f"{path} is damaged or no snapshot store: {error}") from error
    return snapshots


def _open_netcdf(path: Path) -> xr.Dataset:
    _refuse_other_files(path)
    try:
        snapshots = open_netcdf(path)
    except PlumecastError:
        raise
    except (OSError, ValueError) as error:
        raise PlumecastError(f"{path} is not a snapshot store: {error}") from error
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            digest.update(block)
    return snapshots.assign_attrs({DATA_VERSION: f"sha256:{digest.hexdigest()[:20]}"})


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"\x89HDF" and not magic.startswith(b"CDF"):
        raise PlumecastError(f"{path} is neither a snapshot store nor a NetCDF file")
    if magic in (b"CDF\x01", b"CDF\x02"):
        _refuse_truncated_classic(path)


def _refuse_truncated_classic(path: Path) -> None:
    """The NetCDF library reads zeros past the end of a truncated classic file; SciPy notices."""
    try:
        scipy.io.netcdf_file(path, mmap=False).close()
    except (OSError, ValueError, TypeError, IndexError) as error:
        raise PlumecastError(f"{path} is truncated or damaged: {error}") from error


def _plain_coordinates(snapshots: xr.Dataset) -> xr.Dataset:
    """Load what lives on `snapshot` alone as coordinates, text as fixed-width strings."""
    names = [name for name, item in snapshots.variables.items() if item.dims == (SNAPSHOT,)]
    changed = snapshots.set_coords(names)
    for name in names:
        item = changed[name].load()
        if item.dtype.kind in "OT":
            text = item.variable.copy(data=np.array(item.values.tolist(), dtype=str))
            text.encoding.clear()
            changed = changed.assign_coords({name: text})
    return changed


@contextlib.contextmanager
def _writer(path: Path) -> Iterator[None]:
    """Hold the store for one writer; a second one is refused instead of losing its commit."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this system; a single writer is the caller's duty
        yield
        return
    with (path.parent / f".{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PlumecastError(f"{path} is being written by another process") from None
        yield


def _repository(path: Path, create: bool = False) -> icechunk.Repository:
    import icechunk

    # Icechunk warns on every open that local commits need a single writer; `_writer` sees to it.
    icechunk.set_logs_filter("error")
    storage = icechunk.local_filesystem_storage(str(path))
    try:
        if create:
            return icechunk.Repository.open_or_create(storage)
        return icechunk.Repository.open(storage)
    except icechunk.IcechunkError as error:
        raise PlumecastError(f"{path} cannot be opened as an Icechunk store: {error}") from error


def stored_fires(path: str | Path) -> frozenset[str]:
    """The fires a store holds; none when it does not exist yet."""
    where = Path(path)
    if not where.exists() or (where.is_dir() and not any(where.iterdir())):
        return frozenset()
    if not is_icechunk(where):
        raise PlumecastError(f"{where} exists and is not an Icechunk store; choose another path")
    try:
        return frozenset(_plain_coordinates(_open_icechunk(where)).fire_id.values.tolist())
    except EmptyStoreError:
        return frozenset()


def append_fire(path: str | Path, fire: xr.Dataset, *, fields: Sequence[str] = FIELD_NAMES) -> str:
    """Append the snapshots of one fire as one commit; return the commit id.

    All or nothing: a run killed in the middle leaves the store as it was. Several fires in one
    data set make one commit too. A fire that is already there is refused.
    """
    where = Path(path)
    fire = validate_snapshots(fire, fields)
    new = sorted(set(fire.fire_id.values.tolist()))
    where.parent.mkdir(parents=True, exist_ok=True)
    with _writer(where):
        there = stored_fires(where)
        twice = sorted(there.intersection(new))
        if twice:
            raise PlumecastError(f"fire '{twice[0]}' is already in {where}")
        repository = _repository(where, create=True)
        if there:
            _check_same_grid(open_snapshots(where, fields=fields), fire, where)
        session = repository.writable_session(_BRANCH)
        prepared = plain(_unversioned(fire))
        with quiet_zarr():
            if there:
                prepared.to_zarr(session.store, append_dim=SNAPSHOT, consolidated=False)
            else:
                prepared.to_zarr(
                    session.store, mode="w", consolidated=False, encoding=_chunks(prepared)
                )
        return str(session.commit(f"add {', '.join(new)}"))


def _check_same_grid(store: xr.Dataset, fire: xr.Dataset, path: Path) -> None:
    for name, item in store.variables.items():
        if SNAPSHOT in item.dims:
            if name not in fire.variables:
                raise PlumecastError(f"the new fire has no '{name}', which {path} holds")
            if fire[name].dims != item.dims:
                raise PlumecastError(f"'{name}' of the new fire has dimensions {fire[name].dims}")
        elif name in fire.variables and not np.array_equal(fire[name].values, item.values):
            raise PlumecastError(f"the new fire is on another grid than {path}: '{name}' differs")
    for dim, size in store.sizes.items():
        if dim != SNAPSHOT and fire.sizes.get(dim) != size:
            raise PlumecastError(
                f"the new fire is on another grid than {path}: "
                f"{dim} = {fire.sizes.get(dim)}, not {size}"
            )
    extra = {n for n in fire.variables if SNAPSHOT in fire[n].dims} - set(store.variables)
    if extra:
        raise PlumecastError(
            f"the new fire brings '{sorted(map(str, extra))[0]}', unknown to {path}"
        )


def _chunks(snapshots: xr.Dataset) -> dict[Any, dict[str, Any]]:
    return {
        name: {"chunks": (CHUNK_SNAPSHOTS if item.ndim > 1 else 4096, *item.shape[1:])}
        for name, item in snapshots.variables.items()
        if item.dims[:1] == (SNAPSHOT,)
    }


def export_snapshots(snapshots: xr.Dataset, path: str | Path) -> Path:
    """Write snapshots as plain Zarr (`.zarr`) or NetCDF (`.nc`); nothing is overwritten."""
    return write_blocks([_unversioned(snapshots)], path)


def _unversioned(snapshots: xr.Dataset) -> xr.Dataset:
    """Without the version of what was opened: what is written gets its own."""
    return snapshots.drop_attrs(deep=False).assign_attrs(
        {name: value for name, value in snapshots.attrs.items() if name != DATA_VERSION}
    )
