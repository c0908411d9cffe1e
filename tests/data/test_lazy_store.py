"""The parts of xarray that lazy variables need and that xarray may change without notice."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.data.lazy_store import is_loaded, lazy_variable
from plumecast.data.store import append_fire, export_snapshots, open_snapshots

CHANGED = (
    "xarray changed what plumecast.data.lazy_store uses; adapt that module, or lower the newest "
    "supported version of xarray"
)


def test_a_lazy_variable_reads_only_what_is_asked():
    stored = xr.Variable(("row", "column"), np.arange(12.0).reshape(3, 4))
    keys: list[tuple] = []

    def read(key: tuple) -> np.ndarray:
        keys.append(key)
        return stored[key].values

    lazy = lazy_variable(stored, read)
    assert not is_loaded(lazy), CHANGED
    part = lazy.isel(row=slice(1, 3), column=[0, 2])
    assert keys == [], CHANGED
    np.testing.assert_array_equal(part.values, stored.values[1:3][:, [0, 2]])
    ((rows, columns),) = keys
    np.testing.assert_array_equal(np.arange(3)[rows], [1, 2], CHANGED)
    np.testing.assert_array_equal(columns, [0, 2])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("store.nc", export_snapshots),
        ("store.zarr", lambda data, path: append_fire(path, data)),
    ],
)
def test_an_opened_store_is_lazy_until_it_is_loaded(tmp_path, snapshots, name, write):
    write(snapshots, tmp_path / name)
    opened = open_snapshots(tmp_path / name)
    assert is_loaded(opened.fire_id.variable), CHANGED
    for field in ("time_since_ignition", "smoke"):
        assert not is_loaded(opened[field].variable), CHANGED
        assert is_loaded(opened.load()[field].variable), CHANGED
        opened = open_snapshots(tmp_path / name)
