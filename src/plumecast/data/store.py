"""Snapshot stores: an Icechunk repository that grows by one commit per fire.

A killed run leaves only whole fires; resuming it adds the fires that are missing. Every result
records the commit id as the version of its data. Zarr and NetCDF can be read and exported.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.checks.checkpoints import record_interval
from plumecast.data.lazy_store import open_netcdf, record_state
from plumecast.data.schema import FIELD_NAMES, check_structure, validate_snapshots
from plumecast.data.writers import CHUNK_SNAPSHOTS, quiet_zarr, to_stored_types, write_blocks

if TYPE_CHECKING:
    import icechunk

DATA_VERSION = "data_version"
"""Attribute of an opened store: its commit id (Icechunk) or the hash of its file (NetCDF)."""

_BRANCH = "main"
_PLANE = ("x", "y")
_OF_FILES = (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".tif", ".tiff", ".asc", ".csv")

# Lazy reading. Hours stay numbers; some versions of xarray would decode them as timedeltas.
_OPEN_OPTIONS: dict[str, Any] = {"consolidated": False, "chunks": None, "decode_timedelta": False}


class EmptyStoreError(PlumecastError):
    """The store exists but holds no fire."""


def open_snapshots(path: str | Path, *, fields: Sequence[str] = FIELD_NAMES) -> xr.Dataset:
    """Open a snapshot store (Icechunk, Zarr or NetCDF) lazily and check its structure.

    Coordinates are read at once, fields lazily. `fields` names the variables that a surrogate will
    use, if they are not those of the contract.
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
    return record_state(record_interval(checked), where)


def is_icechunk(path: Path) -> bool:
    """Whether a folder is laid out as an Icechunk repository."""
    return all((path / part).is_dir() for part in ("refs", "snapshots"))


def _open_icechunk(path: Path) -> xr.Dataset:
    repository = _repository(path)
    session = repository.readonly_session(_BRANCH)
    try:
        snapshots = xr.open_zarr(session.store, **_OPEN_OPTIONS)
    except FileNotFoundError:
        raise EmptyStoreError(f"{path} holds no fire yet") from None
    if SNAPSHOT not in snapshots.dims:
        raise EmptyStoreError(f"{path} holds no fire yet")
    versioned: xr.Dataset = snapshots.assign_attrs({DATA_VERSION: str(session.snapshot_id)})
    return versioned


def _open_zarr(path: Path) -> xr.Dataset:
    try:
        snapshots: xr.Dataset = xr.open_zarr(path, **_OPEN_OPTIONS)
    except (OSError, ValueError, KeyError) as error:
        raise PlumecastError(f"{path} is damaged or not a snapshot store: {error}") from error
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
    """The NetCDF library reads zeros past the end of a truncated classic file; SciPy raises."""
    import scipy.io

    try:
        scipy.io.netcdf_file(path, mmap=False).close()
    except (OSError, ValueError, TypeError, IndexError) as error:
        raise PlumecastError(f"{path} is truncated or damaged: {error}") from error


def _plain_coordinates(snapshots: xr.Dataset) -> xr.Dataset:
    """Load the variables on `snapshot` alone as coordinates, with texts as fixed-width strings."""
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
    """Write to a store as its only writer; a failure of the file system is one line."""
    import icechunk

    try:
        with _lock(path):
            yield
    except (OSError, icechunk.IcechunkError) as error:
        reason = getattr(error, "strerror", None) or str(error).strip().split("\n")[0]
        raise PlumecastError(
            f"{path} cannot be written ({reason}); check its permissions and the free space"
        ) from error


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock the store for one writer. A second writer fails at once instead of losing its commit."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this system: the caller must run a single writer
        yield
        return
    with (path.parent / f".{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PlumecastError(
                f"{path} is being written by another process; wait until it has finished"
            ) from None
        yield


def _repository(path: Path, create: bool = False) -> icechunk.Repository:
    import icechunk

    # Icechunk warns on every open that local commits need a single writer; `_writer` ensures that.
    icechunk.set_logs_filter("error")
    storage = icechunk.local_filesystem_storage(str(path))
    try:
        if create:
            return icechunk.Repository.open_or_create(storage)
        return icechunk.Repository.open(storage)
    except icechunk.IcechunkError as error:
        raise PlumecastError(f"{path} cannot be opened as an Icechunk store: {error}") from error


def check_store_path(path: str | Path) -> None:
    """Raise if a store, which is a folder, would get the name of a file."""
    where = Path(path)
    if where.suffix.lower() in _OF_FILES:
        raise PlumecastError(
            f"{where}: a store that fires are added to is a folder, not a {where.suffix} file; "
            f"name it {where.with_suffix('.zarr')} (pc.export_snapshots makes one .nc file of it)"
        )


