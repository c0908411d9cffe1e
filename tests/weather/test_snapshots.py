"""The weather of snapshots: carried by every path of the data, and the scalar winds it gives."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT, WEATHER_NAMES
from plumecast.data.rewrite import replace_fires
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from plumecast.weather.profile import mean_wind
from plumecast.weather.snapshots import on_weather_hours, read_weather_rows, with_mean_winds
from support.snapshots import add_weather, fires_of, make_snapshots

ROUNDING = 1e-5  # of float32 winds


@pytest.fixture
def data():
    return add_weather(make_snapshots(fires=8, checkpoints=3, shape=(4, 5)))


def same_weather(found: xr.Dataset, expected: xr.Dataset) -> None:
    for name in WEATHER_NAMES:
        np.testing.assert_array_equal(found[name].values, expected[name].values, err_msg=name)


def test_weather_is_stored_fire_by_fire_and_rewritten(data, tmp_path):
    path = tmp_path / "a.zarr"
    for fire in fires_of(data):
        append_fire(path, fire)
    same_weather(open_snapshots(path), data)
    rows = np.array([7, 2, 3])
    lazy, loaded = (
        read_weather_rows(d.isel({SNAPSHOT: rows})) for d in (open_snapshots(path), data)
    )
    for name, values in loaded.items():
        np.testing.assert_array_equal(lazy[name], values)
    first = fires_of(data)[0]
    replace_fires(path, [first.assign(wind_u=2.0 * first.wind_u)])
    now = open_snapshots(path).load()
    rows = np.concatenate([np.flatnonzero(now.fire_id.values == f.fire_id.values[0])
                           for f in fires_of(data)])  # fmt: skip
    again = now.isel({SNAPSHOT: rows})
    np.testing.assert_array_equal(again.wind_v.values, data.wind_v.values)
    np.testing.assert_array_equal(again.wind_u.values[:3], 2.0 * data.wind_u.values[:3])


def test_missing_values_after_a_snapshot_hold_the_last_one(data):
    whole = read_weather_rows(data)
    for name in WEATHER_NAMES:
        data[name].values[0, 7:] = np.nan  # its hour is 6
    found = read_weather_rows(data)
    np.testing.assert_array_equal(found["u"][0, :7], whole["u"][0, :7])
    np.testing.assert_array_equal(found["u"][0, 6:], np.repeat(whole["u"][0, 6:7], 13, axis=0))
    np.testing.assert_array_equal(found["depth"][1:], whole["depth"][1:])
    data.wind_u.values[0, 6] = np.nan
    with pytest.raises(PlumecastError, match=r"'fire-00-low': 'wind_u' is nan at hour 6, "):
        read_weather_rows(data)


def test_mean_wind_by_hand():
    """From south-west to north-west in two hours: mean from the west."""
    hours, speed = np.arange(3.0), np.sqrt(0.5)
    u, v = np.full(3, speed), speed * np.array([1.0, 0.0, -1.0])
    (found, at_ignition), (direction, first) = mean_wind(hours, u, v, [2.0, 0.0])
    assert direction == pytest.approx(270.0)
    assert found == pytest.approx(0.5 * (1.0 + speed))  # speeds 1, √½, 1
    assert (at_ignition, first) == pytest.approx((1.0, 225.0), abs=0.1)


def test_missing_scalar_winds_are_derived_on_opening_and_on_writing(data, tmp_path):
    assert "wind_speed" not in data
    row = 4
    u, v = (data[name].values[row, :, 0].astype(float) for name in ("wind_u", "wind_v"))
    expected = np.ravel(mean_wind(data.weather_hour.values, u, v, [float(data.hours[row])]))
    append_fire(tmp_path / "a.zarr", data)
    for path in (tmp_path / "a.zarr", export_snapshots(data, tmp_path / "a.nc")):
        opened = open_snapshots(path)
        found = float(opened.wind_speed[row]), float(opened.wind_from_direction[row])
        assert found == pytest.approx(expected, rel=ROUNDING)
        assert opened.wind_speed.attrs["units"] == "m s-1"
        same_weather(opened, data)
        assert opened.wind_u.attrs == data.wind_u.attrs
    given = data.assign_coords(wind_speed=(SNAPSHOT, np.ones(24), {"units": "m s-1"}))
    assert with_mean_winds(given).identical(given)  # what is known is never replaced


def test_the_10_m_wind_lies_between_the_heights_around_it(data):
    axis = ("height", np.array([2.0, 50.0, 3000.0]), data.height.attrs)
    between = with_mean_winds(data.assign_coords(height=axis))
    lower, upper = (
        with_mean_winds(data.isel(height=[level]).assign_coords(height=("height", [10.0])))
        for level in (0, 1)
    )
    share = np.log(10.0 / 2.0) / np.log(50.0 / 2.0)
    expected = (1.0 - share) * lower.wind_speed + share * upper.wind_speed  # same directions
    np.testing.assert_allclose(between.wind_speed, expected, rtol=ROUNDING)
    high = data.assign_coords(height=("height", np.array([80.0, 500.0, 3000.0])))
    assert "wind_speed" not in with_mean_winds(high)


def test_a_shorter_fire_is_stored_on_the_hours_of_the_store(tmp_path):
    path = tmp_path / "a.zarr"
    long, short = fires_of(make_snapshots(fires=2, checkpoints=3, shape=(4, 5)))
    short = add_weather(short.isel({SNAPSHOT: slice(2)}), seed=1)
    append_fire(path, add_weather(long))
    append_fire(path, short)
    now = open_snapshots(path).isel({SNAPSHOT: slice(3, 5)})
    assert now.sizes["weather_hour"] == 19
    np.testing.assert_array_equal(now.wind_u.values[:, :13], short.wind_u.values)
    np.testing.assert_array_equal(now.wind_u.values[:, 13], short.wind_u.values[:, 12])


def test_hours_that_no_snapshot_needs_are_cut(data):
    longer = add_weather(data.drop_dims(["weather_hour", "height"]), until=30.0)
    cut = on_weather_hours(longer, data.weather_hour.values)
    assert cut.sizes["weather_hour"] == 19
    same_weather(cut, longer.isel(weather_hour=slice(19)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (add_weather, "has .* values of 'weather_hour' up to"),
        (lambda fire: add_weather(fire.isel({SNAPSHOT: slice(2)})).isel(height=slice(2)),
         "has .* values of 'height' up to"),
        (lambda fire: fire, "has no weather, which the"),
    ],
)  # fmt: skip
def test_a_weather_that_a_store_cannot_take_is_refused(change, message, tmp_path):
    one, other = fires_of(make_snapshots(fires=2, checkpoints=3, shape=(4, 5)))
    append_fire(tmp_path / "a.zarr", add_weather(one.isel({SNAPSHOT: slice(2)})))
    with pytest.raises(PlumecastError, match=f"fire 'fire-00-high' {message}"):
        append_fire(tmp_path / "a.zarr", change(other))
