"""Exported predictions: CF NetCDF, Zarr and GeoTIFF, from stores and directly from rasters."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast import export_snapshots, load_surrogate, open_snapshots, read_arrival_times
from plumecast.base.errors import PlumecastError
from plumecast.base.names import TABLE
from plumecast.cli import main
from plumecast.sources.rasters import RasterOptions
from plumecast.sources.rasters.files import read_raster
from plumecast.sources.wrf.frame import map_plane
from plumecast.surrogate.file import read_header
from plumecast.workflows.export import described, export_fields
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots

WRF = {"MAP_PROJ": 1, "TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0,
       "MOAD_CEN_LAT": 37.5}  # fmt: skip


def georeferenced(snapshots: xr.Dataset) -> xr.Dataset:
    """The same on a WRF domain in Colorado."""
    mapping, (x, y) = map_plane(WRF, 37.0, -107.0)
    lat, lon = np.meshgrid(37 + 0.03 * np.arange(8), -107 + 0.03 * np.arange(10), indexing="ij")
    placed = snapshots.assign_coords(
        x=("x", x + snapshots.x.values, snapshots.x.attrs),
        y=("y", y + snapshots.y.values, snapshots.y.attrs),
        crs=((), 0, mapping),
        lat=(("y", "x"), lat, TABLE["lat"].attrs),
        lon=(("y", "x"), lon, TABLE["lon"].attrs),
    )
    for name in placed.data_vars:
        placed[name].attrs["grid_mapping"] = "crs"
    return placed


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a store and a surrogate, once without and once with a coordinate system."""
    folder = tmp_path_factory.mktemp("place")
    snapshots = make_snapshots(fires=24)
    for name, data in (("plain", snapshots), ("map", georeferenced(snapshots))):
        store = export_snapshots(data, folder / f"{name}.nc")
        model = str(folder / f"{name}.plume")
        with pytest.raises(SystemExit) as stopped:
            main(["train", str(store), "-o", model, "--preset", "paper-linear"])
        assert stopped.value.code == 0
    return folder


@pytest.fixture
def fires(tmp_path, place) -> list[Path]:
    """Rasters in the plain domain: a fire that runs east, and one that runs north."""
    folder = tmp_path / "rasters"
    folder.mkdir()
    arrival = np.full((80, 100), np.nan)
    east, north = arrival.copy(), arrival.copy()
    east[40, 30:80] = np.arange(50) * 10.0
    north[20:60, 50] = np.arange(40)[::-1] * 10.0
    size = {"NCOLS": 100, "NROWS": 80, "CELLSIZE": CELL / 10, "XLLCORNER": -CELL / 2,
            "YLLCORNER": -CELL / 2}  # fmt: skip
    return [
        write_ascii(folder / "east.asc", east, **size),
        write_ascii(folder / "north.asc", north, **size),
    ]


# -- NetCDF and Zarr


@pytest.mark.parametrize("where", ["plain", "map"])
def test_every_variable_is_described(succeed, place, tmp_path, where):
    out = tmp_path / "smoke.nc"
    succeed("predict", place / f"{where}.plume", place / f"{where}.nc", "-o", out, "--footprint")
    with xr.open_dataset(out) as written:
        assert written.attrs["Conventions"] == "CF-1.11"
        assert written.attrs["title"]
        checksum = read_header(place / f"{where}.plume")["checksum"]
        command = ["plumecast", "predict", place / f"{where}.plume", place / f"{where}.nc", "-o"]
        command = shlex.join(map(str, [*command, out, "--footprint"]))
        named = f"plumecast {pc.__version__}, {where}.plume checksum {checksum}"
        assert written.attrs["history"] == f"{command} ({named})"
        for name, item in written.variables.items():
            assert name == "crs" or {"long_name", "standard_name"} & set(item.attrs), name
            assert "_FillValue" not in item.encoding
        assert written.footprint.attrs["flag_meanings"] == "absent present"
        if where == "map":
            assert written.smoke.attrs["grid_mapping"] == "crs"
            assert written.footprint.attrs["grid_mapping"] == "crs"
            assert written.crs.attrs["grid_mapping_name"] == "lambert_conformal_conic"
            assert "crs" not in written.coords


