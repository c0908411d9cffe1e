"""Simulated ensembles in a store: resumable, and the same for any number of workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES
from plumecast.workflows import Ground
from plumecast.workflows.simulate import read_landscape
from support.places import shared_data

SMALL = {"preset": "demo", "ignitions": 2, "droughts": ("medium",), "checkpoints": 1}
OWN = {"preset": "weathers", "ignitions": 1, "weathers": 2, "checkpoints": 1}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("simulated") / "ensemble.zarr"
    pc.simulate(path, **SMALL)
    return path


@pytest.fixture(scope="module")
def windy(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("simulated") / "windy.zarr"
    pc.simulate(path, **OWN)
    return path


def test_store_and_memory_hold_the_same_fires(store):
    in_memory = pc.simulate(**SMALL)
    stored = pc.open_snapshots(store)
    for name in ("time_since_ignition", "smoke", "fire_id", "hours", "wind_speed"):
        assert stored[name].values.tolist() == in_memory[name].values.tolist()
    assert pc.data.validate_snapshots(stored).smoke.attrs["units"] == "ug m-3"
    # With one snapshot per fire the interval cannot be read from the hours.
    assert stored.smoke.attrs["checkpoint_interval_hours"] == 6.0
    assert stored.smoke.attrs["column_depth_m"] == 15_000.0
    assert stored.attrs["ignition_local_hour"] == 12.0


def test_repeating_adds_nothing_and_more_ignitions_continue(store, tmp_path):
    path, fewer = tmp_path / "ensemble.zarr", {**SMALL, "ignitions": 1}
    before = pc.simulate(path, **fewer).attrs["data_version"]
    assert pc.simulate(path, **fewer).attrs["data_version"] == before
    xr.testing.assert_equal(pc.simulate(path, **SMALL).load(), pc.open_snapshots(store).load())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 5}, "was simulated with seed=0, not 5"),
        ({"checkpoints": 2}, "was simulated with checkpoints=1, not 2"),
        ({"preset": None}, r"was simulated with years=\d+, not \d+"),
        ({"ground": Ground(steering=0.0)}, r"was simulated with steering=1\.2, not 0\.0"),
        ({"droughts": None, "weathers": 1}, "share the weathers of the droughts; leave"),
    ],
)
def test_other_settings_do_not_mix_in_one_store(store, change, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.simulate(store, **{**SMALL, **change})


def test_steering_is_recorded_and_changes_fire_and_smoke(store):
    still = pc.simulate(**SMALL, ground=Ground(steering=0.0))
    usual = pc.open_snapshots(store).load()
    assert json.loads(usual.attrs["simulation"])["steering"] == 1.2
    assert still.fire_id.values.tolist() == usual.fire_id.values.tolist()
    for name in ("time_since_ignition", "smoke"):
        assert pc.scores.relative_error(usual[name], still[name]) > 0.01  # far beyond rounding


def test_a_store_of_earlier_versions_is_continued_as_it_was_begun(store, tmp_path, run):
    """Without hourly weather, and with the default steering, which it does not record."""
    path = tmp_path / "before.zarr"
    old = pc.open_snapshots(store).isel(snapshot=[0]).load()
    settings = json.loads(old.attrs["simulation"])
    assert settings.pop("weather") == "drought"
    assert settings.pop("steering") == 1.2
    plain = old.drop_dims(["weather_hour", "height"])
    pc.data.append_fire(path, plain.assign_attrs(simulation=json.dumps(settings)))
    words = ("simulate", "--preset", "demo", "--ignitions", 2, "--droughts", "medium")
    result = run(*words, "--checkpoints", 1, "-o", path)
    assert result.code == 0
    assert "did not store the hourly weather, and is continued without it" in result.err
    now = pc.open_snapshots(path)
    assert "wind_u" not in now
    assert now.smoke.values.tolist() == pc.open_snapshots(store).smoke.values.tolist()
    with pytest.raises(pc.PlumecastError, match=r"was simulated with steering=1\.2, not 1\.3"):
        pc.simulate(path, **SMALL, ground=Ground(steering=1.3))


def test_store_from_another_source_is_refused(snapshots, tmp_path):
    path = tmp_path / "other.zarr"
    pc.data.append_fire(path, snapshots)
    with pytest.raises(pc.PlumecastError, match="holds fires from another source"):
        pc.simulate(path, **SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": None, "ignitions": None}, "how many fires"),
        ({"preset": "huge"}, "unknown preset 'huge'"),
        ({"checkpoints": 0}, "checkpoints=0"),
        ({"ignitions": 0}, "ignitions=0"),
        ({"droughts": ("low", "severe")}, "unknown drought 'severe'; known are 'low', 'medium'"),
        ({"droughts": ()}, "droughts is empty; give at least one of"),
        ({"weathers": -1, "droughts": None}, "weathers=-1: give at least 0"),
        ({"workers": 0}, "workers=0"),
        ({"ground": Ground(dem="dem.tif")}, "both an elevation and a fuel raster"),
        ({"ground": Ground(steering=-1.0)}, r"steering strength=-1\.0; use 0 \(none\)"),
        ({"ground": Ground(steering=float("nan"))}, "steering strength=nan"),
        (
            {"ground": Ground(steering=50.0)},
            r"strength=50 would blow wind .* backwards; use \d\S* or less",
        ),
    ],
)
def test_impossible_ensembles_are_refused(change, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.simulate(**{**SMALL, **change})


def test_old_arguments_work_with_a_warning(store):
    with (
        pytest.warns(DeprecationWarning, match=r"simulate\(.*use ground="),
        pytest.raises(pc.PlumecastError, match=r"was simulated with steering=1\.2, not 0\.5"),
    ):
        pc.simulate(store, **SMALL, steering=0.5)


def test_killed_simulation_keeps_its_fires_and_is_continued(store, tmp_path):
    """A store killed in the middle and continued equals one made without interruption."""
    path = tmp_path / "killed.zarr"
    command = [sys.executable, "-m", "plumecast", "simulate", "--preset", "demo"]
    command += ["--ignitions", "2", "--droughts", "medium", "--checkpoints", "1"]
    command += ["--workers", "1", "-o", path]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120.0
    while not _fires(path) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert _fires(path)
    continued = pc.simulate(path, **SMALL, workers=2)
    xr.testing.assert_equal(continued.load(), pc.open_snapshots(store).load())


def _fires(path: Path) -> frozenset[str]:
    try:
        return pc.data.stored_fires(path)
    except pc.PlumecastError:  # the first commit is being written
        return frozenset()


def test_real_rasters_have_gaps_that_become_bare_ground_on_request():
    tile = Ground(
        dem=shared_data("fire-rasters/landfire/LC20_Elev_220.tif"),
        fuels=shared_data("fire-rasters/landfire/LC22_F40_230.tif"),
    )
    with pytest.raises(pc.PlumecastError, match="108586 of 336537 cells without a value"):
        tile.landscape()
    filled = replace(tile, bare_where_missing=True).landscape()
    assert filled.cell == 30.0
    assert np.isfinite(filled.elevation).all()
    assert 0.1 < filled.burnable.mean() < 0.9


def test_every_fire_is_stored_with_its_own_weather(windy, run):
    stored = pc.open_snapshots(windy)
    assert stored.fire_id.values.tolist() == ["s0-i0000-w0", "s0-i0000-w1"]
    assert stored.drought.values.tolist() == ["own", "own"]
    grid = {"snapshot": 2, "y": 40, "x": 50}
    assert stored.sizes == grid | {"weather_hour": 7, "height": 10, "history": 3}
    assert not (stored.wind_u[0].values == stored.wind_u[1].values).any()
    pc.data.validate_snapshots(stored)
    said = run("info", windy, "--check").out
    assert "hourly at 10 heights up to 6000 m, 7 hours" in said
    assert "2 of 2 fires are clean" in said


def test_more_weathers_continue_a_store_and_other_weathers_are_refused(windy, tmp_path, refused):
    path = tmp_path / "a.zarr"
    pc.simulate(path, **{**OWN, "weathers": 1})
    xr.testing.assert_equal(pc.simulate(path, **OWN).load(), pc.open_snapshots(windy).load())
    words = ("simulate", "--preset", "weathers", "--ignitions", 1, "--checkpoints", 1, "-o", path)
    assert refused(*words, "--weathers", 0) == (
        f"{path} was simulated with fires that have a drawn weather each; give --weathers 1 to "
        "continue it, or choose another path"
    )
    assert refused(*words, "--droughts", "low") == (
        "--droughts='low' are weathers that all fires share, but each has its own weather (1 "
        "drawn); leave one of them out (with the preset 'weathers', state 0 of these)"
    )


# -- landscapes from the user's rasters


GRASS = np.full((4, 6), FUEL_CODES["GR2"], dtype=np.int16)
MISSING = 32767


@pytest.fixture
def write(tmp_path):
    """Write a raster of 30 m cells; returns its path."""
    rasterio = pytest.importorskip("rasterio")

    def call(name, values, *, crs="EPSG:5070", left=1000.0, cell=30.0):
        options = {"driver": "GTiff", "count": 1, "dtype": values.dtype, "crs": crs}
        options |= {"height": values.shape[0], "width": values.shape[1], "nodata": MISSING}
        transform = rasterio.Affine(cell, 0.0, left, 0.0, -cell, 5000.0)
        with rasterio.open(tmp_path / name, "w", transform=transform, **options) as target:
            target.write(values, 1)
        return tmp_path / name

    return call


@pytest.fixture
def dem(write):
    """Ground that falls to the south, 4 by 6 cells."""
    heights = np.array([400, 300, 200, 100], dtype=np.int16)
    return write("dem.tif", np.repeat(heights[:, None], 6, axis=1))


def test_rasters_are_read_with_the_south_in_row_0(dem, write):
    fuel = GRASS.copy()
    fuel[0] = FUEL_CODES["NB8"]  # water in the north
    ground = read_landscape(dem, write("fuel.tif", fuel))
    assert ground.cell == 30.0
    np.testing.assert_allclose(ground.elevation[:, 0], [100, 200, 300, 400])
    assert (ground.fuel[3] == 98).all()
    assert (ground.fuel[:3] == GRASS[0, 0]).all()
    np.testing.assert_allclose(ground.slope[1], 100 / 30)


def test_holes_are_counted_or_become_bare_ground(dem, write):
    fuel = GRASS.copy()
    fuel[1, 2:4] = MISSING
    holed = write("holed.tif", fuel)
    with pytest.raises(PlumecastError, match=r"holed\.tif has 2 of 24 cells without a value"):
        read_landscape(dem, holed)
    ground = read_landscape(dem, holed, bare_where_missing=True)
    assert (ground.fuel[2, 2:4] == FUEL_CODES["NB9"]).all()
    assert ground.burnable.sum() == 22
    with pytest.raises(PlumecastError, match=r"holed\.tif has 2 of 24"):
        read_landscape(holed, dem, bare_where_missing=True)


@pytest.mark.parametrize(
    ("values", "change", "message"),
    [
        (GRASS, {"left": 1030.0}, r"dem\.tif \(EPSG:5070.*fuel\.tif \(EPSG:5070"),
        (GRASS, {"crs": "EPSG:32613"}, r"EPSG:5070.*EPSG:32613.*one grid and CRS"),
        (GRASS, {"crs": "EPSG:4326", "cell": 0.001}, r"EPSG:4326; reproject"),
        (np.full_like(GRASS, 55), {}, "unknown fuel 55"),
    ],
)
def test_fuels_that_do_not_fit_are_refused(dem, write, values, change, message):
    with pytest.raises(PlumecastError, match=message):
        read_landscape(dem, write("fuel.tif", values, **change))


def test_unreadable_files_and_missing_libraries_are_named(dem, monkeypatch):
    with pytest.raises(PlumecastError, match=r"absent\.tif: cannot be opened"):
        read_landscape("absent.tif", dem)
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(PlumecastError, match=r"pip install 'plumecast\[raster\]'"):
        read_landscape("dem.tif", "fuel.tif")
