"""Write labelled fields to NetCDF or Zarr, atomically; fires as a store can take them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import atomic_write, refuse_existing
from plumecast.base.integrity import seal
from plumecast.base.names import (
    DOSE_SCALE,
    FIELDS,
    FURTHER,
    GROUND,
    HEIGHT,
    HISTORY,
    HISTORY_HOURS,
    HISTORY_SHARE,
    IGNITION_TIME,
    SNAPSHOT,
    TABLE,
    WEATHER,
    WEATHER_AXES,
    WEATHER_HOUR,
)
from plumecast.data.checksums import with_checksums
from plumecast.weather.snapshots import STATE_WEATHER, has_weather, on_weather_hours

CHUNK_SNAPSHOTS = 16
"""Snapshots per chunk: about one fire, or half a megabyte on the paper's grid."""

_STATED = tuple(entry.name for entry in (*FIELDS, *FURTHER, *WEATHER, *WEATHER_AXES, *GROUND))
_PLANE = ("x", "y")
_CHUNK_LABELS = 4096  # snapshots per chunk of a label


def write_blocks(blocks: Iterable[xr.Dataset], path: str | Path) -> Path:
    """Write consecutive blocks of snapshots to one `.nc` file or `.zarr` store; never overwrites.

    Only one block is in memory at a time. If a block fails, nothing is left on disk.
    """
    where = refuse_existing(Path(path))
    if where.suffix not in (".nc", ".zarr"):
        raise PlumecastError(f"{where}: unknown file ending '{where.suffix}'; use .nc or .zarr")
    with atomic_write(where, overwrite=False) as partial:
        for number, block in enumerate(blocks):
            checked = with_checksums(to_stored_types(block))
            with netcdf_errors(where), quiet_zarr():
                if where.suffix == ".zarr" and number == 0:
                    checked.to_zarr(
                        partial,
                        mode="w",
                        consolidated=False,
                        zarr_format=3,
                        encoding=zarr_encoding(checked),
                    )
                elif where.suffix == ".zarr":
                    checked.to_zarr(partial, append_dim=SNAPSHOT, consolidated=False)
                elif number == 0:
                    checked.to_netcdf(
                        partial,
                        engine="netcdf4",
                        encoding=netcdf_encoding(checked),
                        unlimited_dims=[dim for dim in checked.dims if dim == SNAPSHOT],
                    )
                else:
                    _append_netcdf(checked, partial)
        if where.suffix == ".nc" and partial.exists():
            seal(partial)
    return where


def _append_netcdf(block: xr.Dataset, path: Path) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "a") as file:
        start = len(file.dimensions[SNAPSHOT])
        for name, item in block.variables.items():
            if SNAPSHOT in item.dims:
                flags = item.dtype.kind == "b"
                file[str(name)][start:] = item.values.astype(np.int8) if flags else item.values


@contextlib.contextmanager
def netcdf_errors(where: Path) -> Iterator[None]:
    """Name the file when netCDF cannot write it: its errors, of a full disk too, name nothing."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("NetCDF: "):
            raise
        raise PlumecastError(
            f"{where} cannot be written ({error}); check the free space, or choose another path"
        ) from error


def to_stored_types(snapshots: xr.Dataset) -> xr.Dataset:
    """Texts as variable-length strings, float64 fields as float32, no encoding of other formats.

    Coordinates of the contract without units get the contract's: a store needs them to be opened.
    The units of fields and winds are never guessed.
    """
    changed = snapshots.drop_encoding()
    for name, item in changed.variables.items():
        units = TABLE[str(name)].units if name in TABLE and name not in _STATED else None
        if units is not None and "units" not in item.attrs:
            changed[name] = changed[name].assign_attrs(units=units)
    for name, item in changed.variables.items():
        if item.dtype.kind == "U":
            changed = changed.assign_coords({name: item.astype(object)})
        elif item.dtype == np.float64 and item.ndim > 1 and SNAPSHOT in item.dims:
            changed[name] = item.astype(np.float32)
    return changed.assign_attrs({"Conventions": "CF-1.11"})


@contextlib.contextmanager
def quiet_zarr() -> Iterator[None]:
    """Suppress the warning that Zarr v3 does not yet specify strings; they round-trip."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Zarr (V3|format 3) specification.*")
        yield


def zarr_encoding(block: xr.Dataset) -> dict[Hashable, dict[str, Any]]:
    """Chunks of about one fire; a checksum of each is verified also where a part of it is read."""
    from zarr.codecs import ZstdCodec

    encoding: dict[Hashable, dict[str, Any]] = {}
    for name, item in block.variables.items():
        encoding[name] = {"compressors": (ZstdCodec(level=0, checksum=True),)}
        if item.dims[:1] == (SNAPSHOT,):
            count = CHUNK_SNAPSHOTS if item.ndim > 1 else _CHUNK_LABELS
            encoding[name]["chunks"] = (count, *item.shape[1:])
    return encoding


