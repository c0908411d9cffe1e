"""Hourly and daily GeoTIFFs by the clock, with the names of BlueSky."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.scores.quantities import as_quantity
from plumecast.workflows.bluesky import NEARLY, export_bluesky, hourly_means, read_clock
from support.projected import on_earth
from support.snapshots import make_snapshots

SINGLE = 1e-6  # relative: files have single precision
PACIFIC = "2026-08-01T22:00-07:00"


def two_hours_apart(snapshots):
    """Snapshots whose checkpoints are two hours apart."""
    smoke = snapshots.smoke.assign_attrs({INTERVAL: 2.0})
    return snapshots.assign(smoke=smoke).assign_coords(hours=snapshots.hours / 3.0)


def dose_of(snapshots):
    """The dose of smoke, as a prediction is read."""
    data = two_hours_apart(snapshots)
    return data[["smoke"]].drop_vars("smoke").assign(smoke_dose=as_quantity(data.smoke, "dose"))


@pytest.fixture(scope="module")
def fires():
    """Two fires of two snapshots each."""
    return dose_of(on_earth(fires=2, checkpoints=2))


@pytest.mark.parametrize("minutes", [0, 30, 59])
def test_hourly_means_add_up_to_the_dose(minutes):
    """Σ 1 h · mean = D(end of the last hour): nothing is lost between snapshots."""
    hours, dose = np.array([3.0, 6.0, 12.0]), np.array([[[6.0]], [[6.0]], [[18.0]]])
    ignition = datetime(2026, 8, 1, 18, minutes, tzinfo=UTC)
    found = list(hourly_means(dose, hours, ignition))
    last = (found[-1][0] + timedelta(hours=1) - ignition) / timedelta(hours=1)
    total = sum(mean.item() for _, mean in found)
    assert total == pytest.approx(6.0 + 2.0 * (min(last, 12.0) - 6.0))
    assert found[0][0] == datetime(2026, 8, 1, 18, tzinfo=UTC)
    assert found[0][1].item() == pytest.approx(2.0 * (1.0 - minutes / 60.0))
    assert 11.0 < last <= 12.0 + NEARLY


def test_a_dose_that_falls_has_no_negative_mean():
    found = list(hourly_means(np.array([[[2.0]], [[1.0]]]), np.array([1.0, 2.0]),
                              datetime(2026, 8, 1, tzinfo=UTC)))  # fmt: skip
    assert [mean.item() for _, mean in found] == [2.0, 0.0]


def test_files_have_the_names_and_numbers_of_their_hours(fires, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    own = fires.isel(snapshot=[0, 1])
    blocks = [own.isel(snapshot=[row]) for row in (0, 1)]
    written = export_bluesky(blocks, tmp_path / "smoke", ignition_time=PACIFIC)
    assert (written.where, written.snapshots) == (tmp_path / "smoke", 2)
    name = str(own.fire_id.values[0])
    folder = tmp_path / "smoke" / name
    hourly = sorted(path.name for path in (folder / "hourly").iterdir())
    assert hourly == [  # in UTC
        f"smoke_column_hourly_20260802{hour:02d}00.tif" for hour in (5, 6, 7, 8)
    ]
    assert sorted(path.name for path in (folder / "daily_maximum" / "UTC-0700").iterdir()) == [
        "smoke_column_daily_maximum_UTC-0700_20260801.tif",
        "smoke_column_daily_maximum_UTC-0700_20260802.tif",
    ]
    means = np.diff(own.smoke_dose.values, axis=0, prepend=0.0) / 2.0  # of two hours each
    with rasterio.open(folder / "hourly" / hourly[3]) as file:
        np.testing.assert_allclose(file.read(1)[::-1], np.maximum(means[1], 0.0), rtol=SINGLE)
        assert file.crs.to_epsg() == 5070
        assert file.tags()["time_begin"] == "2026-08-02T08:00:00+00:00"
        assert (file.tags()["units"], file.tags()["fire_id"]) == ("ug m-3", name)
    first = "daily_average/UTC-0700/smoke_column_daily_average_UTC-0700_20260801.tif"
    with rasterio.open(folder / first) as file:
        np.testing.assert_allclose(file.read(1)[::-1], np.maximum(means[0], 0.0), rtol=SINGLE)
        assert file.tags()["hours"] == "2"  # from 22 h to midnight


@pytest.mark.parametrize(("change", "words"), [
    (lambda fires: dose_of(make_snapshots(fires=2, checkpoints=2)), "map projection"),
    (lambda fires: fires.isel(snapshot=[0, 2, 1]), "do not follow one another"),
    (lambda fires: fires.assign_coords(hours=0.08 * fires.hours), "no complete hour"),
])  # fmt: skip
def test_fires_without_a_projection_or_in_disorder_are_refused(fires, tmp_path, change, words):
    with pytest.raises(PlumecastError, match=words):
        export_bluesky([change(fires)], tmp_path / "smoke", ignition_time=PACIFIC)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "said"), [
    (None, "start time"), ("yesterday", "not a date"), ("2026-08-01T11:00", "offset from UTC"),
])  # fmt: skip
def test_a_start_time_that_is_no_time_of_the_clock_is_refused(text, said):
    with pytest.raises(PlumecastError, match=said):
        read_clock(text)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A georeferenced store and its surrogate."""
    folder = tmp_path_factory.mktemp("bluesky")
    snapshots = two_hours_apart(on_earth(fires=3, checkpoints=1))
    pc.export_snapshots(snapshots, folder / "fires.nc")
    pc.fit_surrogate(snapshots, "paper-linear").save(folder / "smoke.plume")
    return folder


