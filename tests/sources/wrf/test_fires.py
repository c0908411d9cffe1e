"""Many fires, processes and memory; real runs against an independent derivation."""

from __future__ import annotations

import os
import time
import tracemalloc

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.processes import LimitedProcess
from plumecast.compute.resources import Resources
from plumecast.data.assembly import PER_SNAPSHOT
from plumecast.sources.wrf import FireResult, WrfOptions, read_wrf, read_wrf_fires
from plumecast.sources.wrf import run as run_module
from plumecast.sources.wrf.fires import FireJob, read_job, read_limited
from plumecast.sources.wrf.snapshots import FireLabels
from support.places import SHARED
from support.wrf_files import FILE, HOURS, NX, NY, NZ, REFINE, broken, write_run

WRF = SHARED / "wrf"
REFERENCES = sorted((WRF / "reference").glob("*.npz"))
needs_shared = pytest.mark.skipif(not REFERENCES, reason="../shared/data/wrf is not here")


# -- many fires


def test_a_failing_fire_does_not_stop_the_others(tmp_path):
    runs = [write_run(tmp_path / "a", HOURS), broken(tmp_path, "text"),
            write_run(tmp_path / "b", HOURS), write_run(tmp_path / "c", HOURS),
            write_run(tmp_path / "again" / "a", HOURS)]  # fmt: skip
    calls: list[tuple[str, int, int]] = []
    results = list(
        read_wrf_fires(
            runs,
            WrfOptions(every="3h"),
            drought={"a": "low", "c": "high"},
            ignition_id={"c": "a"},
            done={"b"},
            resources=Resources(progress=lambda n, total, name: calls.append((name, n, total))),
        )
    )
    assert [result.fire_id for result in results] == ["a", "text", "c", "a"]
    assert calls == [("a", 1, 4), ("text", 2, 4), ("c", 3, 4), ("a", 4, 4)]
    assert results[1].outcome == f"{runs[1] / FILE}: not a NetCDF file"
    assert (
        results[3].outcome
        == f"{runs[4]}: fire_id 'a' is also that of {runs[0]}; rename one of them"
    )
    assert set(results[2].outcome.ignition_id.values) == {"a"}
    assert set(results[0].outcome.drought.values) == {"low"}
    xr.testing.assert_identical(
        results[0].outcome, read_wrf(runs[0], WrfOptions(every="3h"), drought="low")
    )


def test_the_arguments_of_earlier_versions_still_work(tmp_path):
    run = write_run(tmp_path / "a", HOURS)
    with pytest.warns(DeprecationWarning, match="options=WrfOptions"):
        old = read_wrf(run, every="3h", drought="low")
    xr.testing.assert_identical(old, read_wrf(run, WrfOptions(every="3h"), drought="low"))
    heard: list[tuple[str, int, int]] = []
    with pytest.warns(DeprecationWarning, match="resources=Resources"):
        list(
            read_wrf_fires(
                [run], progress=lambda result, n, total: heard.append((result.fire_id, n, total))
            )
        )
    assert heard == [("a", 1, 1)]


def test_processes_with_a_limit_give_the_same_results_in_the_same_order(tmp_path):
    runs = [write_run(tmp_path / name, [0, 1]) for name in "abc"] + [broken(tmp_path, "no_air")]
    alone = list(read_wrf_fires(runs))
    together = list(read_wrf_fires(runs, workers=2, time_limit=60.0))
    assert [result.fire_id for result in together] == [result.fire_id for result in alone]
    for one, other in zip(alone, together, strict=True):
        assert one.quality == other.quality
        if isinstance(one.outcome, str):
            assert one.outcome == other.outcome
        else:
            xr.testing.assert_identical(one.outcome, other.outcome)
    for wrong in (0.0, np.nan, np.inf):
        with pytest.raises(PlumecastError, match=f"time_limit={wrong:g}: give a number of seconds"):
            list(read_wrf_fires(runs, time_limit=wrong))


