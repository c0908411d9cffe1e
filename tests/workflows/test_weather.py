"""Weather that the user states, through the commands and in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast import PlumecastError, fit_surrogate, open_snapshots, split_by_fire
from plumecast.base.names import WEATHER_NAMES
from support.windy_fires import windy, write_windy_rasters

FIRE = ("time_since_ignition",)
SHAPE = (14, 16)
STORED = 1e-5  # relative rounding of float32
HEADER = "fire,hour,height,speed (m/s),direction,depth"
RASTER = ("--unit", "min", "--drought", "medium")


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    """Surrogates that carry smoke by the weather of every fire, and without weather."""
    train = split_by_fire(windy(12, shape=SHAPE), fractions=(0.8, 0.1, 0.1)).train
    folder = tmp_path_factory.mktemp("model")
    made = {}
    for physics in ("column", "none"):
        surrogate = fit_surrogate(train, "recommended", frame="map", layers=1, physics=physics)
        made[physics] = surrogate.save(folder / f"{physics}.plume")
    return made


@pytest.fixture
def model(models) -> Path:
    return models["column"]


@pytest.fixture
def rasters(tmp_path) -> list[Path]:
    return write_windy_rasters(tmp_path, "ab", SHAPE)


@pytest.fixture
def table(tmp_path) -> Path:
    """Fire a has a west wind of 5 m/s, fire b a south wind that grows from 3 to 9 m/s."""
    return write_table(tmp_path, "a,0,10,5,270,900", "a,12,10,5,270,900", "b,0,10,3,180,500",
                       "b,12,10,9,180,500")  # fmt: skip


def write_table(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "weather.csv"
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


def ingest(succeed, rasters, model, out, *options) -> xr.Dataset:
    succeed("ingest", "rasters", *rasters, *RASTER, "--like", model, "-o", out, *options)
    return open_snapshots(out, fields=FIRE).load()


def smoke(path: Path) -> xr.DataArray:
    return open_snapshots(path, fields=["smoke"]).smoke.load()


def test_rasters_get_the_weather_of_their_fire_and_its_mean_wind(
    succeed, rasters, model, table, tmp_path
):
    stored = ingest(succeed, rasters, model, tmp_path / "f.zarr", "--weather", table)
    assert stored.sizes["weather_hour"] == 25
    hours = stored.hours.values
    np.testing.assert_allclose(stored.wind_u.sel(height=10.0)[0], 5.0, rtol=STORED)
    south = stored.wind_v.sel(height=10.0)[1].values
    whole = np.arange(np.floor(hours[1]) + 1)
    np.testing.assert_allclose(south[: whole.size], 3.0 + 0.5 * whole, rtol=STORED)
    # The mean of a wind that grows linearly is that at half the time.
    np.testing.assert_allclose(stored.wind_speed, [5.0, 3.0 + 0.25 * hours[1]], rtol=STORED)
    np.testing.assert_allclose(stored.wind_from_direction, [270.0, 180.0], rtol=STORED)
    assert stored.attrs["weather_kind"] == "table"


@pytest.mark.parametrize("source", ["rasters", "store", "bare store"])
def test_predictions_with_a_stated_weather(succeed, rasters, model, table, tmp_path, source):
    """The same weather gives the same smoke, whenever it is given."""
    fires = ingest(succeed, rasters, model, tmp_path / "f.zarr", "--weather", table)
    expected = pc.load_surrogate(model).predict(fires)
    given = ["--weather", table]
    if source == "store":
        arguments = [tmp_path / "f.zarr"]
        given = []
    elif source == "bare store":
        ingest(succeed, rasters, model, tmp_path / "bare.zarr")
        arguments = [tmp_path / "bare.zarr"]
    else:
        arguments = [*rasters, *RASTER]
    out = tmp_path / "smoke.nc"
    succeed("predict", model, *arguments, *given, "-o", out)
    np.testing.assert_allclose(smoke(out), expected, rtol=1e-4, atol=1e-4)
    assert open_snapshots(out, fields=["smoke"]).attrs["weather_source"] == str(table)


def test_ensembles_take_the_weather_of_rasters_and_stores(succeed, rasters, model, table, tmp_path):
    ingest(succeed, rasters, model, tmp_path / "bare.zarr")
    one, two = tmp_path / "one.nc", tmp_path / "two.nc"
    succeed("ensemble", model, *rasters, *RASTER, "--weather", table, "-o", one)
    succeed("ensemble", model, tmp_path / "bare.zarr", "--weather", table, "-o", two)
    means = [xr.open_dataset(path).mean_smoke.values for path in (one, two)]
    np.testing.assert_allclose(*means, rtol=1e-4, atol=1e-4)
    with_wind = tmp_path / "wind.nc"
    succeed("ensemble", model, tmp_path / "bare.zarr", "--wind-speed", 5, "--wind-from", 90,
            "-o", with_wind)  # fmt: skip
    other = xr.open_dataset(with_wind).mean_smoke.values
    assert not np.allclose(other, means[0], rtol=0.1)


def test_a_constant_wind_is_a_weather_with_the_default_profile(
    run, succeed, rasters, model, tmp_path
):
    out = tmp_path / "smoke.nc"
    result = run("predict", model, *rasters, *RASTER, "--wind-speed", 5, "--wind-from", 270,
                 "-o", out)  # fmt: skip
    assert result.code == 0
    assert "constant" not in result.err, "the training fires had mean winds, too"
    fires = ingest(succeed, rasters, model, tmp_path / "f.zarr")
    constant = pc.weather.with_weather(fires, pc.weather.constant_weather(5.0, 270.0, 12.0))
    expected = pc.load_surrogate(model).predict(constant)
    np.testing.assert_allclose(smoke(out), expected, rtol=1e-3, atol=1e-3)
    assert "constant" in open_snapshots(out, fields=["smoke"]).attrs["weather_comment"]


def test_a_surrogate_that_needs_weather_says_which_option_supplies_it(
    run, succeed, rasters, model, tmp_path
):
    fires = ingest(succeed, rasters, model, tmp_path / "f.zarr")
    for arguments in (
        ["predict", model, *rasters, *RASTER],
        ["ensemble", model, tmp_path / "f.zarr"],
    ):
        result = run(*arguments, "-o", tmp_path / "no.nc")
        text = " ".join(result.err.split())
        assert result.code == 2
        assert "trained with the weather of every fire" in text
        assert "--weather FILE" in text
        assert not (tmp_path / "no.nc").exists()
    with pytest.raises(PlumecastError, match=r"pc\.weather\.with_weather"):
        pc.load_surrogate(model).predict(fires)


def test_a_surrogate_trained_without_weather_says_so(run, rasters, models, table, tmp_path):
    out = tmp_path / "smoke.nc"
    result = run("predict", models["none"], *rasters, *RASTER, "--weather", table, "-o", out)
    assert result.code == 0
    assert "does not use the weather, so that" in " ".join(result.err.split())


BAD = {
    "NaN": ("a,0,10,nan,270,900", [], "line 2, fire 'a'", "nan"),
    "knots": ("a,0,10,5,270,900", ["--speed-unit", "knots"], "m/s", "--speed-unit"),
    "no unit": ("a,0,10,5,270,900", [], "--speed-unit is missing", "give m/s"),
    "mph": ("a,0,10,150,270,900", [], "150 m/s at hour 0, 10 m is no wind", "mph"),
    "heights": ("a,0,50,5,270,900\na,0,10,5,270,900", [], "heights must increase", "fire 'a'"),
    "ends early": ("a,0,10,5,270,900\na,1,10,5,270,900", [], "fire 'a'", "ends at 1 h"),
    "to": ("a,0,10,5,270,900\na,12,10,5,270,900", [], "--direction-is", "toward"),
    "other fires": ("x,0,10,5,270,900\nx,12,10,5,270,900", [], "for other fires", "'a'"),
    "one fire": ("a,0,10,5,270,900\na,12,10,5,270,900", [], "no weather for fire 'b'", "a"),
}


@pytest.mark.parametrize(
    ("kind", "command"),
    [*((kind, "predict") for kind in BAD), ("one fire", "ingest"), ("no unit", "ensemble")],
)
def test_bad_weather_is_named_with_file_fire_and_value(
    run, rasters, model, tmp_path, kind, command
):
    lines, options, *expected = BAD[kind]
    header = HEADER
    if kind == "no unit":
        header = header.replace("speed (m/s)", "speed")
    if kind == "to":
        header = header.replace("direction", "toward")
    table = write_table(tmp_path, lines, header=header)
    out = tmp_path / ("fires.zarr" if command == "ingest" else "smoke.nc")
    fires = rasters[:1] if kind == "ends early" else rasters
    start = ["ingest", "rasters", "--like"] if command == "ingest" else [command]
    start += [model, *fires]
    result = run(*start, *RASTER, "--weather", table, *options, "-o", out)
    text = " ".join(result.err.split())
    assert result.code == 2, text
    for part in expected:
        assert part in text
    assert "weather.csv" in text


def test_a_farsite_stream_needs_the_ignition_time(run, succeed, rasters, model, tmp_path):
    stream = tmp_path / "station.wxs"
    lines = [f"2013 5 3 {hour:02d}00 77 26 0.00 8 225 25" for hour in range(10, 24)]
    stream.write_text("\n".join(["RAWS_UNITS: English", f"RAWS: {len(lines)}", *lines]) + "\n")
    start = ["ingest", "rasters", *rasters, *RASTER, "--like", model]
    missing = run(*start, "-o", tmp_path / "no.zarr", "--weather", stream)
    assert (missing.code, "--ignition-time" in missing.err) == (2, True)
    succeed(*start, "-o", tmp_path / "f.zarr", "--weather", stream, "--ignition-time",
            "2013-05-03T10:00")  # fmt: skip
    stored = open_snapshots(tmp_path / "f.zarr", fields=FIRE)
    np.testing.assert_allclose(stored.wind_from_direction, 225.0, rtol=STORED)


def slower(path: Path, times: float) -> Path:
    """The raster of a fire that takes `times` as long."""
    lines = path.read_text().splitlines()
    head = [line for line in lines if line[:1].isalpha()]
    rows = [np.array(line.split(), dtype=float) for line in lines[len(head) :]]
    burned = [np.where(row >= 0.0, row * times, row) for row in rows]
    path.write_text("\n".join([*head, *(" ".join(map(str, row)) for row in burned)]) + "\n")
    return path


def test_a_longer_fire_extends_the_weather_of_a_store(succeed, rasters, model, tmp_path):
    """Stored fires keep their weather; its last hour is repeated to the new end."""
    lines = [f"{hour},10,{5 + hour / 10},270,900" for hour in range(0, 61, 10)]
    long = write_table(tmp_path, *lines, header=HEADER.removeprefix("fire,"))
    where = tmp_path / "f.zarr"
    before = ingest(succeed, rasters[:1], model, where, "--weather", long)
    after = ingest(succeed, [slower(rasters[1], 8.0)], model, where, "--weather", long)
    assert after.fire_id.values.tolist() == ["a", "b"]
    assert (before.sizes["weather_hour"], after.sizes["weather_hour"]) == (25, 49)
    for name in WEATHER_NAMES:
        np.testing.assert_array_equal(after[name][0, :25], before[name][0])
        np.testing.assert_array_equal(after[name][0, 24:].max("weather_hour"), before[name][0, -1])
    np.testing.assert_array_equal(after.time_since_ignition[0], before.time_since_ignition[0])


def test_a_store_without_weather_refuses_a_stated_one(
    run, succeed, rasters, model, tmp_path, table
):
    where = tmp_path / "f.zarr"
    winds = ["--wind-speed", 5, "--wind-from", 270]
    ingest(succeed, rasters[:1], model, where, *winds)
    result = run("ingest", "rasters", *rasters, *RASTER, "--like", model, "-o", where,
                 "--weather", table)  # fmt: skip
    assert result.code == 1
    assert "made without the weather of its fires" in " ".join(result.err.split())


def test_a_weather_that_is_dated_dates_the_fires_that_are_not():
    """FARSITE's stream tells when its fire ignites; a time that fires record stays."""
    fires = windy(2, shape=SHAPE)
    weather = pc.weather.constant_weather(5.0, 270.0, hours=48.0)
    assert "ignition_time" not in pc.weather.with_weather(fires, weather).coords
    dated = weather.assign_attrs(ignition_time="2013-05-03T12:00")
    found = pc.weather.with_weather(fires, dated)
    assert set(found.ignition_time.values) == {"2013-05-03T12:00"}
    own = fires.assign_coords(
        ignition_time=("snapshot", np.full(fires.sizes["snapshot"], "2020-08-01T12:00:00Z"))
    )
    assert set(pc.weather.with_weather(own, dated).ignition_time.values) == {"2020-08-01T12:00:00Z"}


