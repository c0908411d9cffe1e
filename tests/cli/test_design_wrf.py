"""`plumecast design --wrf`: a folder of WRF-Fire inputs for every run of the design."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from plumecast.data.store import export_snapshots
from support.weather_fires import weather_fires


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fires = weather_fires(5)
    export_snapshots(fires, "pool.nc")
    names = ["wind_u", "wind_v", "boundary_layer_depth", "weather_hour", "height"]
    export_snapshots(fires.drop_vars(names), "calm.nc")
    return tmp_path


def test_every_run_of_the_design_gets_a_folder(pool, succeed):
    out = succeed(
        "design", "pool.nc", "-n", 2, "--hold-out", 1, "-o", "runs.csv", "--wrf", "wrf",
        "--wrf-hours", 5,
    )  # fmt: skip
    with Path("runs.csv").open(newline="") as file:
        runs = {row["ignition_id"] for row in csv.DictReader(file)}
    assert len(runs) == 3
    assert {folder.name for folder in Path("wrf").iterdir()} == runs
    for folder in Path("wrf").iterdir():
        assert "run_hours = 5," in (folder / "namelist.input").read_text()
    assert "WRF-Fire for 3 fires" in out


def test_nothing_is_written_where_inputs_cannot_be(pool, refused):
    """Fires without weather, and hours without a folder, are refused before the choice."""
    assert "wind_u" in refused("design", "calm.nc", "-n", 2, "-o", "runs.csv", "--wrf", "wrf")
    assert "--wrf FOLDER" in refused("design", "pool.nc", "-n", 2, "--wrf-hours", 3)
    assert sorted(path.name for path in pool.iterdir()) == ["calm.nc", "pool.nc"]
