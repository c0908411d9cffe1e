"""Scheduler and workers as programs of their own, in another folder, as on a real cluster."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.compute import cluster as scale
from plumecast.compute.resources import Resources
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import RasterOptions
from plumecast.workflows.fires.sources import raster_fires
from plumecast.workflows.ingest import ingest_rasters, ingest_wrf
from plumecast.workflows.predict import predict_store
from support.places import REPOSITORY
from support.quantities import settled
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots
from support.wrf_files import write_run

Client = pytest.importorskip("distributed", reason="Dask distributed is not installed").Client

SOURCE = REPOSITORY / "src"
START_SECONDS = 180.0


@dataclass
class Cluster:
    """A scheduler and workers that nobody starts again."""

    folder: Path
    programs: list[subprocess.Popen] = field(default_factory=list)
    address: str = ""

    def start(self, *words: str, path: Path = SOURCE) -> subprocess.Popen:
        environment = os.environ | {"PYTHONPATH": str(path), "OPENBLAS_NUM_THREADS": "1"}
        with (self.folder / f"{len(self.programs)}.log").open("w") as log:
            command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
            place = {"cwd": self.folder, "env": environment, "stdout": log, "stderr": log}
            self.programs.append(subprocess.Popen(command, **place))
        return self.programs[-1]

    def start_scheduler(self) -> subprocess.Popen:
        file = self.folder / "scheduler.json"
        place = ("--host", "127.0.0.1", "--port", "0")
        program = self.start("scheduler", *place, "--scheduler-file", str(file))
        deadline = time.monotonic() + START_SECONDS
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"]
        return program

    def start_worker(self, path: Path = SOURCE) -> subprocess.Popen:
        options = ("--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder))
        return self.start("worker", self.address, *options, path=path)

    def end(self) -> None:
        for program in reversed(self.programs):
            program.kill()
            program.wait()


@contextlib.contextmanager
def programs(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    folder.mkdir()
    cluster = Cluster(folder)
    try:
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.end()


def wait_for(runner: scale.ClusterRunner, workers: int) -> scale.ClusterRunner:
    runner.client.wait_for_workers(workers, timeout=START_SECONDS)
    return runner


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    """A cluster that works in another folder."""
    with programs(tmp_path_factory.mktemp("away") / "there") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def runner(away):
    with pc.cluster(away.address) as runner:
        yield wait_for(runner, 2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with stores, rasters, a run of WRF and a surrogate; one works in it."""
    monkeypatch.chdir(tmp_path)
    snapshots = make_snapshots(fires=24)
    pc.data.append_fire("fires.zarr", snapshots)
    pc.export_snapshots(snapshots, "fires.nc")
    pc.export_snapshots(snapshots, "plain.zarr")
    Path("rasters").mkdir()
    size = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": CELL / 5}
    for number in range(4):
        arrival = xr.DataArray([[30.0 * x for x in range(20)]] * 12).values + number
        place = {"XLLCORNER": 6000.0, "YLLCORNER": 6000.0}
        write_ascii(Path("rasters", f"f{number}.asc"), arrival, **place, **size)
    write_run(Path("runs", "fire_a"), range(2))
    pc.fit_surrogate(snapshots, "paper-linear").save("smoke.plume")
    return tmp_path


def joined(blocks: Iterator[xr.Dataset]) -> xr.Dataset:
    return xr.concat(list(blocks), "snapshot")


STORES = pytest.mark.parametrize("store", ["fires.zarr", "fires.nc", "plain.zarr"])
FARSITE = RasterOptions(format="farsite")


@STORES
def test_workers_find_stores_by_paths_from_here(runner, folder, store):
    surrogate = pc.load_surrogate("smoke.plume")
    here, there = (
        joined(predict_store(surrogate, store, resources=Resources(runner=who)))
        for who in (None, runner)
    )
    xr.testing.assert_identical(there, here)
    trained = pc.fit_surrogate(
        open_snapshots(store), "paper-linear", resources=Resources(memory="1MB", runner=runner)
    )
    made = settled(trained, open_snapshots(store))
    expected = here.smoke.drop_vars("extrapolates")
    xr.testing.assert_allclose(made, expected, atol=1e-5 * float(expected.max()))  # float32


