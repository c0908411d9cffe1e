"""`plumecast ingest wrf`: whole fires with their weather, resumable; bad runs are named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots, read_wrf
from plumecast.base.errors import PlumecastError
from plumecast.data import stored_fires
from plumecast.data.rewrite import rewrite_fires
from plumecast.data.store import append_fire
from plumecast.sources.wrf import WrfOptions
from plumecast.sources.wrf.fires import read_wrf_profile
from plumecast.weather.snapshots import has_weather, without_weather
from plumecast.workflows.ingest import ingest_wrf, read_labels
from support.places import shared_data
from support.wrf_files import (
    FILE,
    HEIGHTS,
    Circle,
    airy,
    broken,
    plume,
    write_run,
    write_wrfout,
)

HOURS = range(4)
STORED = 1e-5  # relative rounding of float32


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    """Two fires that can be read."""
    return [
        write_run(tmp_path / "runs" / name, HOURS, fire=Circle(speed=speed))
        for name, speed in (("a", 0.15), ("b", 0.2))
    ]


@pytest.fixture
def where(tmp_path) -> Path:
    return tmp_path / "ensemble.zarr"


@pytest.fixture
def ingest(run, where, monkeypatch):
    """Ingest into the store, in this process unless there are more workers."""

    def read_here(*given, **options):
        return ingest_wrf(*given, **options | {"time_limit": None})

    def call(*arguments, code=0, workers=1):
        if workers == 1:
            monkeypatch.setattr("plumecast.cli.commands.ingest.ingest_wrf", read_here)
        result = run("ingest", "wrf", *arguments, "-o", where, "--workers", workers)
        assert result.code == code, result.err
        return result

    return call


@pytest.fixture
def store(ingest, runs, where) -> Path:
    """Two fires with the label low."""
    ingest(*runs, "--drought", "low")
    return where


def labels_of(store: Path, name: str) -> dict[str, str]:
    stored = open_snapshots(store)
    return dict(zip(stored.fire_id.values.tolist(), stored[name].values.tolist(), strict=True))


def assert_read(store: Path, runs: list[Path], options: WrfOptions | None = None) -> None:
    """The store has what the reader reads."""
    stored = open_snapshots(store)
    expected = xr.concat([read_wrf(run, options, drought="high") for run in runs], "snapshot")
    for name in ("time_since_ignition", "smoke", "hours", "burned_area", "fire_id", "drought"):
        np.testing.assert_array_equal(stored[name], expected[name])


@pytest.mark.parametrize("workers", [1, 2])
def test_every_fire_is_appended_as_it_was_read(ingest, runs, where, workers):
    out = ingest(*runs, "--drought", "high", workers=workers).out
    assert "2 fires: 2 read, 0 skipped, 0 failed" in out
    assert f"added 6 snapshots of 2 fires to {where}" in out
    assert_read(where, runs)
    stored = open_snapshots(where)
    assert stored.attrs["smoke_floor"] == 1e-3
    assert set(stored.quality.values) == {"passed"}
    assert "quality" not in stored.attrs


def test_options_reach_the_reader(ingest, where, tmp_path):
    run = write_run(tmp_path / "a", range(7), smoke_name="bbc_1", smoke_units="")
    ingest(
        *(run, "--smoke", "bbc_1", "--smoke-unit", "ug/kg", "--every", "3h", "--domain", "d01"),
        *("--aggregate", "max", "--floor", 1e-9, "--drought", "high"),
    )
    options = {"smoke": "bbc_1", "smoke_unit": "ug/kg", "every": "3h", "aggregate": "max"}
    assert_read(where, [run], WrfOptions(**options, domain=1, floor=1e-9))


def test_a_flat_folder_has_one_fire_per_file(ingest, where, tmp_path):
    flat = tmp_path / "flat"
    for number, speed in enumerate((0.15, 0.2), start=1):
        seconds = [3600.0 * hour for hour in HOURS]
        write_wrfout(flat / f"fire_{number:03d}.nc", seconds, fire=Circle(speed=speed))
    ingest(flat / "fire_001.nc")
    ingest(flat)
    assert stored_fires(where) == {"fire_001", "fire_002"}


def test_a_table_labels_the_fires(ingest, runs, where, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("fire_id,drought,ignition_id\na,low,spot\n")
    result = ingest(*runs, "--drought-from", table, code=1)
    assert f"{runs[1]}: {table} has no line for fire 'b'" in result.err
    assert labels_of(where, "drought") == {"a": "low"}
    assert labels_of(where, "ignition_id") == {"a": "spot"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fire_id,drought\na,low\na,high\n", "line 3, fire 'a': this is the fire's second drought"),
        ("fire,drought,wind_speed\na,low,5\n", "line 2, fire 'a': wind_from_direction is empty"),
    ],
)
def test_labels_that_contradict_or_lack_each_other_are_refused(tmp_path, text, said):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(PlumecastError, match=said):
        read_labels(tmp_path / "labels.csv")


def test_findings_of_the_checks_are_told_and_kept(ingest, runs, where, tmp_path):
    odd = write_run(tmp_path / "odd", [0, 1, 2, 5], smoke=lambda t: plume(3600.0) * (t > 0))
    report = tmp_path / "report.json"
    result = ingest(runs[0], odd, "--json", report)
    assert "2 findings" in result.out
    assert "note: odd: smoke does not follow fire: burned area grows" in result.err
    assert "note: odd: missing frames: 2 at a step of 1 h" in result.err
    quality = labels_of(where, "quality")
    assert quality["a"] == "passed"
    assert quality["odd"].count(" | ") == 1
    rows = json.loads(report.read_text())
    assert [(row["fire_id"], row["state"]) for row in rows] == [("a", "read"), ("odd", "read")]
    assert len(rows[1]["quality"]) == 2


DOUBTFUL = {
    "no smoke: ": {"smoke": lambda t: 0 * plume(t)},
    "negative smoke: values from -0.003 to -0": {"smoke": lambda t: -plume(t)},
    "too much smoke: peak ": {"smoke": lambda t: 1e5 * plume(t)},
    "no TIGN_G: arrival times are estimated from LFN; the ignition is between 0 h and 1 h, so "
    "hours may be off by up to 1 h": {"drop": ["TIGN_G"]},
}


def test_doubtful_runs_are_named_when_they_are_read_and_afterwards(ingest, run, where, tmp_path):
    odd = [
        write_run(tmp_path / f"odd{number}", HOURS, fire=Circle(speed=0.15 + 0.01 * number), **how)
        for number, how in enumerate(DOUBTFUL.values())
    ]
    result = ingest(*odd)
    info = run("info", where, "--check")
    assert info.code == 1
    for number, said in enumerate(DOUBTFUL):
        assert f"note: odd{number}: {said}" in result.err
        assert f"odd{number}: {said}" in info.out
    assert "0 of 4 fires are clean" in info.out


# -- bad input: one line names the file, and the others are still read


def overlapping(folder: Path) -> Path:
    write_wrfout(folder / FILE, [0.0, 3600.0, 7200.0])
    write_wrfout(folder / "wrfout_d01_late", [7200.0, 10800.0], smoke=lambda t: 2 * plume(t))
    return folder


def deeper(folder: Path) -> Path:
    run = write_run(folder, HOURS)
    with xr.open_dataset(run / FILE, decode_times=False) as source:
        changed = source.load().assign(LFN=source.LFN.expand_dims(member=2, axis=1))
    changed.to_netcdf(run / FILE, encoding={"Times": {"char_dim_name": "DateStrLen"}})
    return run


def restarts(folder: Path) -> Path:
    folder.mkdir()
    (folder / "wrfrst_d01_2020-08-01_12:00:00").write_bytes(b"")
    return folder


BAD = {
    "text": "not a NetCDF file",
    "truncated": "damaged or truncated NetCDF file",
    "classic": "bytes are missing; copy it again",
    "no_smoke": "no variable fire_smoke; found LFN, P, PB",
    "nan_column": "frame 0: 1 of 192 values of fire_smoke are unwritten, NaN or",
    "no_burn": "no cell burns in 2 frames",
    "empty": "the folder is empty; give the folder with the wrfout files of a fire",
    "overlap": "2 h is stored twice, with other fire_smoke",
    "deeper": "LFN has dimensions ('Time', 'member', 'south_north_subgrid'",
    "restarts": "only restart files (wrfrst_d01_2020-08-01_12:00:00 …), which hold the state of a "
    "run and not its output; give the folder with the wrfout files",
}
MADE = {"overlap": overlapping, "deeper": deeper, "restarts": restarts}


def test_bad_runs_are_named_in_a_line_each_and_do_not_stop_the_others(
    ingest, runs, where, tmp_path
):
    bad = {
        MADE[name](tmp_path / name) if name in MADE else broken(tmp_path, name): words
        for name, words in BAD.items()
    }
    bad |= {
        write_run(tmp_path / "other" / "a", HOURS): f"fire_id 'a' is also that of {runs[0]}",
        tmp_path / "nowhere": "no such folder; check the path",
        runs[0].parent: f"no wrfout* files here, but in 2 of its folders; give {runs[0].parent}/*",
        tmp_path / "x*.nc": "no file matches this glob",
    }
    result = ingest(runs[0], *bad, runs[1], code=1)
    assert f"{len(bad) + 2} fires: 2 read, 0 skipped, {len(bad)} failed" in result.out
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    for (path, words), line in zip(bad.items(), errors, strict=True):
        assert str(path) in line
        assert words in line
    assert stored_fires(where) == {"a", "b"}


def test_nothing_is_left_where_no_run_can_be_read(ingest, where, tmp_path):
    ingest(broken(tmp_path, "no_air"), code=2)
    assert not where.exists()


REFUSED = {
    "ppm": ("--smoke-unit", "ppm"),
    ": no interval": ("--every", "often"),
    "--floor": ("--floor", -1),
    "workers=0": ("--workers", 0),
    "either": ("--drought", "low", "--drought-from", "a.csv"),
    "no such file; give a table": ("--drought-from", "none.csv"),
}


def test_bad_options_are_refused(refused, runs, where, tmp_path):
    for words, options in REFUSED.items():
        assert words in refused("ingest", "wrf", *runs, "-o", where, *options)
    odd = write_run(tmp_path / "odd", HOURS, smoke_name="bbc_1")
    said = refused("ingest", "wrf", odd, "-o", where, "--workers", 1, "--smoke", "bbc_1")
    assert f"{odd / FILE}: the unit of bbc_1 is unknown; state smoke_unit" in said
    said = refused("ingest", "wrf", *runs, "-o", tmp_path / "x.nc")
    assert said.startswith(f"{tmp_path / 'x.nc'}: a store that fires are added to is a folder")
    assert f"name it {tmp_path / 'x.zarr'}" in said
    with pytest.raises(PlumecastError, match="existing='keep': give one of skip, relabel, replace"):
        ingest_wrf(runs, where, existing="keep")
    assert not where.exists()


# -- a store that has fires already


def test_stored_fires_are_passed_over_and_other_labels_and_settings_named(ingest, runs, store):
    before = open_snapshots(store).attrs["data_version"]
    assert "0 read, 2 skipped" in ingest(*runs, "--drought", "low").out
    result = ingest(*runs, "--drought", "high", "--every", "2h")
    assert result.err.splitlines() == [
        "note: a, b: already stored with drought 'low', not 'high'; the label is kept, --relabel "
        "replaces it",
        "note: a, b: already stored with every=None, not 2h; the fire is kept, --replace reads it "
        "again",
    ]
    assert open_snapshots(store).attrs["data_version"] == before


def test_a_store_is_not_continued_with_other_settings_or_grids(ingest, store, tmp_path):
    other = write_run(tmp_path / "other", HOURS)
    result = ingest(other, "--every", "3h", code=2)
    assert f"{store} was read with every=None, not 3h; repeat those settings" in result.err
    wide = {"DX": np.float32(2000.0), "DY": np.float32(2000.0)}
    write_run(other, HOURS, attributes=wide)
    assert (
        f"fire 'other' is on another grid than {store}: 8 × 6 cells of 2000 × 2000 m from "
        "x = 1000, y = 1000, not 8 × 6 cells of 1000 × 1000 m from x = 500, y = 500"
    ) in ingest(other, "--drought", "low", code=2).err
    assert stored_fires(store) == {"a", "b"}


def test_a_store_of_another_source_is_not_continued(refused, runs, where, snapshots):
    append_fire(where, snapshots)
    said = refused("ingest", "wrf", *runs, "-o", where)
    assert said == f"{where} holds fires from another source; choose another path"


def test_relabel_changes_labels_in_one_commit(ingest, runs, store, tmp_path):
    before = open_snapshots(store).load()
    out = ingest(*runs, "--drought", "high", "--relabel").out
    assert "2 fires: 0 read, 0 skipped, 0 failed, 2 relabelled" in out
    after = open_snapshots(store).load()
    assert set(after.drought.values) == {"high"}
    assert after.attrs["data_version"] != before.attrs["data_version"]
    xr.testing.assert_identical(
        *(part.drop_vars("drought").drop_attrs(deep=False) for part in (before, after))
    )
    assert ingest(*runs, "--drought", "high", "--relabel").err == ""
    assert open_snapshots(store).attrs["data_version"] == after.attrs["data_version"]
    table = tmp_path / "labels.csv"
    table.write_text("fire_id,drought,ignition_id\na,low,a\nb,high,spot\n")
    ingest(*runs, "--drought-from", table, "--relabel")
    assert labels_of(store, "drought") == {"a": "low", "b": "high"}
    assert labels_of(store, "ignition_id") == {"a": "a", "b": "spot"}


def test_replace_reads_all_fires_again_with_other_settings(ingest, runs, store):
    ingest(*runs, "--drought", "high", "--every", "2h", "--replace")
    assert_read(store, runs, WrfOptions(every="2h"))


def test_replace_of_some_fires_keeps_the_others(ingest, runs, store):
    before = open_snapshots(store).load()
    write_run(runs[1], HOURS, fire=Circle(speed=0.3))
    ingest(runs[1], "--drought", "low", "--replace")
    stored = open_snapshots(store).load()
    for name in ("time_since_ignition", "smoke"):
        np.testing.assert_array_equal(
            *(part[name].values[part.fire_id.values == "a"] for part in (before, stored))
        )
    np.testing.assert_array_equal(
        stored.smoke.values[stored.fire_id.values == "b"], read_wrf(runs[1]).smoke.values
    )
    result = ingest(runs[1], "--every", "2h", "--replace", code=2)
    assert "also holds a, read with every=None, not 2h; give all its fires" in result.err
    xr.testing.assert_identical(open_snapshots(store).load(), stored)


def test_copies_of_a_run_are_named_and_grouped(ingest, run, runs, where, tmp_path):
    linked, copied = tmp_path / "runs" / "c", tmp_path / "runs" / "d"
    linked.symlink_to(runs[0], target_is_directory=True)
    copied.mkdir()
    os.link(runs[0] / FILE, copied / FILE)
    result = ingest(*runs, linked, copied)
    assert "note: c: duplicate run: same hours, burned area and fire as a; keep one" in result.err
    assert labels_of(where, "ignition_id") == {"a": "a", "b": "b", "c": "a", "d": "a"}
    assert labels_of(where, "quality")["b"] == "passed"
    info = run("info", where, "--check")
    assert info.code == 1
    assert "a: duplicate run: same hours, burned area and fire as c, d; keep one" in info.out
    assert info.out.splitlines()[-1] == "1 of 4 fires are clean, 3 findings"


# -- the weather of the runs


@pytest.fixture
def airy_runs(tmp_path) -> list[Path]:
    return [write_run(tmp_path / name, HOURS, edit=airy()) for name in "ab"]


def test_the_hourly_weather_of_a_run_is_stored(ingest, where, tmp_path):
    """A run thinned to three hours has the weather of every hour."""
    run = write_run(tmp_path / "a", range(7), edit=airy())
    ingest(run, "--every", "3h")
    stored = open_snapshots(where).load()
    assert stored.sizes["weather_hour"] == 25
    below = stored.height.values < HEIGHTS[-1]
    np.testing.assert_allclose(stored.wind_u.values[..., below], 3.0, rtol=STORED)
    np.testing.assert_allclose(stored.wind_v.values[..., below], 4.0, rtol=STORED)
    np.testing.assert_allclose(stored.boundary_layer_depth, 900.0, rtol=STORED)
    np.testing.assert_allclose(stored.wind_speed, 5.0, rtol=STORED)
    assert float(read_wrf_profile(run).weather_end) == pytest.approx(6.0 - 1 / 6, abs=0.1)


def test_a_run_with_winds_aloft_only_has_its_mean_wind_from_them(tmp_path):
    fire = read_wrf(write_run(tmp_path / "a", range(3), edit=airy(), drop=("U10", "V10")))
    assert (fire.wind_speed > 2.0).all()  # brought down to 10 m by the power law
    assert (fire.wind_speed < 5.0).all()
    np.testing.assert_allclose(fire.wind_from_direction, 180.0 + np.rad2deg(np.arctan2(3, 4)))


def test_frames_that_are_days_apart_are_read_without_weather(tmp_path):
    fire = read_wrf(write_run(tmp_path / "a", (0, 1, 20), edit=airy()))
    assert not has_weather(fire)
    assert "no hourly weather: no wind between" in fire.attrs["quality"]


def test_a_stated_weather_replaces_that_of_the_run(ingest, airy_runs, where, tmp_path):
    table = tmp_path / "w.csv"
    table.write_text("hour,height,speed (m/s),from\n0,10,8,90\n12,10,8,90\n")
    ingest(airy_runs[0], "--weather", table)
    stored = open_snapshots(where)
    np.testing.assert_allclose(stored.wind_u.sel(height=10.0), -8.0, rtol=STORED)
    np.testing.assert_allclose(stored.wind_from_direction, 90.0)
    assert stored.attrs["weather_kind"] == "table"


def test_a_store_without_weather_is_continued_without(ingest, airy_runs, where):
    """And read again as a whole, it has weather."""
    a, b = airy_runs
    ingest(a)
    rewrite_fires(where, without_weather, message="as earlier versions")
    said = " ".join(ingest(a, b).err.split())
    assert said.count("was made without the hourly weather of its fires") == 1
    ingest(a, "--replace")
    assert stored_fires(where) == {"a", "b"}
    assert not has_weather(open_snapshots(where))
    ingest(a, b, "--replace")
    assert has_weather(open_snapshots(where))


def test_runs_without_winds_aloft_are_named(ingest, tmp_path):
    said = ingest(write_run(tmp_path / "a", HOURS, edit=airy(levels=False))).err
    assert "fire 'a' have no U and V: above 10 m" in " ".join(said.split())


def test_runs_without_wind_or_with_another_smoke_scheme_are_refused(ingest, where, tmp_path):
    scheme = {"FIRE_SMK_SCHEME": np.int32(1)}
    ingest(write_run(tmp_path / "a", HOURS, edit=airy(), attributes=scheme))
    assert open_snapshots(where).attrs["fire_smk_scheme"] == 1
    for change, words in (
        ({"edit": airy()}, "fire_smk_scheme 1, but fire 'b' has fire_smk_scheme 0"),
        ({"attributes": scheme}, "that of fire 'b' is unknown"),
    ):
        result = ingest(write_run(tmp_path / "b", HOURS, **change), code=2)
        assert words in " ".join(result.err.split())


def test_the_fuel_map_is_kept_while_all_fires_have_the_same(ingest, where, tmp_path):
    a, b = (write_run(tmp_path / name, HOURS, edit=airy(fuel=1.5)) for name in "ab")
    ingest(a, b)
    stored = open_snapshots(where)
    np.testing.assert_allclose(stored.fuel_load, 1.5)
    assert stored.fuel_load.dims == ("y", "x")
    other = write_run(tmp_path / "c", HOURS, edit=airy(fuel=2.0))
    for arguments in ([other], [a, b, other, "--replace"]):
        ingest(*arguments)
        assert "fuel_load" not in open_snapshots(where)
        assert stored_fires(where) == {"a", "b", "c"}


# -- real runs


def test_real_runs_go_from_ingest_to_info(ingest, run, where):
    out = ingest(*sorted(shared_data("wrf/runs").iterdir()), workers=2).out
    assert "7 fires: 7 read" in out
    info = run("info", where, "--check")
    assert info.code == 1  # smoke leaves the domain
    assert "snapshots    73" in info.out
    assert "40 × 32 cells (x by y), 3000 × 3000 m" in info.out
    assert "fire_018: plume at boundary: from 2 h on" in info.out
    assert info.out.splitlines()[-1] == "1 of 7 fires are clean, 6 findings"
