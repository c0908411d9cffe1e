"""Arrival-time rasters: values, orientation, file formats, many files, and bad input."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.compute.resources import Resources
from plumecast.data.assembly import concat_snapshots
from plumecast.sources.rasters import (
    ArrivalTimes,
    RasterOptions,
    iter_arrival_times,
    read_arrival_times,
)
from support.raster_files import (
    BOTTOM,
    COARSE,
    LEFT,
    NAN,
    NX,
    NY,
    SIZE,
    dataset,
    fire,
    write_ascii,
    write_tiff,
)

# -- values and orientation


def test_final_field_is_the_age_at_the_latest_arrival(tmp_path):
    ds = read_arrival_times(
        write_ascii(tmp_path / "a.asc", fire()), RasterOptions(format="farsite")
    )
    expected = np.nan_to_num(np.maximum(110 - fire()[::-1], 0) / 60)
    np.testing.assert_allclose(ds.time_since_ignition[0], expected, rtol=1e-6)
    assert ds.hours.item() == pytest.approx(110 / 60)
    assert ds.burned_area.item() == pytest.approx(15 * SIZE**2 / M2_PER_ACRE)
    assert ds.fire_id.values.tolist() == ["a"]
    assert ds.is_final.values.tolist() == [True]
    assert ds.time_since_ignition.dtype == np.float32


def test_north_is_up(tmp_path):
    """The first row of the file is the northernmost; y grows with the row of the result."""
    ds = read_arrival_times(
        write_ascii(tmp_path / "a.asc", fire()), RasterOptions(format="farsite")
    )
    field = ds.time_since_ignition[0]
    assert (np.diff(ds.y) > 0).all()
    ignition = field.where(field == field.max(), drop=True)
    assert ignition.x.item() == LEFT + 3.5 * SIZE
    assert ignition.y.item() == BOTTOM + 3.5 * SIZE  # row 8 of 12 from the north
    burned = field > 0
    assert burned.any("x").where(lambda row: row, drop=True).y.max() == BOTTOM + 6.5 * SIZE
    assert burned.any("y").where(lambda column: column, drop=True).x.max() == LEFT + 13.5 * SIZE


def test_series_at_checkpoints(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    ds = read_arrival_times(path, RasterOptions(format="farsite", hours=[0.5, 1, 3]))
    assert ds.hours.values.tolist() == [0.5, 1, 3]
    assert ds.is_final.values.tolist() == [False, False, True]
    cells = [(fire() <= 60 * t).sum() for t in (0.5, 1, 3)]
    np.testing.assert_allclose(ds.burned_area, np.array(cells) * SIZE**2 / M2_PER_ACRE)
    assert (np.diff(ds.time_since_ignition, axis=0) >= 0).all()
    assert float(ds.time_since_ignition[2].max()) == pytest.approx(3.0)


def test_hours_count_from_the_earliest_arrival(tmp_path):
    late = read_arrival_times(
        write_ascii(tmp_path / "a.asc", fire() + 90), RasterOptions(unit="min", hours=[1.0])
    )
    soon = read_arrival_times(
        write_ascii(tmp_path / "b.asc", fire()), RasterOptions(unit="min", hours=[1.0])
    )
    np.testing.assert_allclose(late.time_since_ignition, soon.time_since_ignition, rtol=1e-6)


def test_a_fire_that_burns_longer_than_asked_for_is_named(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    with pytest.warns(UserWarning, match=r"a.asc burns until 1.833 h: .* 1 h, is left out"):
        read_arrival_times(path, RasterOptions(unit="min", hours=[0.5, 1.0]))


def test_the_last_snapshot_holds_when_the_fire_burned(tmp_path):
    """Burned shares of the target cells, the same whatever hours are asked for."""
    path = write_ascii(tmp_path / "a.asc", fire())
    own = read_arrival_times(path, RasterOptions(unit="min"))
    coarse = own.coarsen(x=2, y=2, boundary="trim").mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some, whole = (
            read_arrival_times(
                path, RasterOptions(unit="min", like=coarse, hours=hours, crs="local")
            )
            for hours in ([0.3, 1.0], None)
        )
    np.testing.assert_array_equal(some.history_hours[-1], whole.history_hours[-1])
    np.testing.assert_array_equal(some.history_burned_share[-1], whole.history_burned_share[-1])
    assert np.isnan(some.history_hours[0]).all()
    times = whole.history_hours.values[-1]
    known = np.isfinite(times)
    assert times[known][-1] == pytest.approx(whole.hours.item(), abs=1e-6)
    arrival = own.hours.item() - own.time_since_ignition.values[0]
    burned = own.time_since_ignition.values[0] > 0.0
    for time, shares in zip(times[known], whole.history_burned_share.values[-1], strict=False):
        cells = xr.zeros_like(own.time_since_ignition[0]) + (burned & (arrival <= time + 1e-5))
        expected = cells.coarsen(x=2, y=2, boundary="trim").mean()
        # Arrivals come from ages of single precision: a cell may be on the other side.
        assert np.abs(shares - expected.values).sum() <= 0.5
    assert "history_hours" not in own.variables


@pytest.mark.parametrize(("unit", "factor"), [("s", 60.0), ("min", 1.0), ("h", 1 / 60)])
def test_units(tmp_path, unit, factor):
    path = write_ascii(tmp_path / "a.asc", factor * fire())
    ds = read_arrival_times(path, RasterOptions(unit=unit))
    assert ds.hours.item() == pytest.approx(110 / 60, rel=1e-4)


# -- file formats


def test_all_file_formats_agree(tmp_path):
    ascii_ds = read_arrival_times(
        write_ascii(tmp_path / "f.asc", fire()), RasterOptions(format="farsite")
    )
    centre = tmp_path / "centre"
    centre.mkdir()
    write_ascii(centre / "f.asc", fire(), centre=True, NODATA_VALUE=None)
    dataset(fire()).to_netcdf(tmp_path / "f.nc")
    dataset(fire()).isel(y=slice(None, None, -1)).transpose("x", "y").to_netcdf(centre / "f.nc")
    same = [
        read_arrival_times(centre / "f.asc", RasterOptions(format="farsite")),
        read_arrival_times(tmp_path / "f.nc", RasterOptions(format="pyretechnics")),
        read_arrival_times(centre / "f.nc", RasterOptions(unit="min")),
    ]
    for ds in same:
        xr.testing.assert_allclose(ds, ascii_ds)


def test_geotiff_north_up_and_south_up_agree(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    plain = read_arrival_times(
        write_ascii(tmp_path / "f.asc", fire()), RasterOptions(format="farsite")
    )
    north = read_arrival_times(
        write_tiff(tmp_path / "f.tif", 60 * fire()), RasterOptions(format="elmfire")
    )
    xr.testing.assert_allclose(north, plain)
    south_up = rasterio.Affine(SIZE, 0, LEFT, 0, SIZE, BOTTOM)
    (tmp_path / "s").mkdir()
    south = write_tiff(tmp_path / "s" / "f.tif", 60 * fire()[::-1], transform=south_up)
    xr.testing.assert_allclose(read_arrival_times(south, RasterOptions(format="elmfire")), plain)


def test_landis_day_of_fire_per_event(tmp_path):
    days = np.full((NY, NX), 999.0)
    days[:2] = 0  # inactive
    days[4, 3:8] = [200, 200, 201, 203, 203]
    days[9, 10:13] = [240, 241, 242]
    events = np.zeros((NY, NX))
    events[4, 3:8] = 7
    events[9, 10:13] = 12
    write_tiff(tmp_path / "event-ID-5.tif", events, nodata=None)
    path = write_tiff(tmp_path / "day-of-fire-5.tif", days, nodata=None)
    ds = read_arrival_times(path, RasterOptions(format="landis"))
    assert ds.fire_id.values.tolist() == ["day-of-fire-5-event-7", "day-of-fire-5-event-12"]
    # the last day counts as burned through: four days and three days
    assert ds.hours.values.tolist() == [96.0, 72.0]
    assert ds.time_since_ignition[0].values[NY - 5, 3:8].tolist() == [96, 96, 72, 24, 24]
    assert ds.time_since_ignition[1].values[NY - 10, 10:13].tolist() == [72, 48, 24]
    (tmp_path / "event-ID-5.tif").unlink()
    with pytest.raises(PlumecastError, match="no event-ID map beside it"):
        read_arrival_times(path, RasterOptions(format="landis"))


def test_landis_event_map_must_share_the_grid(tmp_path):
    path = write_tiff(tmp_path / "day-of-fire-5.tif", np.full((NY, NX), 200.0))
    write_tiff(tmp_path / "event-ID-5.tif", np.ones((NY, NX - 1)))
    with pytest.raises(PlumecastError, match="its grid differs"):
        read_arrival_times(path, RasterOptions(format="landis"))


def test_netcdf_variable_is_picked_by_name(tmp_path):
    two = dataset(fire()).assign(speed=lambda ds: ds.arrival * 0)
    two.to_netcdf(tmp_path / "f.nc")
    with pytest.raises(PlumecastError, match=r"variable is missing: .*give one of arrival, speed"):
        read_arrival_times(tmp_path / "f.nc", RasterOptions(unit="min"))
    ds = read_arrival_times(tmp_path / "f.nc", RasterOptions(unit="min", variable="arrival"))
    assert ds.hours.item() == pytest.approx(110 / 60)


def test_a_time_unit_in_the_file_is_not_decoded(tmp_path):
    dataset(fire(), units="minutes").to_netcdf(tmp_path / "f.nc")
    assert read_arrival_times(
        tmp_path / "f.nc", RasterOptions(unit="min")
    ).hours.item() == pytest.approx(110 / 60)


# -- many files


def test_files_stream_in_batches(tmp_path):
    for number in range(7):
        write_ascii(tmp_path / f"f{number}.asc", fire(10 + number))
    (tmp_path / "f3.asc").write_text("ncols 3\nnrows x\n")
    errors: list[str] = []
    batches = list(
        iter_arrival_times(
            str(tmp_path / "*.asc"),
            RasterOptions(format="farsite", like=COARSE),
            batch=3,
            on_error=lambda path, message: errors.append(path.name),
        )
    )
    assert [batch.fire_id.values.tolist() for batch in batches] == [
        ["f0", "f1", "f2"], ["f4", "f5"], ["f6"]
    ]  # fmt: skip
    assert errors == ["f3.asc"]
    one = read_arrival_times(tmp_path / "f5.asc", RasterOptions(format="farsite", like=COARSE))
    xr.testing.assert_equal(batches[1].isel(snapshot=[1]), one)
    with pytest.raises(PlumecastError, match=r"f3\.asc"):
        list(iter_arrival_times(tmp_path, RasterOptions(format="farsite")))


def test_two_fires_with_one_id_are_refused(tmp_path):
    (tmp_path / "b").mkdir()
    paths = [write_ascii(tmp_path / "f.asc", fire()), write_ascii(tmp_path / "b" / "f.asc", fire())]
    with pytest.raises(PlumecastError, match=r"b/f\.asc: a fire named 'f' was read before"):
        read_arrival_times(paths, RasterOptions(format="farsite"))


def test_files_on_different_grids_need_a_template(tmp_path):
    paths = [write_ascii(tmp_path / "a.asc", fire()),
             write_ascii(tmp_path / "b.asc", fire(), XLLCORNER=LEFT + 10)]  # fmt: skip
    with pytest.raises(PlumecastError, match=r"b\.asc: its grid differs from that of a; give like"):
        read_arrival_times(paths, RasterOptions(format="farsite"))
    assert (
        read_arrival_times(paths, RasterOptions(format="farsite", like=COARSE)).sizes["snapshot"]
        == 2
    )


# -- bad input


def test_the_unit_is_never_guessed(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    with pytest.raises(
        PlumecastError,
        match=r"unit is missing: .*a\.asc: .*; give one of s, min, h, d, or a format",
    ):
        read_arrival_times(path)
    with pytest.raises(PlumecastError, match=r"unit='weeks': .*a\.asc: unknown"):
        next(iter_arrival_times(path, RasterOptions(unit="weeks"), on_error=lambda *_: None))
    with pytest.raises(PlumecastError, match="format='spark'"):
        read_arrival_times(path, RasterOptions(format="spark"))
    with pytest.raises(PlumecastError, match="aggregate='sum'"):
        read_arrival_times(path, RasterOptions(unit="min", aggregate="sum"))
    for hours in ([], [2, 1], [0, 1], [[1, 2]]):
        with pytest.raises(PlumecastError, match="give increasing hours above 0"):
            read_arrival_times(path, RasterOptions(unit="min", hours=hours))


def test_a_wrong_unit_exceeds_the_horizon(tmp_path):
    path = write_ascii(tmp_path / "a.asc", 100 * fire())
    with pytest.raises(
        PlumecastError, match=r"horizon=720: .*a\.asc: the latest arrival is 11000 h"
    ):
        read_arrival_times(path, RasterOptions(unit="h"))
    with pytest.raises(PlumecastError, match="horizon=24"):
        read_arrival_times(path, RasterOptions(unit="min", horizon=24))
    assert read_arrival_times(path, RasterOptions(unit="h", horizon=12_000)).hours.item() == 11_000


def test_a_fire_outside_the_domain_is_refused(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    with pytest.raises(PlumecastError, match=r"a\.asc: 100\.0% of the burned area is outside"):
        read_arrival_times(
            path, RasterOptions(format="farsite", like=COARSE.assign_coords(x=COARSE.x + 1e5))
        )
    # a domain that ends one cell short of the eastern tip
    grid = {"x": LEFT + SIZE * (np.arange(-7, 14) + 0.5), "y": COARSE.y}
    with pytest.raises(PlumecastError, match=r"6\.7% of the burned area is outside"):
        read_arrival_times(path, RasterOptions(format="farsite", like=xr.Dataset(coords=grid)))


def test_a_domain_may_be_smaller_than_the_raster_if_it_contains_the_fire(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    inner = COARSE.assign_coords(x=1100.0 + 50 * np.arange(8), y=5100.0 + 30 * np.arange(7))
    ds = read_arrival_times(path, RasterOptions(format="farsite", like=inner))
    assert ds.time_since_ignition.sizes == {"snapshot": 1, "y": 7, "x": 8}


def test_negative_arrival_needs_a_stated_nodata(tmp_path):
    path = write_ascii(tmp_path / "a.asc", np.where(np.isnan(fire()), -1, fire()))
    with pytest.raises(PlumecastError, match=r"nodata is missing: .* -1 is negative; .* give -1"):
        read_arrival_times(path, RasterOptions(unit="min"))
    ds = read_arrival_times(path, RasterOptions(unit="min", nodata=-1))
    assert ds.burned_area.item() == pytest.approx(15 * SIZE**2 / M2_PER_ACRE)


def bad(tmp_path: Path, name: str) -> Path:
    path = tmp_path / (name + (".nc" if name.startswith("nc") else ".asc"))
    if name == "nodata":
        return write_ascii(path, np.full((NY, NX), NAN))
    if name == "short":
        return write_ascii(path, fire()[:-1])
    if name == "word":
        write_ascii(path, fire())
        path.write_text(path.read_text().replace("110", "late"))
    elif name == "no_size":
        write_ascii(path, fire(), CELLSIZE=None)
    elif name == "nc_time":
        dataset(fire()).expand_dims(time=3).to_netcdf(path)
    elif name == "nc_bare":
        dataset(fire()).drop_vars(["x", "y"]).to_netcdf(path)
    elif name == "nc_uneven":
        ds = dataset(fire())
        ds.assign_coords(x=ds.x.values**1.1).to_netcdf(path)
    elif name == "nc_cut":
        dataset(fire()).to_netcdf(path)
        path.write_bytes(path.read_bytes()[:2000])
    elif name == "nc_none":
        xr.Dataset({"a": ("t", [1.0])}).to_netcdf(path)
    return path


MESSAGES = {
    "nodata": "no burned cell, all values are nodata",
    "short": r"220 values, but its header says 12 × 20",
    "word": "not a readable ASCII grid",
    "no_size": "not a readable ASCII grid: .*cellsize",
    "nc_time": r"dimensions \('time', 'y', 'x'\)",
    "nc_bare": "no coordinates along y, x",
    "nc_uneven": "x is not evenly spaced",
    "nc_cut": "damaged or truncated NetCDF",
    "nc_none": "it has no 2-D variable",
    "missing": "cannot be opened",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_bad_rasters_are_one_line_that_names_the_file(tmp_path, name):
    path = bad(tmp_path, name)
    with pytest.raises(PlumecastError, match=MESSAGES[name]) as info:
        read_arrival_times([path], RasterOptions(unit="min"))
    assert str(path) in str(info.value)
    assert "\n" not in str(info.value)


def test_bad_geotiffs_are_named(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    two = write_tiff(tmp_path / "two.tif", np.stack([fire(), fire()]))
    with pytest.raises(PlumecastError, match=r"two\.tif: 2 bands"):
        read_arrival_times(two, RasterOptions(unit="min"))
    tilted = write_tiff(tmp_path / "t.tif", fire(), transform=rasterio.Affine(30, 5, 0, 0, -30, 0))
    with pytest.raises(PlumecastError, match="not georeferenced, or rotated"):
        read_arrival_times(tilted, RasterOptions(unit="min"))
    nothing = tmp_path / "n.tif"
    nothing.write_text("hello")
    with pytest.raises(PlumecastError, match=r"n\.tif: not a readable raster"):
        read_arrival_times(nothing, RasterOptions(unit="min"))
    with pytest.raises(PlumecastError, match="no rasters here"):
        read_arrival_times(tmp_path / "*.bil", RasterOptions(unit="min"))


def test_ascii_grids_need_no_extra_library(tmp_path, monkeypatch):
    (tmp_path / "b.tif").write_bytes(b"II*\0" + bytes(20))

    for library in ("rasterio", "pyproj"):
        monkeypatch.setitem(sys.modules, library, None)
    path = write_ascii(tmp_path / "a.asc", fire())
    assert (
        read_arrival_times(path, RasterOptions(format="farsite", like=COARSE)).sizes["snapshot"]
        == 1
    )
    with pytest.raises(PlumecastError, match=r"needs rasterio; pip install 'plumecast\[raster\]'"):
        read_arrival_times(tmp_path / "b.tif", RasterOptions(unit="s"))
    with pytest.raises(PlumecastError, match=r"needs pyproj; pip install 'plumecast\[raster\]'"):
        read_arrival_times(path, RasterOptions(format="farsite", crs="EPSG:32613"))


# -- one source, and the arguments of earlier versions


def test_a_source_is_iterated_mapped_and_reduced(tmp_path):
    """A file that repeats a fire of an earlier batch is left out of each."""
    files = [write_ascii(tmp_path / f"f{n}.asc", fire(5.0 + n)) for n in range(5)]
    (tmp_path / "twin").mkdir()
    files.insert(3, write_ascii(tmp_path / "twin" / "f0.asc", fire()))
    problems: list[str] = []
    source = ArrivalTimes(
        files,
        RasterOptions(format="farsite", like=COARSE, hours=[1.0, 2.0]),
        batch=2,
        on_error=lambda path, message: problems.append(message),
    )
    reports: list[tuple[int, int, str]] = []
    report = Resources(progress=lambda *said: reports.append(said))
    whole = concat_snapshots(list(source), combine_attrs="override")
    mapped = concat_snapshots(list(source.map(lambda fires: fires)), combine_attrs="override")
    assert whole.fire_id.values.tolist() == [f"f{n}" for n in range(5) for _ in range(2)]
    xr.testing.assert_identical(mapped, whole)
    counts = list(source.reduce(lambda fires: fires.sizes["snapshot"], report))
    assert counts == [4, 2, 4]
    assert reports == [(2, 6, "files"), (4, 6, "files"), (6, 6, "files")]
    assert problems == [f"{files[3]}: a fire named 'f0' was read before; rename it"] * 3


def test_the_arguments_of_earlier_versions_still_work(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    read = read_arrival_times(path, RasterOptions(format="farsite", hours=[1.0]))
    with pytest.warns(DeprecationWarning, match="options=RasterOptions"):
        old = read_arrival_times(path, format="farsite", hours=[1.0])
    xr.testing.assert_identical(old, read)
    heard: list[tuple[int, int]] = []
    with pytest.warns(DeprecationWarning, match="resources=Resources"):
        batches = iter_arrival_times(
            path,
            RasterOptions(format="farsite", hours=[1.0]),
            progress=lambda done, total: heard.append((done, total)),
        )
    xr.testing.assert_identical(next(batches), read)
    assert heard == [(1, 1)]
