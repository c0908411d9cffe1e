"""Winds that the user states, through the commands: ingest, predict and ensemble."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast import export_snapshots, fit_surrogate, open_snapshots, split_by_fire
from support.windy_fires import windy, write_windy_rasters
from support.wrf_files import blowing, write_run

FIRE = ("time_since_ignition",)
OPTIONS = ("--weather", "12 mph from SW")
SHAPE = (14, 16)
CELL = 1000.0


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A surrogate in the wind frame."""
    train = split_by_fire(windy(12, shape=SHAPE), fractions=(0.8, 0.1, 0.1)).train
    surrogate = fit_surrogate(train, "recommended", frame="wind", layers=1, physics="none")
    return surrogate.save(tmp_path_factory.mktemp("model") / "wind.plume")


@pytest.fixture
def rasters(tmp_path) -> list[Path]:
    """Two fires like those that the surrogate was trained on."""
    return write_windy_rasters(tmp_path, "ab", SHAPE)


@pytest.fixture
def store(succeed, rasters, model, tmp_path) -> Path:
    """The rasters in a store, without a wind."""
    where = tmp_path / "fires.zarr"
    succeed("ingest", "rasters", *rasters, "--unit", "min", "--like", model, "-o", where)
    return where


@pytest.fixture
def table(tmp_path) -> Path:
    return write_table(tmp_path, "a,5,270", "b,4,180")


def write_table(folder: Path, *lines: str, header: str = "") -> Path:
    path = folder / "winds.csv"
    header = header or "fire_id,wind_speed (m/s),wind_from_direction"
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


def expected(model: Path, store: Path, speed: object, direction: object) -> xr.DataArray:
    """The prediction of a Dataset that has the wind as coordinates."""
    fires = open_snapshots(store, fields=FIRE).load()
    wind = {"wind_speed": speed, "wind_from_direction": direction}
    coordinates = {name: ("snapshot", np.broadcast_to(v, 2)) for name, v in wind.items()}
    return pc.load_surrogate(model).predict(fires.assign_coords(coordinates))


def smoke(path: Path) -> xr.DataArray:
    return open_snapshots(path, fields=["smoke"]).smoke.load()


@pytest.mark.parametrize("source", ["rasters", "store"])
def test_predictions_with_stated_winds(succeed, model, rasters, store, table, tmp_path, source):
    fires = [*rasters, "--unit", "min"] if source == "rasters" else [store]
    one, each = tmp_path / "one.nc", tmp_path / "each.nc"
    succeed("predict", model, *fires, "--wind-speed", "18 km/h", "--wind-from", "W", "-o", one)
    succeed("predict", model, *fires, "--weather", table, "-o", each)
    np.testing.assert_array_equal(smoke(one), expected(model, store, 5.0, 270.0))
    np.testing.assert_array_equal(smoke(each), expected(model, store, [5.0, 4.0], [270.0, 180.0]))
    written = open_snapshots(each, fields=["smoke"])
    assert written.wind_from_direction.values.tolist() == [270.0, 180.0]
    out = tmp_path / "stats.nc"
    succeed("ensemble", model, *fires, "--weather", table, "--quantity", "sum", "-o", out)
    mean = xr.open_dataset(out).mean_smoke
    np.testing.assert_allclose(mean, smoke(each).mean("snapshot"), rtol=1e-5, atol=1e-6)


def test_smoke_is_downwind_of_the_fire(succeed, model, rasters, tmp_path):
    """The plume's centre of mass, within the six cells that the wind carries it."""
    for name, direction, axis, sign in (("w", 270, "x", 1), ("n", 0, "y", -1)):
        out = tmp_path / f"{name}.nc"
        wind = ("--wind-speed", 5, "--wind-from", direction)
        succeed("predict", model, rasters[0], "--unit", "min", *wind, "-o", out)
        plume = smoke(out)[0]
        middle = CELL * {"x": SHAPE[1] // 2, "y": SHAPE[0] // 2}[axis]
        assert sign * (float((plume * plume[axis]).sum() / plume.sum()) - middle) > CELL


@pytest.mark.parametrize(("command", "source"), [("predict", "rasters"), ("ensemble", "store")])
def test_a_missing_wind_names_the_options(run, model, rasters, store, tmp_path, command, source):
    fires = [*rasters, "--unit", "min"] if source == "rasters" else [store]
    result = run(command, model, *fires, "-o", tmp_path / "out.nc")
    assert result.code == 2
    assert "'wind_speed' is missing" in result.err
    assert all(option in result.err for option in OPTIONS)
    assert not (tmp_path / "out.nc").exists()


def test_a_store_keeps_the_winds_it_was_read_with(succeed, run, model, rasters, store, tmp_path):
    windy_store = tmp_path / "windy.zarr"
    ingest = ("ingest", "rasters", rasters[0], "--unit", "min", "--like", model)
    succeed(*ingest, "--wind-speed", 3, "--wind-from", 360, "-o", windy_store)
    fires = open_snapshots(windy_store, fields=FIRE)
    assert fires.wind_speed.values.tolist() == [3.0]
    assert fires.wind_from_direction.values.tolist() == [360.0]
    succeed("predict", model, windy_store, "-o", tmp_path / "out.nc")
    rest = ("ingest", "rasters", rasters[1], "--unit", "min", "--like", model, "-o")
    result = run(*rest, windy_store)
    assert result.code == 2
    assert "have a wind, but that of fire 'b' is unknown" in result.err
    assert all(option in result.err for option in OPTIONS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--wind-speed", -1, "--wind-from", 90), "--wind-speed='-1': give a speed of 0 or more"),
        (("--wind-speed", "nan", "--wind-from", 90), "--wind-speed='nan': 'nan' is no speed"),
        (("--wind-speed", 1, "--wind-from", 400), "--wind-from='400': give the direction"),
        (("--wind-speed", 1), "--wind-speed 1 needs --wind-from too"),
        (("--wind-from", 1), "--wind-from 1 needs --wind-speed too"),
        (("--wind-from", 1, "--weather", "w.csv"), "either --weather w.csv or --wind-from"),
        (("--north", "grid"), "--north grid needs --weather"),
        (("--speed-unit", "knots"), "--speed-unit='knots' is for --weather FILE"),
        (("--weather", "5 m/s from 9", "--north", "up"), "--north='up': give 'true', or 'grid'"),
        (("--weather", "5 from SW"), "--weather='5 from SW': '5' has no unit"),
    ],
)
def test_bad_options_are_named(run, model, store, tmp_path, given, message):
    result = run("predict", model, store, *given, "-o", tmp_path / "out.nc")
    assert result.code == 2
    assert message in result.err


