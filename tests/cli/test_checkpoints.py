"""Smoke is a sum over checkpoints: their interval is recorded, kept and said."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.data.store import append_fire, export_snapshots
from support.snapshots import CHECKPOINT, fires_of, make_snapshots
from support.wrf_files import HEIGHTS, write_run


def interval(path: Path, name: str = "smoke") -> float | None:
    with xr.open_dataset(path) as written:
        return written[name].attrs.get(INTERVAL)


@pytest.mark.parametrize(("every", "hours"), [(None, 1.0), ("3h", 3.0)])
def test_ingest_records_the_interval_of_the_kept_frames(run, tmp_path, every, hours):
    """The same run has more smoke with a checkpoint every hour than with one every three."""
    store = tmp_path / "fires.zarr"
    extra = [] if every is None else ["--every", every]
    wrf_run = write_run(tmp_path / "fire_1", range(7))
    result = run("ingest", "wrf", wrf_run, "-o", store, "--workers", 1, *extra)
    assert result.code == 0
    assert "equally far apart" not in result.err
    attrs = pc.open_snapshots(store).smoke.attrs
    assert attrs[INTERVAL] == hours
    top = 1.01 * float(HEIGHTS[-1] - HEIGHTS[0])  # PH adds a hundredth to PHB
    assert attrs["column_depth_m"] == pytest.approx(top, rel=1e-4)  # to a tenth of a metre
    assert f"{hours:g} h apart; smoke is the sum over them" in run("info", store).out


@pytest.mark.parametrize("known", ["from the hours", "unknown"])
def test_the_interval_goes_from_store_to_surrogate_to_outputs(run, succeed, tmp_path, known):
    snapshots = make_snapshots()
    snapshots["smoke"].attrs.pop(INTERVAL)  # as stores of earlier versions and other programs are
    if known == "unknown":
        snapshots = snapshots.isel(snapshot=snapshots.is_final.values)
    data = export_snapshots(snapshots, tmp_path / "data.nc")
    model, smoke, stats = (tmp_path / name for name in ("smoke.plume", "smoke.nc", "stats.nc"))
    succeed("train", data, "-o", model, "--preset", "paper-linear", "--all")
    succeed("predict", model, data, "-o", smoke)
    asked = ("ensemble", model, data, "--thresholds", 35)
    out = succeed(*asked, "-o", stats, "--quantity", "sum")
    expected = None if known == "unknown" else CHECKPOINT
    assert interval(smoke) == expected
    assert interval(stats, "exceedance") == expected
    words = "checkpoints (interval not recorded)" if expected is None else "checkpoints 6 h apart"
    assert out.count("smoke is the sum of column-mean smoke concentrations over checkpoints") == 1
    with xr.open_dataset(stats) as written:
        assert "concentrations over checkpoints" in written.exceedance.attrs["long_name"]
        assert "concentrations over checkpoints" in written.threshold.attrs["long_name"]
        assert words in written.exceedance.attrs["comment"]
        assert "not a mean over time" in written.exceedance.attrs["comment"]
    with xr.open_dataset(smoke) as written:
        assert words in written.smoke.attrs["comment"]
    result = run(*asked, "-o", tmp_path / "means.nc")
    if expected is None:
        assert result.code == 2
        assert "does not record the interval" in result.err
        assert "--checkpoint-interval is missing" in result.err
    else:
        assert "smoke is the time-mean column concentration" in result.out
        assert interval(tmp_path / "means.nc", "exceedance") is None


@pytest.mark.parametrize(
    ("name", "values", "kept"),
    [
        (INTERVAL, (6.0, 1.0), None),
        ("column_depth_m", (15_000.0, 15_100.0), 15_000.0),
        ("column_depth_m", (15_000.0, 20_000.0), None),
        ("column_depth_m", (15_000.0, None), None),
    ],
)
def test_a_fire_that_differs_makes_the_value_of_its_store_unknown(tmp_path, name, values, kept):
    store = tmp_path / "fires.zarr"
    for made, value in zip(fires_of(make_snapshots(fires=2)), values, strict=True):
        hours = made.hours * (value / CHECKPOINT if name == INTERVAL else 1.0)
        fire = made.assign_coords(hours=hours)
        fire.smoke.attrs.pop(name, None)
        if value is not None:
            fire.smoke.attrs[name] = value
        append_fire(store, fire)
    assert pc.open_snapshots(store).smoke.attrs.get(name) == kept
