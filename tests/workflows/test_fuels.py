"""Fuels that a user states for fires: in stores, in predictions, and for drawn scenarios."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.weather.snapshots import CompletedWeather
from plumecast.workflows.fires.draw_fires import Change, draw_scenarios
from plumecast.workflows.fires.sources import raster_fires
from support.raster_files import write_landscape
from support.weather_fires import CELL, SHAPE, weather_fires

FIT = {"layers": 1, "physics": "column", "frame": "wind"}
FINE = 4  # raster cells along a grid cell
WIND = ("--wind-speed", 2, "--wind-from", 240)


def write_grid(path: Path, values: np.ndarray) -> Path:
    """An ASCII grid over the grid of `weather_fires`, north row first."""
    rows, columns = values.shape
    head = f"NCOLS {columns}\nNROWS {rows}\nXLLCORNER 0\nYLLCORNER 0\n"
    lines = [" ".join(f"{value:g}" for value in row) for row in values]
    size = CELL * SHAPE[0] / rows
    path.write_text(f"{head}CELLSIZE {size}\nNODATA_VALUE -9999\n" + "\n".join(lines) + "\n")
    return path


def write_fuels(path: Path, name: str, **change: int) -> Path:
    codes = np.full((FINE * SHAPE[0], FINE * SHAPE[1]), FUEL_CODES[name])
    if "north" in change:
        codes[: codes.shape[0] // 2] = change["north"]
    return write_grid(path, codes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two fires in the north half, fuels of three kinds, and two surrogates."""
    made = tmp_path_factory.mktemp("fuels")
    for number in (1, 2):
        minutes = np.full((FINE * SHAPE[0], FINE * SHAPE[1]), -9999.0)
        minutes[20:26, 30:36] = 30.0 * np.arange(number, number + 6)[:, None]
        write_grid(made / f"f{number}.asc", minutes)
    for name in ("GR1", "SB4", "NB9"):
        write_fuels(made / f"{name}.txt", name)
    write_fuels(made / "south.txt", "GR1", north=-9999)
    fires = weather_fires(6)
    load = np.full(SHAPE, 1.0, np.float32)
    fuelled = fires.assign(fuel_load=(("y", "x"), load, {"units": "kg m-2"}))
    pc.fit_surrogate(fuelled, "recommended", **FIT).save(made / "fuelled.plume")
    pc.fit_surrogate(fires, "recommended", **FIT).save(made / "plain.plume")
    return made


def words(folder: Path) -> list[object]:
    return [folder / "f1.asc", folder / "f2.asc", "--format", "farsite", "--hours", "3,6"]


def smoke(path: Path) -> float:
    with xr.open_dataset(path) as data:
        return float(data.smoke.sum())


@pytest.fixture
def fires(folder) -> xr.Dataset:
    grid = pc.load_surrogate(folder / "fuelled.plume").grid
    return pc.read_arrival_times(
        folder / "f1.asc", pc.sources.RasterOptions(format="farsite", like=grid)
    )


def test_fires_get_the_load_of_their_fuel(fires, folder):
    made = pc.workflows.with_fuels(fires, folder / "SB4.txt")
    assert made.fuel_load.dims == ("y", "x")
    assert made.fuel_load.attrs["units"] == "kg m-2"
    np.testing.assert_allclose(made.fuel_load, fuel_table().total_load[FUEL_CODES["SB4"]])


def test_fuels_of_another_place_are_refused(fires, folder):
    with pytest.raises(pc.PlumecastError, match=r"south\.txt has no fuel in \d of the \d cells "):
        pc.workflows.with_fuels(fires, folder / "south.txt")
    with pytest.raises(pc.PlumecastError, match=r"fire 'f1' burns only where .*NB9\.txt has"):
        pc.workflows.with_fuels(fires, folder / "NB9.txt")


def test_a_store_keeps_the_load_for_predictions(succeed, refused, folder, tmp_path):
    model, store = folder / "fuelled.plume", tmp_path / "fires.zarr"
    fuels = ("--fuels", folder / "SB4.txt")
    ingest = ["ingest", "rasters", *words(folder)[1:], *WIND, "--like", model, "-o", store]
    succeed(*ingest, *fuels)
    succeed("predict", model, store, "-o", tmp_path / "stored.nc")
    out = succeed("predict", model, *words(folder)[1:], *WIND, *fuels, "-o", tmp_path / "direct.nc")
    assert "fuel_beyond_training 2" in out
    succeed("predict", model, store, "--fuels", folder / "GR1.txt", "-o", tmp_path / "light.nc")
    stored, direct = (smoke(tmp_path / name) for name in ("stored.nc", "direct.nc"))
    assert stored == pytest.approx(direct, rel=1e-6)  # float32
    assert smoke(tmp_path / "light.nc") < 0.5 * smoke(tmp_path / "stored.nc")
    ingest[2] = folder / "f1.asc"
    message = refused(*ingest, "--fuels", folder / "GR1.txt")
    assert "has fires with other fuels" in message


def test_statistics_of_rasters_use_their_fuels(folder):
    surrogate = pc.load_surrogate(folder / "fuelled.plume")
    rasters = {"weather": (2.0, 240.0), "format": "farsite", "hours": [6.0]}
    means = []
    for fuels in (None, folder / "SB4.txt"):
        fires = raster_fires(surrogate, words(folder)[:2], fuels=fuels, **rasters)
        with pytest.warns(CompletedWeather, match="constant since ignition"):
            means.append(float(pc.ensemble_statistics(surrogate, fires).mean_smoke.sum()))
    assert means[1] > 1.1 * means[0]


def test_fuels_that_change_nothing_are_noted_or_refused(run, refused, folder, tmp_path):
    fuels = ("--fuels", folder / "SB4.txt", "-o", tmp_path / "plain.nc")
    result = run("predict", folder / "plain.plume", *words(folder), *WIND, *fuels)
    assert result.code == 0
    assert "trained without the fuel load" in " ".join(result.err.split())
    store = pc.export_snapshots(weather_fires(2), tmp_path / "fires.nc")
    asked = ("--fuels", folder / "SB4.txt", "-o", tmp_path / "out.nc")
    message = refused("ensemble", folder / "fuelled.plume", store, *asked)
    assert "is for --simulate and for rasters" in message


def test_drawn_scenarios_are_predicted_on_their_own_fuels(tmp_path):
    """A treated landscape changes the load that releases smoke, not only the fire."""
    pytest.importorskip("numba")
    rasterio = pytest.importorskip("rasterio")
    paths = write_landscape(tmp_path, (60, 80), 600.0)
    with rasterio.open(paths["fuels"]) as file:
        profile, band = file.profile, file.read(1)
    with rasterio.open(tmp_path / "thinned.tif", "w", **profile) as file:
        file.write(np.full_like(band, FUEL_CODES["TL1"]), 1)
    trained = pc.simulate(
        ignitions=3, weathers=1, checkpoints=1, ground=pc.workflows.Ground(**paths)
    )
    surrogate = pc.fit_surrogate(trained, "recommended", **FIT)
    changes = {"as it is": Change(paths["fuels"]), "thinned": Change(tmp_path / "thinned.tif")}
    drawn = draw_scenarios(
        1,
        changes,
        weathers=1,
        like=surrogate.grid,
        checkpoints=1,
        ground=pc.workflows.Ground(**paths),
    )
    for name, code in (("as it is", "TL5"), ("thinned", "TL1")):
        given = surrogate.read_rows(drawn[name].first())[1]
        np.testing.assert_allclose(given.fuel.maps, fuel_table().total_load[FUEL_CODES[code]])
