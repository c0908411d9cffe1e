"""Blocks on a cluster of real processes: the same results, also when a worker is killed."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import icechunk
import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.compute import cluster as scale
from plumecast.compute import linalg
from plumecast.compute.arrays import bytes_in
from plumecast.compute.blocks import Passes
from plumecast.compute.linalg import snapshot_gram
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.layout import fit_layout
from plumecast.data.store import open_snapshots
from plumecast.data.training import StoredRows
from plumecast.operators.pca import Truncation, fit_truncated_basis
from plumecast.scores.reading import Reading
from plumecast.simulator import ensemble as simulator
from plumecast.sources.rasters import RasterOptions
from plumecast.sources.rasters import arrival_times as where_read
from plumecast.surrogate.baselines import fit_baseline
from plumecast.workflows.fires import draw_fires as drawing
from plumecast.workflows.fires.sources import raster_fires as fires_of_rasters
from plumecast.workflows.ingest import ingest_rasters
from plumecast.workflows.predict import predict_store
from plumecast.workflows.statistics.request import Statistics
from support.quantities import settled
from support.raster_files import COARSE, fire, write_ascii
from support.snapshots import make_snapshots, on_demo_grid
from support.windy_fires import windy, write_windy_rasters

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask distributed is not installed")

ASKED = Reading(thresholds=[1.0]), Statistics([0.5])
ROUNDING = 1e-9  # relative: sums in another order
MOVED_CELLS = 1e-3  # share of cells so near the edge of a bin that rounding moves them


@pytest.fixture(scope="module")
def two_workers():
    settings = {
        "distributed.scheduler.allowed-failures": 1,  # a block lost with two workers is lost
        "distributed.worker.memory.terminate": False,  # the tests kill workers themselves
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield scale.ClusterRunner(client)


@pytest.fixture
def runner(two_workers):
    """The cluster with both of its workers; one that a test killed is replaced."""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):  # of a worker that is just ending
            if len(two_workers.client.run(os.getpid)) == 2:
                break
        time.sleep(0.05)
    return two_workers


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "ensemble.zarr"
    pc.data.append_fire(path, make_snapshots(fires=24, checkpoints=5))
    return path


@pytest.fixture(scope="module")
def linear(store):
    return pc.fit_surrogate(open_snapshots(store).load(), "paper-linear")


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A store with more cells than snapshots."""
    path = tmp_path_factory.mktemp("cluster") / "wide.zarr"
    pc.data.append_fire(path, make_snapshots(fires=24, checkpoints=5, shape=(15, 20)))
    return path


