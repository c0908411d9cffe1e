"""Weather in the snapshot contract: every fault is named with the fire, the hour and the value."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.data.findings import check_store
from plumecast.data.schema import check_structure, validate_snapshots
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from support.places import shared_data
from support.snapshots import add_weather, make_snapshots

ROW = 4  # second checkpoint, at 12 h, of the second fire


@pytest.fixture
def data():
    return add_weather(make_snapshots(fires=4, checkpoints=3, shape=(4, 5)))


def in_unit(data, unit):
    data.wind_u.attrs["units"] = unit
    return data


def with_axis(data, name, values):
    return data.assign_coords({name: (name, np.asarray(values, dtype=float), data[name].attrs)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.drop_vars("wind_v"), "there is 'wind_u', but no 'wind_v'; a weather has"),
        (lambda d: d.drop_vars("height"), "there is 'wind_u', but no 'height'"),
        (lambda d: d.assign(wind_u=d.wind_u.transpose(SNAPSHOT, "height", "weather_hour")),
         "'wind_u' has dimensions .*'height', 'weather_hour'.*, expected"),
        (lambda d: with_axis(d, "height", [10.0, 3000.0, 500.0]),
         "'height' must increase, but 500 m follows 3000 m"),
        (lambda d: with_axis(d, "height", [-10.0, 500.0, 3000.0]), "'height' begins at -10 m; h"),
        (lambda d: with_axis(d, "height", [10.0, np.nan, 3000.0]), "'height' holds NaN or infin"),
        (lambda d: with_axis(d, "weather_hour", np.arange(19.0)[::-1]),
         "'weather_hour' must increase, but 17 h follows 18 h"),
        (lambda d: with_axis(d, "weather_hour", np.arange(19.0) + 2.0),
         "the weather begins 2 h after ignition"),
        (lambda d: d.isel(weather_hour=slice(13)),
         "fire 'fire-00-low' lasts until 18 h, but the weather ends at 12 h .*up to 18"),
        (lambda d: d.isel(height=slice(0)), "'height' is empty"),
        (lambda d: in_unit(d, "knots"), "'wind_u' is in 'knots'; convert it to 'm s-1'"),
        (lambda d: in_unit(d, "km/h"), "'wind_u' is in 'km/h'; convert it to 'm s-1'"),
    ],
)  # fmt: skip
def test_axes_and_units_are_checked_on_opening(data, change, message, tmp_path):
    bad = change(data)
    with pytest.raises(PlumecastError, match=message):
        check_structure(bad)
    if "wind_v" in bad and bad.sizes.get("height"):
        path = export_snapshots(bad, tmp_path / "bad.nc")
        with pytest.raises(PlumecastError, match=f"bad.nc: {message}"):
            open_snapshots(path)


@pytest.mark.parametrize("unit", ["m/s", "m s**-1", "m s⁻¹"])
def test_spellings_of_the_unit_are_made_one(data, unit):
    assert check_structure(in_unit(data, unit)).wind_u.attrs["units"] == "m s-1"


def test_a_wind_without_units_is_not_given_any(data, tmp_path):
    del data.wind_u.attrs["units"]
    with pytest.raises(PlumecastError, match="'wind_u' has no units"):
        open_snapshots(export_snapshots(data, tmp_path / "a.nc"))


WRONG = [
    ("wind_u", (ROW, 3, 1), np.nan, "'wind_u' is nan at hour 3, 500 m; fill it in"),
    ("wind_v", (ROW, 3, 1), np.inf, "'wind_v' is inf at hour 3, 500 m; fill it in"),
    ("wind_u", (ROW, 3, 0), 75.0, "m/s at hour 3, 10 m is no wind; check its unit"),
    ("wind_u", (ROW, 3, 2), 150.0, "m/s at hour 3, 3000 m is no wind"),
    ("boundary_layer_depth", (ROW, 5), 0.0, "'boundary_layer_depth' is 0 m at hour 5; give"),
    ("boundary_layer_depth", (ROW, 5), np.nan, "'boundary_layer_depth' is nan m at hour 5"),
]


@pytest.mark.parametrize(("name", "index", "value", "message"), WRONG)
def test_values_are_checked_on_writing_and_by_info(data, name, index, value, message, tmp_path):
    data[name].values[index] = value
    fire = str(data.fire_id.values[ROW])
    with pytest.raises(PlumecastError, match=f"the weather of fire '{fire}': .*{message}"):
        append_fire(tmp_path / "a.zarr", data)
    assert not (tmp_path / "a.zarr").exists()
    found = check_store(open_snapshots(export_snapshots(data, tmp_path / "a.nc")))
    texts = {name: [str(item) for item in items if item.check == "weather"]
             for name, items in found.items()}  # fmt: skip
    assert message in texts.pop(fire)[0]
    assert not any(texts.values())


def test_weather_is_not_required_and_not_needed_after_a_snapshot(data):
    validate_snapshots(make_snapshots(fires=2))
    assert validate_snapshots(data).identical(data)
    for name in ("wind_u", "wind_v", "boundary_layer_depth"):
        data[name].values[ROW, 13:] = np.nan  # the snapshot is at 12 h
    validate_snapshots(data)
    data.wind_u.values[ROW, 12:] = np.nan
    with pytest.raises(PlumecastError, match="'wind_u' is nan at hour 12, 10 m"):
        validate_snapshots(data)


def test_a_fuel_load_is_not_negative(data):
    load = ("y", "x"), np.full((4, 5), 0.5, dtype=np.float32), {"units": "kg m-2"}
    validate_snapshots(data.assign(fuel_load=load))
    load[1][1, 2] = -1.0
    with pytest.raises(PlumecastError, match="'fuel_load' is -1 in 1 of 20 cells"):
        validate_snapshots(data.assign(fuel_load=load))


def test_names_of_the_weather_may_mean_something_else_without_one():
    plain = make_snapshots(fires=2, shape=(4, 5))
    other = plain.assign(height=(("y", "x"), np.ones((4, 5))))
    xr.testing.assert_identical(validate_snapshots(other), other)


def test_real_wrf_fires_open_with_and_without_weather():
    mountains = open_snapshots(shared_data("wrf") / "mountains.nc")
    assert mountains.wind_u.dims == (SNAPSHOT, "weather_hour", "height")
    validate_snapshots(mountains.load())
    assert "wind_u" not in open_snapshots(shared_data("wrf") / "ensemble.nc")