def netcdf_encoding(block: xr.Dataset) -> dict[Hashable, dict[str, Any]]:
    """Fields compressed, numbers with a checksum, no fill values because no value is missing."""
    encodings: dict[Hashable, dict[str, Any]] = {}
    for name, item in block.variables.items():
        encoding: dict[str, Any] = {}
        if item.dtype.kind in "fiub":
            encoding["_FillValue"] = None
            if item.ndim > 0:
                encoding["fletcher32"] = True
            if item.ndim > 1:
                encoding |= {"zlib": True, "complevel": 1}
                if item.dims[0] == SNAPSHOT:
                    encoding["chunksizes"] = (CHUNK_SNAPSHOTS, *item.shape[1:])
        encodings[name] = encoding
    return encodings


EMPTY: dict[str, Any] = {
    DOSE_SCALE: 1.0, IGNITION_TIME: "", HISTORY_SHARE: 0.0, HISTORY_HOURS: np.nan,
}  # fmt: skip
"""What a fire without these variables has in a store of fires with them."""


def like_stored(store: xr.Dataset, fire: xr.Dataset, path: Path) -> xr.Dataset:
    """A fire as a store can take it: on the hours of its weather; raises if the grid is another.

    Notes of a reader and earlier maps are just those that the store has, and of a history as many
    hours.
    """
    who = f"fire '{fire.fire_id.values[0]}'"
    if has_weather(store):
        if not has_weather(fire):
            raise PlumecastError(
                f"{who} has no weather, which the fires of {path} have; {STATE_WEATHER}, or put it "
                "into a store of its own"
            )
        fire = on_weather_hours(fire, store[WEATHER_HOUR].values)
        for name, unit in ((WEATHER_HOUR, "h"), (HEIGHT, "m")):
            axis, stored = (data[name].values for data in (fire, store))
            if not np.array_equal(axis, stored):
                raise PlumecastError(
                    f"the weather of {who} has {axis.size} values of '{name}' up to {axis[-1]:g} "
                    f"{unit}, not the {stored.size} up to {stored[-1]:g} {unit} of {path}; begin a "
                    "store with the longest fire, or put this one into its own"
                )
    if all(HISTORY_SHARE in data.variables for data in (store, fire)):
        most, hours = (data.sizes[HISTORY] for data in (store, fire))
        if hours > most:
            raise PlumecastError(
                f"{who} has burned shares at {hours} hours of each snapshot, more than the {most} "
                f"of {path}; put it into a store of its own, or drop its dimension '{HISTORY}', so "
                "that its maps tell its history"
            )
        empty = {name: EMPTY[name] for name in (HISTORY_SHARE, HISTORY_HOURS)}
        fire = fire.pad({HISTORY: (0, most - hours)}, constant_values=empty, keep_attrs=True)
    for name, value in EMPTY.items():
        if name in fire.variables and name not in store.variables:
            fire = fire.drop_vars(name)
        elif name in store.variables and name not in fire.variables:
            like = store[name]
            shape = [fire.sizes.get(dim, store.sizes[dim]) for dim in like.dims]
            values = np.full(shape, value, dtype=like.dtype if like.dtype.kind == "f" else None)
            attrs = TABLE[name].attrs if name in TABLE else {}
            fire = fire.assign({name: (like.dims, values, attrs)})
            fire = fire.set_coords(name) if name in store.coords else fire
    check_same_grid(store, fire, path)
    return fire


def check_same_grid(store: xr.Dataset, fire: xr.Dataset, path: Path) -> None:
    """Raise if a fire has another grid or other variables than a store; names the fire."""
    who = f"fire '{fire.fire_id.values[0]}'"
    same_size = all(
        fire.sizes.get(dim) == size for dim, size in store.sizes.items() if dim != SNAPSHOT
    )
    differ = [
        name
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
    extra = {str(n) for n in fire.variables if SNAPSHOT in fire[n].dims} - set(store.variables)
    if extra:
        raise PlumecastError(f"{who} has '{min(extra)}', which {path} lacks; drop it")


def describe_grid(snapshots: xr.Dataset) -> str:
    """A grid in words: number of cells (x by y), their size and the first of them."""
    if not set(_PLANE) <= set(snapshots.variables):
        sizes = [(dim, size) for dim, size in snapshots.sizes.items() if dim != SNAPSHOT]
        return ", ".join(f"{dim} = {size}" for dim, size in sizes)
    x, y = (snapshots[name].values for name in _PLANE)
    step = [f"{np.median(np.diff(values)):g}" for values in (x, y) if values.size > 1]
    first = f"from x = {x[0]:g}, y = {y[0]:g}"
    return f"{x.size} × {y.size} cells of {' × '.join(step) or '?'} m {first}"
