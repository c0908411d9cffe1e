"""Opened files and stores: variables are read lazily, and a store that changes is detected.

xarray keeps a NetCDF file open until its data set is garbage-collected. The collector may run on
any thread (of a progress bar or a cluster client) and then closes the file there without a lock,
perhaps while another file is being read. HDF5 is not thread-safe: the read fails or the process
crashes. Therefore a NetCDF file is open only during a read, and a lock is held meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing  # documented for backends; tests/data/test_lazy_store.py

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.base.paths import check_visible

_NETCDF_LOCK = threading.RLock()  # xarray's own lock does not cover the metadata of variables

_OPENED_FROM = "plumecast_opened_from"  # key in a data set's encoding, which is never written
_WHOLE_STATE = "plumecast_whole_state"

Read = Callable[[tuple[Any, ...]], np.ndarray]
"""From one indexer per dimension (integer, slice or array of indices) to the values."""


class _LazyArray(BackendArray):
    def __init__(self, like: xr.Variable, read: Read) -> None:
        self.shape, self.dtype, self.read = like.shape, like.dtype, read

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self.read
        )


def lazy_variable(like: xr.Variable, read: Read) -> xr.Variable:
    """A variable with the shape, type and attributes of `like` that gets its values from `read`."""
    values = indexing.LazilyIndexedArray(_LazyArray(like, read))
    return xr.Variable(like.dims, values, like.attrs, like.encoding)


def open_netcdf(path: Path) -> xr.Dataset:
    """A NetCDF file whose snapshot fields are read lazily; other variables are read at once."""
    with _opened(path) as file:
        fields = {
            name: lazy_variable(item, _NetcdfField(path.resolve(), str(name)))
            for name, item in file.variables.items()
            if SNAPSHOT in item.dims and item.ndim > 1
        }
        for name, item in file.variables.items():
            if name not in fields:
                _refuse_absurd_shape(str(name), item.shape)
        return file.drop_vars(fields).load().assign(fields)


@dataclass(frozen=True, slots=True)
class _NetcdfField:
    """Reads one variable of a NetCDF file. It holds only names, so a worker can unpickle it."""

    path: Path
    name: str

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        with _opened(self.path) as file:
            return np.asarray(file[self.name].variable[key].values)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[xr.Dataset]:
    try:
        with (
            _NETCDF_LOCK,
            xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as file,
        ):
            yield file
    except RuntimeError as error:  # some versions of HDF5 fail on a file that is open twice
        raise PlumecastError(
            f"{path} cannot be read ({error}); if this process has the file open elsewhere, "
            "close it"
        ) from error


def record_state(snapshots: xr.Dataset, path: Path) -> xr.Dataset:
    """Record in a data set the path it was opened from and the state of the files there."""
    where = path.absolute()  # a worker may run in another folder
    snapshots.encoding[_OPENED_FROM] = (str(where), _file_state(where))
    snapshots.encoding[_WHOLE_STATE] = _whole_state(where)
    return snapshots


def check_unchanged(snapshots: xr.Dataset) -> None:
    """Raise if the file or Zarr store was removed or written to since it was opened.

    An Icechunk store is read at the commit that was opened, so later commits do not matter.
    """
    path, state = snapshots.encoding.get(_OPENED_FROM, (None, None))
    if path is None:
        return
    check_visible(path)
    if _file_state(Path(path)) != state:
        raise PlumecastError(_changed(path))


@contextlib.contextmanager
def one_version(snapshots: xr.Dataset) -> Iterator[None]:
    """Work that reads a data set several times; raises at its end if the files have changed.

    Unlike `check_unchanged` it looks at every file of a Zarr store. A data set in memory has one
    version, whatever became of its file.
    """
    lazy = any(not is_loaded(item.variable) for item in snapshots.data_vars.values())
    yield
    path, _ = snapshots.encoding.get(_OPENED_FROM, (None, None))
    if lazy and path is not None:
        check_unchanged(snapshots)
        if _whole_state(Path(path)) != snapshots.encoding.get(_WHOLE_STATE):
            raise PlumecastError(_changed(path))


def is_loaded(variable: xr.Variable) -> bool:
    """Whether the values of a variable are in memory.

    xarray has no public way to ask without reading; tests/data/test_lazy_store.py guards this one.
    """
    return isinstance(variable._data, np.ndarray)


def _changed(path: str) -> str:
    return f"{path} changed while it was read; run again when its writer has finished"


def _whole_state(path: Path) -> int:
    """A number for the names, sizes, times and inodes of a file or of all files of a Zarr store.

    An Icechunk store has none: it is read at one commit.
    """
    if not path.is_dir() or (path / "refs").is_dir():
        return hash(_file_state(path))
    files = sorted(part for part in path.rglob("*") if part.is_file())
    return hash(tuple((str(part), *_state(part)) for part in files))


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _file_state(path: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Names, sizes, times and inodes of a file, or of a Zarr store's metadata, which grows.

    An Icechunk store has no such files: its state is empty.
    """
    names = ("zarr.json", ".zarray", ".zattrs", ".zmetadata")
    metadata = [part for name in names for part in (*path.glob(name), *path.glob(f"*/{name}"))]
    parts = [path] if path.is_file() else metadata
    return tuple((str(part), *_state(part)) for part in sorted(parts))


