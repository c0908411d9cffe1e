"""`plumecast ingest rasters`: fires without smoke in a store; bad rasters are named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots, read_arrival_times
from plumecast.base.errors import PlumecastError
from plumecast.base.names import TABLE
from plumecast.data import append_fire, stored_fires
from plumecast.sources.rasters import RasterOptions
from support.raster_files import COARSE, LEFT, NX, NY, fire, write_ascii, write_tiff

FIRE = ("time_since_ignition",)


@pytest.fixture
def rasters(tmp_path) -> list[Path]:
    folder = tmp_path / "fires"
    folder.mkdir()
    return [write_ascii(folder / f"f{number}.asc", fire(10 + number)) for number in range(5)]


@pytest.fixture
def like(tmp_path) -> Path:
    """A store on the coarse grid."""
    fields = {
        name: (TABLE[name].dims, np.zeros((1, 7, 8), np.float32), TABLE[name].attrs)
        for name in ("time_since_ignition", "smoke")
    }
    columns = {"fire_id": "x", "ignition_id": "x", "drought": "low", "hours": 1.0,
               "burned_area": 0.0, "is_final": True}  # fmt: skip
    coords = {name: ("snapshot", [value], TABLE[name].attrs) for name, value in columns.items()}
    grid = {name: (name, COARSE[name].values, TABLE[name].attrs) for name in ("x", "y")}
    append_fire(tmp_path / "like.zarr", xr.Dataset(fields, {**coords, **grid}))
    return tmp_path / "like.zarr"


def test_fires_are_stored_without_smoke(succeed, rasters, like, tmp_path):
    store = tmp_path / "fires.zarr"
    out = succeed(
        *("ingest", "rasters", *rasters, "-o", store, "--format", "farsite", "--like", like),
        *("--hours", "1,3", "--drought", "high", "--batch", 2),
    )
    assert "5 fires: 5 read, 0 skipped, 0 failed" in out
    stored = open_snapshots(store, fields=FIRE)
    expected = read_arrival_times(
        rasters, RasterOptions(format="farsite", like=COARSE, hours=[1, 3], drought="high")
    )
    for name in ("time_since_ignition", "hours", "burned_area", "fire_id", "ignition_id"):
        np.testing.assert_array_equal(stored[name], expected[name])
    assert set(stored.drought.values) == {"high"}
    with pytest.raises(PlumecastError, match="variable 'smoke' is missing"):
        open_snapshots(store)
    info = succeed("info", store, "--check")
    assert "the store has no smoke" in info
    assert "5 from 1 ignition" in info, "they begin in one cell"


def test_stored_fires_are_passed_over_and_may_be_relabelled(run, succeed, rasters, tmp_path):
    store = ("-o", tmp_path / "fires.zarr", "--format", "farsite", "--crs", "local")
    tables = []
    for state in ("read", "skipped"):  # a resumed run tells the same numbers of every fire
        succeed("ingest", "rasters", *rasters[:2], *store, "--json", tmp_path / "fires.json")
        tables.append(json.loads((tmp_path / "fires.json").read_text()))
        assert {item["state"] for item in tables[-1]} == {state}
    numbers = [
        [[item[name] for name in ("fire_id", "snapshots", "hours", "acres")] for item in table]
        for table in tables
    ]
    assert numbers[0] == numbers[1]
    assert numbers[0][0][3] > 0.0
    result = run("ingest", "rasters", *rasters[:2], *store, "--drought", "high")
    assert result.err == (
        "note: f0, f1: already stored with drought 'unknown', not 'high'; the label is kept, "
        "--relabel replaces it\n"
    )
    for path in rasters[:2]:
        path.write_text("not read again")
    out = succeed("ingest", "rasters", rasters[0].parent, *store, "--drought", "high", "--relabel")
    assert "5 fires: 3 read, 0 skipped, 0 failed, 2 relabelled" in out
    stored = open_snapshots(tmp_path / "fires.zarr", fields=FIRE)
    assert set(stored.drought.values) == {"high"}
    assert set(stored.fire_id.values) == {f"f{number}" for number in range(5)}


def test_events_already_there_are_passed_over(succeed, tmp_path):
    days = np.full((NY, NX), 999.0)
    events = np.zeros((NY, NX))
    for row, event in ((4, 7), (9, 12)):
        days[row, 3:6], events[row, 3:6] = [200, 201, 202], event
    folder = tmp_path / "landis"
    folder.mkdir()
    write_tiff(folder / "event-ID-5.tif", events, nodata=None)
    write_tiff(folder / "day-of-fire-5.tif", days, nodata=None)
    store = tmp_path / "fires.zarr"
    for _ in range(2):
        succeed("ingest", "rasters", folder, "-o", store, "--format", "landis")
    assert stored_fires(store) == {"day-of-fire-5-event-7", "day-of-fire-5-event-12"}


def test_other_settings_and_grids_do_not_join_a_store(refused, succeed, rasters, like, tmp_path):
    words = ("-o", tmp_path / "fires.zarr", "--unit", "min")
    succeed("ingest", "rasters", rasters[0], *words, "--like", like)
    said = refused("ingest", "rasters", rasters[1], *words, "--like", like, "--hours", "3")
    assert f"{words[1]} was read with hours=None, not [3.0]" in said
    said = refused("ingest", "rasters", rasters[1], *words)
    assert f"on another grid than {words[1]}" in said


# -- bad input: one line names the file, and the others are still read


def test_bad_rasters_do_not_stop_the_others(run, rasters, like, tmp_path):
    for folder in ("bad", "twin"):
        (tmp_path / folder).mkdir()
    seconds = write_ascii(tmp_path / "bad" / "seconds.asc", 36_000 * fire())
    outside = write_ascii(tmp_path / "bad" / "outside.asc", fire(), XLLCORNER=LEFT + 1e5)
    huge = write_ascii(tmp_path / "bad" / "huge.asc", fire(), CELLSIZE=3e7)
    placed = write_tiff(tmp_path / "bad" / "placed.tif", fire(), crs="EPSG:32613")
    twin = write_ascii(tmp_path / "twin" / "f0.asc", fire())
    bad = {
        seconds: "h after ignition, beyond this; is the unit right?",
        outside: "100.0% of the burned area is outside the target grid",
        huge: "cell size 3e+07",
        placed: "has a CRS, the target grid has none",
        tmp_path / "nowhere.asc": "cannot be opened (No such file or directory)",
        twin: "a fire named 'f0' was read before; rename it",
    }
    store = tmp_path / "fires.zarr"
    result = run(
        *("ingest", "rasters", rasters[0], *bad, rasters[1], "-o", store),
        *("--format", "farsite", "--like", like),
    )
    assert result.code == 1
    for (path, words), line in zip(bad.items(), result.err.splitlines(), strict=True):
        assert line.startswith("error: ")
        assert f"{path}: " in line
        assert words in line
    assert stored_fires(store) == {"f0", "f1"}


REFUSED = {
    "--unit is missing: {first}: the arrival times do not state it": (),
    "spark": ("--format", "spark"),
    "weeks": ("--unit", "weeks"),
    "'six'": ("--unit", "min", "--hours", "six"),
    "batch=0": ("--unit", "s", "--batch", 0),
}


def test_wrong_options_are_refused(refused, rasters, tmp_path):
    store = tmp_path / "fires.zarr"
    for words, options in REFUSED.items():
        said = refused("ingest", "rasters", *rasters, "-o", store, *options)
        assert words.format(first=rasters[0]) in said
    assert not store.exists()


def test_rasters_without_crs_are_assumed_to_have_that_of_the_grid(run, rasters, like, tmp_path):
    pyproj = pytest.importorskip("pyproj")
    placed = open_snapshots(like).load()
    placed = placed.assign_coords(crs=((), 0, pyproj.CRS("EPSG:32613").to_cf()))
    append_fire(tmp_path / "placed.zarr", placed)
    words = ("--unit", "min", "--like", tmp_path / "placed.zarr")
    result = run("ingest", "rasters", *rasters, "-o", tmp_path / "fires.zarr", *words)
    assert result.code == 0
    assert result.err == (
        f"note: no CRS in {rasters[0]}: assumed that of the target grid, WGS 84 / UTM zone 13N "
        "(EPSG:32613); state the CRS of the files if it is another\n"
    )
    fires = open_snapshots(tmp_path / "fires.zarr", fields=FIRE)
    assert fires.crs.attrs["projected_crs_name"] == "WGS 84 / UTM zone 13N"
