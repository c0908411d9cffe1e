"""Files that hang, end the process that reads them, or have odd metadata: one line for each."""

from __future__ import annotations

import os
import time

import netCDF4
import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.processes import LimitedProcess
from plumecast.sources.wrf import read_wrf, read_wrf_fires
from plumecast.sources.wrf.fires import Job, read_job, read_limited
from plumecast.sources.wrf.integrity import dimensions_of
from plumecast.sources.wrf.options import WrfOptions
from plumecast.sources.wrf.snapshots import FireLabels
from support.wrf_files import FILE, HOURS, broken, write_run, write_wrfout


class Endless:
    """A path that keeps the process that unpickles it busy for ever."""

    def __reduce__(self):
        return time.sleep, (1e6,)


def test_a_file_that_hangs_loses_only_its_fire(tmp_path):
    run = write_run(tmp_path / "a", [0, 1])
    jobs = [Job(path, WrfOptions(), FireLabels(name, name, "low"), None)
            for name, path in (("stuck", Endless()), ("a", run))]  # fmt: skip
    with LimitedProcess(1.0) as process:
        process.call(os.getpid)  # it has started, so that only the limit counts
        process.start(read_job, jobs[0])
        stuck = read_limited(process, jobs[0])
        assert "no progress in 1 s, the file may be damaged; copy it again" in stuck.outcome
        process.limit = 60.0
        process.start(read_job, jobs[1])
        xr.testing.assert_identical(
            read_limited(process, jobs[1]).outcome, read_wrf(run, drought="low")
        )


def test_a_limit_changes_no_result_and_must_be_positive(tmp_path):
    runs = [write_run(tmp_path / "a", HOURS), broken(tmp_path, "nan_level")]
    for one, other in zip(read_wrf_fires(runs), read_wrf_fires(runs, time_limit=60.0), strict=True):
        assert one.quality == other.quality
        same = one.outcome == other.outcome if isinstance(one.outcome, str) else None
        assert same if same is not None else one.outcome.identical(other.outcome)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(PlumecastError, match=f"time_limit={wrong:g}: give a number of seconds"):
            list(read_wrf_fires(runs, time_limit=wrong))


@pytest.mark.parametrize(("name", "edit", "message"), [
    ("text", lambda file: file.createVariable("PB2", str, ("Time",)), None),
    ("packed", lambda file: file["T"].setncattr("scale_factor", 2.0), "T is packed"),
    ("marked", lambda file: file["T"].setncattr("missing_value", "none"), "missing_value of T is"),
    ("start", lambda file: file.setncattr("SIMULATION_START_DATE", [1.0, 2.0]), "unreadable time"),
    ("domain", lambda file: file.setncattr("GRID_ID", "one"), "attribute GRID_ID is 'one', not"),
])  # fmt: skip
def test_odd_metadata_is_one_line_and_the_others_go_on(tmp_path, name, edit, message):
    odd, good = write_run(tmp_path / name, [0, 1]), write_run(tmp_path / "good", [0, 1])
    with netCDF4.Dataset(odd / FILE, "a") as file:
        edit(file)
    first, second = read_wrf_fires([odd, good])
    assert isinstance(second.outcome, xr.Dataset)
    if message is None:
        assert isinstance(first.outcome, xr.Dataset)
    else:
        assert first.outcome.startswith(f"{odd / FILE}: ")
        assert message in first.outcome


@pytest.mark.parametrize(("kind", "message"), [
    ("i4", "T has values of type int32, not floating-point numbers"),
    (str, "T has values of type .*, not floating-point numbers"),
    ("f8", None),
])  # fmt: skip
def test_another_type_is_named(tmp_path, kind, message):
    path = write_wrfout(tmp_path / "fire" / FILE, [0.0, 3600.0], drop=["T"])
    with netCDF4.Dataset(path, "a") as file:
        made = file.createVariable("T", kind, ("Time", "bottom_top", "south_north", "west_east"))
        if kind is not str:
            made[:] = 5
    if message is None:
        assert read_wrf(path).sizes["snapshot"] == 1
        return
    with pytest.raises(PlumecastError, match=message):
        read_wrf(path)


def test_dimensions_that_no_file_can_hold_are_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "fire" / FILE
    path.parent.mkdir()
    with netCDF4.Dataset(path, "w") as file:
        sizes = {"Time": 1, "DateStrLen": 19, "west_east": 99999, "south_north": 99999,
                 "west_east_subgrid": 100000, "south_north_subgrid": 100000, "bottom_top": 50,
                 "bottom_top_stag": 51}  # fmt: skip
        for name, size in sizes.items():
            file.createDimension(name, size)
        file.createVariable("Times", "S1", ("Time", "DateStrLen"))[0] = list("2020-08-01_12:00:00")
        for name in ("LFN", "fire_smoke", "P", "PB", "T", "PH", "PHB"):
            file.createVariable(name, "f4", dimensions_of(name), chunksizes=(1,) + (16,) * (
                len(dimensions_of(name)) - 1))  # fmt: skip
    with pytest.raises(PlumecastError, match=r"LFN would have 37.3 GiB, more than the file can"):
        read_wrf(path)


def test_layers_without_their_faces_are_refused(tmp_path):
    path = write_wrfout(tmp_path / "fire" / FILE, [0.0, 3600.0])
    with netCDF4.Dataset(path, "a") as file:
        file.renameDimension("bottom_top_stag", "faces")
        file.renameDimension("bottom_top", "bottom_top_stag")
        file.renameDimension("faces", "bottom_top")
    with pytest.raises(PlumecastError, match=r"\('Time', 'bottom_top'|5 layers with 4 faces"):
        read_wrf(path)
