"""Write labelled fields block by block to NetCDF or Zarr, atomically."""

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
from plumecast.base.names import FIELDS, FURTHER, GROUND, SNAPSHOT, TABLE, WEATHER, WEATHER_AXES
from plumecast.data.checks.checksums import with_checksums
from plumecast.data.checks.seal import seal

CHUNK_SNAPSHOTS = 16
"""Snapshots per chunk: about one fire, or half a megabyte on the paper's grid."""

_STATED = tuple(entry.name for entry in (*FIELDS, *FURTHER, *WEATHER, *WEATHER_AXES, *GROUND))
_CHUNK_LABELS = 4096  # snapshots per chunk of a label


def write_blocks(blocks: Iterable[xr.Dataset], path: str | Path) -> Path:
    """Write consecutive blocks of snapshots to one `.nc` file or `.zarr` store; never overwrites.

    Only one block is in memory at a time. If a block fails, nothing is left on disk.
    """
    where = refuse_existing(Path(path))
    if where.suffix not in (".nc", ".zarr"):
        raise PlumecastError(f"{where}: unknown file ending '{where.suffix}'; use .nc or .zarr")
    write = _write_zarr if where.suffix == ".zarr" else _write_netcdf
    with atomic_write(where, overwrite=False) as partial:
        for number, block in enumerate(blocks):
            with netcdf_errors(where):
                write(with_checksums(to_stored_types(block)), partial, number == 0)
        if where.suffix == ".nc" and partial.exists():
            seal(partial)
    return where


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


def _write_zarr(block: xr.Dataset, path: Path, first: bool) -> None:
    with quiet_zarr():
        if first:
            encoding = zarr_encoding(block)
            block.to_zarr(path, mode="w", consolidated=False, zarr_format=3, encoding=encoding)
        else:
            block.to_zarr(path, append_dim=SNAPSHOT, consolidated=False)


def _write_netcdf(block: xr.Dataset, path: Path, first: bool) -> None:
    if first:
        block.to_netcdf(
            path,
            engine="netcdf4",
            encoding=netcdf_encoding(block),
            unlimited_dims=[dim for dim in block.dims if dim == SNAPSHOT],
        )
        return
    import netCDF4

    with netCDF4.Dataset(path, "a") as file:
        start = len(file.dimensions[SNAPSHOT])
        for name, item in block.variables.items():
            if SNAPSHOT in item.dims:
                values = item.values
                file[str(name)][start:] = (
                    values.astype(np.int8) if values.dtype.kind == "b" else values
                )


def zarr_encoding(block: xr.Dataset) -> dict[Hashable, dict[str, Any]]:
    """Chunks of about one fire, compressed with a checksum that is verified on reading."""
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
    return {name: _netcdf_variable(item) for name, item in block.variables.items()}


def _netcdf_variable(item: xr.Variable) -> dict[str, Any]:
    if item.dtype.kind not in "fiub":
        return {}
    encoding: dict[str, Any] = {"_FillValue": None}
    if item.ndim > 0:
        encoding["fletcher32"] = True
    if item.ndim > 1:
        encoding |= {"zlib": True, "complevel": 1}
        if item.dims[0] == SNAPSHOT:
            encoding["chunksizes"] = (CHUNK_SNAPSHOTS, *item.shape[1:])
    return encoding