def test_the_command_writes_a_folder_for_each_fire(place, tmp_path, run):
    pytest.importorskip("rasterio")
    words = ("predict", place / "smoke.plume", place / "fires.nc", "-o", tmp_path / "smoke")
    words = (*words, "--names", "bluesky", "--ignition-time", "2026-08-01T18:00Z")
    assert "hourly: mean smoke of each hour" in run(*words).out
    hourly = [len(list((fire / "hourly").iterdir())) for fire in (tmp_path / "smoke").iterdir()]
    assert hourly == [2, 2, 2]
    assert run(*words).code == 2  # never overwritten


@pytest.mark.parametrize(("out", "options", "said"), [
    ("smoke", ("bluesky",), "--ignition-time is missing"),
    ("smoke.tif", ("bluesky", "--ignition-time", PACIFIC), "without an ending"),
    ("smoke", ("bluesky", "--ignition-time", PACIFIC, "--footprint"), "--footprint"),
    ("smoke.tif", ("hysplit",), "plumecast, bluesky"),
])  # fmt: skip
def test_the_command_refuses_what_it_cannot_name(place, tmp_path, refused, out, options, said):
    words = ("predict", place / "smoke.plume", place / "fires.nc", "-o", tmp_path / out, "--names")
    assert said in refused(*words, *options)
    assert list(tmp_path.iterdir()) == []


def test_fires_that_record_their_start_need_none_stated(place, tmp_path, succeed):
    """Each fire has the hours of its own clock."""
    pytest.importorskip("rasterio")
    fires = xr.load_dataset(place / "fires.nc")
    started = [f"2026-08-0{n + 1}T1{n}:00:00Z" for n in range(fires.sizes["snapshot"])]
    fires = fires.assign_coords(ignition_time=("snapshot", np.array(started)))
    store = pc.export_snapshots(fires, tmp_path / "own.nc")
    words = ("predict", place / "smoke.plume", store, "-o", tmp_path / "smoke")
    succeed(*words, "--names", "bluesky")
    hours = sorted(path.stem[-12:] for path in (tmp_path / "smoke").glob("*/hourly/*.tif"))
    assert hours == [f"2026080{n + 1}1{n + more}00" for n in range(3) for more in (0, 1)]
