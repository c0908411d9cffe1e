"""Two users from raw files to maps, by the command line alone, with the recommended surrogate.

A modeller reads her WRF-Fire runs, trains, scores and predicts. A planner takes a surrogate of
WRF-Fire fires that each have their own wind and asks for the smoke of his FARSITE fires. Both find
smoke where it should be: over the fire and downwind of it.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from support.places import shared_data

RUNS = ("fire_018", "fire_021", "fire_006")
WINDS = (60, 300)  # degrees that the wind of the FARSITE fires comes from


def centre(field: xr.DataArray) -> np.ndarray:
    """(x, y) of the centre of mass."""
    total = float(field.sum())
    return np.array([float((field * field[axis]).sum()) / total for axis in ("x", "y")])


def downwind(from_direction: float) -> np.ndarray:
    angle = np.deg2rad(from_direction)
    return np.array([-np.sin(angle), -np.cos(angle)])


def test_a_modeller_goes_from_wrf_runs_to_scored_smoke(tmp_path, succeed, monkeypatch):
    runs = shared_data("wrf/runs")
    monkeypatch.chdir(tmp_path)
    succeed("ingest", "wrf", *(runs / name for name in RUNS), "-o", "ensemble.zarr",
            "--drought", "high", "--workers", 1)  # fmt: skip
    trained = succeed(
        "train", "ensemble.zarr", "--layers", 1, "--physics", "none", "-o", "smoke.plume"
    )
    assert "wrote the surrogate" in trained
    succeed("predict", "smoke.plume", "ensemble.zarr", "-o", "smoke.nc", "--footprint")
    with xr.open_dataset("smoke.nc", decode_timedelta=False) as predicted:
        assert predicted.sizes["snapshot"] > 4
        assert (predicted.smoke.max(("y", "x")) > 0.0).all()
        assert np.isfinite(predicted.smoke).all()


@pytest.fixture(scope="module")
def planner(tmp_path_factory):
    """A folder with the surrogate of fires that each have a wind of their own."""
    from plumecast.cli import main

    folder = tmp_path_factory.mktemp("planner")
    store, model = shared_data("wrf/ensemble.nc"), folder / "smoke.plume"
    with pytest.raises(SystemExit) as ended:
        main(["train", str(store), "--smoke-floor", "0.01", "--layers", "1", "-o", str(model)])
    assert not ended.value.code
    return folder


@pytest.mark.parametrize("wind", WINDS)
def test_a_planner_finds_smoke_downwind_of_a_farsite_fire(planner, tmp_path, run, wind):
    raster = shared_data(f"fire-rasters/farsite/flatland_3mph{wind}deg7hr_ArrivalTime.asc")
    out = tmp_path / "smoke.nc"
    result = run(
        "predict", planner / "smoke.plume", raster, "--format", "farsite", "--hours", "3,7",
        "--wind-speed", 6, "--wind-from", wind, "-o", out, "--footprint",
    )  # fmt: skip
    assert result.code == 0, result.err
    with xr.open_dataset(out, decode_timedelta=False) as found:
        late = found.isel(snapshot=-1)
        assert float(late.smoke.max()) > 1.0
        assert "extrapolates" in found.coords  # smaller than any fire of training
        moved = centre(late.smoke) - np.array([21_500.0, 21_500.0])  # the middle of the raster
        along = float(moved @ downwind(wind))
        across = float(np.linalg.norm(moved - along * downwind(wind)))
        assert along > 3000.0  # at least a cell
        assert across < along
