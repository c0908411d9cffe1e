"""The weather of WRF runs on its way into a store: `ingest wrf`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots, read_wrf
from plumecast.data.repository.rewrite import rewrite_fires
from plumecast.sources.wrf.fires import read_wrf_profile
from plumecast.weather.snapshots import has_weather, without_weather
from support.wrf_files import HEIGHTS, NX, NY, NZ, REFINE, pad, write_run

STORED = 1e-5  # relative rounding of float32
ALONE = ("--workers", 1)
WIND = (3.0, 4.0)
DEPTH = 900.0


def airy(u: float = WIND[0], v: float = WIND[1], *, fuel: float | None = None, levels: bool = True):
    """An `edit` that adds a uniform wind and, with `fuel`, the fuel load FGIP."""

    def edit(fields, seconds):
        on = 1.0 if seconds else 0.0  # WRF computes surface values in its first step
        if levels:
            fields["U"] = np.full((NZ, NY, NX + 1), u)
            fields["V"] = np.full((NZ, NY + 1, NX), v)
        fields["U10"], fields["V10"] = np.full((NY, NX), on * u), np.full((NY, NX), on * v)
        fields["PBLH"] = np.full((NY, NX), on * DEPTH)
        if fuel is not None:
            fields["FGIP"] = pad(np.full((NY * REFINE, NX * REFINE), fuel))

    return edit


def ingest(succeed, out: Path, *arguments) -> xr.Dataset:
    succeed("ingest", "wrf", *arguments, "-o", out, *ALONE)
    return open_snapshots(out).load()


@pytest.mark.parametrize("hours", [range(4), range(7)])
def test_the_hourly_weather_of_a_run_is_stored(succeed, tmp_path, hours):
    """A run thinned to three hours has the weather of every hour."""
    run = write_run(tmp_path / "a", hours, edit=airy())
    stored = ingest(succeed, tmp_path / "f.zarr", run, "--every", "3h")
    assert stored.sizes["weather_hour"] == 25
    known = stored.height.values < HEIGHTS[-1]
    np.testing.assert_allclose(stored.wind_u.values[..., known], WIND[0], rtol=STORED)
    np.testing.assert_allclose(stored.wind_v.values[..., known], WIND[1], rtol=STORED)
    np.testing.assert_allclose(stored.boundary_layer_depth, DEPTH, rtol=STORED)
    np.testing.assert_allclose(stored.wind_speed, 5.0, rtol=STORED)
    weather = read_wrf_profile(run)
    assert float(weather.weather_end) == pytest.approx(float(hours[-1]) - 1 / 6, abs=0.1)


def test_a_run_with_winds_aloft_only_has_its_mean_wind_from_them(tmp_path):
    run = write_run(tmp_path / "a", range(3), edit=airy(), drop=("U10", "V10"))
    fire = read_wrf(run)
    assert (fire.wind_speed > 2.0).all()  # brought down to 10 m by the power law
    assert (fire.wind_speed < 5.0).all()
    np.testing.assert_allclose(fire.wind_from_direction, 180.0 + np.rad2deg(np.arctan2(3, 4)))


def test_frames_that_are_days_apart_are_read_without_weather(tmp_path):
    fire = read_wrf(write_run(tmp_path / "a", (0, 1, 20), edit=airy()))
    assert not has_weather(fire)
    assert "no hourly weather: no wind between" in fire.attrs["quality"]


def test_a_stated_weather_replaces_that_of_the_run(succeed, tmp_path):
    table = tmp_path / "w.csv"
    table.write_text("hour,height,speed (m/s),from\n0,10,8,90\n12,10,8,90\n")
    run = write_run(tmp_path / "a", range(4), edit=airy())
    stored = ingest(succeed, tmp_path / "f.zarr", run, "--weather", table)
    np.testing.assert_allclose(stored.wind_u.sel(height=10.0), -8.0, rtol=STORED)
    np.testing.assert_allclose(stored.wind_from_direction, 90.0)
    assert stored.attrs["weather_kind"] == "table"


def test_a_store_without_weather_is_continued_without(run, succeed, tmp_path):
    """And read again as a whole, it has weather."""
    where = tmp_path / "f.zarr"
    a, b = (write_run(tmp_path / name, range(4), edit=airy()) for name in "ab")
    ingest(succeed, where, a)
    rewrite_fires(where, without_weather, message="as earlier versions")
    result = run("ingest", "wrf", a, b, "-o", where, *ALONE)
    assert result.code == 0
    said = " ".join(result.err.split())
    assert said.count("was made without the hourly weather of its fires") == 1
    stored = open_snapshots(where)
    assert set(stored.fire_id.values) == {"a", "b"}
    assert not has_weather(stored)
    assert has_weather(ingest(succeed, where, a, b, "--replace"))
    assert not (result.err + result.out).count("Traceback")


def test_one_fire_of_a_store_without_weather_is_replaced(succeed, tmp_path):
    where = tmp_path / "f.zarr"
    a, b = (write_run(tmp_path / name, range(4), edit=airy()) for name in "ab")
    ingest(succeed, where, a, b)
    rewrite_fires(where, without_weather, message="as earlier versions")
    stored = ingest(succeed, where, a, "--replace")
    assert set(stored.fire_id.values) == {"a", "b"}
    assert not has_weather(stored)


def test_a_run_without_wind_is_refused_in_a_store_with_weather(run, succeed, tmp_path):
    where = tmp_path / "f.zarr"
    ingest(succeed, where, write_run(tmp_path / "a", range(4), edit=airy()))
    result = run("ingest", "wrf", write_run(tmp_path / "b", range(4)), "-o", where, *ALONE)
    assert result.code == 2
    assert "that of fire 'b' is unknown" in " ".join(result.err.split())


def test_runs_without_winds_aloft_are_named(run, tmp_path):
    fire = write_run(tmp_path / "a", range(4), edit=airy(levels=False))
    result = run("ingest", "wrf", fire, "-o", tmp_path / "f.zarr", *ALONE)
    assert "fire 'a' have no U and V: above 10 m" in " ".join(result.err.split())


def test_runs_with_another_smoke_scheme_are_refused(run, succeed, tmp_path):
    where = tmp_path / "f.zarr"
    scheme = {"FIRE_SMK_SCHEME": np.int32(1)}
    first = write_run(tmp_path / "a", range(4), edit=airy(), attributes=scheme)
    assert ingest(succeed, where, first).attrs["fire_smk_scheme"] == 1
    other = write_run(tmp_path / "b", range(4), edit=airy())
    result = run("ingest", "wrf", other, "-o", where, *ALONE)
    assert result.code == 2
    assert "fire_smk_scheme 1, but fire 'b' has fire_smk_scheme 0" in " ".join(result.err.split())


def test_the_fuel_map_is_kept_while_all_fires_have_the_same(succeed, tmp_path):
    where = tmp_path / "f.zarr"
    a, b = (write_run(tmp_path / name, range(4), edit=airy(fuel=1.5)) for name in "ab")
    stored = ingest(succeed, where, a, b)
    np.testing.assert_allclose(stored.fuel_load, 1.5)
    assert stored.fuel_load.dims == ("y", "x")
    other = write_run(tmp_path / "c", range(4), edit=airy(fuel=2.0))
    stored = ingest(succeed, where, other)
    assert "fuel_load" not in stored
    assert set(stored.fire_id.values) == {"a", "b", "c"}
    again = ingest(succeed, where, a, b, other, "--replace")
    assert "fuel_load" not in again
