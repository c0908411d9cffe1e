"""Labelled fields on disk, block by block: NetCDF and plain Zarr, all or nothing."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT

CHUNK_SNAPSHOTS = 16
"""Snapshots in a chunk: about half a megabyte on the paper's grid, and about one fire."""


def write_blocks(blocks: Iterable[xr.Dataset], path: str | Path) -> Path:
    """Write blocks of snapshots one after another as `.nc` or `.zarr`; nothing is overwritten.

    Only one block is in memory. What was written so far disappears when a block fails.
    """
    where = refuse_existing(Path(path))
    if where.suffix not in (".nc", ".zarr"):
        raise PlumecastError(f"{where}: the ending says the format; use .nc or .zarr")
    write = _write_zarr if where.suffix == ".zarr" else _write_netcdf
    with new_path(where) as partial:
        for number, block in enumerate(blocks):
            write(plain(block), partial, number == 0)
    return where


def refuse_existing(where: Path) -> Path:
    """The path itself, where nothing is yet."""
    if where.exists():
        raise PlumecastError(f"{where} exists; remove it or choose another path")
    return where


@contextlib.contextmanager
def new_path(where: Path) -> Iterator[Path]:
    """A hidden path beside `where` that takes its name when all went well."""
    refuse_existing(where).parent.mkdir(parents=True, exist_ok=True)
    partial = where.with_name(f".{where.name}.partial")
    _remove(partial)
    try:
        yield partial
        partial.rename(where)
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def plain(snapshots: xr.Dataset) -> xr.Dataset:
    """Text as variable-length strings, float64 fields as float32, no leftovers of other formats."""
    changed = snapshots.drop_encoding()
    for name, item in changed.variables.items():
        if item.dtype.kind == "U":
            changed = changed.assign_coords({name: item.astype(object)})
        elif item.dtype == np.float64 and item.ndim > 1 and SNAPSHOT in item.dims:
            changed[name] = item.astype(np.float32)
    return changed.assign_attrs({"Conventions": "CF-1.11"})


@contextlib.contextmanager
def quiet_zarr() -> Iterator[None]:
    """Zarr warns that strings await their final place in the v3 specification; they round-trip."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Zarr (V3|format 3) specification.*")
        yield


def _write_zarr(block: xr.Dataset, path: Path, first: bool) -> None:
    with quiet_zarr():
        if first:
            block.to_zarr(path, mode="w", consolidated=False, zarr_format=3)
        else:
            block.to_zarr(path, append_dim=SNAPSHOT, consolidated=False)


def _write_netcdf(block: xr.Dataset, path: Path, first: bool) -> None:
    if first:
        block.to_netcdf(
            path,
            engine="netcdf4",
            encoding={name: _netcdf_encoding(item) for name, item in block.variables.items()},
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


def _netcdf_encoding(item: xr.Variable) -> dict[str, Any]:
    """Compressed fields; no fill values, because nothing is missing."""
    if item.dtype.kind not in "fiub":
        return {}
    encoding: dict[str, Any] = {"_FillValue": None}
    if item.ndim > 1:
        encoding |= {"zlib": True, "complevel": 1}
        if item.dims[0] == SNAPSHOT:
            encoding["chunksizes"] = (CHUNK_SNAPSHOTS, *item.shape[1:])
    return encoding
