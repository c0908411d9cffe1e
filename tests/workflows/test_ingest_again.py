"""`plumecast ingest wrf` again: other labels or settings, copies, odd folders, doubtful runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots, read_wrf
from plumecast.base.errors import PlumecastError
from plumecast.data import stored_fires
from plumecast.sources.wrf import WrfOptions
from plumecast.workflows.ingest import ingest_wrf
from support.wrf_files import FILE, Circle, plume, write_run, write_wrfout

HOURS = range(4)
ALONE = ("--workers", 1)


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    return [
        write_run(tmp_path / "runs" / name, HOURS, fire=Circle(speed=speed))
        for name, speed in (("a", 0.15), ("b", 0.2))
    ]


@pytest.fixture
def store(succeed, runs, tmp_path) -> Path:
    """Two fires with the label low."""
    path = tmp_path / "ensemble.zarr"
    succeed("ingest", "wrf", *runs, "-o", path, "--drought", "low", *ALONE)
    return path


def labels_of(store: Path, name: str) -> dict[str, str]:
    stored = open_snapshots(store)
    return dict(zip(stored.fire_id.values.tolist(), stored[name].values.tolist(), strict=True))


# -- other labels and settings


def test_other_labels_and_settings_are_named(run, runs, store):
    before = open_snapshots(store).attrs["data_version"]
    result = run("ingest", "wrf", *runs, "-o", store, "--drought", "high", "--every", "2h", *ALONE)
    assert result.code == 0
    assert result.err.splitlines() == [
        "note: a, b: already stored with drought 'low', not 'high'; the label is kept, --relabel "
        "replaces it",
        "note: a, b: already stored with every=None, not 2h; the fire is kept, --replace reads it "
        "again",
    ]
    assert open_snapshots(store).attrs["data_version"] == before


def test_relabel_changes_labels_in_one_commit(succeed, run, runs, store):
    before = open_snapshots(store).load()
    out = succeed("ingest", "wrf", *runs, "-o", store, "--drought", "high", "--relabel", *ALONE)
    assert "2 fires: 0 read, 0 skipped, 0 failed, 2 relabelled" in out
    after = open_snapshots(store).load()
    assert set(after.drought.values) == {"high"}
    assert after.attrs["data_version"] != before.attrs["data_version"]
    xr.testing.assert_identical(
        *(part.drop_vars("drought").drop_attrs(deep=False) for part in (before, after))
    )
    again = run("ingest", "wrf", *runs, "-o", store, "--drought", "high", "--relabel", *ALONE)
    assert again.err == ""
    assert open_snapshots(store).attrs["data_version"] == after.attrs["data_version"]


def test_relabel_takes_ignitions_from_a_table_and_still_adds_fires(succeed, runs, store, tmp_path):
    third = write_run(tmp_path / "runs" / "c", HOURS, fire=Circle(speed=0.25))
    table = tmp_path / "labels.csv"
    table.write_text("fire_id,drought,ignition_id\na,low,\nb,high,spot\nc,high,spot\n")
    succeed(
        "ingest", "wrf", *runs, third, "-o", store, "--drought-from", table, "--relabel", *ALONE
    )
    assert labels_of(store, "drought") == {"a": "low", "b": "high", "c": "high"}
    assert labels_of(store, "ignition_id") == {"a": "a", "b": "spot", "c": "spot"}


def test_replace_reads_all_fires_again_with_other_settings(succeed, runs, store):
    succeed(
        *("ingest", "wrf", *runs, "-o", store, "--drought", "high", "--every", "2h"),
        *("--replace", *ALONE),
    )
    stored = open_snapshots(store)
    expected = xr.concat(
        [read_wrf(run, WrfOptions(every="2h"), drought="high") for run in runs], "snapshot"
    )
    for name in ("time_since_ignition", "smoke", "hours", "fire_id", "drought"):
        np.testing.assert_array_equal(stored[name], expected[name])
    succeed("ingest", "wrf", *runs, "-o", store, "--every", "2h", *ALONE)


def test_replace_of_some_fires_keeps_the_others(succeed, run, runs, store):
    kept = open_snapshots(store).load()
    write_run(runs[1], HOURS, fire=Circle(speed=0.3))
    succeed("ingest", "wrf", runs[1], "-o", store, "--drought", "low", "--replace", *ALONE)
    stored = open_snapshots(store).load()
    assert set(stored.fire_id.values) == {"a", "b"}
    for name in ("time_since_ignition", "smoke"):
        np.testing.assert_array_equal(
            *(part[name].values[part.fire_id.values == "a"] for part in (kept, stored))
        )
    np.testing.assert_array_equal(
        stored.smoke.values[stored.fire_id.values == "b"], read_wrf(runs[1]).smoke.values
    )
    result = run("ingest", "wrf", runs[1], "-o", store, "--every", "2h", "--replace", *ALONE)
    assert result.code == 2
    assert "also holds a, read with every=None, not 2h; give all its fires" in result.err
    xr.testing.assert_identical(open_snapshots(store).load(), stored)


def test_a_store_does_not_get_the_name_of_a_file(refused, runs, tmp_path):
    said = refused("ingest", "wrf", *runs, "-o", tmp_path / "x.nc", *ALONE)
    assert said.startswith(f"{tmp_path / 'x.nc'}: a store that fires are added to is a folder")
    assert f"name it {tmp_path / 'x.zarr'}" in said
    assert not (tmp_path / "x.nc").exists()


# -- folders


def test_a_flat_folder_has_one_fire_per_file(succeed, tmp_path):
    flat = tmp_path / "flat"
    for number, speed in enumerate((0.15, 0.2), start=1):
        seconds = [3600.0 * hour for hour in HOURS]
        write_wrfout(flat / f"fire_{number:03d}.nc", seconds, fire=Circle(speed=speed))
    for given, name in (([flat], "one.zarr"), (sorted(flat.iterdir()), "two.zarr")):
        succeed("ingest", "wrf", *given, "-o", tmp_path / name, *ALONE)
        assert stored_fires(tmp_path / name) == {"fire_001", "fire_002"}


def restarts(folder: Path) -> Path:
    folder.mkdir()
    (folder / "wrfrst_d01_2020-08-01_12:00:00").write_bytes(b"")
    return folder


def test_missing_empty_and_restart_folders_are_told_apart(run, runs, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    given = [tmp_path / "nowhere", empty, restarts(tmp_path / "restarts"), runs[0].parent]
    result = run("ingest", "wrf", *given, tmp_path / "x*.nc", "-o", tmp_path / "e.zarr", *ALONE)
    assert result.code == 2
    endings = (
        "nowhere: no such folder; check the path",
        "empty: the folder is empty; give the folder with the wrfout files of a fire",
        "restarts: only restart files (wrfrst_d01_2020-08-01_12:00:00 …), which hold the state of "
        "a run and not its output; give the folder with the wrfout files",
        f"runs: no wrfout* files here, but in 2 of its folders; give {runs[0].parent}/*",
        "x*.nc: no file matches this glob",
    )
    for line, said in zip(result.err.splitlines(), endings, strict=True):
        assert line.endswith(said)


def test_a_fire_on_another_grid_is_named_with_both_grids(run, store, tmp_path):
    wide = {"DX": np.float32(2000.0), "DY": np.float32(2000.0)}
    other = write_run(tmp_path / "other", HOURS, attributes=wide)
    result = run("ingest", "wrf", other, "-o", store, "--drought", "low", *ALONE)
    assert (
        f"fire 'other' is on another grid than {store}: 8 × 6 cells of 2000 × 2000 m from "
        "x = 1000, y = 1000, not 8 × 6 cells of 1000 × 1000 m from x = 500, y = 500"
    ) in result.err


# -- copies


def test_copies_of_a_run_are_named_and_grouped(run, runs, tmp_path):
    linked, copied = tmp_path / "runs" / "c", tmp_path / "runs" / "d"
    linked.symlink_to(runs[0], target_is_directory=True)
    copied.mkdir()
    os.link(runs[0] / FILE, copied / FILE)
    store = tmp_path / "e.zarr"
    result = run("ingest", "wrf", *runs, linked, copied, "-o", store, *ALONE)
    assert result.code == 0
    assert "note: c: duplicate run: same hours, burned area and fire as a; keep one" in result.err
    assert labels_of(store, "ignition_id") == {"a": "a", "b": "b", "c": "a", "d": "a"}
    assert labels_of(store, "quality")["b"] == "passed"
    info = run("info", store, "--check")
    assert info.code == 1
    assert "a: duplicate run: same hours, burned area and fire as c, d; keep one" in info.out
    assert info.out.splitlines()[-1] == "1 of 4 fires are clean, 3 findings"


# -- doubtful runs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"smoke": lambda t: 0 * plume(t)}, "no smoke: "),
        ({"smoke": lambda t: -plume(t)}, "negative smoke: values from -0.003 to -0"),
        ({"smoke": lambda t: 1e5 * plume(t)}, "too much smoke: peak "),
        ({"drop": ["TIGN_G"]}, "no TIGN_G: arrival times are estimated from LFN; the ignition is "
         "between 0 h and 1 h, so hours may be off by up to 1 h"),
    ],
)  # fmt: skip
def test_doubtful_runs_are_named(run, runs, tmp_path, change, said):
    odd = write_run(tmp_path / "odd", HOURS, **change)
    store = tmp_path / "e.zarr"
    result = run("ingest", "wrf", runs[0], odd, "-o", store, *ALONE)
    assert f"note: odd: {said}" in result.err
    info = run("info", store, "--check")
    assert info.code == 1
    assert f"odd: {said}" in info.out
    assert "1 of 2 fires are clean" in info.out


def test_what_becomes_of_stored_fires_is_one_of_three(runs, store):
    with pytest.raises(PlumecastError, match="existing='keep': give one of skip, relabel, replace"):
        ingest_wrf(runs, store, existing="keep")
