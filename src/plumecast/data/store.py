"""Snapshot stores: an Icechunk repository that grows by one commit per fire.

A killed run leaves only whole fires; resuming it adds the fires that are missing. Every result
records the commit id as the version of its data. Zarr and NetCDF can be read and exported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import (
    DEPTH,
    DOSE_ERROR,
    DOSE_OF,
    INTERVAL,
    recorded_depth,
    recorded_interval,
)
from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import (
    RESTORE,
    DamagedError,
    check_complete,
    check_seal,
    is_damage,
    short_reason,
)
from plumecast.base.names import DATA_VERSION as DATA_VERSION
from plumecast.base.names import (
    SMOKE,
    SNAPSHOT,
)
from plumecast.base.paths import check_regular
from plumecast.compute.blocks import row_blocks
from plumecast.data.checksums import (
    CHECKSUMS,
    describe_checksums,
    verify_as_read,
    with_checksums,
)
from plumecast.data.clock import record_interval
from plumecast.data.lazy_store import (
    open_netcdf,
    record_state,
    refuse_absurd_zarr,
    refuse_missing_chunks,
)
from plumecast.data.repository import (
    BRANCH,
    Transaction,
    create_repository,
    guard_fields,
    is_beginning,
    is_icechunk,
    open_repository,
    writer,
)
from plumecast.data.schema import (
    FIELD_NAMES,
    check_structure,
    further_outputs,
    validate_snapshots,
)
from plumecast.data.writers import (
    like_stored,
    quiet_zarr,
    to_stored_types,
    write_blocks,
    zarr_encoding,
)
from plumecast.weather.snapshots import with_mean_winds

_BLOCK = 256  # snapshots exported at once
DEPTH_TOLERANCE = 0.05  # largest relative difference of column depths that count as equal
_OF_FILES = (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".tif", ".tiff", ".asc", ".csv")

# Lazy reading. Hours stay numbers; some versions of xarray would decode them as timedeltas.
OPEN_OPTIONS: dict[str, Any] = {"consolidated": False, "chunks": None, "decode_timedelta": False}


class EmptyStoreError(PlumecastError):
    """The store exists but holds no fire."""


def open_snapshots(path: str | Path, *, fields: Sequence[str] = FIELD_NAMES) -> xr.Dataset:
    """Open a snapshot store lazily and check its structure; coordinates are read at once.

    Parameters
    ----------
    path
        An Icechunk or Zarr store, or a NetCDF file.
    fields
        The variables that a surrogate will use, if they are not those of the contract.
    """
    where = _existing(path)
    try:
        opened = verify_as_read(_read_labels(where), where)
        checked = with_mean_winds(check_structure(opened, fields))
    except EmptyStoreError:
        raise
    except PlumecastError as error:
        named = str(error).startswith(str(where)) or str(where.absolute()) in str(error)
        raise (error if named else error.at(str(where))) from None
    return record_state(record_interval(checked), where)


def open_fields(path: str | Path) -> xr.Dataset:
    """Open labelled fields lazily: a store, a prediction or statistics.

    Those with the fields of the contract are opened as snapshots, with all its checks.
    """
    opened = _read_labels(_existing(path))
    whole = SNAPSHOT in opened.dims and set(FIELD_NAMES) <= set(opened.variables)
    return open_snapshots(path) if whole else opened


def _existing(path: str | Path) -> Path:
    where = check_regular(path)
    if not where.exists():
        raise PlumecastError(f"{where} does not exist")
    return where


def _read_labels(where: Path) -> xr.Dataset:
    """Open a store of any format and read its coordinates; damage is one line."""
    try:
        if is_icechunk(where):
            opened = _open_icechunk(where.absolute())
        elif (where / "zarr.json").exists() or (where / ".zgroup").exists():
            refuse_absurd_zarr(where.absolute())
            opened = xr.open_zarr(where.absolute(), **OPEN_OPTIONS)
            if CHECKSUMS not in opened.attrs:
                refuse_missing_chunks(where, opened)
        elif where.is_dir():
            raise PlumecastError(f"{where} is a folder, but neither an Icechunk nor a Zarr store")
        else:
            opened = _open_netcdf(where)
        return plain_coordinates(opened)
    except PlumecastError:
        raise
    except Exception as error:
        if not is_damage(error):
            raise
        raise DamagedError(
            f"{where} is damaged or not a snapshot store ({short_reason(error)}); {RESTORE}"
        ) from error


def _open_netcdf(path: Path) -> xr.Dataset:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"\x89HDF" and not magic.startswith(b"CDF"):
        if path.suffix == ".plume":
            raise PlumecastError(f"{path} is a saved surrogate; here a store of fires is needed")
        raise PlumecastError(f"{path} is neither a snapshot store nor a NetCDF file")
    check_complete(path, set())
    digest = check_seal(path)  # before the library, which may loop in a damaged file
    return open_netcdf(path).assign_attrs({DATA_VERSION: f"sha256:{digest[:20]}"})


def _open_icechunk(path: Path) -> xr.Dataset:
    if is_beginning(path):
        raise EmptyStoreError(f"{path} holds no fire yet")
    session = open_repository(path).readonly_session(BRANCH)
    try:
        snapshots = guard_fields(xr.open_zarr(session.store, **OPEN_OPTIONS), path)
    except FileNotFoundError:
        raise EmptyStoreError(f"{path} holds no fire yet") from None
    if SNAPSHOT not in snapshots.dims:
        raise EmptyStoreError(f"{path} holds no fire yet")
    versioned: xr.Dataset = snapshots.assign_attrs({DATA_VERSION: str(session.snapshot_id)})
    return versioned


def plain_coordinates(snapshots: xr.Dataset) -> xr.Dataset:
    """Load the variables on `snapshot` alone as coordinates, with texts as fixed-width strings.

    Predicted doses, which stay lazy, become coordinates too.
    """
    names = [name for name, item in snapshots.variables.items() if item.dims == (SNAPSHOT,)]
    loaded = {}
    for name in names:
        item = snapshots[name].variable.load()
        if item.dtype.kind in "OT":
            item = item.copy(data=np.array(item.values.tolist(), dtype=str))
            item.encoding.clear()
        loaded[name] = item
    doses = {item.attrs.get(DOSE_OF) for item in snapshots.variables.values()}
    return snapshots.assign_coords(loaded).set_coords(doses & set(snapshots.data_vars))


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
    stored = open_if_stored(Path(path), None)
    return frozenset() if stored is None else frozenset(stored.fire_id.values.tolist())


def open_if_stored(where: Path, fields: Sequence[str] | None) -> xr.Dataset | None:
    """The fires that a store has; None if it does not exist yet or has none.

    Without `fields`, nothing but the labels is read and checked.
    """
    if not where.exists() or is_beginning(where):
        return None
    if not is_icechunk(where):
        raise PlumecastError(f"{where} exists and is not an Icechunk store; choose another path")
    try:
        if fields is None:
            return plain_coordinates(_open_icechunk(where))
        return open_snapshots(where, fields=fields)
    except EmptyStoreError:
        return None


def append_fire(path: str | Path, fire: xr.Dataset, *, fields: Sequence[str] = FIELD_NAMES) -> str:
    """Append the snapshots of one fire as one commit; return the commit id.

    A run that is killed before the commit leaves the store as it was. Several fires in one data set
    make one commit. Raises if a fire is already in the store.
    """
    where = Path(path)
    check_store_path(where)
    fire = with_mean_winds(validate_snapshots(fire, fields))
    new = sorted(set(fire.fire_id.values.tolist()))
    with writer(where) as real:
        stored = open_if_stored(where, fields)
        if stored is not None:
            twice = sorted(set(stored.fire_id.values.tolist()).intersection(new))
            if twice:
                raise PlumecastError(f"fire '{twice[0]}' is already in {where}; leave it out")
            fire = like_stored(stored, fire, where)
        create_repository(real)
        transaction = Transaction(real)
        write_fire(transaction.store, fire, first=stored is None)
        return transaction.commit(f"add {', '.join(new)}")


def write_fire(store: Any, fire: xr.Dataset, *, first: bool) -> None:
    """Append snapshots to the Zarr store of a session; the first ones replace what is there."""
    import zarr

    prepared = to_stored_types(_unversioned(fire))
    with quiet_zarr():
        if first:
            checked = with_checksums(prepared)
            checked.to_zarr(store, mode="w", consolidated=False, encoding=zarr_encoding(checked))
            return
        # A store of an earlier version has no checksums, and stays without.
        stored = zarr.open_group(store, mode="r")
        known = CHECKSUMS in stored
        added = with_checksums(prepared) if known else prepared
        # What all fires share, such as the grid, is there already and the same.
        there = [n for n in added.variables if str(n) in stored]
        shared = [n for n in there if SNAPSHOT not in added[n].dims]
        added.drop_vars(shared).to_zarr(store, append_dim=SNAPSHOT, consolidated=False)
        _drop_other_meaning(store, prepared)
        if known:
            now = xr.open_zarr(store, **OPEN_OPTIONS)
            group = zarr.open_group(store, mode="r+")  # with the attributes as they are now
            group.update_attributes({CHECKSUMS: describe_checksums(now)})


def _drop_other_meaning(store: Any, fire: xr.Dataset) -> None:
    """Remove the recorded interval or column depth if that of a new fire is another.

    Depths of one grid differ a little with the temperature of the air.
    """
    import zarr

    if SMOKE not in fire:
        return
    group = zarr.open_group(store, mode="r+")
    for name in (SMOKE, *further_outputs(fire)):
        attrs = group[name].attrs
        if recorded_interval(attrs) != recorded_interval(fire[SMOKE].attrs):
            attrs.pop(INTERVAL, None)
        if DOSE_ERROR in attrs:
            errors = (attrs[DOSE_ERROR], fire[name].attrs.get(DOSE_ERROR, 0.0))
            attrs[DOSE_ERROR] = max(float(str(error)) for error in errors)
    attrs = group[SMOKE].attrs
    own, stored = recorded_depth(fire[SMOKE].attrs), recorded_depth(attrs)
    if stored is not None and (own is None or abs(own - stored) > DEPTH_TOLERANCE * stored):
        attrs.pop(DEPTH)


def export_snapshots(snapshots: xr.Dataset, path: str | Path) -> Path:
    """Write snapshots into a new file; the path that was written.

    Parameters
    ----------
    snapshots
        Snapshots, or any Dataset of theirs.
    path
        Ends in `.zarr` or `.nc`; nothing is overwritten.
    """
    plain = _unversioned(snapshots)
    if SNAPSHOT not in plain.dims:
        return write_blocks([plain], path)
    blocks = row_blocks(plain.sizes[SNAPSHOT], _BLOCK)
    return write_blocks((plain.isel({SNAPSHOT: rows}).load() for rows in blocks), path)


def _unversioned(snapshots: xr.Dataset) -> xr.Dataset:
    """Without the version of the store that was opened; a new store has a version of its own."""
    return snapshots.drop_attrs(deep=False).assign_attrs(
        {name: value for name, value in snapshots.attrs.items() if name != DATA_VERSION}
    )
