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
from plumecast.compute.dose import largest_so_far
from plumecast.sources.rasters import RasterOptions
from plumecast.surrogate.file import read_header
from plumecast.workflows.export import export_fields
from support.projected import on_earth
from support.quantities import settled
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a store and a surrogate, once without and once with a coordinate system."""
    folder = tmp_path_factory.mktemp("place")
    for name, data in (("plain", make_snapshots(fires=24)), ("map", on_earth(fires=24))):
        pc.train_surrogate(data, "paper-linear").save(folder / f"{name}.plume")
        export_snapshots(data, folder / f"{name}.nc")
    return folder


@pytest.fixture
def fires(tmp_path) -> list[Path]:
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
def test_every_variable_is_described_and_can_be_read_again(succeed, place, tmp_path, where):
    out = tmp_path / "smoke.nc"
    words = ["predict", place / f"{where}.plume", place / f"{where}.nc", "-o", out, "--footprint"]
    succeed(*words)
    with xr.open_dataset(out) as written:
        assert written.attrs["Conventions"] == "CF-1.11"
        assert written.attrs["title"]
        checksum = read_header(place / f"{where}.plume")["checksum"]
        command = shlex.join(["plumecast", *map(str, words)])
        named = f"plumecast {pc.__version__}, {where}.plume checksum {checksum}"
        assert written.attrs["history"] == f"{command} ({named})"
        for name, item in written.variables.items():
            assert name == "crs" or {"long_name", "standard_name"} & set(item.attrs), name
            assert "_FillValue" not in item.encoding
        assert written.footprint.attrs["flag_meanings"] == "absent present"
        if where == "map":
            assert written.smoke.attrs["grid_mapping"] == "crs"
            assert written.footprint.attrs["grid_mapping"] == "crs"
            assert written.crs.attrs["grid_mapping_name"] == "albers_conical_equal_area"
            assert "crs" not in written.coords
    again = open_snapshots(out, fields=("smoke",))
    assert again.sizes == open_snapshots(place / f"{where}.nc").sizes
    if checker := shutil.which("compliance-checker"):
        command = [checker, "--test=cf:1.11", "--criteria=strict", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
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
    nothing = export_fields([], tmp_path / f"smoke.{ending}", title="t")
    assert nothing.snapshots == 0
    assert list(tmp_path.iterdir()) == []


def test_exported_coordinates_have_units(tmp_path):
    names, full = ("x", "hours", "burned_area"), make_snapshots(fires=2, checkpoints=1)
    bare = full.copy(deep=True)
    for name in names:
        bare[name].attrs = {}
    again = open_snapshots(export_snapshots(bare, tmp_path / "a.nc"))
    for name in names:
        assert again[name].attrs["units"] == full[name].attrs["units"]
        assert bare[name].attrs == {}


def test_the_footprint_comes_from_the_detection_score_where_there_is_one(place, succeed, tmp_path):
    model, out = tmp_path / "recommended.plume", tmp_path / "smoke.nc"
    surrogate = pc.train_surrogate(place / "plain.nc", "recommended", layers=1)
    surrogate.save(model)
    assert surrogate.detects
    succeed("predict", model, place / "plain.nc", "-o", out, "--footprint")
    written = open_snapshots(out, fields=["smoke"])
    fires = open_snapshots(place / "plain.nc")
    score = surrogate.predict_footprint(fires)
    alpha = surrogate.training["thresholds"]["decision"]
    before = largest_so_far(score.values, fires.fire_id.values.astype(str), fires.hours.values)
    np.testing.assert_array_equal(written.footprint, before > alpha)


# -- GeoTIFF


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
    expected = {"smoke_quantile_0.5": statistics.smoke_quantile.sel(quantile=0.5)}
    for name in ("mean_smoke", "mean_log_smoke"):
        expected |= {name + end: statistics[name + end] for end in ("", "_lower", "_upper")}
    expected["mean_log_smoke_error"] = statistics.mean_log_smoke_error
    for end in ("", "_error", "_lower", "_upper"):
        share = statistics[f"exceedance{end}"]
        expected |= {f"exceedance{end}_{t:g}": share.sel(threshold=t) for t in (0.5, 35.0)}
    written = {path.name for path in tmp_path.glob("*.tif")}
    assert written == {f"stats_{name}.tif" for name in expected}
    for name, field in expected.items():
        with rasterio.open(tmp_path / f"stats_{name}.tif") as file:
            np.testing.assert_allclose(file.read(1)[::-1], field, rtol=1e-6)  # float32
            assert file.crs.to_epsg() == 5070
            assert file.bounds.left == pytest.approx(float(statistics.x[0]) - CELL / 2)
            assert file.bounds.top == pytest.approx(float(statistics.y[-1]) + CELL / 2)
            tags = file.tags()
            if name in ("mean_smoke", "exceedance_35", "smoke_quantile_0.5"):
                assert "time-mean column concentration" in tags["long_name"]
            if name == "mean_log_smoke":  # of the sum
                assert tags["checkpoint_interval_hours"] == "6.0"


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
            assert file.crs.to_epsg() == 5070
            assert file.transform.e == -CELL
            assert file.tags()["units"] == "ug m-3"
            assert "time-mean" in file.tags()["long_name"]
            assert file.tags()["history"].startswith("plumecast predict ")
            values = file.read(1)
            # the value at a place is the value there: north up, and not mirrored
            for y, x in ((0, 0), (7, 9), (2, 5)):
                row, column = file.index(float(data.x[x]), float(data.y[y]))
                assert values[row, column] == expected.values[number, y, x]
        with rasterio.open(tmp_path / f"{name}_footprint.tif") as file:
            assert set(np.unique(file.read(1))) <= {0, 1}
            assert file.dtypes == ("int8",)


@pytest.mark.parametrize("command", ["predict", "ensemble"])
@pytest.mark.parametrize("limit", [100, 600])
def test_a_geotiff_that_does_not_fit_is_one_error(refused, place, tmp_path, command, limit):
    """GDAL reports some of these failures as a traceback, and others not at all."""
    resource = pytest.importorskip("resource")  # POSIX
    out = tmp_path / "smoke.tif"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))  # bytes that fit into a file
    try:
        message = refused(command, place / "map.plume", place / "map.nc", "-o", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert message == f"{out}: file too large; free space or choose another output path"
    assert list(tmp_path.iterdir()) == []


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


def test_names_of_files_sort_by_hours_differ_and_need_a_grid(tmp_path):
    pytest.importorskip("rasterio")
    data = make_snapshots(fires=1)[["smoke"]]
    data = data.assign_coords(hours=("snapshot", [6.0, 12.5, 24.0, 120.0], data.hours.attrs))
    export_fields([data], tmp_path / "s.tif", title="t")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"s_fire-00-low_{hours}h.tif" for hours in ("006", "012.5", "024", "120")]
    data = data.isel(snapshot=[0, 0]).assign_coords(fire_id=("snapshot", ["a b", "a/b"]))
    with pytest.raises(PlumecastError, match=r"two snapshots would be named s_a-b_006h\.tif"):
        export_fields([data], tmp_path / "s.tif", title="t")
    with pytest.raises(PlumecastError, match="needs the coordinates x and y"):
        export_fields([data.drop_vars(["x", "y"])], tmp_path / "s.tif", title="t")


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
    options = RasterOptions(format="farsite", hours=[4, 8], like=surrogate.grid)
    written = open_snapshots(out, fields=["smoke"])
    np.testing.assert_array_equal(
        written.smoke, settled(surrogate, read_arrival_times(fires, options))
    )
    assert written.fire_id.values.tolist() == ["east", "east", "north", "north"]
    assert set(written.drought.values) == {"low"}
    assert "footprint" in written


def test_bad_rasters_do_not_stop_the_others(run, place, fires, tmp_path):
    away = write_ascii(tmp_path / "away.asc", np.arange(240.0).reshape(12, 20), XLLCORNER=9e5)
    words = tmp_path / "words.asc"
    words.write_text("ncols many")
    predict = ("predict", place / "plain.plume", "--unit", "min", "-o", tmp_path / "smoke.nc")
    result = run(*predict, words)
    assert (result.code, result.out) == (2, "")
    assert list(tmp_path.glob("*.nc")) == []
    result = run(*predict, fires[0], away, words, fires[1])
    assert result.code == 1
    errors = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 2
    assert errors[0].startswith(f"error: {away}: 100.0% of the burned area is outside")
    assert errors[1].startswith(f"error: {words}: not a readable ASCII grid")
    written = open_snapshots(tmp_path / "smoke.nc", fields=["smoke"])
    assert written.fire_id.values.tolist() == ["east", "north"]


def test_a_surrogate_of_other_inputs_takes_no_rasters(refused, place, fires, tmp_path):
    data = open_snapshots(place / "plain.nc")
    surrogate = pc.fit_surrogate(data, inputs=["time_since_ignition", "smoke"], degree=1)
    surrogate.save(tmp_path / "other.plume")
    words = (tmp_path / "other.plume", *fires, "--unit", "min", "-o", tmp_path / "s.nc")
    assert "rasters give only time_since_ignition" in refused("predict", *words)
