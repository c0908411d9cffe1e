"""Arrival-time rasters: values, orientation, file formats and many files."""

from __future__ import annotations

import sys
import warnings

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
    NX,
    NY,
    SIZE,
    dataset,
    fire,
    read,
    write_ascii,
    write_tiff,
)

# -- values and orientation


def test_the_field_is_the_age_at_the_latest_arrival_and_north_is_up(tmp_path):
    """The first row of the file is the northernmost; y grows with the row of the result."""
    ds = read(write_ascii(tmp_path / "a.asc", fire()), format="farsite")
    field = ds.time_since_ignition[0]
    np.testing.assert_allclose(
        field, np.nan_to_num(np.maximum(110 - fire()[::-1], 0) / 60), rtol=1e-6
    )
    assert field.dtype == np.float32
    assert ds.hours.item() == pytest.approx(110 / 60)
    assert ds.burned_area.item() == pytest.approx(15 * SIZE**2 / M2_PER_ACRE)
    assert ds.fire_id.values.tolist() == ["a"]
    assert (np.diff(ds.y) > 0).all()
    ignition = field.where(field == field.max(), drop=True)
    assert (ignition.x.item(), ignition.y.item()) == (LEFT + 3.5 * SIZE, BOTTOM + 3.5 * SIZE)
    burned = field.where(field > 0, drop=True)
    assert (burned.x.max(), burned.y.max()) == (LEFT + 13.5 * SIZE, BOTTOM + 6.5 * SIZE)


def test_series_at_checkpoints(tmp_path):
    ds = read(write_ascii(tmp_path / "a.asc", fire()), hours=[0.5, 1, 3])
    assert ds.hours.values.tolist() == [0.5, 1, 3]
    cells = [(fire() <= 60 * t).sum() for t in (0.5, 1, 3)]
    np.testing.assert_allclose(ds.burned_area, np.array(cells) * SIZE**2 / M2_PER_ACRE)
    assert (np.diff(ds.time_since_ignition, axis=0) >= 0).all()
    assert float(ds.time_since_ignition[2].max()) == pytest.approx(3.0)


def test_hours_count_from_the_earliest_arrival(tmp_path):
    late = read(write_ascii(tmp_path / "a.asc", fire() + 90), hours=[2.0])
    soon = read(write_ascii(tmp_path / "b.asc", fire()), hours=[2.0])
    np.testing.assert_allclose(late.time_since_ignition, soon.time_since_ignition, rtol=1e-6)


def test_a_fire_that_burns_longer_than_asked_for_is_named(tmp_path):
    with pytest.warns(UserWarning, match=r"a.asc burns until 1.833 h: .* 1 h, is left out"):
        read(write_ascii(tmp_path / "a.asc", fire()), hours=[0.5, 1.0])


def test_the_last_snapshot_holds_when_the_fire_burned(tmp_path):
    """Burned shares of the target cells, the same whatever hours are asked for."""
    path = write_ascii(tmp_path / "a.asc", fire())
    fine = read(path)
    coarse = fine.coarsen(x=2, y=2, boundary="trim").mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some, whole = (
            read(path, like=coarse, hours=hours, crs="local") for hours in ([0.3, 1.0], None)
        )
    np.testing.assert_array_equal(some.history_hours[-1], whole.history_hours[-1])
    np.testing.assert_array_equal(some.history_burned_share[-1], whole.history_burned_share[-1])
    assert np.isnan(some.history_hours[0]).all()
    times = whole.history_hours.values[-1]
    times = times[np.isfinite(times)]
    assert times[-1] == pytest.approx(whole.hours.item(), abs=1e-6)
    arrival = fine.hours.item() - fine.time_since_ignition.values[0]
    burned = fine.time_since_ignition.values[0] > 0.0
    for time, shares in zip(times, whole.history_burned_share.values[-1], strict=False):
        cells = xr.zeros_like(fine.time_since_ignition[0]) + (burned & (arrival <= time + 1e-5))
        expected = cells.coarsen(x=2, y=2, boundary="trim").mean()
        # Arrivals come from ages of single precision: a cell may be on the other side.
        assert np.abs(shares - expected.values).sum() <= 0.5
    assert "history_hours" not in fine.variables


@pytest.mark.parametrize(("unit", "factor"), [("s", 60.0), ("min", 1.0), ("h", 1 / 60)])
def test_units(tmp_path, unit, factor):
    ds = read(write_ascii(tmp_path / "a.asc", factor * fire()), unit=unit)
    assert ds.hours.item() == pytest.approx(110 / 60, rel=1e-4)


def test_a_far_horizon_and_a_stated_nodata_are_believed(tmp_path):
    long = write_ascii(tmp_path / "a.asc", 100 * fire())
    assert read(long, unit="h", horizon=12_000).hours.item() == 11_000
    minus = write_ascii(tmp_path / "b.asc", np.where(np.isnan(fire()), -1, fire()))
    assert read(minus, nodata=-1).burned_area.item() == pytest.approx(15 * SIZE**2 / M2_PER_ACRE)


# -- file formats