def test_the_old_option_winds_reads_speeds_in_metres_per_second(run, model, store, tmp_path):
    old = write_table(tmp_path, "a,5,270", "b,4,180", header="fire_id,wind_speed,wind_from")
    result = run("predict", model, store, "--winds", old, "-o", tmp_path / "out.nc")
    assert result.code == 0
    assert "--winds is deprecated: use --weather" in result.err
    np.testing.assert_array_equal(
        smoke(tmp_path / "out.nc"), expected(model, store, [5.0, 4.0], [270.0, 180.0])
    )
    refused = run("predict", model, store, "--weather", old, "-o", tmp_path / "new.nc")
    assert refused.code == 2
    assert "--speed-unit is missing" in refused.err


@pytest.mark.usefixtures("in_this_process")
def test_winds_of_wrf_runs(succeed, run, tmp_path):
    """U10 and V10 unless labels.csv says otherwise; columns that are not read are named."""
    runs = [write_run(tmp_path / "runs" / name, range(3), edit=blowing()) for name in "ab"]
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "fire_id,drought,wind_speed,wind_from_direction,humidity,crew\na,high,7,90,3,x\n"
        "b,high,,,4,y\n"
    )
    result = run("ingest", "wrf", *runs, "-o", tmp_path / "e.zarr", "--drought-from", labels)
    assert result.code == 0
    assert f"{labels}: the columns are not read: 'humidity', 'crew'" in result.err
    stored = open_snapshots(tmp_path / "e.zarr")
    of = {name: stored.isel(snapshot=stored.fire_id.values == name) for name in "ab"}
    assert set(of["a"].wind_speed.values) == {7.0}
    assert set(of["a"].wind_from_direction.values) == {90.0}
    np.testing.assert_allclose(of["b"].wind_speed, 5.0, rtol=1e-6)
    np.testing.assert_allclose(of["b"].wind_from_direction, 216.87, atol=0.01)
    wind = ("--wind-speed", 5, "--wind-from", 1)
    start = ("ingest", "wrf", runs[0], "-o", tmp_path / "f.zarr", "--drought-from", labels)
    both = run(*start, *wind)
    assert both.code == 2
    assert "give no others beside it" in both.err
    labels.write_text("fire_id,drought,wind_speed,wind_from_direction\na,high,-7,90\n")
    bad = run(*start)
    assert bad.code == 2
    assert f"{labels}: line 2, fire 'a': wind_speed is '-7'" in bad.err
    succeed("ingest", "wrf", runs[0], "-o", tmp_path / "f.zarr", *wind)
    assert set(open_snapshots(tmp_path / "f.zarr").wind_speed.values) == {5.0}


@pytest.mark.usefixtures("in_this_process")
def test_runs_without_a_wind_are_noted_once(run, succeed, tmp_path):
    calm = [write_run(tmp_path / "runs" / name, range(2)) for name in "abc"]
    result = run("ingest", "wrf", *calm, "-o", tmp_path / "e.zarr")
    assert result.code == 0
    assert result.err.count("U10 and V10 are missing") == 1
    assert "fire 'a' and 2 more" in result.err
    blown = write_run(tmp_path / "runs" / "d", range(2), edit=blowing())
    refused = run("ingest", "wrf", blown, "-o", tmp_path / "e.zarr")
    assert refused.code == 2
    assert "was made without the wind of its fires, but fire 'd' has a wind" in refused.err
    path = write_table(tmp_path, "a,5,270", "d,5,270")
    both = (calm[0], blown)
    succeed("ingest", "wrf", *both, "--weather", path, "-o", tmp_path / "f.zarr")
    assert set(open_snapshots(tmp_path / "f.zarr").wind_speed.values) == {5.0}


def test_hours_of_wrf_runs_do_not_hide_that_winds_differ(succeed, tmp_path):
    """Ignitions of WRF runs differ by seconds, so that no two fires have exactly the same hours."""
    fires = windy(10, shape=SHAPE)
    hours = ("snapshot", 5.9 + 0.01 * np.arange(10), {"units": "h"})
    export_snapshots(fires.assign_coords(hours=hours), tmp_path / "windy.nc")
    out = ("--preset", "recommended", "--layers", 1, "-o", tmp_path / "m.plume")
    assert "frame wind" in succeed("train", tmp_path / "windy.nc", *out)