def kill_one(runner: scale.ClusterRunner) -> int:
    victim = next(iter(runner.client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    return victim


def recorded(folder: Path, item: int) -> int:
    """Says who worked on it, slowly."""
    with (folder / "log").open("a") as log:
        log.write(f"{item} {os.getpid()}\n")
    time.sleep(0.15)
    return item


def who_worked(folder: Path) -> list[tuple[int, int]]:
    lines = (folder / "log").read_text().splitlines()
    return [(int(item), int(process)) for item, process in map(str.split, lines)]


def test_map_keeps_the_order_and_sum_adds_everything(runner):
    assert list(runner.map(pow, 2, range(30))) == [2**n for n in range(30)]
    assert runner.sum(lambda n: np.full(3, float(n)), range(7)).tolist() == [21.0] * 3


def test_a_killed_worker_costs_only_its_blocks(runner, tmp_path):
    def kill_the_worker_of_the_third_item() -> None:
        while not (tmp_path / "log").exists() or len(who_worked(tmp_path)) < 3:
            time.sleep(0.01)
        os.kill(who_worked(tmp_path)[2][1], signal.SIGKILL)

    killer = threading.Thread(target=kill_the_worker_of_the_third_item)
    killer.start()
    assert list(runner.map(recorded, tmp_path, range(14))) == list(range(14))
    killer.join()
    worked = who_worked(tmp_path)
    victim = worked[2][1]
    items = [item for item, _ in worked]
    again = {item for item in items if items.count(item) > 1}
    assert again, "the worker was killed while it worked"
    assert again <= {item for item, process in worked if process == victim}
    assert len(worked) < 2 * 14


@dataclass(frozen=True)
class Logged:
    """A partial result that tells when it was made, and when two of them became one."""

    folder: Path

    def __add__(self, other: Logged) -> Logged:
        return self.log("-")

    def log(self, sign: str) -> Logged:
        with (self.folder / "log").open("a") as log:
            log.write(sign)
        time.sleep(0.05)
        return self


def test_a_sum_keeps_few_parts_in_memory(runner, tmp_path):
    runner.sum(lambda item: np.zeros(1), range(16))  # workers have met
    runner.sum(lambda item: Logged(tmp_path).log("+"), range(32))
    signs = (tmp_path / "log").read_text()
    stored = np.cumsum([1 if sign == "+" else -1 for sign in signs])
    assert stored[-1] == 1
    assert stored.max() <= 5 + 2 * 5  # log₂ 32, and what two workers hold, begin and wait for


LIFTED = {"lift": "identity", "targets": "log"}


@pytest.mark.parametrize(
    ("data", "memory", "close", "choices"),
    [
        ("store", "250kB", 1e-8, {"preset": "paper-linear", "center": True}),
        ("store", "250kB", 1e-8, {"degree": 2, "fire_rank": 4, "smoke_rank": 5}),
        ("store", "250kB", 1e-8, {"degree": 2, "fire_rank": 9, "smoke_rank": 5}),
        ("store", "500kB", 1e-6, {"degree": 2, "fire_rank": 4, "smoke_rank": 5, **LIFTED}),
        ("store", "100MB", 1e-3, {"preset": "recommended", "layers": 2}),  # systems in float32
        ("wide", "500kB", 1e-8, {"preset": "paper-linear"}),
    ],
)
def test_fit_on_a_cluster_equals_the_fit_here(request, runner, data, memory, close, choices):
    split = pc.split_by_fire(open_snapshots(request.getfixturevalue(data)), seed=2)
    resources = Resources(memory=memory, runner=runner)
    there = pc.fit_surrogate(split.train, resources=resources, **choices)
    here = pc.fit_surrogate(split.train.load(), **choices)
    fires = split.test.astype(np.float64) if close == 1e-8 else split.test
    expected = here.predict(fires).values
    np.testing.assert_allclose(there.predict(fires).values, expected, atol=close * expected.max())


@dataclass(frozen=True)
class Unread(StoredRows):
    """Rows that only workers may read."""

    home: int  # the process that started the run

    def read(self, rows: slice) -> np.ndarray:
        assert os.getpid() != self.home, "read in the process that started the run"
        return StoredRows.read(self, rows)


def test_more_cells_than_snapshots_are_encoded_on_a_cluster(runner, wide):
    """The Gram matrix of the snapshots comes from the workers; this process reads no field."""
    train = pc.split_by_fire(open_snapshots(wide), seed=2).train
    here = StoredRows(fit_layout(train, ["smoke"]), train)
    rows, cells = here.shape
    assert rows < cells
    unread = Unread(here.layout, train, os.getpid())
    expected = here.read(slice(0, rows))
    passes = Passes(2 * rows // 7, runner)  # panels of a seventh, and one of what remains
    gram = snapshot_gram(unread, passes)
    np.testing.assert_allclose(gram, expected @ expected.T, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_array_equal(gram, gram.T)
    rule = Truncation(std_fraction=0.95)
    one, other = (
        fit_truncated_basis(expected, rule),
        fit_truncated_basis(unread, rule, passes=passes),
    )
    np.testing.assert_allclose(other.modes, one.modes, atol=1e-8)  # rounding over a gap of σ²
    with pytest.raises(PlumecastError, match=r"needs at least .* for a Gram matrix of 50 × 50"):
        pc.fit_surrogate(train, "paper-linear", resources=Resources(memory="80kB", runner=runner))


class Reaper(scale.ClusterRunner):
    """Kills a worker when the second tile of a Gram matrix has come."""

    tiles = 0
    victim = 0

    def map(self, function, shared, items):
        for part in super().map(function, shared, items):
            if function is linalg._tile:
                type(self).tiles += 1
                if self.tiles == 2:
                    type(self).victim = kill_one(self)
            yield part


def test_training_survives_a_worker_killed_within_the_gram_matrix(
    runner, wide, succeed, tmp_path, monkeypatch
):
    here, there = tmp_path / "here.plume", tmp_path / "there.plume"
    typed = ("train", wide, "--preset", "paper-linear")
    succeed(*typed, "-o", here)
    monkeypatch.setattr(scale, "ClusterRunner", Reaper)
    place = ("--scheduler", runner.client.scheduler.address, "--memory", "200kB")
    succeed(*typed, "-o", there, *place)
    assert Reaper.tiles > 4 * 2 * scale.AHEAD, "or the tiles were made before the worker died"
    assert Reaper.victim not in runner.client.run(os.getpid).values()
    fires = open_snapshots(wide).load().astype(np.float64)
    expected, predicted = (pc.load_surrogate(path).predict(fires).values for path in (here, there))
    np.testing.assert_allclose(predicted, expected, atol=1e-8 * expected.max())


def test_a_map_asks_for_the_workers_by_the_clock_not_with_every_task(runner, monkeypatch):
    """The scheduler's answer describes every worker, so that its size grows with the cluster."""
    asked = []
    ask = scale.ClusterRunner._workers
    monkeypatch.setattr(scale, "_POLL_SECONDS", 3600.0)
    monkeypatch.setattr(
        scale.ClusterRunner, "_workers", lambda self: asked.append(self) or ask(self)
    )
    assert len(list(runner.map(pow, 2, range(5 * scale.AHEAD)))) == 5 * scale.AHEAD
    assert len(asked) == 1


def test_wrong_values_are_found_on_a_cluster(runner, tmp_path):
    wrong = make_snapshots(fires=80, checkpoints=5)
    wrong.smoke.values[333, 2, 3] = np.nan
    opened = open_snapshots(pc.export_snapshots(wrong, tmp_path / "wrong.nc"))
    said = []
    for where in (None, runner):
        with pytest.raises(PlumecastError) as caught:
            pc.fit_surrogate(opened, resources=Resources(memory="5MB", runner=where))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert said[0].startswith("'smoke' holds 1 NaN or infinite values in fire 'fire-33-low'")


def predict_here_and_there(runner, surrogate, store, **options):
    return (
        xr.concat(predict_store(surrogate, store, resources=where, **options), "snapshot")
        for where in (Resources(memory="300kB"), Resources(memory="300kB", runner=runner))
    )


def test_predictions_and_statistics_on_a_cluster_equal_those_here(runner, linear, store):
    here, there = predict_here_and_there(runner, linear, store)
    xr.testing.assert_identical(there, here)
    one, other = (
        pc.ensemble_statistics(linear, fires, *ASKED, resources=Resources("cpu", "8MB", where))
        for fires, where in ((store, None), ([store], runner))
    )
    xr.testing.assert_allclose(other, one, rtol=ROUNDING)


def test_error_bars_made_on_a_cluster_equal_those_here(runner, store):
    common = {"split": None, "degree": 1, "folds": 2}
    one, other = (
        pc.train_surrogate(
            open_snapshots(store), **common, resources=Resources(memory="2MB", runner=where)
        )
        for where in (None, runner)
    )
    counts = one.error_bars.counts
    assert other.error_bars.groups == one.error_bars.groups
    assert other.error_bars.counts.sum() == counts.sum()
    moved = np.abs(other.error_bars.counts - counts).sum() / 2
    assert moved <= MOVED_CELLS * counts.sum()
    here, there = predict_here_and_there(runner, one, store, interval=0.8)
    xr.testing.assert_identical(there, here)
    assert bool((here.upper > here.lower).any())


@pytest.mark.parametrize("preset", ["paper-linear", "recommended"])
def test_scores_on_a_cluster_equal_those_here(runner, store, preset):
    split = pc.split_by_fire(open_snapshots(store), seed=2)
    surrogates = {
        "own": pc.fit_surrogate(split.train.load(), preset),
        "mean": fit_baseline("mean-field", split.train, resources=Resources(runner=runner)),
    }
    operator = surrogates["own"].operator
    # For several blocks.
    memory = 1.4 * (bytes_in(operator) + operator.working_bytes()[0]) + 150_000
    one, other = (
        pc.evaluate(
            surrogates,
            split.validation,
            split.test,
            resources=Resources(memory=memory, runner=where),
        )
        for where in (None, runner)
    )
    for name in surrogates:
        xr.testing.assert_identical(other.details[name], one.details[name])
    for here, there in zip(one.scores, other.scores, strict=True):
        assert replace(there, predict_ms=0.0) == replace(here, predict_ms=0.0)
    assert other.smoke_threshold == one.smoke_threshold


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_a_store_that_changes_while_it_is_read_is_refused(runner, tmp_path, kind):
    path = pc.export_snapshots(make_snapshots(fires=12), tmp_path / f"fires.{kind}")
    split = pc.split_by_fire(open_snapshots(path))
    surrogate = pc.fit_surrogate(split.train.load(), "paper-linear")
    blocks = predict_store(surrogate, path, resources=Resources(memory="100kB"))
    next(blocks)
    for part in [path] if path.is_file() else path.glob("*/zarr.json"):
        os.utime(part, ns=(1, 1))  # as a writer would
    with pytest.raises(PlumecastError, match="changed while it was read"):
        list(blocks)
    there = Resources(runner=runner)
    with pytest.raises(PlumecastError, match="changed while it was read"):
        pc.evaluate({"a": surrogate}, split.validation, split.test, resources=there)


def test_statistics_survive_a_killed_worker(runner, linear, store):
    one = pc.ensemble_statistics(linear, store)
    timer = threading.Timer(0.1, kill_one, [runner])
    timer.start()
    resources = Resources(memory="120kB", runner=runner)
    other = pc.ensemble_statistics(linear, [store] * 8, resources=resources)
    timer.join()
    xr.testing.assert_allclose(other.mean_log_smoke, one.mean_log_smoke, rtol=ROUNDING)
    assert other.attrs["snapshots"] == 8 * one.attrs["snapshots"]


def test_simulated_fires_are_the_same_on_a_cluster(runner):
    world = simulator.World(seed=1, checkpoints=1, shape=(80, 100), cell=600.0)
    plans = simulator.plan_fires(2, ["low"], seed=1)
    here = list(simulator.run_fires(world, plans))
    there = list(simulator.run_fires(world, plans, runner=runner))
    for one, other in zip(here, there, strict=True):
        xr.testing.assert_identical(other, one)


def test_fires_are_drawn_on_a_cluster(runner, monkeypatch):
    monkeypatch.setattr(drawing, "TOGETHER", 1)  # fire: several blocks
    surrogate = pc.fit_surrogate(on_demo_grid(), "paper-linear")
    fires = pc.draw_fires(2, like=surrogate.grid, droughts=["low"], checkpoints=1)
    other = pc.ensemble_statistics(surrogate, fires, *ASKED, resources=Resources(runner=runner))
    one = pc.ensemble_statistics(surrogate, fires, *ASKED)
    xr.testing.assert_allclose(other, one, rtol=ROUNDING)
    assert other.attrs == one.attrs


@pytest.fixture
def rasters(tmp_path):
    """Twelve fires, one of them damaged, one twice."""
    folder = tmp_path / "fires"
    (folder / "twin").mkdir(parents=True)
    files = [write_ascii(folder / f"f{n:02d}.asc", fire(5.0 + n)) for n in range(12)]
    files[3].write_text("no raster")
    return [*files, write_ascii(folder / "twin" / "f01.asc", fire())]


def test_rasters_are_read_on_a_cluster_that_loses_a_worker(runner, rasters, tmp_path):
    options = RasterOptions(like=COARSE, hours=[1.0, 2.0], format="farsite")

    def kill_once(done: int, total: int, name: str) -> None:
        if done == 2:
            kill_one(runner)

    killing = Resources(runner=runner, progress=kill_once)
    there = ingest_rasters(rasters, tmp_path / "a.zarr", options, batch=2, resources=killing)
    assert there == ingest_rasters(rasters, tmp_path / "b.zarr", options, batch=2)
    assert [out.fire_id for out in there if out.problem] == ["f03", "f01"]
    one, other = (open_snapshots(tmp_path / f"{name}.zarr", fields=(FIRE,)) for name in "ba")
    xr.testing.assert_equal(other, one)
    storage = icechunk.local_filesystem_storage(str(tmp_path / "a.zarr"))
    commits = icechunk.Repository.open(storage).ancestry(branch="main")
    assert len(list(commits)) == 1 + 6  # an empty store, then one for every two files
    repeated = ingest_rasters(
        rasters[4:12], tmp_path / "a.zarr", options, resources=Resources(runner=runner)
    )
    assert {out.state for out in repeated} == {"skipped"}


@pytest.fixture(scope="module")
def on_raster_grid():
    """A surrogate on the grid of COARSE."""
    train = make_snapshots(fires=16, shape=(7, 8)).assign_coords(
        {axis: (axis, COARSE[axis].values, {"units": "m"}) for axis in "yx"}
    )
    return pc.fit_surrogate(train, "paper-linear")


def test_rasters_are_predicted_where_they_are_read(runner, on_raster_grid, rasters, monkeypatch):
    monkeypatch.setattr(where_read, "FILES_PER_TASK", 3)  # files: several blocks of a batch
    common = {"hours": [1.0, 2.0], "format": "farsite", "batch": 5}
    blocks, statistics = [], []
    for where in (None, runner):
        problems: list[tuple[Path, str]] = []
        fires = fires_of_rasters(
            on_raster_grid, rasters, **common,
            on_error=lambda *problem, to=problems: to.append(problem),
        )  # fmt: skip
        resources = Resources(runner=where)
        blocks.append(
            list(predict_store(on_raster_grid, fires, threshold=0.5, resources=resources))
        )
        assert [path.stem for path, _ in problems] == ["f03", "f01"]
        statistics.append(
            pc.ensemble_statistics(on_raster_grid, fires, *ASKED, resources=resources)
        )
    assert [block.sizes["snapshot"] for block in blocks[1]] == [8, 10, 4]
    for one, other in zip(*blocks, strict=True):
        xr.testing.assert_identical(other, one)
    assert statistics[0].attrs["fires"] == 11
    xr.testing.assert_allclose(statistics[1], statistics[0], rtol=ROUNDING)
    usable = [path for path in rasters if path.stem != "f03"][:-1]
    options = RasterOptions(hours=[1.0, 2.0], format="farsite", like=on_raster_grid.grid)
    read = pc.read_arrival_times(usable, options)
    whole = xr.concat(blocks[1], "snapshot")
    assert whole.fire_id.values.tolist() == read.fire_id.values.tolist()
    smoke = whole.smoke.drop_vars("extrapolates")
    xr.testing.assert_allclose(smoke, settled(on_raster_grid, read), rtol=1e-6)  # float32


def test_a_stated_weather_travels_to_the_workers(runner, tmp_path):
    choices = {"frame": "map", "layers": 1, "physics": "column"}
    surrogate = pc.fit_surrogate(windy(8, shape=(14, 16)), "recommended", **choices)
    files = write_windy_rasters(tmp_path, "ab", (14, 16))
    weather = pc.weather.constant_weather(5.0, 270.0, 12.0)
    options = {"unit": "min", "drought": "medium"}
    predicted, statistics = [], []
    for where in (LOCAL, Resources(runner=runner)):
        fires = fires_of_rasters(surrogate, files, weather=weather, **options)
        predicted.append(xr.concat(predict_store(surrogate, fires, resources=where), "snapshot"))
        read = pc.read_arrival_times(files, RasterOptions(**options, like=surrogate.grid))
        statistics.append(pc.ensemble_statistics(surrogate, read, weather=weather, resources=where))
    xr.testing.assert_allclose(*predicted, rtol=ROUNDING)
    xr.testing.assert_allclose(*statistics, rtol=ROUNDING)


def test_a_runner_is_nobody_on_a_worker(runner):
    assert pickle.loads(pickle.dumps(runner)) is None


def fail_with(error: Exception):
    def fail(item: int) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (fail_with(PlumecastError("block is wrong")), PlumecastError, "block is wrong"),
        (fail_with(OSError("no such block")), OSError, "no such block"),  # not a lost scheduler
        (lambda item: np.ones(1 << 58).size, PlumecastError, "has too little memory for its block"),
        (lambda item: os._exit(1), PlumecastError, "a block was lost with each of 2 workers"),
    ],
)
def test_an_error_in_a_block_is_raised_here(runner, function, error, message):
    with pytest.raises(error, match=message):
        runner.sum(function, range(1))


@pytest.mark.parametrize("error", [distributed.comm.CommClosedError, distributed.CancelledError])
def test_a_scheduler_lost_while_a_result_is_fetched_is_named(runner, monkeypatch, error):
    async def fetch(*_futures: object, **_options: object) -> None:
        raise error("connection reset by peer")

    monkeypatch.setattr(runner.client, "_gather", fetch)
    with pytest.raises(PlumecastError, match="the Dask scheduler does not answer any more; start"):
        runner.sum(abs, [1])


def test_no_worker_at_all_is_named():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(PlumecastError, match="no worker has been available for 0 s; start workers"),
    ):
        scale.ClusterRunner(client, grace=0.2).sum(abs, [1])


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch, refused, store, linear, tmp_path):
    monkeypatch.setattr(scale, "CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://here", "localhost", ""):
        with (
            pytest.raises(PlumecastError, match=f"no Dask scheduler answers at {address}"),
            pc.cluster(address),
        ):
            pass
    model = linear.save(tmp_path / "model.plume")
    for words in (
        ("evaluate", model, store, "--baselines", "none"),
        ("ingest", "rasters", "fire.asc", "-o", tmp_path / "out", "--unit", "min"),
        ("predict", model, "fire.asc", "-o", tmp_path / "out.nc", "--unit", "min"),
    ):
        message = refused(*words, "--scheduler", "tcp://127.0.0.1:9")
        assert message.startswith("no Dask scheduler answers at tcp://127.0.0.1:9")
    assert not list(tmp_path.glob("out*"))


