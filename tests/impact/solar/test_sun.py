"""The position of the sun against pvlib's exact algorithm, and times of ignition."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.impact.plants import read_ignition_time, sun_position

DEGREES = 0.5  # Spencer's series for the declination, and hours of the day that are not in it


def test_position_of_the_sun_agrees_with_pvlib():
    pvlib, pandas = pytest.importorskip("pvlib"), pytest.importorskip("pandas")
    ignition = read_ignition_time("2020-09-08T14:00-07:00")
    hours = np.array([0.0, 2.5, 20.0, 47.0])
    latitude, longitude = np.array([38.5, -33.0]), np.array([-121.5, 150.0])
    zenith, azimuth = sun_position(ignition, hours, latitude, longitude)
    times = pandas.DatetimeIndex(
        [pandas.Timestamp("2020-09-08T21:00Z") + pandas.Timedelta(hours=h) for h in hours]
    )
    for plant in range(2):
        exact = pvlib.solarposition.spa_python(times, latitude[plant], longitude[plant])
        np.testing.assert_allclose(zenith[:, plant], exact["zenith"], atol=DEGREES)
        turn = (azimuth[:, plant] - exact["azimuth"].values + 180.0) % 360.0 - 180.0
        np.testing.assert_allclose(turn * np.sin(np.radians(exact["zenith"])), 0.0, atol=DEGREES)


@pytest.mark.parametrize(("latitude", "towards"), [(40.0, 180.0), (-35.0, 0.0)])
def test_local_solar_noon_has_the_highest_sun_towards_the_equator(latitude, towards):
    pytest.importorskip("pvlib")
    ignition = read_ignition_time("2021-06-21T12:00")
    zenith, azimuth = sun_position(ignition, np.array([-1.0, 0.0, 1.0]), np.array([latitude]), None)
    assert zenith[1, 0] == pytest.approx(abs(latitude - 23.45), abs=DEGREES)
    assert azimuth[1, 0] == pytest.approx(towards, abs=1e-6)
    assert zenith[0, 0] == pytest.approx(zenith[2, 0], abs=0.01)


def test_a_date_takes_the_hour_that_the_fires_record():
    assert read_ignition_time("2020-09-08", 12.0).time.hour == 12
    assert not read_ignition_time("2020-09-08", 12.0).is_utc


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "state 2020-09-08T14:00-07:00"),
        ("2020-09-08", "ignition_time='2020-09-08' has no hour, and the fires record none"),
        ("yesterday", "ignition_time='yesterday' is not a date and time"),
        ("2020-13-08T14:00", "is not a date and time"),
    ],
)
def test_times_that_cannot_be_used_are_refused(text, message):
    with pytest.raises(pc.PlumecastError, match=message):
        read_ignition_time(text)


def test_a_time_of_the_clock_needs_longitudes():
    pytest.importorskip("pvlib")
    ignition = read_ignition_time("2020-09-08T14:00-07:00")
    with pytest.raises(pc.PlumecastError, match="needs the longitude of the plants"):
        sun_position(ignition, np.zeros(1), np.array([40.0]), None)
