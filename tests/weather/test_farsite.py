"""FARSITE streams."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.weather.profile import log_law_ratio
from plumecast.weather.read import read_weather
from plumecast.weather.series import check_weather
from support.places import shared_data

MPH = 0.44704
HEADER = "RAWS_ELEVATION: 4159\nRAWS_UNITS: English\nRAWS: 3\n"
COLUMNS = "Year  Mth  Day   Time    Temp     RH  HrlyPcp  WindSpd WindDir CloudCov\n"
LINES = (
    "2013 5 3 1100 77 26 0.00 4 220 25\n"
    "2013 5 3 1200 77 26 0.00 10 270 25\n"
    "2013 5 3 1300 79 23 0.00 20 270 32\n"
)
NOON = "05 03 1200"


@pytest.mark.parametrize(
    ("columns", "ignition", "speeds"),
    [("", NOON, [10.0, 20.0]), (COLUMNS, "2013-05-03T12:00", [10.0, 20.0]),
     ("", "05 03 1230", [15.0, 20.0])],
)  # fmt: skip
def test_english_winds_are_at_20_ft(read, columns, ignition, speeds):
    weather = read(HEADER + columns + LINES, ignition=ignition)
    check_weather(weather)
    expected = np.array(speeds) * MPH * log_law_ratio(6.096)
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), expected, rtol=1e-12)
    assert "log law" in weather.attrs["weather_comment"]
    assert "at ignition: 12" in weather.boundary_layer_depth.attrs["comment"]
    assert float(weather.weather_end) == (0.5 if "1230" in ignition else 1.0)


def test_metric_winds_are_at_10_m_and_a_wind_file_has_no_year(read):
    weather = read(HEADER.replace("English", "METRIC") + LINES, ignition=NOON)
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), [10 / 3.6, 20 / 3.6], rtol=1e-12)
    text = "METRIC\n8 10 0 36 90 0\n8 10 100 18 90 0\n8 10 230 18 90 0\n"
    weather = read(text, "a.wnd", ignition="2021-08-10T00:00")
    np.testing.assert_allclose(-weather.wind_u.sel(height=10.0)[:2], [10.0, 5.0])
    assert float(weather.weather_end) == 2.5


def test_a_stream_without_its_unit_takes_that_of_the_user(read):
    bare = read(LINES, ignition=NOON, speed_unit="mph")
    np.testing.assert_array_equal(bare.wind_u, read(HEADER + LINES, ignition=NOON).wind_u)


def test_the_panther_fire():
    """Its inputs file states the start; the fire burns for 80 hours."""
    path = shared_data("fire-rasters/farsite/panther_test1177973.input")
    weather = read_weather(path, hours=80.0)
    assert weather.attrs["ignition_time"] == "2013-05-03T12:00"
    with pytest.raises(PlumecastError, match=r"ends at .* h, but the fire lasts until 500 h"):
        read_weather(path, hours=500.0)
    speed = np.hypot(weather.wind_u, weather.wind_v).sel(height=10.0)
    assert 0.5 < float(speed.mean()) < 10.0
    assert weather.sizes["weather_hour"] >= 81


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (HEADER + LINES[:-36], {}, r"states RAWS: 3, but there are 2 lines"),
        (HEADER.replace("English", "Imperial") + LINES, {}, "RAWS_UNITS is 'imperial'"),
        (LINES, {}, r"speed_unit is missing: .*no line RAWS_UNITS; give mph"),
        (HEADER + LINES.replace("220", "-1"), {}, "line 4: wind direction -1 means up or down"),
        (HEADER + LINES.replace("220", "380"), {}, "line 4: wind direction 380"),
        (HEADER + LINES.replace(" 4 220", " nan 220"), {}, "line 4 has a NaN"),
        (HEADER + LINES.replace(" 4 220", " x 220"), {}, "there are 2 lines"),
        (HEADER + LINES.replace(" 10 270 25", " 10 270"), {}, "line 5 has 9 numbers"),
        (HEADER + LINES.replace("5 3 1100", "15 3 1100"), {}, "line 4: 2013 15 3 1100 is not a"),
        ("ENGLISH\n8 10 00 600 1500 48 99 94 11 2400 1 2\n", {}, "daily temperatures"),
        (
            "ENGLISH\n" + HEADER.replace("English", "Metric") + LINES,
            {},
            "line 3: the units are Metric, but ENGLISH in a line before; keep one",
        ),
        (HEADER + "METRIC\n" + LINES, {}, "line 4: the units are METRIC, but English in"),
        (
            HEADER + LINES.replace("5 3 1300", "5 3 1130"),
            {},
            "line 6: 2013-05-03 11:30 is not after 2013-05-03 12:00 of line 5; sort the lines",
        ),
        (HEADER + LINES.replace("5 3 1300", "5 3 1200"), {}, "line 6: .* is not after"),
        (
            "METRIC\n12 31 2300 36 90 0\n1 1 0 18 90 0\n",
            {"ignition": "2021-12-31T23:00"},
            "line 3: 01-01 00:00 is not after 12-31 23:00 of line 2; .*over New Year give a .wxs",
        ),
        (HEADER + LINES, {"ignition": None}, "ignition is missing"),
        (HEADER + LINES, {"ignition": "06 03 1200"}, "ignition='2013-06-03T12:00'"),
        (HEADER + LINES, {"ignition": "2013-05-03T12:00Z"}, "local time"),
        (HEADER + LINES, {"speed_unit": "knots"}, r"='knots': .*English units are mph"),
    ],
)
def test_bad_streams_are_named(read, text, options, message):
    with pytest.raises(PlumecastError, match=message) as error:
        read(text, "station.wxs", **({"ignition": NOON} | options))
    assert "station.wxs" in str(error.value)
