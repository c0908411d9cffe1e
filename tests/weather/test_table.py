"""Weather tables: columns and units as people write them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.weather.checks import check_covers, check_fires, check_weather
from plumecast.weather.options import Site
from plumecast.weather.read import read_weather

PLAIN = """hour,height,speed (m/s),direction
0,10,4,270
0,1000,8,270
2,10,6,180
2,1000,8,180
"""


def write(tmp_path, text, name="weather.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_winds_are_interpolated_as_vectors_to_whole_hours(tmp_path):
    weather = read_weather(write(tmp_path, PLAIN))
    check_weather(weather)
    np.testing.assert_array_equal(weather.weather_hour, [0.0, 1.0, 2.0])
    surface = weather.sel(height=10.0)
    np.testing.assert_allclose(surface.wind_u, [4.0, 2.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(surface.wind_v, [0.0, 3.0, 6.0], atol=1e-12)
    # half way between 10 and 1000 m in ln z
    middle = np.interp(np.log(50.0), np.log([10.0, 1000.0]), [4.0, 8.0])
    np.testing.assert_allclose(weather.wind_u.sel(weather_hour=0.0, height=50.0), middle)


@pytest.mark.parametrize(
    ("header", "scale"),
    [
        ("Hours,Height (m),Wind Speed [kt],Wind Direction (deg)", 1852 / 3600),
        ("hour,z,wind_speed_kmh,wdir", 1 / 3.6),
        ("h;height_ft;speed_mph;wind_from", 1609.344 / 3600),
        ("weather_hour\theight_agl\tws_ms\tdirection", 1.0),
    ],
)
def test_columns_as_people_name_them(tmp_path, header, scale):
    delimiter = next(mark for mark in ",;\t" if mark in header)
    text = header + "\n" + "\n".join(delimiter.join(("0", "1000", "10", "90")) for _ in range(1))
    weather = read_weather(write(tmp_path, text))
    at = 1000.0 if "ft" not in header else None
    if at is not None:
        np.testing.assert_allclose(weather.wind_u.sel(height=at)[0], -10.0 * scale, rtol=1e-12)
    else:
        np.testing.assert_allclose(
            np.hypot(weather.wind_u, weather.wind_v).sel(height=500.0)[0], 10.0 * scale, rtol=1e-9
        )


def test_a_stated_unit(tmp_path):
    path = write(tmp_path, "hour,height,speed,direction\n0,10,10,180\n")
    with pytest.raises(PlumecastError, match=r"speed_unit is missing: .*unit of 'speed'.*knots"):
        read_weather(path)
    weather = read_weather(path, speed_unit="knots")
    np.testing.assert_allclose(weather.wind_v.sel(height=10.0), 5.14444, rtol=1e-5)
    with pytest.raises(PlumecastError, match=r"speed_unit='mph': .* is in m/s; leave it out"):
        read_weather(write(tmp_path, PLAIN), speed_unit="mph")
    with pytest.raises(PlumecastError, match="speed_unit='furlongs'"):
        read_weather(path, speed_unit="furlongs")


def test_components_instead_of_a_direction(tmp_path):
    weather = read_weather(write(tmp_path, "hour,height,u (m/s),v (m/s)\n0,10,3,-4\n1,10,3,-4\n"))
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), 3.0)
    np.testing.assert_allclose(weather.wind_v.sel(height=10.0), -4.0)


def test_times_need_the_ignition(tmp_path):
    text = (
        "time,height,speed (m/s),direction\n2020-12-31 22:00,10,2,0\n2020-12-31 23:00,10,3,0\n"
        "2021-01-01 00:00,10,4,0\n"
    )
    path = write(tmp_path, text)
    with pytest.raises(PlumecastError, match="ignition is missing"):
        read_weather(path)
    for ignition in ("2020-12-31T23:00", "12 31 2300", "12/31 23:00"):
        weather = read_weather(path, ignition=ignition)
        np.testing.assert_allclose(-weather.wind_v.sel(height=10.0), [3.0, 4.0])
    with pytest.raises(PlumecastError, match="with a zone"):
        read_weather(path, ignition="2020-12-31T23:00Z")
    with pytest.raises(PlumecastError, match="ignition='2020-06-01T12:00'"):
        read_weather(path, ignition="2020-06-01T12:00")
    with pytest.raises(PlumecastError, match="ignition='noon': not a time"):
        read_weather(path, ignition="noon")


def test_depths_of_the_table_are_used(tmp_path):
    text = "hour,height,speed (m/s),direction,depth\n0,10,4,270,900\n0,50,4,270,\n2,10,4,270,1500\n"
    weather = read_weather(write(tmp_path, text))
    np.testing.assert_allclose(weather.boundary_layer_depth, [900.0, 1200.0, 1500.0])
    assert weather.boundary_layer_depth.attrs["comment"] == "from the source"


def test_several_fires_with_hours_of_their_own(tmp_path):
    text = (
        "fire,hour,height,speed (m/s),direction\na,0,10,4,270\na,3,10,4,270\nb,0,10,5,90\n"
        "b,1.5,10,7,90\n"
    )
    weather = read_weather(write(tmp_path, text), fire_ids=["b"], hours={"b": 1.5, "a": 3})
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
    written = tmp_path / "again.nc"
    weather.to_netcdf(written)
    np.testing.assert_array_equal(read_weather(written).wind_u, weather.wind_u)


def test_directions_to_are_never_taken_for_from(tmp_path):
    path = write(tmp_path, PLAIN.replace("direction", "toward"))
    with pytest.raises(PlumecastError, match="'toward' says where the wind blows to"):
        read_weather(path)
    expected = read_weather(write(tmp_path, PLAIN, "from.csv"))
    turned = read_weather(path, direction_is="to")
    np.testing.assert_allclose(turned.wind_u, -expected.wind_u, atol=1e-9)
    assert "180 degrees" in turned.attrs["weather_comment"]
    cf = read_weather(write(tmp_path, PLAIN.replace("direction", "wind_to_direction")))
    np.testing.assert_allclose(cf.wind_u, -expected.wind_u, atol=1e-9)


def test_a_column_that_says_from_is_not_turned(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("hour,height,speed (m/s),wind_from\n0,10,4,270\n1,10,4,270\n")
    with pytest.raises(
        PlumecastError, match=r"direction_is='to': .*'wind_from' says where the wind comes"
    ):
        read_weather(path, direction_is="to")
    assert float(read_weather(path).wind_u.values.ravel()[0]) > 0.0


def test_heights_above_sea_level_need_the_ground(tmp_path):
    text = "hour,altitude,speed (m/s),direction\n0,1010,4,270\n0,2000,8,270\n"
    path = write(tmp_path, text)
    with pytest.raises(PlumecastError, match="elevation is missing"):
        read_weather(path)
    weather = read_weather(path, site=Site(elevation=1000.0))
    with pytest.warns(DeprecationWarning, match=r"site=Site\(elevation="):
        assert read_weather(path, elevation=1000.0).equals(weather)
    np.testing.assert_allclose(weather.wind_u.sel(height=[10.0, 1000.0])[0], [4.0, 8.0], rtol=1e-12)
    with pytest.raises(PlumecastError, match="below the ground"):
        read_weather(path, site=Site(elevation=1500.0))


BAD = {
    "0,10,nan,270": r"line 3, fire 'a': speed \(m/s\) 'nan' is not a number",
    "0,50,,270": "line 3, fire 'a': speed",
    "0,50,4,400": "line 3, fire 'a': direction is '400'; give .* 0 to 360",
    "0,50,4,-10": "direction is '-10'",
    "0,50,-4,10": "speed .* is '-4'",
    "0,-50,4,10": "below the ground",
    "0,10,4,10": "lines 2 and 3 both have fire 'a', hour '0', height '10'",
    "0,5,4,10": "heights must increase, but 5 m follows 10 m",
    "-1,10,4,10": "line 3, fire 'a': hours must increase, but -1 h follows 0 h",
    "30,10,4,10": "no wind between 0 h and 30 h",
    "1,10,75,10": "fire 'a': 75 m/s at hour 1, 10 m is no wind; .*knots, mph or km/h",
}


@pytest.mark.parametrize("row", BAD)
def test_bad_rows_are_named(tmp_path, row):
    path = write(tmp_path, f"fire,hour,height,speed (m/s),direction\na,0,10,4,270\na,{row}\n")
    with pytest.raises(PlumecastError, match=BAD[row]) as error:
        read_weather(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hour,speed (m/s),direction\n0,4,270\n", "column height is missing"),
        ("height,speed (m/s),direction\n10,4,270\n50,5,270\n", "2 lines, but no column hour"),
        ("hour,height,speed (m/s)\n0,10,4\n", "column direction is missing"),
        ("hour,height,speed (m/s),direction\n", "the table has no fire, only"),
        (
            "hour,height,speed (bar),direction\n0,10,4,1\n",
            r"'bar' in the header 'speed \(bar\)' is no unit",
        ),
        ("hour,height,speed (m/s),dir,wind_from\n0,10,4,1,1\n", "'dir' and 'wind_from' are both"),
        ("hour,height,speed (m/s),direction\n5,10,4,270\n", "begins 5 h after ignition"),
        ("hour,height,speed (m/s),direction\n-5,10,4,270\n", "ends 5 h before ignition"),
        ("hour,height,speed (m/s),direction\n0,0.5,4,270\n", "height 0.5 m"),
        (
            "hour,height,speed (m/s),direction,depth\n0,10,4,270,900\n0,20,4,270,800\n",
            r"several depths of the boundary layer at hour 0 \(800, 900\)",
        ),
        (
            "hour,height,speed (m/s),direction,depth\n0,10,4,270,-9\n",
            "boundary_layer_depth' is -9 m at hour 0",
        ),
        ("", "the file is empty"),
        ("GRIB....", "convert it to NetCDF"),
    ],
)
def test_bad_tables_are_named(tmp_path, text, message):
    with pytest.raises(PlumecastError, match=message):
        read_weather(write(tmp_path, text))


def test_a_storm_for_the_whole_fire_is_doubted(tmp_path):
    path = write(tmp_path, "hour,height,speed (m/s),direction\n0,10,30,270\n1,10,30,270\n")
    with pytest.warns(PlumecastWarning, match=r"30 m/s in the mean, a storm; .*mph"):
        read_weather(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(PlumecastError, match=r"none.csv: No such file"):
        read_weather(tmp_path / "none.csv")


def test_a_written_weather_with_other_hours_and_heights_is_brought_to_the_stored_ones(tmp_path):
    weather = read_weather(write(tmp_path, PLAIN))
    path = tmp_path / "coarse.nc"
    weather.isel(weather_hour=[0, 2], height=[0, 4, 9]).to_netcdf(path)
    again = read_weather(path)
    assert again.sizes == weather.sizes
    low = {"height": slice(None, 1000.0)}  # above, the turning with height is not linear
    np.testing.assert_allclose(again.wind_u.sel(low), weather.wind_u.sel(low), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.drop_vars("wind_v"), "'wind_v' is missing"),
        (lambda w: w.rename(height="z"), "wind_u has dimensions"),
        (
            lambda w: w.where(w.weather_hour != 1),
            r"boundary_layer_depth is not a number \(NaN\) at hour 1",
        ),
        (
            lambda w: w.assign(wind_u=w.wind_u.where(w.height != 50)),
            "'wind_u' is nan at hour 0, 50 m",
        ),
        (lambda w: w.isel(height=slice(None, None, -1)), "heights must increase, but .* at hour 0"),
        (lambda w: w.isel(weather_hour=[0, 2, 1]), "hours must increase, but 1 h follows 2 h"),
        (lambda w: w.assign(wind_u=20.0 * w.wind_u), "80 m/s at hour 0, 10 m is no wind"),
    ],
)
def test_check_weather_names_the_fault(tmp_path, change, message):
    with pytest.raises(PlumecastError, match=message):
        check_weather(change(read_weather(write(tmp_path, PLAIN))))