def test_workers_find_rasters_and_runs_by_paths_from_here(runner, folder):
    surrogate, there = pc.load_surrogate("smoke.plume"), Resources(runner=runner)
    fires = raster_fires(surrogate, ["rasters"], format="farsite")
    xr.testing.assert_identical(
        joined(predict_store(surrogate, fires)),
        joined(predict_store(surrogate, fires, resources=there)),
    )
    outcomes = ingest_rasters(["rasters/*.asc"], "r.zarr", FARSITE, resources=there)
    assert {out.state for out in outcomes} == {"read"}
    outcomes = ingest_wrf(["runs/fire_a"], "w.zarr", drought="low", resources=there)
    assert [(out.fire_id, out.state) for out in outcomes] == [("fire_a", "read")]


def unseen(path: str) -> str:
    """The message of a worker that does not find what was there when the run began."""
    return f"{Path(path).absolute()} is not there on {platform.node()}: it was moved or removed"


@pytest.mark.parametrize("store", ["fires.zarr", "fires.nc"])
def test_a_store_that_workers_do_not_see_is_named(runner, folder, store):
    surrogate, opened = pc.load_surrogate("smoke.plume"), open_snapshots(store)
    Path(store).rename("elsewhere")
    with pytest.raises(PlumecastError, match=unseen(store)):
        pc.ensemble_statistics(surrogate, opened, resources=Resources(runner=runner))
    with pytest.raises(PlumecastError, match=unseen(store)):
        pc.fit_surrogate(opened, "paper-linear", resources=Resources(memory="1MB", runner=runner))


class TooLate(scale.ClusterRunner):
    """Takes files away when they were looked for, before workers do."""

    def map(self, function, shared, items):
        for name in ("rasters", "runs"):
            Path(name).rename(f"no-{name}")
        return super().map(function, shared, items)


def test_files_that_workers_do_not_see_are_named_once(runner, folder):
    surrogate, late = pc.load_surrogate("smoke.plume"), Resources(runner=TooLate(runner.client))
    problems = []
    fires = raster_fires(surrogate, ["rasters"], format="farsite", on_error=problems.append)
    for path, read in (
        ("rasters/f0.asc", lambda: list(predict_store(surrogate, fires, resources=late))),
        ("rasters/f0.asc", lambda: ingest_rasters(["rasters"], "r.zarr", FARSITE, resources=late)),
        (
            "runs/fire_a",
            lambda: ingest_wrf(["runs/fire_a"], "w.zarr", drought="low", resources=late),
        ),
    ):
        with pytest.raises(PlumecastError, match=unseen(path)):
            read()
        for name in ("rasters", "runs"):
            Path(f"no-{name}").rename(name)
    assert problems == []


def slowly():
    """A function that the programs, which do not know this module, get by its value."""

    def sleep(seconds: float, item: int) -> int:
        time.sleep(seconds)
        return item

    return sleep


def test_lost_workers_leave_their_blocks_to_others_and_a_lost_scheduler_is_named(tmp_path):
    with programs(tmp_path / "there") as cluster, pc.cluster(cluster.address) as runner:
        results = wait_for(runner, 2).map(slowly(), 0.1, range(30))
        first = [next(results) for _ in range(3)]
        cluster.programs[-1].kill()
        assert first + list(results) == list(range(30))
        assert len(runner._workers()) == 1
        results = runner.map(slowly(), 0.1, range(300))
        next(results)
        done = runner._submit(slowly(), 0.0, 1)
        cluster.programs[0].kill()
        for ask in (lambda: list(results), lambda: runner._result(done)):
            with pytest.raises(PlumecastError, match="the Dask scheduler does not answer any more"):
                ask()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("__version__ = '0.0.1'", "has plumecast 0.0.1; install"),
        ("import plumecast_is_not_here", "has no plumecast .*; install"),
    ],
)
def test_a_worker_with_another_plumecast_is_refused(tmp_path, content, message):
    package = tmp_path / "other" / "plumecast"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(content)
    with programs(tmp_path / "there", workers=0) as cluster:
        cluster.start_worker(path=package.parent)
        with Client(cluster.address, set_as_default=False) as client:
            wait_for(scale.ClusterRunner(client), 1)
        with (
            pytest.raises(PlumecastError, match=f"the worker tcp://.* {message}"),
            pc.cluster(cluster.address),
        ):
            pass
