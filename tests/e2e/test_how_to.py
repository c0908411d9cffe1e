"""The how-to pages: their commands are run as they stand, in order, in an empty folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from plumecast import export_snapshots, open_snapshots, stored_fires
from plumecast.studies.registry import STUDIES
from support.places import shared_data
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots
from support.study_runs import three_droughts
from support.windy_fires import windy
from support.wrf_files import Circle, write_run

FIRES = ("fire_003_complete", "fire_006", "fire_018", "fire_019", "fire_020", "fire_021")


def small_runs(folder: Path) -> None:
    """Six fires with WRF's structure."""
    for number, name in enumerate(FIRES):
        fire = Circle(x=2100.0 + 600.0 * number, speed=0.15 + 0.03 * number)
        write_run(folder / "runs" / name, range(6), fire=fire)


def real_runs(folder: Path) -> None:
    (folder / "runs").symlink_to(shared_data("wrf/runs"))


@pytest.mark.parametrize("prepare", [small_runs, real_runs])
def test_from_wrf_runs_to_a_surrogate(tmp_path, follow_page, prepare):
    prepare(tmp_path)
    printed = follow_page("wrf-runs-to-a-surrogate.md")
    assert "6 fires: 6 read, 0 skipped, 0 failed" in printed
    assert "6 fires: 0 read, 6 skipped, 0 failed" in printed
    assert stored_fires(tmp_path / "ensemble.zarr") == set(FIRES)
    ensemble = open_snapshots(tmp_path / "ensemble.zarr")
    assert set(ensemble.ignition_id.values) == {"ridge", "valley", "slope", "mesa"}
    predicted = open_snapshots(tmp_path / "predicted.nc", fields=["smoke"])
    assert predicted.sizes == ensemble.sizes


def test_fires_with_winds_of_their_own(tmp_path, follow_page):
    export_snapshots(windy(20, shape=(14, 16)), tmp_path / "windy.nc")
    printed = follow_page("fires-with-winds-of-their-own.md")
    assert [frame for frame in ("wind", "map") if f"frame {frame}" in printed] == ["wind", "map"]


def small_fires(folder: Path) -> None:
    """An ensemble, three fires on its grid and one beyond it."""
    export_snapshots(make_snapshots(fires=24), folder / "ensemble.nc")
    (folder / "farsite").mkdir()
    size = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": CELL / 5}
    for number, wind in enumerate((60, 180, 300)):
        arrival = np.full((12, 20), np.nan)
        arrival[3 + number, 2:18] = 30.0 * np.arange(16)
        path = folder / "farsite" / f"flatland_3mph{wind}deg7hr_ArrivalTime.asc"
        write_ascii(path, arrival, XLLCORNER=6000.0, YLLCORNER=6000.0, **size)
    away = folder / "farsite" / "panther_test1177973_ArrivalTime.asc"
    write_ascii(away, np.ones((12, 20)), XLLCORNER=-1e5, YLLCORNER=0.0, **size)


def real_fires(folder: Path) -> None:
    (folder / "ensemble.nc").symlink_to(shared_data("wrf/ensemble.nc"))
    (folder / "farsite").symlink_to(shared_data("fire-rasters/farsite"))


@pytest.mark.parametrize("prepare", [small_fires, real_fires])
def test_smoke_for_farsite_fires(tmp_path, follow_page, prepare):
    prepare(tmp_path)
    printed = follow_page("smoke-for-farsite-fires.md")
    assert "exit code 1" in printed
    smoke = open_snapshots(tmp_path / "smoke.nc", fields=["smoke"])
    assert smoke.sizes["snapshot"] == 6
    assert sorted(set(smoke.hours.values)) == [3.0, 7.0]
    assert len(list((tmp_path / "maps").glob("smoke_flatland_*_007h.tif"))) == 3
    assert len(list((tmp_path / "maps").glob("smoke_flatland_*_007h_footprint.tif"))) == 3
    assert open_snapshots(tmp_path / "final.nc", fields=["smoke"]).sizes["snapshot"] == 3
    assert open_snapshots(tmp_path / "all.nc", fields=["smoke"]).sizes["snapshot"] == 3


def test_choose_a_surrogate(tmp_path, follow_page):
    few = make_snapshots(fires=6, checkpoints=3, shape=(5, 6), droughts=("high",))
    export_snapshots(few, tmp_path / "ensemble.nc")
    printed = follow_page("choose-a-surrogate.md")
    tuned = json.loads((tmp_path / "tuned.json").read_text())
    assert f"the settings of '{tuned['candidates'][0]['name']}' to tuned.json" in printed
    assert {c["family"] for c in tuned["candidates"]} == {"coded", "lifted", "spectral"}
    coded = json.loads((tmp_path / "coded.json").read_text())
    assert {c["family"] for c in coded["candidates"]} == {"coded"}
    assert (tmp_path / "tuned.plume").exists()


def test_the_papers_case_on_my_data(tmp_path, follow_page):
    export_snapshots(three_droughts(), tmp_path / "ensemble.zarr")
    printed = follow_page("the-papers-case-on-my-data.md")
    assert printed.count(" done ") == printed.count(" reused ") == len(STUDIES)
    assert "wrote the report to report.html" in printed
    assert "Recommended (spectral)" in printed
    assert (tmp_path / "report.html").stat().st_size > 100_000