def test_statistics_become_geotiffs_where_the_surrogate_is(succeed, place, tmp_path):
    """One file per statistic, threshold and quantile, north up, with the values of the NetCDF."""
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
    common = ("ensemble", place / "map.plume", place / "map.nc", "--thresholds", "0.5,35")
    common = (*common, "--quantiles", "0.5", "-o")
    succeed(*common, tmp_path / "stats.nc")
    out = succeed(*common, tmp_path / "stats.tif")
    assert f"wrote the statistics to {tmp_path / 'stats_*.tif'}\n" in out
    statistics = xr.load_dataset(tmp_path / "stats.nc")
    assert statistics.exceedance.attrs["grid_mapping"] == "crs"
    assert "crs" not in statistics.coords
    expected = {
        "mean_smoke": statistics.mean_smoke,
        "mean_log_smoke": statistics.mean_log_smoke,
        "mean_log_smoke_error": statistics.mean_log_smoke_error,
        "exceedance_0.5": statistics.exceedance.sel(threshold=0.5),
        "exceedance_35": statistics.exceedance.sel(threshold=35.0),
        "exceedance_error_0.5": statistics.exceedance_error.sel(threshold=0.5),
        "exceedance_error_35": statistics.exceedance_error.sel(threshold=35.0),
        "smoke_quantile_0.5": statistics.smoke_quantile.sel(quantile=0.5),
    }
    for end in ("lower", "upper"):
        expected |= {
            f"mean_smoke_{end}": statistics[f"mean_smoke_{end}"],
            f"mean_log_smoke_{end}": statistics[f"mean_log_smoke_{end}"],
            f"exceedance_{end}_0.5": statistics[f"exceedance_{end}"].sel(threshold=0.5),
            f"exceedance_{end}_35": statistics[f"exceedance_{end}"].sel(threshold=35.0),
        }
    written = {path.name for path in tmp_path.glob("*.tif")}
    assert written == {f"stats_{name}.tif" for name in expected}
    for name, field in expected.items():
        with rasterio.open(tmp_path / f"stats_{name}.tif") as file:
            np.testing.assert_allclose(file.read(1)[::-1], field, rtol=1e-6)  # float32
            assert "lambert" in file.crs.to_wkt().lower()
            assert file.bounds.left == pytest.approx(float(statistics.x[0]) - CELL / 2)
            assert file.bounds.top == pytest.approx(float(statistics.y[-1]) + CELL / 2)
            tags = file.tags()
            if name in ("mean_smoke", "exceedance_35", "smoke_quantile_0.5"):
                assert "time-mean column concentration" in tags["long_name"]
            if name == "mean_log_smoke":  # of the sum
                assert tags["checkpoint_interval_hours"] == "6.0"


