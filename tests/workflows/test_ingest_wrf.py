"""`plumecast ingest wrf`: whole fires, resumable, with the checks' findings; bad runs are named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots, read_wrf
from plumecast.data import stored_fires
from plumecast.data.store import append_fire
from plumecast.sources.wrf import WrfOptions
from support.places import shared_data
from support.wrf_files import FILE, Circle, broken, plume, write_run, write_wrfout

HOURS = range(4)
ALONE = ("--workers", 1)


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    """Three fires that can be read."""
    return [
        write_run(tmp_path / "runs" / name, HOURS, fire=Circle(speed=speed))
        for name, speed in (("a", 0.15), ("b", 0.2), ("c", 0.25))
    ]


def test_every_fire_is_appended_as_it_was_read(succeed, runs, tmp_path):
    store = tmp_path / "ensemble.zarr"
    out = succeed("ingest", "wrf", *runs, "-o", store, "--drought", "high", *ALONE)
    assert "3 fires: 3 read, 0 skipped, 0 failed" in out
    assert f"added 9 snapshots of 3 fires to {store}" in out
    stored = open_snapshots(store)
    expected = xr.concat([read_wrf(run, drought="high") for run in runs], "snapshot")
    for name in ("time_since_ignition", "smoke", "hours", "burned_area", "fire_id", "drought"):
        np.testing.assert_array_equal(stored[name], expected[name])
    assert stored.attrs["smoke_floor"] == 1e-3
    assert set(stored.quality.values) == {"passed"}
    assert "quality" not in stored.attrs


def test_options_reach_the_reader(succeed, tmp_path):
    run = write_run(tmp_path / "a", range(7), smoke_name="bbc_1", smoke_units="")
    store = tmp_path / "ensemble.zarr"
    succeed(
        *("ingest", "wrf", run, "-o", store, "--smoke", "bbc_1", "--smoke-unit", "ug/kg"),
        *("--every", "3h", "--domain", "d01", "--aggregate", "max", "--floor", 1e-9, *ALONE),
    )
    expected = read_wrf(
        run,
        WrfOptions(
            smoke="bbc_1", smoke_unit="ug/kg", every="3h", domain=1, aggregate="max", floor=1e-9
        ),
    )
    stored = open_snapshots(store)
    np.testing.assert_array_equal(stored.smoke, expected.smoke)
    np.testing.assert_array_equal(stored.time_since_ignition, expected.time_since_ignition)


def test_stored_fires_are_passed_over(succeed, runs, tmp_path, monkeypatch):
    store = tmp_path / "ensemble.zarr"
    succeed("ingest", "wrf", runs[1], "-o", store, *ALONE)
    before = open_snapshots(store).attrs["data_version"]
    succeed("ingest", "wrf", runs[1], "-o", store, *ALONE)
    assert open_snapshots(store).attrs["data_version"] == before
    out = succeed("ingest", "wrf", *runs, "-o", store, *ALONE)
    assert "3 fires: 2 read, 1 skipped, 0 failed" in out
    assert "already stored" in out
    assert stored_fires(store) == {"a", "b", "c"}


def test_a_store_is_not_continued_with_other_settings(run, succeed, runs, tmp_path):
    store = tmp_path / "ensemble.zarr"
    succeed("ingest", "wrf", runs[0], "-o", store, *ALONE)
    result = run("ingest", "wrf", *runs, "-o", store, "--every", "3h", *ALONE)
    assert result.code == 1
    assert f"{store} was read with every=None, not 3h; repeat those settings" in result.err
    assert stored_fires(store) == {"a"}


def test_a_store_of_another_source_is_not_continued(refused, runs, tmp_path, snapshots):
    store = tmp_path / "ensemble.zarr"
    append_fire(store, snapshots)
    said = refused("ingest", "wrf", *runs, "-o", store, *ALONE)
    assert said == f"{store} holds fires from another source; choose another path"


def test_processes_change_nothing(succeed, runs, tmp_path):
    one, two = tmp_path / "one.zarr", tmp_path / "two.zarr"
    succeed("ingest", "wrf", *runs, "-o", one, *ALONE)
    succeed("ingest", "wrf", *runs, "-o", two, "--workers", 2)
    xr.testing.assert_identical(
        *(open_snapshots(store).drop_attrs(deep=False).load() for store in (one, two))
    )


def test_a_table_labels_the_fires(run, runs, tmp_path):
    table, store = tmp_path / "labels.csv", tmp_path / "ensemble.zarr"
    table.write_text("fire_id,drought,ignition_id\na,low,spot\nb,high,spot\n")
    result = run("ingest", "wrf", *runs, "-o", store, "--drought-from", table, *ALONE)
    assert result.code == 1
    assert f"{runs[2]}: {table} has no line for fire 'c'" in result.err
    stored = open_snapshots(store)
    assert dict(zip(stored.fire_id.values, stored.drought.values, strict=True)) == {
        "a": "low",
        "b": "high",
    }
    assert set(stored.ignition_id.values) == {"spot"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fire_id\na\n", "the column drought is missing; expected fire_id, drought and"),
        ("fire_id,drought\na,low\na,high\n", "line 3, fire 'a': this is the fire's second drought"),
        ("fire,drought,wind_speed\na,low,5\n", "line 2, fire 'a': wind_from_direction is empty"),
        (None, "no such file; give a table"),
    ],
)
def test_a_bad_table_is_refused(refused, runs, tmp_path, text, said):
    table = tmp_path / "labels.csv"
    if text is not None:
        table.write_text(text)
    message = refused(
        "ingest", "wrf", *runs, "-o", tmp_path / "e.zarr", "--drought-from", table, *ALONE
    )
    assert message.startswith(f"{table}: {said}")
    assert not (tmp_path / "e.zarr").exists()


def test_what_the_checks_found_is_told_and_kept(run, runs, tmp_path):
    odd = write_run(tmp_path / "odd", [0, 1, 2, 5], smoke=lambda t: plume(3600.0) * (t > 0))
    store, report = tmp_path / "ensemble.zarr", tmp_path / "report.json"
    result = run("ingest", "wrf", runs[0], odd, "-o", store, "--json", report, *ALONE)
    assert result.code == 0
    assert "2 findings" in result.out
    assert "note: odd: smoke does not follow fire: burned area grows" in result.err
    assert "note: odd: missing frames: 2 at a step of 1 h" in result.err
    stored = open_snapshots(store)
    kept = dict(zip(stored.fire_id.values, stored.quality.values, strict=True))
    assert kept["a"] == "passed"
    assert kept["odd"].count(" | ") == 1
    rows = json.loads(report.read_text())
    assert [(row["fire_id"], row["state"]) for row in rows] == [("a", "read"), ("odd", "read")]
    assert len(rows[1]["quality"]) == 2


# -- bad input: one line names the file, and the others are still read


def overlapping(folder: Path) -> Path:
    write_wrfout(folder / FILE, [0.0, 3600.0, 7200.0])
    write_wrfout(folder / "wrfout_d01_late", [7200.0, 10800.0], smoke=lambda t: 2 * plume(t))
    return folder


def repeating(folder: Path) -> Path:
    changes = iter(range(9))

    def other(fields, seconds):
        fields["T"] = fields["T"] + next(changes)

    write_wrfout(folder / FILE, [0.0, 3600.0, 3600.0], edit=other)
    return folder


def deeper(folder: Path) -> Path:
    run = write_run(folder, HOURS)
    with xr.open_dataset(run / FILE, decode_times=False) as source:
        changed = source.load().assign(LFN=source.LFN.expand_dims(member=2, axis=1))
    changed.to_netcdf(run / FILE, encoding={"Times": {"char_dim_name": "DateStrLen"}})
    return run


BAD = {
    "text": "not a NetCDF file",
    "truncated": "damaged or truncated NetCDF file",
    "classic": "bytes are missing; copy it again",
    "no_smoke": "no variable fire_smoke; found LFN, P, PB",
    "no_air": "no variable PHB, T; found LFN",
    "nan_column": "frame 0: 1 of 192 values of fire_smoke are unwritten, NaN or",
    "no_burn": "no cell burns in 2 frames",
    "empty": "the folder is empty",
    "overlap": "2 h is stored twice, with other fire_smoke",
    "repeat": "1 h is stored twice, with other T",
    "deeper": "LFN has dimensions ('Time', 'member', 'south_north_subgrid'",
}
OF_SEVERAL_FRAMES = {"overlap": overlapping, "repeat": repeating, "deeper": deeper}


def make_bad(tmp_path: Path, name: str) -> Path:
    if name in OF_SEVERAL_FRAMES:
        return OF_SEVERAL_FRAMES[name](tmp_path / name)
    return broken(tmp_path, name)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_run_is_named_in_one_line(run, tmp_path, name):
    bad = make_bad(tmp_path, name)
    result = run("ingest", "wrf", bad, "-o", tmp_path / "e.zarr", *ALONE)
    assert result.code == 2  # nothing could be done
    (line,) = result.err.splitlines()
    assert line.startswith(f"error: {bad}")
    assert BAD[name] in line
    assert not (tmp_path / "e.zarr").exists()


def test_bad_runs_do_not_stop_the_others(run, runs, tmp_path):
    bad = [make_bad(tmp_path, name) for name in BAD]
    twin = write_run(tmp_path / "other" / "a", HOURS)
    store = tmp_path / "ensemble.zarr"
    given = [runs[0], *bad, twin, tmp_path / "nowhere", *runs[1:]]
    result = run("ingest", "wrf", *given, "-o", store, *ALONE)
    assert result.code == 1
    assert f"{len(given)} fires: 3 read, 0 skipped, {len(bad) + 2} failed" in result.out
    errors = [line for line in result.err.splitlines() if line.startswith("error")]
    assert len(errors) == len(bad) + 2
    for path, line in zip([*bad, twin, tmp_path / "nowhere"], errors, strict=True):
        assert str(path) in line
    assert f"fire_id 'a' is also that of {runs[0]}" in result.err
    assert stored_fires(store) == {"a", "b", "c"}


def test_unknown_smoke_units_and_bad_options_are_refused(run, refused, runs, tmp_path):
    odd = write_run(tmp_path / "odd", HOURS, smoke_name="bbc_1")
    store = ("-o", tmp_path / "e.zarr", *ALONE)
    result = run("ingest", "wrf", odd, *store, "--smoke", "bbc_1")
    assert result.code == 2
    assert f"{odd / FILE}: the unit of bbc_1 is unknown; state smoke_unit" in result.err
    assert "--smoke-unit='ppm'" in refused("ingest", "wrf", odd, *store, "--smoke-unit", "ppm")
    assert "--every='often': no interval" in refused(
        "ingest", "wrf", *runs, *store, "--every", "often"
    )
    assert "--floor=-1: must be" in refused("ingest", "wrf", *runs, *store, "--floor", -1)
    assert "workers=0" in refused("ingest", "wrf", *runs, "-o", "e.zarr", "--workers", 0)
    both = ("--drought", "low", "--drought-from", "a.csv")
    assert "either" in refused("ingest", "wrf", *runs, *store, *both)
    assert not (tmp_path / "e.zarr").exists()


# -- real runs


def test_real_runs_go_from_ingest_to_info(run, succeed, tmp_path):
    folder = shared_data("wrf/runs")
    store = tmp_path / "ensemble.zarr"
    out = succeed("ingest", "wrf", *sorted(folder.iterdir()), "-o", store, "--workers", 2)
    assert "7 fires: 7 read" in out
    info = run("info", store, "--check")
    assert info.code == 1  # smoke leaves the domain
    assert "snapshots    73" in info.out
    assert "40 × 32 cells (x by y), 3000 × 3000 m" in info.out
    assert "fire_018: plume at boundary: from 2 h on" in info.out
    assert info.out.splitlines()[-1] == "1 of 7 fires are clean, 6 findings"
