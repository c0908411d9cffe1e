"""The how-to pages: their commands are run as they stand, in order, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import append_fire, export_snapshots, open_snapshots, stored_fires
from plumecast.studies.registry import STUDIES
from support.places import REPOSITORY, shared_data
from support.raster_files import write_ascii, write_landscape
from support.snapshots import CELL, make_snapshots
from support.study_runs import three_droughts
from support.windy_fires import windy
from support.wrf_files import Circle, write_run

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUN = ("", "python")  # blocks in other languages are for machines the tests do not have
FIRES = ("fire_003_complete", "fire_006", "fire_018", "fire_019", "fire_020", "fire_021")


def follow(page: str, folder: Path) -> str:
    """Run the blocks of a page in a folder; what they printed."""
    program = folder / "bin" / "plumecast"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m plumecast "$@"\n')
    program.chmod(0o755)
    source = str(REPOSITORY / "src")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": source, "NO_COLOR": "1"}
    text = (REPOSITORY / "docs" / "how-to" / page).read_text(encoding="utf-8")
    printed = ""
    for language, block in BLOCK.findall(text):
        if language not in RUN:
            continue
        command = [sys.executable, "-c"] if language else ["bash", "-euo", "pipefail", "-c"]
        done = subprocess.run(
            [*command, block], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        printed += done.stdout
    return printed


def small_runs(folder: Path) -> None:
    """Six fires with WRF's structure."""
    for number, name in enumerate(FIRES):
        fire = Circle(x=2100.0 + 600.0 * number, speed=0.15 + 0.03 * number)
        write_run(folder / "runs" / name, range(6), fire=fire)


def real_runs(folder: Path) -> None:
    (folder / "runs").symlink_to(shared_data("wrf/runs"))


@pytest.mark.parametrize("prepare", [small_runs, real_runs])
def test_from_wrf_runs_to_a_surrogate(tmp_path, prepare):
    prepare(tmp_path)
    printed = follow("wrf-runs-to-a-surrogate.md", tmp_path)
    assert "6 fires: 6 read, 0 skipped, 0 failed" in printed
    assert "6 fires: 0 read, 6 skipped, 0 failed" in printed
    assert stored_fires(tmp_path / "ensemble.zarr") == set(FIRES)
    ensemble = open_snapshots(tmp_path / "ensemble.zarr")
    assert set(ensemble.ignition_id.values) == {"ridge", "valley", "slope", "mesa"}
    predicted = open_snapshots(tmp_path / "predicted.nc", fields=["smoke"])
    assert predicted.sizes == ensemble.sizes


def test_fires_with_winds_of_their_own(tmp_path):
    export_snapshots(windy(30), tmp_path / "windy.nc")
    printed = follow("fires-with-winds-of-their-own.md", tmp_path)
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
def test_smoke_for_farsite_fires(tmp_path, prepare):
    prepare(tmp_path)
    printed = follow("smoke-for-farsite-fires.md", tmp_path)
    assert "exit code 1" in printed
    smoke = open_snapshots(tmp_path / "smoke.nc", fields=["smoke"])
    assert smoke.sizes["snapshot"] == 6
    assert sorted(set(smoke.hours.values)) == [3.0, 7.0]
    assert len(list((tmp_path / "maps").glob("smoke_flatland_*_7h.tif"))) == 3
    assert len(list((tmp_path / "maps").glob("smoke_flatland_*_7h_footprint.tif"))) == 3
    assert open_snapshots(tmp_path / "final.nc", fields=["smoke"]).sizes["snapshot"] == 3
    assert open_snapshots(tmp_path / "all.nc", fields=["smoke"]).sizes["snapshot"] == 3


def test_choose_a_surrogate(tmp_path):
    export_snapshots(make_snapshots(fires=24), tmp_path / "ensemble.nc")
    printed = follow("choose-a-surrogate.md", tmp_path)
    tuned = json.loads((tmp_path / "tuned.json").read_text())
    assert f"the settings of '{tuned['candidates'][0]['name']}' to tuned.json" in printed
    assert {c["family"] for c in tuned["candidates"]} == {"coded", "lifted", "spectral"}
    coded = json.loads((tmp_path / "coded.json").read_text())
    assert {c["family"] for c in coded["candidates"]} == {"coded"}
    assert (tmp_path / "tuned.plume").exists()


def test_a_million_fires(tmp_path):
    pytest.importorskip("distributed", reason="Dask distributed is not installed")
    append_fire(tmp_path / "ensemble.zarr", make_snapshots(fires=24))
    append_fire(tmp_path / "fires.zarr", make_snapshots(fires=40, seed=5))
    write_landscape(tmp_path, (60, 80), 600.0)
    printed = follow("a-million-fires.md", tmp_path)
    assert "statistics of 160 snapshots of 40 fires" in printed
    assert "statistics of 180 snapshots of 12 fires" in printed
    assert "statistics of 24 snapshots of 12 fires" in printed
    one, other = (xr.load_dataset(tmp_path / name) for name in ("stats.nc", "again.nc"))
    np.testing.assert_allclose(other.mean_log_smoke, one.mean_log_smoke, rtol=1e-9)
    assert one.smoke_quantile.sizes["quantile"] == 3
    assert open_snapshots(tmp_path / "smoke.nc", fields=["smoke"]).sizes["snapshot"] == 160


def test_the_papers_case_on_my_data(tmp_path):
    export_snapshots(three_droughts(), tmp_path / "ensemble.zarr")
    printed = follow("the-papers-case-on-my-data.md", tmp_path)
    assert printed.count(" done ") == printed.count(" reused ") == len(STUDIES)
    assert "wrote the report to report.html" in printed
    assert "Recommended (spectral)" in printed
    assert (tmp_path / "report.html").stat().st_size > 100_000
