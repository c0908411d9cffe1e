"""Weather tables: columns and units as people write them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.weather.options import Site
from plumecast.weather.read import read_weather
from plumecast.weather.series import check_covers, check_fires, check_weather

COLUMNS = "hour,height,speed (m/s),direction\n"
PLAIN = COLUMNS + "0,10,4,270\n0,1000,8,270\n2,10,6,180\n2,1000,8,180\n"
DEPTHS = COLUMNS.replace("direction", "direction,depth")
TIMES = (
    "time,height,speed (m/s),direction\n2020-12-31 22:00,10,2,0\n2020-12-31 23:00,10,3,0\n"
    "2021-01-01 00:00,10,4,0\n"
)
ABOVE_SEA = "hour,altitude,speed (m/s),direction\n0,1010,4,270\n0,2000,8,270\n"
NO_UNIT = "hour,height,speed,direction\n0,10,10,180\n"
FIRES = "fire,hour,height,speed (m/s),direction\na,0,10,4,270\na,"


def test_winds_are_interpolated_as_vectors_to_whole_hours(read):
    weather = read(PLAIN)
    check_weather(weather)
    np.testing.assert_array_equal(weather.weather_hour, [0.0, 1.0, 2.0])
    surface = weather.sel(height=10.0)
    np.testing.assert_allclose(surface.wind_u, [4.0, 2.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(surface.wind_v, [0.0, 3.0, 6.0], atol=1e-12)
    # half way between 10 and 1000 m in ln z
    middle = np.interp(np.log(50.0), np.log([10.0, 1000.0]), [4.0, 8.0])
    np.testing.assert_allclose(weather.wind_u.sel(weather_hour=0.0, height=50.0), middle)


@pytest.mark.parametrize(
    ("table", "height", "scale"),
    [
        ("Hours,Height (m),Wind Speed [kt],Wind Direction (deg)\n0,1000,10,90", 1000, 1852 / 3600),
        ("hour,z,wind_speed_kmh,wdir\n0,1000,10,90", 1000, 1 / 3.6),
        ("h;height_ft;speed_mph;wind_from\n0;1000;10;90", 500, 1609.344 / 3600),
        ("weather_hour\theight_agl\tws_ms\tdirection\n0\t1000\t10\t90", 1000, 1.0),
    ],
)
def test_columns_as_people_name_them(read, table, height, scale):
    winds = read(table).isel(weather_hour=0).sel(height=height)
    assert np.hypot(winds.wind_u, winds.wind_v) == pytest.approx(10.0 * scale, rel=1e-9)


def test_a_unit_components_and_depths(read):
    weather = read(NO_UNIT, speed_unit="knots")
    np.testing.assert_allclose(weather.wind_v.sel(height=10.0), 5.14444, rtol=1e-5)
    weather = read("hour,height,u (m/s),v (m/s)\n0,10,3,-4\n1,10,3,-4\n")
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), 3.0)
    np.testing.assert_allclose(weather.wind_v.sel(height=10.0), -4.0)
    weather = read(DEPTHS + "0,10,4,270,900\n0,50,4,270,\n2,10,4,270,1500\n")
    np.testing.assert_allclose(weather.boundary_layer_depth, [900.0, 1200.0, 1500.0])
    assert weather.boundary_layer_depth.attrs["comment"] == "from the source"


@pytest.mark.parametrize("ignition", ["2020-12-31T23:00", "12 31 2300", "12/31 23:00"])
def test_times_count_from_the_ignition(read, ignition):
    np.testing.assert_allclose(-read(TIMES, ignition=ignition).wind_v.sel(height=10.0), [3.0, 4.0])


def test_several_fires_with_hours_of_their_own(read, tmp_path):
    text = FIRES + "3,10,4,270\nb,0,10,5,90\nb,1.5,10,7,90\n"
    weather = read(text, fire_ids=["b"], hours={"b": 1.5, "a": 3})
    assert weather.fire_id.values.tolist() == ["a", "b"]
    assert weather.wind_u.dims == ("fire", "weather_hour", "height")
    np.testing.assert_allclose(weather.wind_u[1, :, 0], [-5.0, -5.0 - 2.0 / 1.5, -7.0, -7.0])
    check_weather(weather)
    with pytest.raises(PlumecastError, match=r"fire 'b': the weather ends at 1.5 h, but .* 2 h"):
        check_covers(weather, {"b": 2.0})
    with pytest.raises(PlumecastError, match=r"weather.csv: the weather is for other fires.*'c'"):
        check_fires(weather, ["c", "d"])
    with pytest.raises(PlumecastError, match=r"no weather for fire 'c' \(1 of 2"):
        check_fires(weather, ["a", "c"])
    weather.to_netcdf(tmp_path / "again.nc")
    np.testing.assert_array_equal(read_weather(tmp_path / "again.nc").wind_u, weather.wind_u)


def test_directions_to_are_turned(read):
    expected = -read(PLAIN).wind_u
    turned = read(PLAIN.replace("direction", "toward"), direction_is="to")
    np.testing.assert_allclose(turned.wind_u, expected, atol=1e-9)
    assert "180 degrees" in turned.attrs["weather_comment"]
    cf = read(PLAIN.replace("direction", "wind_to_direction"))
    np.testing.assert_allclose(cf.wind_u, expected, atol=1e-9)


def test_heights_above_sea_level_count_from_the_ground(read, tmp_path):
    weather = read(ABOVE_SEA, site=Site(elevation=1000.0))
    np.testing.assert_allclose(weather.wind_u.sel(height=[10.0, 1000.0])[0], [4.0, 8.0], rtol=1e-12)
    with pytest.warns(DeprecationWarning, match=r"site=Site\(elevation="):
        assert read(ABOVE_SEA, elevation=1000.0).equals(weather)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (NO_UNIT, {}, r"speed_unit is missing: .*unit of 'speed'.*knots"),
        (PLAIN, {"speed_unit": "mph"}, r"speed_unit='mph': .* is in m/s; leave it out"),
        (TIMES, {}, "ignition is missing"),
        (TIMES, {"ignition": "2020-12-31T23:00Z"}, "with a zone"),
        (TIMES, {"ignition": "2020-06-01T12:00"}, "ignition='2020-06-01T12:00'"),
        (PLAIN.replace("direction", "toward"), {}, "'toward' says where the wind blows to"),
        (PLAIN.replace("direction", "wind_from"), {"direction_is": "to"},
         r"direction_is='to': .*'wind_from' says where the wind comes"),
        (ABOVE_SEA, {}, "elevation is missing"),
        (ABOVE_SEA, {"site": Site(elevation=1500.0)}, "below the ground"),
        (FIRES + "0,10,nan,270", {}, r"line 3, fire 'a': speed \(m/s\) 'nan' is not a number"),
        (FIRES + "0,50,,270", {}, "line 3, fire 'a': speed"),
        (FIRES + "0,50,4,400", {}, "line 3, fire 'a': direction is '400'; give .* 0 to 360"),
        (FIRES + "0,50,-4,10", {}, "speed .* is '-4'"),
        (FIRES + "0,-50,4,10", {}, "below the ground"),
        (FIRES + "0,10,4,10", {}, "lines 2 and 3 both have fire 'a', hour '0', height '10'"),
        (FIRES + "0,5,4,10", {}, "heights must increase, but 5 m follows 10 m"),
        (FIRES + "-1,10,4,10", {}, "line 3, fire 'a': hours must increase, but -1 h follows 0 h"),
        (FIRES + "30,10,4,10", {}, "no wind between 0 h and 30 h"),
        (FIRES + "1,10,75,10", {}, "fire 'a': 75 m/s at hour 1, 10 m is no wind; .*knots, mph or"),
        ("hour,speed (m/s),direction\n0,4,270\n", {}, "column height is missing"),
        ("height,speed (m/s),direction\n10,4,270\n50,5,270\n", {}, "2 lines, but no column hour"),
        ("hour,height,speed (m/s)\n0,10,4\n", {}, "column direction is missing"),
        (COLUMNS, {}, "the table has no fire, only"),
        ("hour,height,speed (bar),direction\n0,10,4,1\n", {}, r"'bar' in the header 'speed \(bar"),
        ("hour,height,speed (m/s),dir,wind_from\n0,10,4,1,1\n", {}, "'dir' and 'wind_from' are"),
        (COLUMNS + "5,10,4,270\n", {}, "begins 5 h after ignition"),
        (COLUMNS + "-5,10,4,270\n", {}, "ends 5 h before ignition"),
        (COLUMNS + "0,0.5,4,270\n", {}, "height 0.5 m"),
        (DEPTHS + "0,10,4,270,900\n0,20,4,270,800\n", {},
         r"several depths of the boundary layer at hour 0 \(800, 900\)"),
        (DEPTHS + "0,10,4,270,-9\n", {}, "boundary_layer_depth' is -9 m at hour 0"),
        ("", {}, "the file is empty"),
        ("GRIB....", {}, "convert it to NetCDF"),
    ],
)  # fmt: skip
def test_bad_tables_are_named(read, text, options, message):
    with pytest.raises(PlumecastError, match=message) as error:
        read(text, **options)
    assert "weather.csv" in str(error.value)


def test_what_is_no_unit_no_time_and_no_file(read, tmp_path):
    with pytest.raises(PlumecastError, match="speed_unit='furlongs'"):
        read(NO_UNIT, speed_unit="furlongs")
    with pytest.raises(PlumecastError, match="ignition='noon': not a time"):
        read(TIMES, ignition="noon")
    with pytest.raises(PlumecastError, match=r"none.csv: No such file"):
        read_weather(tmp_path / "none.csv")


def test_a_storm_for_the_whole_fire_is_doubted(read):
    with pytest.warns(PlumecastWarning, match=r"30 m/s in the mean, a storm; .*mph"):
        read(COLUMNS + "0,10,30,270\n1,10,30,270\n")


def test_a_written_weather_with_other_hours_and_heights_is_brought_to_the_stored_ones(
    read, tmp_path
):
    weather = read(PLAIN)
    weather.isel(weather_hour=[0, 2], height=[0, 4, 9]).to_netcdf(tmp_path / "coarse.nc")
    again = read_weather(tmp_path / "coarse.nc")
    assert again.sizes == weather.sizes
    low = {"height": slice(None, 1000.0)}  # above, the turning with height is not linear
    np.testing.assert_allclose(again.wind_u.sel(low), weather.wind_u.sel(low), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.drop_vars("wind_v"), "'wind_v' is missing"),
        (lambda w: w.rename(height="z"), "wind_u has dimensions"),
        (lambda w: w.where(w.weather_hour != 1), r"depth is not a number \(NaN\) at hour 1"),
        (
            lambda w: w.assign(wind_u=w.wind_u.where(w.height != 50)),
            "'wind_u' is nan at hour 0, 50",
        ),
        (lambda w: w.isel(height=slice(None, None, -1)), "heights must increase, but .* at hour 0"),
        (lambda w: w.isel(weather_hour=[0, 2, 1]), "hours must increase, but 1 h follows 2 h"),
        (lambda w: w.assign(wind_u=20.0 * w.wind_u), "80 m/s at hour 0, 10 m is no wind"),
    ],
)
def test_check_weather_names_the_fault(read, change, message):
    with pytest.raises(PlumecastError, match=message):
        check_weather(change(read(PLAIN)))
