"""Reading the fuel load of snapshots: one map, a map of each, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.data import covariates
from plumecast.data.covariates import read_fuel_maps
from plumecast.data.schema import validate_snapshots
from support.snapshots import make_snapshots

GRID = ("y", "x")
MAPS = np.arange(40, dtype=np.float32).reshape(2, 4, 5)


@pytest.fixture
def data() -> xr.Dataset:
    return make_snapshots(fires=3, shape=(4, 5))


def each(data: xr.Dataset, number: np.ndarray) -> xr.Dataset:
    return data.assign(fuel_load=(("snapshot", *GRID), MAPS[number], {"units": "kg/m2"}))


def test_different_maps_are_kept_once(data, monkeypatch):
    monkeypatch.setattr(covariates, "_BLOCK", 2)
    number = np.arange(data.sizes["snapshot"]) % 2
    maps, rows = read_fuel_maps(each(data, number), GRID)
    np.testing.assert_array_equal(maps, MAPS)
    np.testing.assert_array_equal(rows, number)
    maps, rows = read_fuel_maps(data.assign(fuel_load=(GRID, MAPS[1])), GRID)
    np.testing.assert_array_equal(maps, MAPS[1:])
    np.testing.assert_array_equal(rows, 0 * number)
    assert read_fuel_maps(data, GRID) is None
    other_axes = data.assign(fuel_load=(("a", "b"), MAPS[0]))  # means something else
    assert read_fuel_maps(other_axes, GRID) is None


def test_axes_may_come_in_any_order_and_rows_have_more_of_them(data):
    swapped = data.assign(fuel_load=(("x", "scenario", "y"), MAPS.transpose(2, 0, 1)))
    maps, number = read_fuel_maps(swapped, GRID, {"scenario": 2, "snapshot": 3})
    np.testing.assert_array_equal(maps, MAPS)
    np.testing.assert_array_equal(number, [0, 0, 0, 1, 1, 1])


def test_the_contract_takes_a_map_of_every_snapshot_and_names_the_fire_of_a_wrong_load(data):
    made = each(data, np.zeros(data.sizes["snapshot"], int))
    assert validate_snapshots(made).fuel_load.attrs["units"] == "kg m-2"
    for value in (-1.0, np.nan):
        made.fuel_load[-1, 2, 3] = value
        named = f"'fuel_load' of fire '{made.fire_id.values[-1]}' is {value:g} in 1 of"
        with pytest.raises(PlumecastError, match=named):
            validate_snapshots(made)
    made.fuel_load.attrs["units"] = "t/acre"
    with pytest.raises(PlumecastError, match="'fuel_load' is in 't/acre'; convert it"):
        validate_snapshots(made)