def stored_fires(path: str | Path) -> frozenset[str]:
    """The `fire_id`s in a store; empty if the store does not exist yet."""
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

    A run that is killed before the commit leaves the store as it was. Several fires in one data set
    make one commit. Raises if a fire is already in the store.
    """
    where = Path(path)
    check_store_path(where)
    fire = validate_snapshots(fire, fields)
    new = sorted(set(fire.fire_id.values.tolist()))
    where.parent.mkdir(parents=True, exist_ok=True)
    with _writer(where):
        stored = stored_fires(where)
        twice = sorted(stored.intersection(new))
        if twice:
            raise PlumecastError(f"fire '{twice[0]}' is already in {where}; leave it out")
        repository = _repository(where, create=True)
        if stored:
            check_same_grid(open_snapshots(where, fields=fields), fire, where)
        session = repository.writable_session(_BRANCH)
        write_fire(session.store, fire, first=not stored)
        return str(session.commit(f"add {', '.join(new)}"))


@contextlib.contextmanager
def open_for_writing(path: Path) -> Iterator[icechunk.Session]:
    """A session on an existing store; what is not committed at the end is dropped."""
    with _writer(path):
        yield _repository(path).writable_session(_BRANCH)


def write_fire(store: Any, fire: xr.Dataset, *, first: bool) -> None:
    """Append snapshots to the Zarr store of a session; the first ones replace what is there."""
    prepared = to_stored_types(_unversioned(fire))
    with quiet_zarr():
        if first:
            prepared.to_zarr(store, mode="w", consolidated=False, encoding=_chunks(prepared))
        else:
            prepared.to_zarr(store, append_dim=SNAPSHOT, consolidated=False)
            _drop_other_interval(store, prepared)


def _drop_other_interval(store: Any, fire: xr.Dataset) -> None:
    """Remove the recorded interval between checkpoints if that of a new fire is another."""
    import zarr

    if SMOKE not in fire:
        return
    attrs = zarr.open_group(store, mode="r+")[SMOKE].attrs
    if recorded_interval(attrs) != recorded_interval(fire[SMOKE].attrs):
        attrs.pop(INTERVAL, None)


def check_same_grid(store: xr.Dataset, fire: xr.Dataset, path: Path) -> None:
    """Raise if a fire has another grid or other variables than a store; names the fire."""
    who = f"fire '{fire.fire_id.values[0]}'"
    sizes = {dim: size for dim, size in store.sizes.items() if dim != SNAPSHOT}
    same_size = {dim: fire.sizes.get(dim) for dim in sizes} == sizes
    differ = [
        str(name)
        for name, item in store.variables.items()
        if SNAPSHOT not in item.dims
        and name in fire.variables
        and not np.array_equal(fire[name].values, item.values)
    ]
    if differ or not same_size:
        what = f" ('{differ[0]}' differs)" if differ else ""
        raise PlumecastError(
            f"{who} is on another grid than {path}: {_grid(fire)}, not {_grid(store)}{what}; "
            "put it into a store of its own"
        )
    for name, item in store.variables.items():
        if SNAPSHOT in item.dims and name not in fire.variables:
            raise PlumecastError(f"{who} has no '{name}', which {path} has; add it")
        if SNAPSHOT in item.dims and fire[name].dims != item.dims:
            raise PlumecastError(
                f"'{name}' of {who} has dimensions {fire[name].dims}; those in {path} "
                f"are {item.dims}"
            )
    extra = {n for n in fire.variables if SNAPSHOT in fire[n].dims} - set(store.variables)
    if extra:
        raise PlumecastError(
            f"{who} has '{sorted(map(str, extra))[0]}', which {path} lacks; drop it"
        )


def _grid(snapshots: xr.Dataset) -> str:
    """A grid in words: number of cells (x by y), their size and the first of them."""
    if not set(_PLANE) <= set(snapshots.variables):
        sizes = [(dim, size) for dim, size in snapshots.sizes.items() if dim != SNAPSHOT]
        return ", ".join(f"{dim} = {size}" for dim, size in sizes)
    x, y = (snapshots[name].values for name in _PLANE)
    step = [f"{np.median(np.diff(values)):g}" for values in (x, y) if values.size > 1]
    first = f"from x = {x[0]:g}, y = {y[0]:g}"
    return f"{x.size} × {y.size} cells of {' × '.join(step) or '?'} m {first}"


def _chunks(snapshots: xr.Dataset) -> dict[Any, dict[str, Any]]:
    return {
        name: {"chunks": (CHUNK_SNAPSHOTS if item.ndim > 1 else 4096, *item.shape[1:])}
        for name, item in snapshots.variables.items()
        if item.dims[:1] == (SNAPSHOT,)
    }


def export_snapshots(snapshots: xr.Dataset, path: str | Path) -> Path:
    """Write snapshots as Zarr (`.zarr`) or NetCDF (`.nc`); never overwrites."""
    return write_blocks([_unversioned(snapshots)], path)


def _unversioned(snapshots: xr.Dataset) -> xr.Dataset:
    """Without the version of the store that was opened; a new store has a version of its own."""
    return snapshots.drop_attrs(deep=False).assign_attrs(
        {name: value for name, value in snapshots.attrs.items() if name != DATA_VERSION}
    )