def test_all_file_formats_agree(tmp_path):
    plain = read(write_ascii(tmp_path / "f.asc", fire()), format="farsite")
    other = tmp_path / "other"
    other.mkdir()
    write_ascii(other / "f.asc", fire(), centre=True, NODATA_VALUE=None)
    dataset(fire(), units="minutes").to_netcdf(tmp_path / "f.nc")  # the unit is not decoded
    dataset(fire()).isel(y=slice(None, None, -1)).transpose("x", "y").to_netcdf(other / "f.nc")
    for ds in (
        read(other / "f.asc", format="farsite"),
        read(tmp_path / "f.nc", format="pyretechnics"),
        read(other / "f.nc"),
    ):
        xr.testing.assert_allclose(ds, plain)
    (tmp_path / "f.asc").write_text((tmp_path / "f.asc").read_text().replace("\n", "\n\n"))
    xr.testing.assert_identical(read(tmp_path / "f.asc", format="farsite"), plain)


def test_geotiff_north_up_and_south_up_agree(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    plain = read(write_ascii(tmp_path / "f.asc", fire()))
    north = write_tiff(tmp_path / "f.tif", 60 * fire())
    xr.testing.assert_allclose(read(north, format="elmfire"), plain)
    south_up = rasterio.Affine(SIZE, 0, LEFT, 0, SIZE, BOTTOM)
    south = write_tiff(north, 60 * fire()[::-1], transform=south_up)
    xr.testing.assert_allclose(read(south, format="elmfire"), plain)


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
    ds = read(path, format="landis")
    assert ds.fire_id.values.tolist() == ["day-of-fire-5-event-7", "day-of-fire-5-event-12"]
    # the last day counts as burned through: four days and three days
    assert ds.hours.values.tolist() == [96.0, 72.0]
    assert ds.time_since_ignition[0].values[NY - 5, 3:8].tolist() == [96, 96, 72, 24, 24]
    assert ds.time_since_ignition[1].values[NY - 10, 10:13].tolist() == [72, 48, 24]
    write_tiff(tmp_path / "event-ID-5.tif", np.ones((NY, NX - 1)))
    with pytest.raises(PlumecastError, match="its grid differs"):
        read(path, format="landis")
    (tmp_path / "event-ID-5.tif").unlink()
    with pytest.raises(PlumecastError, match="no event-ID map beside it"):
        read(path, format="landis")


def test_netcdf_variable_is_picked_by_name(tmp_path):
    two = dataset(fire()).assign(speed=lambda ds: ds.arrival * 0)
    two.to_netcdf(tmp_path / "f.nc")
    with pytest.raises(PlumecastError, match=r"variable is missing: .*give one of arrival, speed"):
        read(tmp_path / "f.nc")
    assert read(tmp_path / "f.nc", variable="arrival").hours.item() == pytest.approx(110 / 60)


def test_ascii_grids_need_no_extra_library(tmp_path, monkeypatch):
    (tmp_path / "b.tif").write_bytes(b"II*\0" + bytes(20))
    for library in ("rasterio", "pyproj"):
        monkeypatch.setitem(sys.modules, library, None)
    path = write_ascii(tmp_path / "a.asc", fire())
    assert read(path, like=COARSE).sizes["snapshot"] == 1
    with pytest.raises(PlumecastError, match=r"needs rasterio; pip install 'plumecast\[raster\]'"):
        read(tmp_path / "b.tif")
    with pytest.raises(PlumecastError, match=r"needs pyproj; pip install 'plumecast\[raster\]'"):
        read(path, crs="EPSG:32613")


# -- many files


def test_files_stream_in_batches(tmp_path):
    for number in range(7):
        write_ascii(tmp_path / f"f{number}.asc", fire(10 + number))
    (tmp_path / "f3.asc").write_text("ncols 3\nnrows x\n")
    errors: list[str] = []
    options = RasterOptions(format="farsite", like=COARSE)
    batches = list(
        iter_arrival_times(
            str(tmp_path / "*.asc"), options, batch=3, on_error=lambda path, _: errors.append(path)
        )
    )
    assert [batch.fire_id.values.tolist() for batch in batches] == [
        ["f0", "f1", "f2"], ["f4", "f5"], ["f6"]
    ]  # fmt: skip
    assert errors == [tmp_path / "f3.asc"]
    one = read_arrival_times(tmp_path / "f5.asc", options)
    xr.testing.assert_equal(batches[1].isel(snapshot=[1]), one)
    with pytest.raises(PlumecastError, match=r"f3\.asc"):
        list(iter_arrival_times(tmp_path, options))


def test_files_on_different_grids_need_a_template(tmp_path):
    paths = [write_ascii(tmp_path / "a.asc", fire()),
             write_ascii(tmp_path / "b.asc", fire(), XLLCORNER=LEFT + 10)]  # fmt: skip
    with pytest.raises(PlumecastError, match=r"b\.asc: its grid differs from that of a; give like"):
        read(paths)
    assert read(paths, like=COARSE).sizes["snapshot"] == 2


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
    report = Resources(progress=lambda *news: reports.append(news))
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
    options = RasterOptions(format="farsite", hours=[2.0])
    expected = read_arrival_times(path, options)
    with pytest.warns(DeprecationWarning, match="options=RasterOptions"):
        old = read_arrival_times(path, format="farsite", hours=[2.0])
    xr.testing.assert_identical(old, expected)
    heard: list[tuple[int, int]] = []
    with pytest.warns(DeprecationWarning, match="resources=Resources"):
        batches = iter_arrival_times(path, options, progress=lambda *news: heard.append(news))
    xr.testing.assert_identical(next(batches), expected)
    assert heard == [(1, 1)]