def test_the_start_of_a_farsite_run_dates_its_solar_loss(succeed, rasters, model, tmp_path):
    """An inputs file with FARSITE_START_TIME needs no --ignition-time; at night nothing is lost."""
    pytest.importorskip("pvlib")
    plants = tmp_path / "plants.csv"
    plants.write_text("name,x,y,megawatts\na,9000,9000,100\n")
    energy = {}
    lines = [f"2013 5 {3 + h // 24} {h % 24:02d}00 77 26 0.00 4 220 25" for h in range(72)]
    for start in ("0600", "2100"):
        head = (f"FARSITE_START_TIME: 05 03 {start}", "RAWS_UNITS: English", f"RAWS: {len(lines)}")
        inputs = tmp_path / f"{start}.input"
        inputs.write_text("\n".join([*head, *lines]) + "\n")
        out = tmp_path / f"{start}.nc"
        succeed(
            "impact", *rasters, *RASTER, "--hours", "6", "--model", model, "--weather", inputs,
            "--points", plants, "--latitude", "39", "--column-depth", "15000", "-o", out,
        )  # fmt: skip
        with xr.open_dataset(out) as found:
            energy[start] = float(found.clear_energy[-1])
            time = found.attrs["ignition_time"]
            assert time == f"2013-05-03T{start[:2]}:00 local solar time, as recorded"
    assert energy["0600"] > 100.0  # MWh of 100 MW in six hours of morning
    assert energy["2100"] == 0.0  # from 21 h to 3 h