@pytest.mark.parametrize("where", ["plain", "map"])
def test_the_compliance_checker_has_no_complaint(succeed, place, tmp_path, where):
    checker = shutil.which("compliance-checker")
    if checker is None:
        pytest.skip("compliance-checker is not on the path (pip install compliance-checker)")
    out = tmp_path / "smoke.nc"
    succeed("predict", place / f"{where}.plume", place / f"{where}.nc", "-o", out, "--footprint")
    done = subprocess.run(
        [checker, "--test=cf:1.11", "--criteria=strict", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "All tests passed!" in done.stdout, done.stdout


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_blocks_give_the_same_file_as_one(tmp_path, ending):
    fields = make_snapshots(fires=6)
    fields["flag"] = (fields.smoke > 1).astype(np.int8)
    parts = [fields.isel(snapshot=slice(start, start + 5)) for start in range(0, 24, 5)]
    whole, pieces = (tmp_path / f"{name}.{ending}" for name in ("whole", "pieces"))
    assert export_fields([fields], whole, title="t").snapshots == 24
    assert export_fields(iter(parts), pieces, title="t").snapshots == 24
    xr.testing.assert_identical(
        *(open_snapshots(path).drop_attrs(deep=False).load() for path in (whole, pieces))
    )


@pytest.mark.parametrize("ending", ["nc", "zarr", "tif"])
def test_a_block_that_fails_leaves_nothing(tmp_path, ending):
    def blocks():
        yield make_snapshots(fires=2)
        raise PlumecastError("oh")

    with pytest.raises(PlumecastError, match="oh"):
        export_fields(blocks(), tmp_path / f"smoke.{ending}", title="t")
    assert list(tmp_path.iterdir()) == []
    nothing = export_fields([], tmp_path / f"smoke.{ending}", title="t")
    assert nothing.snapshots == 0
    assert list(tmp_path.iterdir()) == []


def test_names_of_unknown_variables_become_their_long_names():
    fields = xr.Dataset({"log_smoke": (("snapshot", "y"), np.zeros((1, 2)))})
    assert described(fields, "t").log_smoke.attrs["long_name"] == "log smoke"


def test_the_footprint_comes_from_the_detection_score_where_there_is_one(
    succeed, place, fires, refused, tmp_path
):
    model = tmp_path / "recommended.plume"
    succeed("train", place / "plain.nc", "--preset", "recommended", "-o", model, "--layers", 1)
    surrogate = load_surrogate(model)
    assert surrogate.detects
    out = tmp_path / "smoke.nc"
    succeed("predict", model, place / "plain.nc", "-o", out, "--footprint")
    written = open_snapshots(out, fields=["smoke"])
    score = surrogate.predict_footprint(open_snapshots(place / "plain.nc"))
    alpha = surrogate.training["thresholds"]["decision"]
    np.testing.assert_array_equal(written.footprint, score > alpha)
    # it has weights for each drought, so the drought of rasters must be given
    rasters = ("predict", model, *fires, "--unit", "min", "-o", tmp_path / "r.nc")
    assert "drought 'unknown' was not in training; known are high, low" in refused(*rasters)
    succeed(*rasters, "--drought", "low", "--footprint")


# -- GeoTIFF


def test_each_snapshot_is_a_north_up_cog(succeed, place, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    data = open_snapshots(place / "map.nc").isel(snapshot=[3, 7])
    store = export_snapshots(data, tmp_path / "two.nc")
    out = succeed("predict", place / "map.plume", store, "-o", tmp_path / "s.tif", "--footprint")
    assert f"wrote the smoke to {tmp_path / 's_*.tif'}" in out
    expected = pc.scores.as_quantity(load_surrogate(place / "map.plume").predict(data), "mean")
    names = [f"s_{fire}_024h" for fire in data.fire_id.values]
    assert sorted(path.stem for path in tmp_path.glob("*.tif")) == sorted(
        [*names, *(f"{name}_footprint" for name in names)]
    )
    for number, name in enumerate(names):
        with rasterio.open(tmp_path / f"{name}.tif") as file:
            assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
            assert file.crs.to_dict()["proj"] == "lcc"
            assert file.transform.e == -CELL
            assert file.tags()["units"] == "ug m-3"
            assert "time-mean" in file.tags()["long_name"]
            values = file.read(1)
            # the value at a place is the value there: north up, and not mirrored
            for y, x in ((0, 0), (7, 9), (2, 5)):
                row, column = file.index(float(data.x[x]), float(data.y[y]))
                assert values[row, column] == expected.values[number, y, x]
        with rasterio.open(tmp_path / f"{name}_footprint.tif") as file:
            assert set(np.unique(file.read(1))) <= {0, 1}
            assert file.dtypes == ("int8",)


def test_a_single_snapshot_takes_the_name_and_says_that_no_crs_is_known(run, place, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    one = open_snapshots(place / "plain.nc").isel(snapshot=[5])
    store = export_snapshots(one, tmp_path / "one.nc")
    result = run("predict", place / "plain.plume", store, "-o", tmp_path / "s.tif")
    assert result.code == 0
    assert "no coordinate system" in result.err
    with rasterio.open(tmp_path / "s.tif") as file:
        assert file.crs is None
        assert file.bounds.left == -CELL / 2


def test_hours_in_file_names_sort(succeed, place, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    four = open_snapshots(place / "plain.nc").isel(snapshot=slice(0, 4))
    four = four.assign_coords(hours=("snapshot", [6.0, 12.5, 24.0, 120.0], four.hours.attrs))
    store = export_snapshots(four, tmp_path / "four.nc")
    succeed("predict", place / "plain.plume", store, "-o", tmp_path / "s.tif")
    names = sorted(path.name for path in tmp_path.glob("*.tif"))
    assert names == [f"s_fire-00-low_{hours}h.tif" for hours in ("006", "012.5", "024", "120")]
    with rasterio.open(tmp_path / names[0]) as file:
        assert file.tags()["history"].startswith("plumecast predict ")


def test_file_names_must_differ_and_need_a_grid(tmp_path):
    pytest.importorskip("rasterio")
    data = make_snapshots(fires=2, checkpoints=1)
    data = data.assign_coords(fire_id=("snapshot", ["a b", "a/b"]))
    with pytest.raises(PlumecastError, match=r"two snapshots would be named s_a-b_006h\.tif"):
        export_fields([data[["smoke"]]], tmp_path / "s.tif", title="t")
    with pytest.raises(PlumecastError, match="needs the coordinates x and y"):
        export_fields([data.drop_vars(["x", "y"])], tmp_path / "s.tif", title="t")


# -- directly from rasters


def test_rasters_are_put_on_the_surrogates_grid(succeed, place, fires, tmp_path):
    out = tmp_path / "smoke.nc"
    text = succeed(
        *("predict", place / "plain.plume", *fires, "-o", out, "--format", "farsite"),
        *("--hours", "4,8", "--drought", "low", "--footprint"),
    )
    assert text.startswith("predicted 4 snapshots\nsmoke_mean: time-mean column")
    assert text.endswith(f"wrote the smoke to {out}\n")
    surrogate = load_surrogate(place / "plain.plume")
    read = read_arrival_times(
        fires, RasterOptions(format="farsite", hours=[4, 8], like=surrogate.grid)
    )
    written = open_snapshots(out, fields=["smoke"])
    np.testing.assert_array_equal(written.smoke, surrogate.predict(read))
    assert written.fire_id.values.tolist() == ["east", "east", "north", "north"]
    assert set(written.drought.values) == {"low"}
    assert "footprint" in written


def test_rasters_and_their_store_give_the_same_smoke(succeed, place, fires, tmp_path):
    store, model = tmp_path / "fires.zarr", place / "plain.plume"
    succeed("ingest", "rasters", *fires, "--unit", "min", "--like", model, "-o", store)
    succeed("predict", model, store, "-o", tmp_path / "a.nc")
    succeed("predict", model, *fires, "--unit", "min", "-o", tmp_path / "b.nc")
    one, other = (open_snapshots(tmp_path / f"{n}.nc", fields=["smoke"]).load() for n in "ab")
    np.testing.assert_array_equal(one.smoke, other.smoke)


def test_an_asymmetric_fire_keeps_its_direction(place, fires):
    """On the coarse grid, the fire that runs north lies north of its start."""
    grid = load_surrogate(place / "plain.plume").grid
    read = read_arrival_times(fires, RasterOptions(format="farsite", like=grid)).time_since_ignition
    east, north = read.isel(snapshot=0), read.isel(snapshot=1)
    oldest = north.where(north == north.max(), drop=True)
    youngest = north.where(north > 0, drop=True)
    assert youngest.y.max() > oldest.y.item()
    assert youngest.y.min() == oldest.y.item()
    oldest = east.where(east == east.max(), drop=True)
    assert east.where(east > 0, drop=True).x.min() == oldest.x.item()


def test_bad_rasters_do_not_stop_the_others(run, place, fires, tmp_path):
    away = write_ascii(tmp_path / "away.asc", np.ones((12, 20)), XLLCORNER=9e5)
    words = tmp_path / "words.asc"
    words.write_text("ncols many")
    out = tmp_path / "smoke.nc"
    model = place / "plain.plume"
    result = run("predict", model, fires[0], away, words, fires[1], "--unit", "min", "-o", out)
    assert result.code == 1
    errors = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 2
    assert errors[0].startswith(f"error: {away}: 100.0% of the burned area is outside")
    assert errors[1].startswith(f"error: {words}: not a readable ASCII grid")
    assert open_snapshots(out, fields=["smoke"]).fire_id.values.tolist() == ["east", "north"]


def test_nothing_is_written_when_no_raster_can_be_used(run, place, tmp_path):
    out = tmp_path / "smoke.nc"
    missing = tmp_path / "nowhere.asc"
    result = run("predict", place / "plain.plume", missing, "--unit", "min", "-o", out)
    assert result.code == 2
    assert result.err.startswith(f"error: {missing}: cannot be opened")
    assert result.out == ""
    assert not out.exists()


def test_a_surrogate_of_other_inputs_takes_no_rasters(succeed, refused, place, fires, tmp_path):
    model = tmp_path / "other.plume"
    names = ("--inputs", "time_since_ignition,smoke", "--outputs", "smoke")
    succeed("train", place / "plain.nc", "-o", model, *names, "--degree", 1)
    said = refused("predict", model, *fires, "--unit", "min", "-o", tmp_path / "s.nc")
    assert "rasters give only time_since_ignition" in said


# -- what is written can be opened again


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_predictions_can_be_opened_again(succeed, place, tmp_path, ending):
    out = tmp_path / f"smoke{ending}"
    succeed("predict", place / "map.plume", place / "map.nc", "-o", out)
    again = open_snapshots(out, fields=("smoke",))
    assert again.sizes == open_snapshots(place / "map.nc").sizes


def test_geotiffs_can_be_read_again(succeed, place, tmp_path):
    pytest.importorskip("rasterio")
    succeed("predict", place / "map.plume", place / "map.nc", "-o", tmp_path / "s.tif")
    succeed("predict", place / "map.plume", place / "map.nc", "-o", tmp_path / "s.nc")
    smoke = xr.open_dataset(tmp_path / "s.nc", decode_timedelta=False)
    names = sorted(tmp_path.glob("s_*.tif"))
    assert len(names) == smoke.sizes["snapshot"]
    raster = read_raster(names[0])
    np.testing.assert_allclose(raster.grid.x, smoke.x)
    np.testing.assert_allclose(raster.grid.y, smoke.y)


@pytest.mark.parametrize("name", ["x", "hours", "burned_area"])
def test_exported_coordinates_have_units(tmp_path, name):
    bare = make_snapshots(fires=2, checkpoints=1)
    bare[name].attrs = {}
    again = open_snapshots(export_snapshots(bare, tmp_path / "a.nc"))
    assert again[name].attrs["units"] == make_snapshots(fires=1)[name].attrs["units"]
    assert bare[name].attrs == {}


def test_geotiffs_that_exist_are_found_before_the_work(
    refused, succeed, place, fires, tmp_path, monkeypatch
):
    pytest.importorskip("rasterio")
    words = ("--unit", "min", "--hours", "1,2", "-o", tmp_path / "s.tif")
    succeed("predict", place / "plain.plume", *fires, *words)
    (tmp_path / "s_east_001h.tif").unlink()
    monkeypatch.setattr("plumecast.cli.fire_options.raster_fires", None)
    assert "s_east_002h.tif exists" in refused("predict", place / "plain.plume", *fires, *words)
    monkeypatch.setattr("plumecast.cli.commands.predict.predict_store", None)
    first = open_snapshots(place / "plain.nc").isel(snapshot=1)
    taken = tmp_path / f"s_{first.fire_id.item()}_{int(first.hours):03d}h.tif"
    taken.touch()
    store = ("predict", place / "plain.plume", place / "plain.nc", "-o", tmp_path / "s.tif")
    assert f"{taken.name} exists" in refused(*store)


def test_a_geotiff_of_unknown_hours_is_found_when_it_is_made(tmp_path):
    pytest.importorskip("rasterio")
    data = make_snapshots(fires=3, checkpoints=1)[["smoke"]]
    taken = f"s_{data.fire_id.values[0]}_006h.tif"
    (tmp_path / taken).touch()
    made = []

    def blocks():
        for row in range(3):
            made.append(row)
            yield data.isel(snapshot=[row])

    with pytest.raises(PlumecastError, match=f"{taken} exists"):
        export_fields(blocks(), tmp_path / "s.tif", title="t")
    assert made == [0, 1]


@pytest.mark.parametrize("command", ["predict", "ensemble", "ingest rasters"])
def test_impossible_headers_do_not_stop_the_other_files(run, place, fires, tmp_path, command):
    model, out = place / "plain.plume", tmp_path / ("a.zarr" if " " in command else "a.nc")
    bad = {
        "huge": write_ascii(tmp_path / "huge.asc", np.ones((12, 20)), CELLSIZE=3e7),
        "negative": write_ascii(tmp_path / "negative.asc", np.ones((12, 20)), NCOLS=-20, NROWS=-12),
    }
    model = ("--like", model) if " " in command else (model,)
    result = run(*command.split(), *model, *bad.values(), *fires, "--unit", "min", "-o", out)
    assert result.code == 1
    assert result.err.count("error:") == 2
    assert "huge.asc: cell size 3e+07" in result.err
    assert "nrows is -12" in result.err
    assert out.exists()