def test_a_cluster_needs_workers_and_the_library(monkeypatch):
    with pytest.raises(PlumecastError, match="workers=0"), pc.cluster("local", 0):
        pass
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with (
        pytest.raises(PlumecastError, match=r"pip install 'plumecast\[cluster\]'"),
        pc.cluster("local"),
    ):
        pass


def test_commands_on_a_cluster(runner, succeed, refused, store, on_raster_grid, tmp_path):
    model = tmp_path / "smoke.plume"
    common = ("--scheduler", runner.client.scheduler.address)
    succeed("train", store, "-o", model, "--preset", "paper-linear", "--memory", "1MB", *common)
    succeed("predict", model, store, "-o", tmp_path / "a.nc", *common)
    succeed("ensemble", model, store, "-o", tmp_path / "s.nc", *common)
    raster = write_ascii(tmp_path / "fire.asc", fire())
    on_raster_grid.save(tmp_path / "coarse.plume")
    rasters = ("predict", tmp_path / "coarse.plume", raster, "--format", "farsite")
    for name, where in (("here.nc", ()), ("there.nc", common)):
        succeed(*rasters, "-o", tmp_path / name, *where)
    one, other = (xr.load_dataset(tmp_path / name) for name in ("here.nc", "there.nc"))
    assert "--scheduler" in other.attrs.pop("history")
    del one.attrs["history"]  # the command as it was typed
    xr.testing.assert_identical(other, one)
    succeed("ingest", "rasters", raster, "-o", tmp_path / "r.zarr", "--unit", "min", *common)
    assert pc.data.stored_fires(tmp_path / "r.zarr") == {"fire"}
    assert "mean-field" in succeed("evaluate", model, store, *common)
    assert open_snapshots(tmp_path / "a.nc", fields=["smoke"]).sizes["snapshot"] == 120
    assert xr.load_dataset(tmp_path / "s.nc").attrs["snapshots"] == 120
    there = (*common, "--device", "torch")
    message = refused("predict", model, store, "-o", tmp_path / "b.nc", *there)
    assert message == "--scheduler cannot be combined with --device torch; give one"
    with pytest.raises(PlumecastError, match="give a runner or device 'torch', not both"):
        pc.fit_surrogate(open_snapshots(store), resources=Resources("torch", runner=runner))


def test_a_cluster_leaves_no_default_behind(runner):
    """Other work of the process, as xarray's writing of files, must not be sent to it."""
    address = runner.client.scheduler.address
    with pc.cluster(address), pc.cluster(address):
        assert dask.config.get("scheduler", None) is None
    assert dask.config.get("scheduler", None) is None


def test_a_local_cluster_listens_only_on_this_machine():
    """Whoever connects to Dask can run any code."""
    psutil = pytest.importorskip("psutil")
    me = psutil.Process()

    def listening() -> set[tuple[str, int]]:
        open_ = [c for p in [me, *me.children(recursive=True)] for c in p.net_connections("inet")]
        return {tuple(item.laddr) for item in open_ if item.status == psutil.CONN_LISTEN}

    before = listening()
    with scale.cluster("local", 1):
        opened = listening() - before
    assert opened
    assert {address for address, _ in opened} == {scale.LOOPBACK}
