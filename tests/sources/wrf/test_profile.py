"""The ambient wind profile of WRF runs."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast import read_wrf
from plumecast.base.errors import PlumecastError
from plumecast.base.names import TABLE
from plumecast.sources.wrf.fires import read_wrf_profile
from plumecast.weather.profile import HEIGHTS
from plumecast.weather.series import check_weather
from support.places import shared_data
from support.wrf_files import HEIGHTS as FACES
from support.wrf_files import NX, NY, NZ, Circle, plume, write_run

STORED = 1e-5  # relative rounding of float32 winds and heights
WIND = (3.0, -4.0)
DEPTH = 800.0
SEA_LEVEL = 900.0


def windy(fields, seconds, *, terrain=0.0, updraught=0.0):
    """Uniform wind times ln z; in the columns with smoke `updraught` is added.

    As WRF does, surface values are zero in the first frame.
    """
    middle = 1.01 * 0.5 * (FACES[1:] + FACES[:-1])
    smoky = plume(1.0).max(axis=0) > 0
    for name, value, shape in (("U", WIND[0], (NY, NX + 1)), ("V", WIND[1], (NY + 1, NX))):
        field = np.broadcast_to(value * np.log(middle)[:, None, None], (NZ, *shape)).copy()
        field[:, :NY, :NX][:, smoky] += updraught
        fields[name] = field
    for name, value in zip(("U10", "V10"), WIND, strict=True):
        fields[name] = np.full((NY, NX), value * np.log(10.0) if seconds else 0.0)
    fields["PBLH"] = np.full((NY, NX), DEPTH if seconds else 0.0)
    fields["PHB"] = fields["PHB"] + 9.81 * terrain


def uphill(fields, seconds):
    windy(fields, seconds, terrain=SEA_LEVEL)


@pytest.mark.parametrize("edit", [windy, uphill])
def test_a_logarithmic_wind_is_found_at_every_height(tmp_path, edit):
    """Heights count from the ground; the model top of 1500 m leaves those below 1100 m known."""
    weather = read_wrf_profile(write_run(tmp_path / "a", range(4), edit=edit))
    heights = np.array([h for h in HEIGHTS if h <= 1000.0])
    for name, value in zip(("wind_u", "wind_v"), WIND, strict=True):
        wind = weather[name].sel(height=heights)
        expected = np.broadcast_to(value * np.log(heights), wind.shape)
        np.testing.assert_allclose(wind, expected, rtol=STORED)
        assert weather[name].attrs["units"] == TABLE[name].units
    np.testing.assert_allclose(weather.boundary_layer_depth, DEPTH)
    check_weather(weather)


def test_hours_count_from_ignition_as_those_of_the_snapshots(tmp_path):
    run = write_run(tmp_path / "a", range(4), edit=windy, fire=Circle(ignition=5400.0))
    weather = read_wrf_profile(run)
    np.testing.assert_allclose(weather.weather_end, read_wrf(run).hours[-1], atol=1e-4)
    np.testing.assert_array_equal(weather.weather_hour, [0.0, 1.0, 2.0])


def test_the_fires_own_wind_changes_nothing(tmp_path):
    def edit(fields, seconds):
        windy(fields, seconds, updraught=20.0)

    weather = read_wrf_profile(write_run(tmp_path / "a", range(4), edit=edit))
    ambient = WIND[0] * np.log(500.0)
    np.testing.assert_allclose(weather.wind_u.sel(height=500.0), ambient, rtol=STORED)


def test_a_run_without_levels_of_wind_gets_the_default_profile(tmp_path):
    run = write_run(tmp_path / "a", range(3), edit=windy, drop=("U", "V", "PBLH"))
    weather = read_wrf_profile(run)
    np.testing.assert_allclose(weather.wind_u.sel(height=10.0), WIND[0] * np.log(10.0), rtol=STORED)
    assert "default profile" in weather.attrs["weather_comment"]
    assert "default cycle" in weather.boundary_layer_depth.attrs["comment"]
    assert read_wrf_profile(write_run(tmp_path / "b", range(3))) is None


def test_the_smoke_scheme_is_kept(tmp_path):
    run = write_run(
        tmp_path / "a", range(3), edit=windy, attributes={"FIRE_SMK_SCHEME": np.int32(1)}
    )
    assert read_wrf_profile(run).attrs["fire_smk_scheme"] == 1
    plain = write_run(tmp_path / "b", range(3), edit=windy)
    assert "fire_smk_scheme" not in read_wrf_profile(plain).attrs


def test_an_unwritten_wind_names_file_and_frame(tmp_path):
    def edit(fields, seconds):
        windy(fields, seconds)
        if seconds > 3600:
            fields["U"][0, 0, 0] = np.nan

    run = write_run(tmp_path / "a", range(4), edit=edit)
    with pytest.raises(PlumecastError, match=r"wrfout.*frame 2: 1 of 216 values of U are unwritt"):
        read_wrf_profile(run)


def test_above_the_boundary_layer_a_real_run_keeps_its_sounding():
    """Only the fire changes the wind there."""
    weather = read_wrf_profile(shared_data("wrf/runs/fire_003_complete"))
    aloft = weather.sel(height=slice(1500.0, None))
    change = [aloft[name] - aloft[name][0] for name in ("wind_u", "wind_v")]
    assert float(np.sqrt(np.mean(np.square(change)))) < 0.05  # m/s


def test_two_ignitions_under_one_weather_have_one_wind():
    one, two = (read_wrf_profile(shared_data(f"wrf/runs/fire_{n}")) for n in ("018", "021"))
    apart = np.hypot(*(one[name][:12, 0] - two[name][:12, 0] for name in ("wind_u", "wind_v")))
    assert apart.mean() < 0.1  # m/s