class Trap:
    """A path that calls a function in the process that unpickles it."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def test_a_process_that_hangs_or_dies_loses_only_its_fire(tmp_path):
    run = write_run(tmp_path / "a", [0, 1])
    with LimitedProcess(60.0) as process:

        def outcome(path):
            job = FireJob(path, WrfOptions(), FireLabels("f", "f", "low"), None)
            process.start(read_job, job)
            return read_limited(process, job).outcome

        xr.testing.assert_identical(outcome(run), read_wrf(run, fire_id="f", drought="low"))
        process.limit = 1.0
        stuck = outcome(Trap(time.sleep, 1e6))
        assert "no progress in 1 s, the file may be damaged; copy it again" in stuck
        process.limit = 60.0
        assert "the process that read it died" in outcome(Trap(os._exit, 1))


def test_an_unexpected_error_is_reported_with_its_type(tmp_path, monkeypatch):
    def surprise(*args, **kwargs):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(run_module, "prepare", surprise)
    (result,) = read_wrf_fires([write_run(tmp_path / "a", HOURS)])
    assert result == FireResult("a", f"{tmp_path / 'a'}: ZeroDivisionError: oh", ())


def test_memory_does_not_grow_with_the_number_of_frames(tmp_path):
    peaks = []
    for count in (4, 4, 24):
        run = write_run(tmp_path / f"run{count}", np.arange(count) / 4)
        tracemalloc.start()
        read_wrf(run)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # What may grow is what the result holds: snapshots, profiles, times and their Python objects,
    # which is about an eighth of the 36 further frames; the burned shares; and the arrivals that
    # these are computed from, a few numbers for every fire cell. A reader that kept its frames
    # would need all of them.
    frame_bytes = 4 * (2 * (NY + 1) * (NX + 1) * REFINE**2 + 6 * (NZ + 1) * NY * NX)
    share_bytes = 4 * PER_SNAPSHOT * NY * NX
    arrival_bytes = 8 * 8 * NY * NX * REFINE**2
    assert peaks[2] - peaks[1] < 20 * (frame_bytes / 4 + share_bytes) + arrival_bytes


# -- real runs


@needs_shared
@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_real_runs_equal_their_reference(path):
    ds = read_wrf(WRF / "runs" / path.stem, WrfOptions(floor=0.0))
    with np.load(path) as reference:
        burned = reference["burned_area_acres"] > 0
        for name in ("time_since_ignition", "smoke"):
            expected = reference[name][burned]
            tiny = np.finfo(np.float32).tiny
            np.testing.assert_allclose(ds[name], expected, rtol=1e-5, atol=tiny)
        np.testing.assert_allclose(ds.burned_area, reference["burned_area_acres"][burned])
        simulated = reference["seconds"][burned] / 3600
        np.testing.assert_allclose(np.diff(simulated - ds.hours.values), 0, atol=1e-9)
    assert (ds.time_since_ignition.max(("y", "x")) <= ds.hours + 1e-6).all()
    findings = ds.attrs["quality"].split(" | ")
    assert all(finding.startswith("plume at boundary") for finding in findings)


@needs_shared
def test_a_real_run_with_one_classic_frame_per_file_and_year_1():
    ds = read_wrf(WRF / "runs" / "classic_one_frame_per_file")
    assert ds.smoke.sizes == {"snapshot": 1, "y": 32, "x": 40}
    assert ds.wind_u.sizes == {"snapshot": 1, "weather_hour": 2, "height": 10}
    assert 0 < ds.hours.item() < 1
    assert float(ds.smoke.max()) > 1


@needs_shared
def test_arrival_rebuilt_from_a_real_level_set_is_near(monkeypatch):
    run = WRF / "runs" / "fire_018"
    with_times = read_wrf(run)
    real_read = run_module.prepare

    def without_times(*args, **options):
        read = real_read(*args, **options)
        read.names.remove("TIGN_G")
        return read

    monkeypatch.setattr(run_module, "prepare", without_times)
    rebuilt = read_wrf(run)
    error = np.abs(rebuilt.time_since_ignition - with_times.time_since_ignition)
    assert float(error.max()) < 1.0  # never beyond the spacing of the frames
    assert float(error.sum() / with_times.time_since_ignition.sum()) < 0.05