LARGEST_AXIS = 2**24
"""Most values of a coordinate: more snapshots, or cells along an axis, are a damaged number."""

LARGEST_BLOCK = 2**28
"""Most values that are read at once: of a coordinate with several dimensions, or of a chunk."""

_NEVER_EMPTY = ("x", "y", "hours", "burned_area")


def _refuse_absurd_shape(name: str, shape: Sequence[int]) -> None:
    """Raise if a variable that is read at once has more values than any grid or store has."""
    size, most = math.prod(shape), LARGEST_AXIS if len(shape) == 1 else LARGEST_BLOCK
    if size > most:
        what = "has" if len(shape) == 1 else "would be read in pieces of"
        raise PlumecastError(
            f"'{name}' {what} {size:.3g} values, more than {most:.3g}; its metadata are damaged"
        )


def refuse_absurd_zarr(path: Path) -> None:
    """Raise if the metadata of a Zarr 2 or 3 store ask for absurd coordinates or chunks."""
    for file in sorted([*path.glob("*/zarr.json"), *path.glob("*/.zarray")]):
        try:
            array = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise PlumecastError(
                f"{file} is no valid JSON ({error}); restore it from a copy of the store"
            ) from error
        array = array if isinstance(array, dict) else {}
        chunk: Any = array.get("chunk_grid", {})
        for key in ("configuration", "chunk_shape"):
            chunk = chunk.get(key, {}) if isinstance(chunk, dict) else {}
        for shape, at_once in ((array.get("shape"), False), (chunk or array.get("chunks"), True)):
            if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
                continue
            if at_once or len(shape) == 1:
                _refuse_absurd_shape(file.parent.name, shape)


def refuse_missing_chunks(path: Path, snapshots: xr.Dataset) -> None:
    """Raise if a coordinate of a Zarr store without checksums lacks a chunk: it reads as 0.

    A chunk of zeros may be left out by a writer, so only coordinates that are never all zero or
    empty are looked at.
    """
    import zarr

    group = zarr.open_group(path, mode="r")
    for name, item in snapshots.variables.items():
        never_empty = name in _NEVER_EMPTY or item.dtype.kind in "OTU"
        array = group.get(str(name))
        if never_empty and item.ndim == 1 and isinstance(array, zarr.Array):
            lost = array.nchunks - array.nchunks_initialized
            if lost:
                raise PlumecastError(
                    f"{lost} of {array.nchunks} chunks of '{name}' are missing; restore the store "
                    "from a copy"
                )
