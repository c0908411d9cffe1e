"""Variables whose values are read when they are used, and NetCDF files open only that long.

xarray keeps a NetCDF file open until its data set is garbage. The collector may run on any thread
(a progress bar's, a cluster's) and closes the file there without a lock, perhaps while another is
being read; HDF5 knows no threads, and the read fails or the process dies. So files are open only
while a lock is held.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends.common import BackendArray
from xarray.core import indexing

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT

_ONE_AT_A_TIME = threading.RLock()  # xarray's own lock leaves out what a file says of its variables

Read = Callable[[tuple[Any, ...]], np.ndarray]
"""From one indexer per dimension (integer, slice or indices) to the values there."""


class _AsRead(BackendArray):
    def __init__(self, like: xr.Variable, read: Read) -> None:
        self.shape, self.dtype, self.read = like.shape, like.dtype, read

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self.read
        )


def lazy_variable(like: xr.Variable, read: Read) -> xr.Variable:
    """A variable with the shape, type and attributes of another, its values from `read`."""
    values = indexing.LazilyIndexedArray(_AsRead(like, read))
    return xr.Variable(like.dims, values, like.attrs, like.encoding)


def open_netcdf(path: Path) -> xr.Dataset:
    """A NetCDF file: fields of snapshots read when used, all else now; the file is closed."""
    with _opened(path) as file:
        fields = {
            name: lazy_variable(item, _Field(path, str(name)))
            for name, item in file.variables.items()
            if SNAPSHOT in item.dims and item.ndim > 1
        }
        return file.drop_vars(fields).load().assign(fields)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[xr.Dataset]:
    try:
        with (
            _ONE_AT_A_TIME,
            xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as file,
        ):
            yield file
    except RuntimeError as error:  # some versions of HDF5 mix up a file that is open twice
        raise PlumecastError(
            f"{path} cannot be read ({error}); if this process holds it open elsewhere, close it"
        ) from error


class _Field:
    """A field of a NetCDF file, by its name: pickled for another process, it reads there."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path.resolve(), name

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        with _opened(self.path) as file:
            return np.asarray(file[self.name].variable[key].values)
