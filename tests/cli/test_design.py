"""`plumecast design`: the table, the map, WRF-Fire inputs, and messages that name options."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from plumecast import export_snapshots
from support.weather_fires import weather_fires


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "cheap.nc"
    return export_snapshots(weather_fires(6).drop_vars("smoke"), path)


@pytest.mark.usefixtures("narrow_terminal")
def test_a_design_is_printed_written_and_drawn(pool, tmp_path, run):
    pytest.importorskip("matplotlib")
    out, drawn = tmp_path / "runs.csv", tmp_path / "runs.png"
    costs = tmp_path / "costs.csv"
    costs.write_text("ignition_id,cost\n" + "".join(f"f{n:02d},{n + 1}\n" for n in range(6)))
    options = ["--must-have", "f05", "--hold-out", 1, "--costs", costs]
    result = run("design", pool, "-n", 3, *options, "-o", out, "--map", drawn)
    assert result.code == 0, result.err
    with out.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [row["role"] for row in rows] == ["must-have", "chosen", "chosen", "hold-out"]
    assert rows[0]["ignition_id"] == "f05"
    assert rows[0]["cost"] == "6"
    assert "3 of 6 ignitions by" in result.out
    for row in rows:
        assert row["ignition_id"] in result.out
    assert "hold-out of 1: drawn at random before the choice" in result.err
    assert f"wrote 4 runs to {out}" in result.out.replace("\n", "")
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_every_run_of_the_design_gets_a_folder_of_wrf_inputs(pool, tmp_path, succeed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--hold-out", 1, "--wrf", "wrf", "--wrf-hours", 5]
    out = succeed("design", pool, "-n", 2, *options, "-o", "runs.csv")
    with Path("runs.csv").open(newline="") as file:
        runs = {row["ignition_id"] for row in csv.DictReader(file)}
    assert len(runs) == 3
    assert {folder.name for folder in Path("wrf").iterdir()} == runs
    for folder in Path("wrf").iterdir():
        assert "run_hours = 5," in (folder / "namelist.input").read_text()
    assert "WRF-Fire for 3 fires" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", 9], "-n=9 is more than the 6 candidate ignitions; lower it or add candidates"),
        (["-n", 2, "--must-have", "q"], "--must-have='q' is not among the 6 candidate ignitions"),
        (["-n", 4, "--hold-out", 3], "-n=4 with 3 to hold out is more than the 6"),
        (["-n", 2, "--method", "best"], "--method='best' is unknown; choose from variance"),
        (["-n", 2, "--weights", "area"], "--weights='area' is no coordinate of the snapshots"),
        (["-n", 2, "--weights", "no.csv"], "no.csv: no such file"),
        (["-n", 2, "-o", "runs.txt"], "runs.txt: unknown file ending '.txt'; use .csv"),
        (["-n", 2, "--map", "map.svg"], "map.svg: unknown file ending '.svg'; use .png"),
        (["-n", 2, "--wrf-hours", 3], "--wrf-hours=3 is for WRF-Fire inputs; add --wrf FOLDER"),
    ],
)
def test_errors_name_the_option(pool, refused, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("design", pool, *options)
    assert not list(tmp_path.iterdir())


def test_fires_without_weather_give_no_wrf_inputs(refused, tmp_path):
    calm = weather_fires(3).drop_dims(["weather_hour", "height"])
    export_snapshots(calm, tmp_path / "calm.nc")
    assert "wind_u" in refused("design", tmp_path / "calm.nc", "-n", 2, "--wrf", tmp_path / "wrf")
    assert [path.name for path in tmp_path.iterdir()] == ["calm.nc"]
