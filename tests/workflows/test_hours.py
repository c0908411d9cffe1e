"""Any hour can be asked for, and what is read does not depend on how a run was stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import DOSE_ERROR
from plumecast.data.store import append_fire, open_snapshots
from support.raster_files import write_ascii
from support.weather_fires import CELL, SHAPE, weather_fires

RUNS = Path(__file__).parents[3] / "shared" / "data" / "wrf" / "runs"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hours")
    append_fire(folder / "fires.zarr", weather_fires(10))
    surrogate = pc.fit_surrogate(
        open_snapshots(folder / "fires.zarr").load(), "quick", physics="column", frame="map"
    )
    surrogate.save(folder / "smoke.plume")
    return folder


def test_predict_at_any_hours_of_a_store(succeed, model, tmp_path):
    out = tmp_path / "smoke.nc"
    succeed("predict", model / "smoke.plume", model / "fires.zarr", "--hours", "1,2.5,7", "-o", out)
    found = open_snapshots(out, fields=["smoke"])
    assert found.hours.values.tolist() == [1.0, 2.5, 7.0] * 10
    dose = (found.smoke_mean * found.hours).sum(("y", "x")).values.reshape(10, 3)
    assert (np.diff(dose, axis=1) > 0.0).all()
    whole = tmp_path / "own.nc"
    succeed("predict", model / "smoke.plume", model / "fires.zarr", "-o", whole)
    asked = tmp_path / "asked.nc"
    succeed("predict", model / "smoke.plume", model / "fires.zarr", "--hours", "3,6,9", "-o", asked)
    one, two = (open_snapshots(path, fields=["smoke"]).smoke.values for path in (whole, asked))
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4 * one.max())


ENDS = {"7": "10 of 10 fires have maps later than 7 h, until 9 h", "9": "", "12": "10 of 10 fires "
        "have no map as late as 12 h"}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "hours"),
    [("predict", "7"), ("predict", "9"), ("predict", "12"), ("ensemble", "7"), ("compare", "12")],
)
def test_what_is_left_out_is_said(run, model, tmp_path, command, hours):
    append_fire(tmp_path / "other.zarr", weather_fires(10, seed=1))
    (tmp_path / "towns.csv").write_text("name,x,y\nAsh,25500,25500\n")
    fires, surrogate = model / "fires.zarr", model / "smoke.plume"
    given = {
        "predict": [surrogate, fires, "-o", tmp_path / "smoke.nc"],
        "ensemble": [surrogate, fires, "-o", tmp_path / "statistics.nc"],
        "compare": [f"a={fires}", f"b={tmp_path / 'other.zarr'}", "--model", surrogate,
                    "--points", tmp_path / "towns.csv"],
    }  # fmt: skip
    result = run(command, *given[command], "--hours", hours)
    assert result.code == 0, result.err
    said = " ".join(result.err.split())
    assert (ENDS[hours] in said) if ENDS[hours] else ("maps" not in said and "no map" not in said)


@pytest.mark.parametrize("minutes", [359.0, 360.0, 361.0])
def test_a_raster_that_ends_about_an_hour_has_the_smoke_of_that_hour(
    succeed, model, tmp_path, minutes
):
    """FARSITE runs end just before the full hour."""
    fine = 5  # raster cells along a smoke cell
    y, x = np.mgrid[: fine * SHAPE[0], : fine * SHAPE[1]] + 0.5
    arrival = 40.0 * np.hypot(y - 7.5 * fine, x - 8.5 * fine)
    arrival = np.where(
        arrival <= minutes, arrival * minutes / arrival[arrival <= minutes].max(), -9999
    )
    header = {"NCOLS": x.shape[1], "NROWS": x.shape[0], "CELLSIZE": CELL / fine}
    corner = {"XLLCORNER": 0.0, "YLLCORNER": 0.0}
    path = write_ascii(tmp_path / "a.asc", arrival, **header, **corner)
    given = ["--format", "farsite", "--crs", "local", "--drought", "own"]
    wind = ["--wind-speed", 3, "--wind-from", 270]
    totals = []
    for hours in ([], ["--hours", 6]):
        out = tmp_path / f"{len(hours)}.nc"
        succeed("predict", model / "smoke.plume", path, *given, *wind, *hours, "-o", out)
        found = open_snapshots(out, fields=["smoke"])
        totals.append(float((found.smoke_mean * found.hours).sum()))
    assert totals[0] == pytest.approx(totals[1], rel=0.02)


def test_statistics_of_a_store_at_an_hour(succeed, model, tmp_path):
    paths = []
    for number, arguments in enumerate((["--hours", 9], ["--final"])):
        paths.append(tmp_path / f"{number}.nc")
        given = [model / "smoke.plume", model / "fires.zarr", *arguments]
        succeed("ensemble", *given, "-o", paths[-1])
    one, two = (xr.open_dataset(path).mean_smoke.values for path in paths)
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4 * one.max())


@pytest.mark.skipif(not RUNS.exists(), reason="the WRF-Fire runs are not here")
@pytest.mark.parametrize("run", ["fire_018", "fire_003_complete"])
def test_a_run_has_the_same_time_means_however_it_is_thinned(run):
    """The frames between the checkpoints are in the dose; sums differ by their number."""
    hourly = pc.read_wrf(RUNS / run)
    exact = pc.scores.as_quantity(hourly.smoke, "dose").sum(("y", "x")).values
    assert 0.0 < hourly.smoke.attrs[DOSE_ERROR] < 0.3
    for every in (3, 6):
        thinned = pc.read_wrf(RUNS / run, pc.sources.WrfOptions(every=every))
        rows = np.searchsorted(hourly.hours.values, thinned.hours.values - 1e-6)
        np.testing.assert_allclose(thinned.hours, hourly.hours.values[rows])
        found = pc.scores.as_quantity(thinned.smoke, "dose").sum(("y", "x")).values
        np.testing.assert_allclose(
            found, exact[rows], rtol=5e-3
        )  # floors, and cells whose dose may not fall
    assert (np.char.str_len(hourly.ignition_time.values.astype(str)) == 20).all()
