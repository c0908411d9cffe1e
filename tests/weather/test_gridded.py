"""NetCDF extracts: ERA5 pressure levels, HRRR-like grids, profiles on heights."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.weather.options import Site
from plumecast.weather.read import read_weather
from plumecast.weather.series import check_weather

G = 9.80665
GROUND = 800.0
LEVELS = np.array([1000.0, 850.0, 700.0, 500.0])
ABOVE_SEA = np.array([100.0, 1500.0, 3100.0, 5800.0])  # 1000 hPa lies below the ground
TIMES = np.array(["2020-08-01T18", "2020-08-01T21", "2020-08-02T00"], dtype="datetime64[ns]")
IGNITION = "2020-08-01T18:00Z"


def era5(**changes):
    """As the Climate Data Store delivers it: valid_time, pressure_level, latitude, longitude."""
    lat, lon = np.array([41.0, 40.75, 40.5]), np.array([239.0, 239.25])
    shape = (3, 4, 3, 2)
    dims = ("valid_time", "pressure_level", "latitude", "longitude")
    east = np.broadcast_to(np.arange(2.0), shape)
    wind = np.broadcast_to(np.array([1.0, 5.0, 8.0, 20.0])[:, None, None], shape)
    z = np.broadcast_to(G * ABOVE_SEA[:, None, None], shape)
    data = {
        "u": (dims, wind + east, {"units": "m s**-1", "standard_name": "eastward_wind"}),
        "v": (dims, 0.0 * wind, {"units": "m s**-1", "standard_name": "northward_wind"}),
        "z": (dims, z, {"units": "m**2 s**-2", "standard_name": "geopotential"}),
        "blh": (dims[:1] + dims[2:], np.full((3, 3, 2), 1234.0), {"units": "m"}),
        **changes,
    }
    return xr.Dataset(
        {name: value for name, value in data.items() if value is not None},
        coords={"valid_time": TIMES, "pressure_level": LEVELS, "latitude": lat, "longitude": lon,
                "number": 0},
    )  # fmt: skip


def read(tmp_path, data, **options):
    path = tmp_path / "profile.nc"
    data.to_netcdf(path)
    site = Site(*(options.pop(name, None) for name in ("latitude", "longitude", "elevation")))
    return read_weather(path, site=site, **options)


def test_era5_at_a_point(tmp_path):
    weather = read(
        tmp_path, era5(), ignition=IGNITION, latitude=40.6, longitude=-120.8, elevation=GROUND
    )
    check_weather(weather)
    np.testing.assert_array_equal(weather.weather_hour, np.arange(7.0))
    levels = np.log(ABOVE_SEA[1:] - GROUND)
    expected = np.interp(np.log([1000.0, 2000.0, 4000.0]), levels, [6.0, 9.0, 21.0])
    winds = weather.wind_u.sel(height=[1000.0, 2000.0, 4000.0])
    np.testing.assert_allclose(winds, np.broadcast_to(expected, winds.shape), rtol=1e-9)
    np.testing.assert_allclose(weather.boundary_layer_depth, 1234.0)
    assert "239.250 E" in weather.attrs["weather_comment"]


def test_the_mean_of_the_domain_and_the_models_ground(tmp_path):
    ground = (("latitude", "longitude"), np.full((3, 2), G * GROUND), {"units": "m2 s-2"})
    mean = read(tmp_path, era5(surface_geopotential=ground, blh=None), ignition=IGNITION)
    np.testing.assert_allclose(mean.wind_u.sel(height=2000.0)[0], np.interp(
        np.log(2000.0), np.log(ABOVE_SEA[1:] - GROUND), [5.5, 8.5, 20.5]), rtol=1e-9)  # fmt: skip
    assert "mean of 6 grid points" in mean.attrs["weather_comment"]
    assert "ground at 800 m" in mean.attrs["weather_comment"]
    assert "default cycle" in mean.boundary_layer_depth.attrs["comment"]


def test_the_10_m_wind_is_the_lowest(tmp_path):
    dims = ("valid_time", "latitude", "longitude")
    surface = {
        name: (dims, np.full((3, 3, 2), value), {"units": "m s**-1"})
        for name, value in (("u10", 2.0), ("v10", -1.0))
    }
    weather = read(tmp_path, era5(**surface), ignition=IGNITION, elevation=GROUND)
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), 2.0)
    np.testing.assert_allclose(weather.wind_v.sel(height=10.0), -1.0)


def test_hrrr_on_a_curved_grid(tmp_path):
    lat, lon = np.meshgrid([40.0, 40.03, 40.06], [-121.0, -120.97], indexing="ij")
    dims = ("time", "isobaricInhPa", "y", "x")
    values = np.broadcast_to(np.arange(6.0).reshape(3, 2), (3, 4, 3, 2))
    data = xr.Dataset(
        {
            "UGRD": (dims, values, {"units": "m/s"}),
            "VGRD": (dims, values, {"units": "m/s"}),
            "HGT": (dims, np.broadcast_to(ABOVE_SEA[:, None, None], values.shape),
                    {"units": "gpm"}),
            "HPBL": (("time", "y", "x"), values[:, 0] + 500.0, {"units": "m"}),
        },
        coords={"time": TIMES, "isobaricInhPa": LEVELS, "latitude": (("y", "x"), lat),
                "longitude": (("y", "x"), lon)},
    )  # fmt: skip
    weather = read(
        tmp_path, data, ignition="08 01 1800", latitude=40.06, longitude=-121.0, elevation=0.0
    )
    np.testing.assert_allclose(weather.wind_u.sel(height=1500.0), 4.0)
    np.testing.assert_allclose(weather.boundary_layer_depth, 504.0)


def test_profiles_on_heights_with_speed_and_direction_to(tmp_path):
    data = xr.Dataset(
        {
            "wind_speed": (("hour", "height"), np.full((2, 3), 20.0), {"units": "knots"}),
            "wind_to_direction": (("hour", "height"), np.full((2, 3), 90.0), {"units": "degree"}),
        },
        coords={
            "hour": ("hour", [0.0, 1.0], {"units": "h"}),
            "height": ("height", [10.0, 100.0, 9000.0], {"units": "m"}),
        },
    )
    weather = read(tmp_path, data)
    np.testing.assert_allclose(weather.wind_u, 20.0 * 1852 / 3600, rtol=1e-12)
    assert "180 degrees" in weather.attrs["weather_comment"]


FIELD = ("valid_time", "pressure_level", "latitude", "longitude")
HOLES = np.where(LEVELS[:, None, None] == 850.0, np.nan, np.ones((3, 4, 3, 2)))
FIXED = {"ignition": IGNITION, "elevation": GROUND}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"z": (FIELD, np.ones((3, 4, 3, 2)))}, FIXED, "z has no unit; give m, or m2 s-2"),
        ({"u": (FIELD, HOLES, {"units": "K"})}, FIXED, "u has the unit 'K', which is no speed"),
        ({"z": None}, FIXED, "no geopotential or geopotential height"),
        ({"v": None}, FIXED, "u and v or a wind speed is missing"),
        ({"u": (FIELD, HOLES, {"units": "m/s"})}, FIXED, r"'wind_u' is nan at hour 0, 700 m"),
        ({}, {"ignition": IGNITION}, "elevation is missing"),
        ({}, {"elevation": GROUND}, "ignition is missing"),
        ({}, FIXED | {"latitude": 10.0, "longitude": 20.0}, "latitude=10: with longitude 20 it l"),
        ({}, {"latitude": 10.0}, r"latitude=10: give longitude too"),
        ({}, FIXED | {"elevation": 8000.0}, "all levels at hour 0 are below the ground"),
    ],
)
def test_bad_files_are_named(tmp_path, changes, options, message):
    with pytest.raises(PlumecastError, match=message):
        read(tmp_path, era5(**changes), **options)


def test_a_truncated_classic_file_is_refused(tmp_path):
    """The NetCDF library reads zeros past its end."""
    path = tmp_path / "profile.nc"
    era5().to_netcdf(path, format="NETCDF3_CLASSIC")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(PlumecastError, match="truncated"):
        read_weather(path, ignition=IGNITION)
