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
from plumecast.base.names import DATA_VERSION as DATA_VERSION
from plumecast.base.names import (
    DOSE_SCALE,
    HEIGHT,
    HISTORY,
    HISTORY_HOURS,
    HISTORY_SHARE,
    IGNITION_TIME,
    SMOKE,
    SNAPSHOT,
    TABLE,
    WEATHER_HOUR,
)
from plumecast.base.paths import check_regular
from plumecast.compute.blocks import row_blocks
from plumecast.data.checks.checkpoints import record_interval
from plumecast.data.checks.checksums import (
    CHECKSUMS,
    describe_checksums,
    relabelled,
    verify_as_read,
    with_checksums,
)
from plumecast.data.checks.damage import RESTORE, DamagedError, is_damage, short_reason
from plumecast.data.checks.seal import check_seal
from plumecast.data.checks.shapes import refuse_absurd_zarr, refuse_missing_chunks
from plumecast.data.lazy_store import open_netcdf, record_state
from plumecast.data.repository.process import guard_fields
from plumecast.data.repository.writing import (
    BRANCH,
    Transaction,
    create_repository,
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
from plumecast.data.writers import quiet_zarr, to_stored_types, write_blocks, zarr_encoding
from plumecast.weather.snapshots import (
    STATE_WEATHER,
    has_weather,
    on_weather_hours,
    with_mean_winds,
)

_PLANE = ("x", "y")
_BLOCK = 256  # snapshots exported at once
DEPTH_TOLERANCE = 0.05  # largest relative difference of column depths that count as equal
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
    where = check_regular(path)
    if not where.exists():
        raise PlumecastError(f"{where} does not exist")
    try:
        opened = verify_as_read(_read_labels(where), where)
        checked = with_mean_winds(check_structure(opened, fields))
    except EmptyStoreError:
        raise
    except PlumecastError as error:
        named = str(error).startswith(str(where)) or str(where.absolute()) in str(error)
        raise type(error)(str(error) if named else f"{where}: {error}") from None
    return record_state(record_interval(checked), where)


def open_fields(path: str | Path) -> xr.Dataset:
    """Open labelled fields lazily: a store, a prediction or statistics.

    Those with the fields of the contract are opened as snapshots, with all its checks.
    """
    where = check_regular(path)
    if not where.exists():
        raise PlumecastError(f"{where} does not exist")
    found = _read_labels(where)
    whole = SNAPSHOT in found.dims and set(FIELD_NAMES) <= set(found.variables)
    return open_snapshots(where) if whole else found


def _read_labels(where: Path) -> xr.Dataset:
    """Open a store of any format and read its coordinates; damage is one line."""
    try:
        if is_icechunk(where):
            return _plain_coordinates(_open_icechunk(where.absolute()))
        if (where / "zarr.json").exists() or (where / ".zgroup").exists():
            return _plain_coordinates(_open_zarr(where.absolute()))
        if where.is_dir():
            raise PlumecastError(f"{where} is a folder, but neither an Icechunk nor a Zarr store")
        return _plain_coordinates(_open_netcdf(where))
    except PlumecastError:
        raise
    except Exception as error:
        if not is_damage(error):
            raise
        raise DamagedError(
            f"{where} is damaged or not a snapshot store ({short_reason(error)}); {RESTORE}"
        ) from error


def _open_icechunk(path: Path) -> xr.Dataset:
    if is_beginning(path):
        raise EmptyStoreError(f"{path} holds no fire yet")
    session = open_repository(path).readonly_session(BRANCH)
    try:
        snapshots = guard_fields(xr.open_zarr(session.store, **_OPEN_OPTIONS), path)
    except FileNotFoundError:
        raise EmptyStoreError(f"{path} holds no fire yet") from None
    if SNAPSHOT not in snapshots.dims:
        raise EmptyStoreError(f"{path} holds no fire yet")
    versioned: xr.Dataset = snapshots.assign_attrs({DATA_VERSION: str(session.snapshot_id)})
    return versioned


def _open_zarr(path: Path) -> xr.Dataset:
    refuse_absurd_zarr(path)
    snapshots: xr.Dataset = xr.open_zarr(path, **_OPEN_OPTIONS)
    if CHECKSUMS not in snapshots.attrs:
        refuse_missing_chunks(path, snapshots)
    return snapshots


def _open_netcdf(path: Path) -> xr.Dataset:
    _refuse_other_files(path)
    digest = check_seal(path)  # before the library, which may loop in a damaged file
    return open_netcdf(path).assign_attrs({DATA_VERSION: f"sha256:{digest[:20]}"})


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"\x89HDF" and not magic.startswith(b"CDF"):
        if path.suffix == ".plume":
            raise PlumecastError(f"{path} is a saved surrogate; here a store of fires is needed")
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
    where = Path(path)
    if not _holds_a_commit(where):
        return frozenset()
    try:
        return frozenset(_plain_coordinates(_open_icechunk(where)).fire_id.values.tolist())
    except EmptyStoreError:
        return frozenset()


def _holds_a_commit(where: Path) -> bool:
    """Whether there is a store that fires were added to; raises if there is something else."""
    if not where.exists() or is_beginning(where):
        return False
    if not is_icechunk(where):
        raise PlumecastError(f"{where} exists and is not an Icechunk store; choose another path")
    return True


def open_if_stored(where: Path, fields: Sequence[str]) -> xr.Dataset | None:
    """The fires that a store has; None if it does not exist yet or has none."""
    if not _holds_a_commit(where):
        return None
    try:
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
            now = xr.open_zarr(store, **_OPEN_OPTIONS)
            group = zarr.open_group(store, mode="r+")  # with the attributes as they are now
            group.update_attributes({CHECKSUMS: describe_checksums(now)})


def update_label_checksums(store: Any) -> None:
    """Write the checksums of the labels again, after labels were changed on purpose."""
    import zarr

    now = _plain_coordinates(xr.open_zarr(store, **_OPEN_OPTIONS))
    if CHECKSUMS in now.variables:
        with quiet_zarr():
            zarr.open_group(store, mode="r+")[CHECKSUMS][:] = relabelled(now)  # type: ignore[index]


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


def like_stored(store: xr.Dataset, fire: xr.Dataset, path: Path) -> xr.Dataset:
    """A fire as a store can take it: on the hours of its weather; raises if the grid is another."""
    if has_weather(store):
        if not has_weather(fire):
            raise PlumecastError(
                f"fire '{fire.fire_id.values[0]}' has no weather, which the fires of {path} have; "
                f"{STATE_WEATHER}, or put it into a store of its own"
            )
        fire = on_weather_hours(fire, store[WEATHER_HOUR].values)
        _check_same_weather_axes(store, fire, path)
    fire = _with_optional(store, _on_stored_history(store, fire, path))
    check_same_grid(store, fire, path)
    return fire


def _with_optional(store: xr.Dataset, fire: xr.Dataset) -> xr.Dataset:
    """The fire with just those notes of a reader, and earlier maps, that the store has."""
    surplus = [name for name in OPTIONAL if name in fire.variables and name not in store.variables]
    fire = fire.drop_vars(surplus)
    for name in OPTIONAL:
        if name not in store.variables or name in fire.variables:
            continue
        like = store[name]
        shape = [fire.sizes.get(dim, store.sizes[dim]) for dim in like.dims]
        values = np.full(shape, EMPTY[name], dtype=like.dtype if like.dtype.kind == "f" else None)
        fire = fire.assign({name: (like.dims, values, TABLE[name].attrs if name in TABLE else {})})
        fire = fire.set_coords(name) if name in store.coords else fire
    return fire


def _on_stored_history(store: xr.Dataset, fire: xr.Dataset, path: Path) -> xr.Dataset:
    """The fire with as many hours of its history as the store has; raises if it has more."""
    if any(HISTORY_SHARE not in data.variables for data in (store, fire)):
        return fire
    most, own = (data.sizes[HISTORY] for data in (store, fire))
    if own > most:
        raise PlumecastError(
            f"fire '{fire.fire_id.values[0]}' has burned shares at {own} hours of each snapshot, "
            f"more than the {most} of {path}; put it into a store of its own, or drop its "
            f"dimension '{HISTORY}', so that its maps tell its history"
        )
    empty = {name: EMPTY[name] for name in (HISTORY_SHARE, HISTORY_HOURS)}
    return fire.pad({HISTORY: (0, most - own)}, constant_values=empty, keep_attrs=True)


EMPTY: dict[str, Any] = {
    DOSE_SCALE: 1.0, IGNITION_TIME: "", HISTORY_SHARE: 0.0, HISTORY_HOURS: np.nan,
}  # fmt: skip
"""What a fire without these variables has in a store of fires with them."""

OPTIONAL = tuple(EMPTY)


def _check_same_weather_axes(store: xr.Dataset, fire: xr.Dataset, path: Path) -> None:
    for name, unit in ((WEATHER_HOUR, "h"), (HEIGHT, "m")):
        own, others = (data[name].values for data in (fire, store))
        if not np.array_equal(own, others):
            raise PlumecastError(
                f"the weather of fire '{fire.fire_id.values[0]}' has {own.size} values of '{name}' "
                f"up to {own[-1]:g} {unit}, not the {others.size} up to {others[-1]:g} {unit} of "
                f"{path}; begin a store with the longest fire, or put this one into its own"
            )


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
            f"{who} is on another grid than {path}: {describe_grid(fire)}, not "
            f"{describe_grid(store)}{what}; put it into a store of its own"
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


def describe_grid(snapshots: xr.Dataset) -> str:
    """A grid in words: number of cells (x by y), their size and the first of them."""
    if not set(_PLANE) <= set(snapshots.variables):
        sizes = [(dim, size) for dim, size in snapshots.sizes.items() if dim != SNAPSHOT]
        return ", ".join(f"{dim} = {size}" for dim, size in sizes)
    x, y = (snapshots[name].values for name in _PLANE)
    step = [f"{np.median(np.diff(values)):g}" for values in (x, y) if values.size > 1]
    first = f"from x = {x[0]:g}, y = {y[0]:g}"
    return f"{x.size} × {y.size} cells of {' × '.join(step) or '?'} m {first}"


def export_snapshots(snapshots: xr.Dataset, path: str | Path) -> Path:
    """Write snapshots as Zarr (`.zarr`) or NetCDF (`.nc`); never overwrites."""
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
