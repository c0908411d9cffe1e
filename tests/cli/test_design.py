"""`plumecast design`: the table, the map, and messages that name options."""

from __future__ import annotations

import csv

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
    ],
)
def test_errors_name_the_option(pool, refused, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("design", pool, *options)
    assert not list(tmp_path.iterdir())
