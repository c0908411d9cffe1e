"""The sky under smoke: optical depths, irradiance against published figures, and the sun."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("pvlib")

import plumecast as pc
from plumecast.impact.loss import aod_nodes
from plumecast.impact.optics import (
    Air,
    Optics,
    column_depth,
    optical_depth,
    sample_optics,
    spectrl2,
    tabulate,
)
from plumecast.impact.plants import read_ignition_time, sun_position

DEGREES = 0.5  # Spencer's series for the declination, and hours of the day that are not in it
ZENITH = 30.0  # a high sun, as in the published figures
PUBLISHED = 0.02  # the figures are for a sun, water and ground that are not stated
INTERPOLATION = 0.2  # W m⁻²; the docstring of SkyTable promises it


def sky(aod, ssa=0.93):
    """Beam and global irradiance, W m⁻²."""
    beam, diffuse = spectrl2(*(np.full(1, v) for v in (ZENITH, aod, ssa)), Optics(), Air())
    return float(beam[0]), float(beam[0] * np.cos(np.radians(ZENITH)) + diffuse[0])


@pytest.mark.parametrize(("ssa", "share"), [(0.93, 0.86), (0.85, 0.79), (0.98, 0.89)])
def test_global_irradiance_at_an_optical_depth_of_one(ssa, share):
    clear = sky(Optics().background, ssa)[1]
    assert sky(1.0, ssa)[1] / clear == pytest.approx(share, abs=PUBLISHED)


def test_beam_above_150_mg_of_smoke():
    background = Optics().background
    smoke = float(optical_depth(np.array(10.0), 15_000.0))  # 150 mg m⁻²
    reduced = 1.0 - sky(background + smoke)[0] / sky(background)[0]
    assert reduced == pytest.approx(0.42, abs=PUBLISHED)


@pytest.mark.parametrize("zenith", [0.0, 40.0, 75.0])
def test_spectrl2_decreases_with_the_optical_depth(zenith):
    aods = np.linspace(0.05, 5.0, 40)
    beam, diffuse = spectrl2(np.full(40, zenith), aods, np.full(40, 0.93), Optics(), Air())
    total = beam * np.cos(np.radians(zenith)) + diffuse
    assert (np.diff(beam) < 0.0).all()
    assert (np.diff(total) < 0.0).all()


def test_the_table_is_the_model():
    optics, pressures = Optics(), np.array([78_000.0, 101_325.0])
    aods, ssas = aod_nodes(optics.background, 6.0), np.array([0.88, 0.97])
    table = tabulate("spectrl2", aods, ssas, pressures, optics, Air())
    zenith = np.array([3.0, 33.0, 52.5, 71.0, 80.2, 86.1])
    for pressure in pressures:
        beam, diffuse = table.at(zenith, np.full(zenith.size, pressure))
        above = np.cos(np.radians(zenith))
        for i, j in ((0, 0), (9, 1), (20, 0)):
            exact = spectrl2(
                zenith, np.full(6, aods[i]), np.full(6, ssas[j]), optics, Air(pressure=pressure)
            )
            np.testing.assert_allclose(
                beam[:, i, j] * above + diffuse[:, i, j], exact[0] * above + exact[1],
                atol=INTERPOLATION,
            )  # fmt: skip


def test_optical_depth_is_extinction_times_column_mass():
    grams_per_m2 = 0.15  # 10 µg m⁻³ over 15 km
    field = xr.DataArray([0.0, 10.0], dims="x", coords={"x": [2.0, 3.0]}, attrs={"units": "ug m-3"})
    found = pc.optical_depth(field, 15_000.0, mee=4.0, growth=1.5)
    np.testing.assert_allclose(found, [0.0, 4.0 * 1.5 * grams_per_m2])
    assert found.attrs["units"] == "1"
    assert found.x.values.tolist() == [2.0, 3.0]
    with pytest.raises(pc.PlumecastError, match="column_depth=15 must be in m"):
        pc.optical_depth(field, 15.0)


def test_the_recorded_depth_is_used_and_a_missing_one_asked_for():
    smoke = xr.DataArray([1.0], name="smoke", attrs={"column_depth_m": 14_000.0})
    assert column_depth(smoke) == 14_000.0
    assert column_depth(smoke, 15_000.0) == 15_000.0
    with pytest.raises(pc.PlumecastError, match="column_depth is missing: 'smoke' does"):
        column_depth(smoke.drop_attrs())


def test_samples_fill_the_ranges_evenly_and_are_seeded():
    optics, count = Optics(), 50
    mee, ssa = sample_optics(optics, count, seed=3)
    again, _ = sample_optics(optics, count, seed=3)
    np.testing.assert_array_equal(mee, again)
    low, high = np.log(optics.mee_range)
    share = (np.log(np.sort(mee)) - low) / (high - low)
    # A Latin hypercube has one sample in each of its equal parts.
    np.testing.assert_array_equal(np.floor(share * count), np.arange(count))
    assert ssa.min() >= 0.88
    assert ssa.max() <= 0.97


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mee": 30.0}, "mee=30 must lie within 0.1 … 20 m²/g"),
        ({"mee": 2.0}, "mee=2 lies outside its range, 3.3,7.4"),
        ({"ssa": 1.2}, "ssa=1.2 must lie within"),
        ({"growth": 0.0}, "growth=0 must lie within"),
    ],
)
def test_properties_that_cannot_be_true_are_refused(given, message):
    with pytest.raises(pc.PlumecastError, match=message):
        Optics(**given)


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
    ignition = read_ignition_time("2020-09-08T14:00-07:00")
    with pytest.raises(pc.PlumecastError, match="needs the longitude of the plants"):
        sun_position(ignition, np.zeros(1), np.array([40.0]), None)
