"""The parts of xarray that lazy variables need and that xarray may change without notice."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.data.lazy_store import is_loaded, lazy_variable
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from support.snapshots import fires_of, make_snapshots

CHANGED = (
    "xarray changed what plumecast.data.lazy_store uses; adapt that module, or lower the newest "
    "supported version of xarray"
)


def recorded(values: np.ndarray):
    """A lazy variable of these values and the list of keys that were read."""
    keys: list[tuple] = []

    def read(key: tuple) -> np.ndarray:
        keys.append(key)
        return xr.Variable(("row", "column"), values)[key].values

    return lazy_variable(xr.Variable(("row", "column"), values), read), keys


def test_a_lazy_variable_reads_only_what_is_asked():
    values = np.arange(12.0).reshape(3, 4)
    lazy, keys = recorded(values)
    assert not is_loaded(lazy), CHANGED
    part = lazy.isel(row=slice(1, 3), column=[0, 2])
    assert keys == [], CHANGED
    np.testing.assert_array_equal(part.values, values[1:3][:, [0, 2]])
    assert len(keys) == 1, CHANGED
    rows, columns = keys[0]
    np.testing.assert_array_equal(np.arange(3)[rows], [1, 2], CHANGED)
    np.testing.assert_array_equal(columns, [0, 2])


@pytest.mark.parametrize("name", ["store.nc", "store.zarr"])
def test_an_opened_store_is_lazy_until_it_is_loaded(tmp_path, name):
    snapshots = make_snapshots(fires=2)
    if name.endswith(".nc"):
        export_snapshots(snapshots, tmp_path / name)
    else:
        for fire in fires_of(snapshots):
            append_fire(tmp_path / name, fire)
    opened = open_snapshots(tmp_path / name)
    assert not is_loaded(opened.smoke.variable), CHANGED
    assert is_loaded(opened.load().smoke.variable), CHANGED
