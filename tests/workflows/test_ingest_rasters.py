"""`plumecast ingest rasters`: fires without smoke in a store; bad rasters are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots, read_arrival_times
from plumecast.base.errors import PlumecastError
from plumecast.base.names import TABLE
from plumecast.data import append_fire, stored_fires
from plumecast.sources.rasters import RasterOptions
from support.raster_files import COARSE, LEFT, NX, NY, dataset, fire, write_ascii, write_tiff

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
    assert "5 from 5 ignitions" in info


def test_stored_fires_are_passed_over(succeed, rasters, tmp_path, monkeypatch):
    store = tmp_path / "fires.zarr"
    succeed("ingest", "rasters", *rasters[:2], "-o", store, "--unit", "min")
    for path in rasters[:2]:
        path.write_text("not read again")
    out = succeed("ingest", "rasters", rasters[0].parent, "-o", store, "--unit", "min")
    assert "5 fires: 3 read, 2 skipped, 0 failed" in out
    assert stored_fires(store) == {f"f{number}" for number in range(5)}


def test_another_drought_is_named_and_relabel_applies_it(run, succeed, rasters, tmp_path):
    command = ("ingest", "rasters", *rasters[:2], "-o", tmp_path / "fires.zarr",
               "--format", "farsite", "--crs", "local")  # fmt: skip
    succeed(*command)
    result = run(*command, "--drought", "high")
    assert result.err == (
        "note: f0, f1: already stored with drought 'unknown', not 'high'; the label is kept, "
        "--relabel replaces it\n"
    )
    succeed(*command, "--drought", "high", "--relabel")
    assert set(open_snapshots(tmp_path / "fires.zarr", fields=FIRE).drought.values) == {"high"}


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


def test_other_settings_and_grids_do_not_join_a_store(run, succeed, rasters, like, tmp_path):
    store = tmp_path / "fires.zarr"
    succeed("ingest", "rasters", rasters[0], "-o", store, "--unit", "min", "--like", like)
    result = run("ingest", "rasters", rasters[1], "-o", store, "--unit", "min", "--like", like,
                 "--hours", "2")  # fmt: skip
    assert result.code == 2
    assert f"{store} was read with hours=None, not [2.0]" in result.err
    result = run("ingest", "rasters", rasters[1], "-o", store, "--unit", "min")
    assert result.code == 2
    assert f"on another grid than {store}" in result.err


# -- bad input: one line names the file, and the others are still read


def bad_rasters(folder: Path) -> dict[str, Path]:
    """One file for each fault, and the expected message."""
    folder.mkdir()
    seconds = write_ascii(folder / "seconds.asc", 36_000 * fire())
    outside = write_ascii(folder / "outside.asc", fire(), XLLCORNER=LEFT + 1e5)
    deep = folder / "deep.nc"
    dataset(fire()).expand_dims(time=3).to_netcdf(deep)
    cut = folder / "cut.nc"
    dataset(fire()).to_netcdf(cut)
    cut.write_bytes(cut.read_bytes()[:2000])
    words = folder / "words.asc"
    words.write_text("ncols many")
    placed = write_tiff(folder / "placed.tif", fire(), crs="EPSG:32613")
    bands = write_tiff(folder / "bands.tif", np.stack([fire(), fire()]))
    nothing = write_ascii(folder / "nothing.asc", np.full((NY, NX), np.nan))
    return {
        "h after ignition, beyond this; is the unit right?": seconds,
        "100.0% of the burned area is outside the target grid": outside,
        "arrival has dimensions ('time', 'y', 'x')": deep,
        "damaged or truncated NetCDF file": cut,
        "not a readable ASCII grid": words,
        "has a CRS, the target grid has none": placed,
        "2 bands; give one arrival-time band per file": bands,
        "no burned cell, all values are nodata": nothing,
        "cannot be opened (No such file or directory)": folder / "nowhere.asc",
    }


def test_bad_rasters_do_not_stop_the_others(run, rasters, like, tmp_path):
    bad = bad_rasters(tmp_path / "bad")
    (tmp_path / "twin").mkdir()
    twin = write_ascii(tmp_path / "twin" / "f0.asc", fire())
    store = tmp_path / "fires.zarr"
    result = run(
        *("ingest", "rasters", rasters[0], *bad.values(), twin, rasters[1], "-o", store),
        *("--format", "farsite", "--like", like),
    )
    assert result.code == 1
    errors = result.err.splitlines()
    said = {**bad, "a fire named 'f0' was read before; rename it": twin}
    assert len(errors) == len(said)
    for (message, path), line in zip(said.items(), errors, strict=True):
        assert line.startswith("error: ")
        assert f"{path}: " in line
        assert message in line
    assert stored_fires(store) == {"f0", "f1"}


def test_a_raster_without_unit_is_refused(refused, rasters, tmp_path):
    store = ("-o", tmp_path / "fires.zarr")
    said = refused("ingest", "rasters", *rasters, *store)
    assert said.startswith(f"--unit is missing: {rasters[0]}: the arrival times do not state it")
    assert "--format='spark'" in refused("ingest", "rasters", *rasters, *store, "--format", "spark")
    assert "--unit='weeks'" in refused("ingest", "rasters", *rasters, *store, "--unit", "weeks")
    assert "--hours='six'" in refused(
        "ingest", "rasters", *rasters, *store, "--unit", "min", "--hours", "six"
    )
    assert "batch=0" in refused("ingest", "rasters", *rasters, *store, "--unit", "s", "--batch", 0)
    assert not (tmp_path / "fires.zarr").exists()


def test_rasters_without_crs_are_assumed_to_have_that_of_the_grid(
    run, rasters, trained_place, tmp_path
):
    words = ("--unit", "min", "--like", trained_place)
    result = run("ingest", "rasters", *rasters, "-o", tmp_path / "fires.zarr", *words)
    assert result.code == 0
    assert result.err == (
        f"note: no CRS in {rasters[0]}: assumed that of the target grid, WGS 84 / UTM zone 13N "
        "(EPSG:32613); state the CRS of the files if it is another\n"
    )
    fires = open_snapshots(tmp_path / "fires.zarr", fields=("time_since_ignition",))
    assert fires.crs.attrs["projected_crs_name"] == "WGS 84 / UTM zone 13N"


@pytest.fixture
def trained_place(tmp_path, like) -> Path:
    """The coarse grid with a coordinate system."""
    pyproj = pytest.importorskip("pyproj")
    store = tmp_path / "placed.zarr"
    placed = (
        open_snapshots(like).load().assign_coords(crs=((), 0, pyproj.CRS("EPSG:32613").to_cf()))
    )
    append_fire(store, placed)
    return store
