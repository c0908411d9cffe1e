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
from plumecast.scores.tally import Tally
from plumecast.simulator import ensemble as simulator
from plumecast.sources.rasters import RasterOptions
from plumecast.sources.rasters import arrival_times as where_read
from plumecast.surrogate.baselines import fit_baseline
from plumecast.workflows.fires import draw_fires as drawing
from plumecast.workflows.fires.sources import raster_fires as fires_of_rasters
from plumecast.workflows.ingest import ingest_rasters, ingest_wrf
from plumecast.workflows.predict import predict_store
from plumecast.workflows.statistics.request import Statistics
from support.raster_files import COARSE, fire, write_ascii, write_landscape
from support.snapshots import make_snapshots, on_demo_grid
from support.windy_fires import windy, write_windy_rasters
from support.wrf_files import Circle, write_run

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask distributed is not installed")

ASKED = Reading(thresholds=[1.0]), Statistics([0.5])
ROUNDING = 1e-9  # relative: sums in another order
MOVED_CELLS = 1e-3  # share of cells so near the edge of a bin that rounding moves them


@contextlib.contextmanager
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


@pytest.fixture(scope="module")
def runner():
    """A cluster that nothing happens to."""
    with two_workers() as runner:
        yield runner


@pytest.fixture
def mortal():
    """A cluster of its own, for tests that kill its workers."""
    with two_workers() as runner:
        yield runner


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "ensemble.zarr"
    pc.data.append_fire(path, make_snapshots(fires=24, checkpoints=5))
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A store with more cells than snapshots."""
    path = tmp_path_factory.mktemp("cluster") / "wide.zarr"
    pc.data.append_fire(path, make_snapshots(fires=24, checkpoints=5, shape=(15, 20)))
    return path


def double(shared, item):
    return shared * item


def recorded(folder: Path, item: int) -> int:
    """Says who worked on it, slowly."""
    with (folder / "log").open("a") as log:
        log.write(f"{item} {os.getpid()}\n")
    time.sleep(0.15)
    return item


def who_worked(folder: Path) -> list[tuple[int, int]]:
    lines = (folder / "log").read_text().splitlines()
    return [(int(item), int(process)) for item, process in map(str.split, lines)]


def killed_soon(folder: Path) -> threading.Thread:
    """Kill the worker that began the third item, at once."""

    def kill() -> None:
        while not (folder / "log").exists() or len(who_worked(folder)) < 3:
            time.sleep(0.01)
        os.kill(who_worked(folder)[2][1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_map_keeps_the_order_and_sum_adds_everything(runner):
    assert list(runner.map(double, 2, range(30))) == [2 * n for n in range(30)]
    assert runner.sum(lambda n: np.full(3, float(n)), range(7)).tolist() == [21.0] * 3


def test_a_killed_worker_costs_only_its_blocks(mortal, tmp_path):
    killer = killed_soon(tmp_path)
    assert list(mortal.map(recorded, tmp_path, range(14))) == list(range(14))
    killer.join()
    worked = who_worked(tmp_path)
    victim = worked[2][1]
    items = [item for item, _ in worked]
    again = {item for item in items if items.count(item) > 1}
    assert again, "the worker was killed while it worked"
    assert again <= {item for item, process in worked if process == victim}
    assert len(worked) < 2 * 14


def test_a_sum_survives_a_killed_worker(mortal, tmp_path):
    killer = killed_soon(tmp_path)
    assert mortal.sum(lambda item: recorded(tmp_path, item), range(12)) == sum(range(12))
    killer.join()


@dataclass(frozen=True)
class Logged:
    """A partial result that tells when it was made, and when two of them became one."""

    folder: Path

    def __add__(self, other: Logged) -> Logged:
        self.log("-")
        return self

    def log(self, sign: str) -> Logged:
        with (self.folder / "log").open("a") as log:
            log.write(sign)
        time.sleep(0.05)
        return self


def test_a_sum_keeps_few_parts_in_memory(runner, tmp_path):
    runner.sum(lambda item: np.zeros(1), range(16))  # workers have met
    runner.sum(lambda item: Logged(tmp_path).log("+"), range(64))
    signs = (tmp_path / "log").read_text()
    held = np.cumsum([1 if sign == "+" else -1 for sign in signs])
    assert held[-1] == 1
    assert held.max() <= 6 + 2 * 5  # log₂ 64, and what two workers hold, begin and wait for


@pytest.mark.parametrize(
    "choices",
    [
        {"preset": "paper-linear", "center": True},
        {"degree": 2, "fire_rank": 4, "smoke_rank": 5},
        {"degree": 2, "fire_rank": 9, "smoke_rank": 5},
    ],
)
def test_fit_on_a_cluster_equals_the_fit_here(runner, store, choices):
    split = pc.split_by_fire(open_snapshots(store), seed=2)
    other = pc.fit_surrogate(
        split.train, resources=Resources(memory="250kB", runner=runner), **choices
    )
    one = pc.fit_surrogate(split.train.load(), **choices)
    fires = split.test.astype(np.float64)
    expected = one.predict(fires).values
    np.testing.assert_allclose(other.predict(fires).values, expected, atol=1e-8 * expected.max())


def test_coded_fit_of_lifted_fields_on_a_cluster_equals_the_fit_here(runner, store):
    split = pc.split_by_fire(open_snapshots(store), seed=2)
    choices = {"degree": 2, "fire_rank": 4, "smoke_rank": 5, "lift": "identity", "targets": "log"}
    other = pc.fit_surrogate(
        split.train, resources=Resources(memory="500kB", runner=runner), **choices
    )
    one = pc.fit_surrogate(split.train.load(), **choices)
    expected = one.predict(split.test).values
    found = other.predict(split.test).values
    np.testing.assert_allclose(found, expected, atol=1e-6 * expected.max())  # stored in float32


def test_spectral_fit_on_a_cluster_equals_the_fit_here(runner, store):
    split = pc.split_by_fire(open_snapshots(store), seed=2)
    choices = {"preset": "recommended", "layers": 2}
    other = pc.fit_surrogate(
        split.train, resources=Resources(memory="100MB", runner=runner), **choices
    )
    one = pc.fit_surrogate(split.train.load(), **choices)
    expected = one.predict(split.test).values
    found = other.predict(split.test).values
    np.testing.assert_allclose(found, expected, atol=1e-3 * expected.max())  # systems in float32


def test_more_cells_than_snapshots_are_encoded_on_a_cluster(runner, wide):
    """The Gram matrix of the snapshots comes from the workers; this process reads no field."""
    train = pc.split_by_fire(open_snapshots(wide), seed=2).train
    here = StoredRows(fit_layout(train, ["smoke"]), train)
    rows, cells = here.shape
    assert rows < cells
    unread = Unread(here.layout, train, os.getpid())
    block = 2 * rows // 7  # panels of a seventh, and one of what remains
    expected = here.read(slice(0, rows))
    passes = Passes(block, runner)
    found = snapshot_gram(unread, passes)
    np.testing.assert_allclose(found, expected @ expected.T, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_array_equal(found, found.T)
    rule = Truncation(std_fraction=0.95)
    one, other = (
        fit_truncated_basis(expected, rule),
        fit_truncated_basis(unread, rule, passes=passes),
    )
    np.testing.assert_allclose(other.modes, one.modes, atol=1e-8)  # rounding over a gap of σ²


@dataclass(frozen=True)
class Unread(StoredRows):
    """Rows that only workers may read."""

    home: int  # the process that started the run

    def read(self, rows: slice) -> np.ndarray:
        assert os.getpid() != self.home, "read in the process that started the run"
        return StoredRows.read(self, rows)


def test_fit_of_more_cells_than_snapshots_equals_the_fit_here(runner, wide):
    split = pc.split_by_fire(open_snapshots(wide), seed=2)
    other = pc.fit_surrogate(
        split.train, "paper-linear", resources=Resources(memory="500kB", runner=runner)
    )
    one = pc.fit_surrogate(split.train.load(), "paper-linear")
    fires = split.test.astype(np.float64)
    expected = one.predict(fires).values
    np.testing.assert_allclose(other.predict(fires).values, expected, atol=1e-8 * expected.max())
    with pytest.raises(PlumecastError, match=r"needs at least .* for a Gram matrix of 50 × 50"):
        pc.fit_surrogate(
            split.train, "paper-linear", resources=Resources(memory="80kB", runner=runner)
        )


class Reaper(scale.ClusterRunner):
    """Kills a worker when the second tile of a Gram matrix has come."""

    tiles = 0
    victims: tuple[int, ...] = ()

    def map(self, function, shared, items):
        for part in super().map(function, shared, items):
            if function is linalg._tile:
                type(self).tiles += 1
                if self.tiles == 2:
                    type(self).victims = (next(iter(self.client.run(os.getpid).values())),)
                    os.kill(self.victims[0], signal.SIGKILL)
            yield part


def test_training_survives_a_worker_killed_within_the_gram_matrix(
    mortal, wide, succeed, tmp_path, monkeypatch
):
    here, there = tmp_path / "here.plume", tmp_path / "there.plume"
    given = ("train", wide, "--preset", "paper-linear")
    succeed(*given, "-o", here)
    monkeypatch.setattr(scale, "ClusterRunner", Reaper)
    place = ("--scheduler", mortal.client.scheduler.address, "--memory", "200kB")
    succeed(*given, "-o", there, *place)
    ahead = 2 * scale.AHEAD
    assert Reaper.tiles > 4 * ahead, "or the tiles were made before the worker died"
    assert not set(Reaper.victims) & set(mortal.client.run(os.getpid).values())
    fires = open_snapshots(wide).load().astype(np.float64)
    expected, found = (pc.load_surrogate(path).predict(fires).values for path in (here, there))
    np.testing.assert_allclose(found, expected, atol=1e-8 * expected.max())  # rounding over gaps


def test_a_map_asks_for_the_workers_by_the_clock_not_with_every_task(runner, monkeypatch):
    """The scheduler's answer describes every worker, so that its size grows with the cluster."""
    asked = []
    ask = scale.ClusterRunner._workers
    monkeypatch.setattr(scale, "_POLL_SECONDS", 3600.0)
    monkeypatch.setattr(
        scale.ClusterRunner, "_workers", lambda self: asked.append(self) or ask(self)
    )
    items = range(5 * scale.AHEAD)
    assert list(runner.map(pow, 2, items)) == [2**item for item in items]
    assert len(asked) == 1


def test_wrong_values_are_found_on_a_cluster(runner, tmp_path):
    wrong = make_snapshots(fires=80, checkpoints=5)
    wrong.smoke.values[333, 2, 3] = np.nan
    pc.export_snapshots(wrong, tmp_path / "wrong.nc")
    said = []
    for where in (None, runner):
        with pytest.raises(PlumecastError) as caught:
            pc.fit_surrogate(
                open_snapshots(tmp_path / "wrong.nc"),
                resources=Resources(memory="5MB", runner=where),
            )
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert said[0].startswith("'smoke' holds 1 NaN or infinite values in fire 'fire-33-low'")


def test_predictions_and_statistics_on_a_cluster_equal_those_here(runner, store):
    surrogate = pc.fit_surrogate(open_snapshots(store).load(), "paper-linear")
    ours, theirs = (
        xr.concat(predict_store(surrogate, store, resources=resources), "snapshot")
        for resources in (Resources(memory="300kB"), Resources(memory="300kB", runner=runner))
    )
    xr.testing.assert_identical(theirs, ours)
    one, other = (
        pc.ensemble_statistics(surrogate, fires, *ASKED, resources=Resources("cpu", "8MB", where))
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
    assert other.error_bars.groups == one.error_bars.groups
    assert other.error_bars.counts.sum() == one.error_bars.counts.sum()
    moved = np.abs(other.error_bars.counts - one.error_bars.counts).sum() / 2
    assert moved <= MOVED_CELLS * one.error_bars.counts.sum()
    ours, theirs = (
        xr.concat(predict_store(one, store, interval=0.8, resources=resources), "snapshot")
        for resources in (Resources(memory="300kB"), Resources(memory="300kB", runner=runner))
    )
    xr.testing.assert_identical(theirs, ours)
    assert bool((ours.upper > ours.lower).any())


@pytest.mark.parametrize("choices", [{"preset": "paper-linear"}, {"preset": "recommended"}])
def test_scores_on_a_cluster_equal_those_here(runner, store, choices):
    split = pc.split_by_fire(open_snapshots(store), seed=2)
    surrogates = {
        "own": pc.fit_surrogate(split.train.load(), **choices),
        "mean": fit_baseline("mean-field", split.train, resources=Resources(runner=runner)),
    }
    operator = surrogates["own"].operator
    # For several blocks.
    memory = 1.4 * (bytes_in(operator) + operator.working_bytes()[0]) + 150_000
    parts = (split.validation, split.test)
    one, other = (
        pc.evaluate(surrogates, *parts, resources=Resources(memory=memory, runner=where))
        for where in (None, runner)
    )
    for name in surrogates:
        xr.testing.assert_identical(other.details[name], one.details[name])
    for here, there in zip(one.scores, other.scores, strict=True):
        assert replace(there, predict_ms=0.0) == replace(here, predict_ms=0.0)
    assert other.smoke_threshold == one.smoke_threshold


def test_scores_survive_a_killed_worker(mortal, store):
    split = pc.split_by_fire(open_snapshots(store), seed=2)
    surrogate = pc.fit_surrogate(split.train.load(), "paper-linear")
    watched = Watched(mortal.client)
    expected, found = (
        pc.evaluate(
            {"a": surrogate},
            split.validation,
            split.test,
            resources=Resources(memory="100kB", runner=where),
        )
        for where in (None, watched)
    )
    assert watched.blocks > 8, "or the worker that was killed had nothing to do"
    xr.testing.assert_identical(found.details["a"], expected.details["a"])


class Watched(scale.ClusterRunner):
    """Kills a worker after the second block that was scored."""

    blocks = 0

    def map(self, function, shared, items):
        for number, part in enumerate(super().map(function, shared, items)):
            # Scores, not the counts for the thresholds.
            if isinstance(part, tuple) and isinstance(part[0], Tally):
                type(self).blocks += 1
                if number == 1:
                    victim = next(iter(self.client.run(os.getpid).values()))
                    os.kill(victim, signal.SIGKILL)
            yield part


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_a_store_that_changes_while_it_is_scored_is_refused(runner, tmp_path, kind):
    path = tmp_path / f"fires.{kind}"
    pc.export_snapshots(make_snapshots(fires=12), path)
    split = pc.split_by_fire(open_snapshots(path))
    surrogate = pc.fit_surrogate(split.train.load(), "paper-linear")
    touch(path)
    with pytest.raises(PlumecastError, match="changed while it was read"):
        pc.evaluate(
            {"a": surrogate}, split.validation, split.test, resources=Resources(runner=runner)
        )


def touch(path: Path) -> None:
    """As a writer of a file or a plain Zarr store would."""
    for part in [path] if path.is_file() else path.glob("*/zarr.json"):
        os.utime(part, ns=(1, 1))


def test_statistics_survive_a_killed_worker(mortal, store):
    surrogate = pc.fit_surrogate(open_snapshots(store).load(), "paper-linear")
    one = pc.ensemble_statistics(surrogate, store)
    victim = next(iter(mortal.client.run(os.getpid).values()))
    timer = threading.Timer(0.1, lambda: os.kill(victim, signal.SIGKILL))
    timer.start()
    other = pc.ensemble_statistics(
        surrogate, [store] * 8, resources=Resources(memory="120kB", runner=mortal)
    )
    timer.join()
    xr.testing.assert_allclose(other.mean_log_smoke, one.mean_log_smoke, rtol=ROUNDING)
    assert other.attrs["snapshots"] == 8 * one.attrs["snapshots"]


def test_simulated_fires_are_the_same_on_a_cluster(runner):
    world = simulator.World(seed=1, checkpoints=1, shape=(80, 100), cell=600.0)
    plans = simulator.plan_fires(2, ["low"], seed=1)
    ours = list(simulator.run_fires(world, plans))
    theirs = list(simulator.run_fires(world, plans, runner=runner))
    for one, other in zip(ours, theirs, strict=True):
        xr.testing.assert_identical(other, one)


def test_fires_are_drawn_on_a_cluster(runner, monkeypatch):
    monkeypatch.setattr(drawing, "TOGETHER", 1)  # fire: several blocks
    surrogate = pc.fit_surrogate(on_demo_grid(), "paper-linear")
    fires = pc.draw_fires(3, like=surrogate.grid, droughts=["low"])
    other = pc.ensemble_statistics(surrogate, fires, *ASKED, resources=Resources(runner=runner))
    one = pc.ensemble_statistics(surrogate, fires, *ASKED)
    xr.testing.assert_allclose(other, one, rtol=ROUNDING)
    assert other.attrs == one.attrs


def test_fires_are_drawn_on_rasters_of_the_users_ground_on_a_cluster(runner, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "TOGETHER", 1)
    ground = pc.workflows.Ground(**write_landscape(tmp_path, (60, 80), 600.0), steering=0.5)
    chosen = {"droughts": ["high"], "checkpoints": 1, "ground": ground}
    fires = pc.draw_fires(4, **chosen)
    surrogate = pc.fit_surrogate(pc.simulate(ignitions=4, **chosen), "paper-linear")
    other = pc.ensemble_statistics(
        surrogate, fires, Reading(thresholds=[1.0]), resources=Resources(runner=runner)
    )
    one = pc.ensemble_statistics(surrogate, fires, Reading(thresholds=[1.0]))
    xr.testing.assert_allclose(other, one, rtol=ROUNDING)


def test_wrf_fires_are_read_on_a_cluster(runner, tmp_path):
    for name, x in (("fire_a", 2100.0), ("fire_b", 2700.0)):
        write_run(tmp_path / "runs" / name, range(3), fire=Circle(x=x, speed=0.2))
    (tmp_path / "runs" / "fire_c").mkdir()
    runs = sorted((tmp_path / "runs").iterdir())
    outcomes = ingest_wrf(
        runs, tmp_path / "a.zarr", drought="low", resources=Resources(runner=runner)
    )
    assert {out.fire_id: out.state for out in outcomes} == {
        "fire_a": "read",
        "fire_b": "read",
        "fire_c": "failed",
    }
    ingest_wrf(runs, tmp_path / "b.zarr", drought="low")
    one, other = (open_snapshots(tmp_path / f"{name}.zarr") for name in "ba")
    xr.testing.assert_equal(other, one)


def raster_fires(folder: Path) -> list[Path]:
    """Twelve fires, one of them damaged, one twice."""
    folder.mkdir()
    files = [write_ascii(folder / f"f{n:02d}.asc", fire(5.0 + n)) for n in range(12)]
    files[3].write_text("no raster")
    (folder / "twin").mkdir()
    return [*files, write_ascii(folder / "twin" / "f01.asc", fire())]


def test_rasters_are_read_on_a_cluster(runner, tmp_path):
    files = raster_fires(tmp_path / "fires")
    common = {"options": RasterOptions(like=COARSE, hours=[1.0, 2.0], format="farsite"), "batch": 5}
    theirs = ingest_rasters(
        files, tmp_path / "a.zarr", **common, resources=Resources(runner=runner)
    )
    ours = ingest_rasters(files, tmp_path / "b.zarr", **common)
    assert theirs == ours
    assert [out.fire_id for out in ours if out.problem] == ["f03", "f01"]
    one, other = (open_snapshots(tmp_path / f"{name}.zarr", fields=(FIRE,)) for name in "ba")
    xr.testing.assert_equal(other, one)
    repeated = ingest_rasters(
        files[4:12], tmp_path / "a.zarr", **common, resources=Resources(runner=runner)
    )
    assert {out.state for out in repeated} == {"skipped"}


def test_a_worker_killed_while_rasters_are_read_costs_nothing(mortal, tmp_path):
    files = raster_fires(tmp_path / "fires")
    common = {"options": RasterOptions(like=COARSE, format="farsite"), "batch": 2}
    victim = next(iter(mortal.client.run(os.getpid).values()))

    def kill_once(done: int, total: int, name: str) -> None:
        if done == 2:
            os.kill(victim, signal.SIGKILL)

    store = tmp_path / "a.zarr"
    theirs = ingest_rasters(
        files, store, **common, resources=Resources(runner=mortal, progress=kill_once)
    )
    assert theirs == ingest_rasters(files, tmp_path / "b.zarr", **common)
    commits = icechunk.Repository.open(icechunk.local_filesystem_storage(str(store))).ancestry(
        branch="main"
    )
    assert len(list(commits)) == 1 + 6  # an empty store, then one for every two files


@pytest.fixture
def on_raster_grid():
    """A surrogate on the grid of COARSE."""
    grid = {axis: COARSE[axis].values for axis in "yx"}
    train = make_snapshots(fires=16, shape=(7, 8)).assign_coords(
        {axis: (axis, values, {"units": "m"}) for axis, values in grid.items()}
    )
    return pc.fit_surrogate(train, "paper-linear")


def predict_rasters(surrogate, files, resources, *, threshold=None, **options):
    """`predict_store` of rasters."""
    fires = fires_of_rasters(surrogate, files, **options)
    return predict_store(surrogate, fires, threshold=threshold, resources=resources)


def test_rasters_are_predicted_where_they_are_read(runner, on_raster_grid, tmp_path, monkeypatch):
    monkeypatch.setattr(where_read, "FILES_PER_TASK", 3)  # files: several blocks of a batch
    files = raster_fires(tmp_path / "fires")
    common = {"hours": [1.0, 2.0], "format": "farsite", "batch": 5, "threshold": 0.5}
    said, blocks = {}, {}
    for name, where in (("here", None), ("there", runner)):
        problems: list[tuple[Path, str]] = []
        blocks[name] = list(
            predict_rasters(
                on_raster_grid, files, Resources(runner=where), **common,
                on_error=lambda *problem, to=problems: to.append(problem),
            )
        )  # fmt: skip
        said[name] = problems
    assert said["there"] == said["here"]
    assert [path.stem for path, _ in said["here"]] == ["f03", "f01"]
    assert [block.sizes["snapshot"] for block in blocks["there"]] == [8, 10, 4]
    for one, other in zip(blocks["here"], blocks["there"], strict=True):
        xr.testing.assert_identical(other, one)
    usable = [path for path in files if path.stem != "f03"][:-1]
    fires = pc.read_arrival_times(
        usable,
        pc.sources.RasterOptions(hours=[1.0, 2.0], format="farsite", like=on_raster_grid.grid),
    )
    whole = xr.concat(blocks["there"], "snapshot")
    assert whole.fire_id.values.tolist() == fires.fire_id.values.tolist()
    smoke = whole.smoke.drop_vars("extrapolates")
    xr.testing.assert_allclose(smoke, on_raster_grid.predict(fires), rtol=1e-6)  # float32


def test_a_stated_weather_travels_to_the_workers(runner, tmp_path):
    train = windy(8, shape=(14, 16))
    choices = {"frame": "map", "layers": 1, "physics": "column"}
    surrogate = pc.fit_surrogate(train, "recommended", **choices)
    files = write_windy_rasters(tmp_path, "ab", (14, 16))
    weather = pc.weather.constant_weather(5.0, 270.0, 12.0)
    common = {"unit": "min", "drought": "medium", "weather": weather}
    here = xr.concat(predict_rasters(surrogate, files, LOCAL, **common), "snapshot")
    there = xr.concat(
        predict_rasters(surrogate, files, Resources(runner=runner), **common), "snapshot"
    )
    xr.testing.assert_allclose(there, here, rtol=ROUNDING)
    fires = pc.read_arrival_times(
        files, pc.sources.RasterOptions(unit="min", drought="medium", like=surrogate.grid)
    )
    one, other = (
        pc.ensemble_statistics(surrogate, fires, weather=weather, resources=Resources(runner=where))
        for where in (None, runner)
    )
    xr.testing.assert_allclose(other, one, rtol=ROUNDING)


def test_statistics_of_rasters_on_a_cluster_equal_those_here(runner, on_raster_grid, tmp_path):
    files = raster_fires(tmp_path / "fires")
    found = []
    for where in (None, runner):
        problems: list[tuple[Path, str]] = []
        fires = fires_of_rasters(
            on_raster_grid, files, format="farsite", batch=5,
            on_error=lambda *problem, to=problems: to.append(problem),
        )  # fmt: skip
        found.append(
            pc.ensemble_statistics(on_raster_grid, fires, *ASKED, resources=Resources(runner=where))
        )
        assert [path.stem for path, _ in problems] == ["f03", "f01"]
    one, other = found
    assert one.attrs["fires"] == 11
    xr.testing.assert_allclose(other, one, rtol=ROUNDING)


def test_a_worker_killed_while_rasters_are_predicted_costs_nothing(
    mortal, on_raster_grid, tmp_path, monkeypatch
):
    monkeypatch.setattr(where_read, "FILES_PER_TASK", 1)
    files = [write_ascii(tmp_path / f"f{n:02d}.asc", fire(5.0 + n)) for n in range(24)]
    victim = next(iter(mortal.client.run(os.getpid).values()))

    def kill_once(done: int, total: int, what: str) -> None:
        if done == 2:
            os.kill(victim, signal.SIGKILL)

    common = {"format": "farsite", "batch": 4}
    ours = predict_rasters(on_raster_grid, files, LOCAL, **common)
    killing = Resources(runner=mortal, progress=kill_once)
    theirs = predict_rasters(on_raster_grid, files, killing, **common)
    for one, other in zip(ours, theirs, strict=True):
        xr.testing.assert_identical(other, one)


def test_a_runner_is_nobody_on_a_worker(runner):
    assert pickle.loads(pickle.dumps(runner)) is None


def test_an_error_in_a_block_is_raised_as_it_is(runner):
    def wrong(item: int) -> int:
        raise PlumecastError(f"block {item} is wrong")

    def unreadable(item: int) -> int:
        raise OSError(f"block {item} cannot be read")

    with pytest.raises(PlumecastError, match="block 0 is wrong"):
        runner.sum(wrong, range(1))
    with pytest.raises(OSError, match="block 0 cannot be read"):  # not a lost scheduler
        runner.sum(unreadable, range(1))


@pytest.mark.parametrize(
    "error", [distributed.comm.CommClosedError, OSError, RuntimeError, distributed.CancelledError]
)
def test_a_scheduler_lost_while_a_result_is_fetched_is_named(runner, monkeypatch, error):
    async def fetch(*_futures: object, **_options: object) -> None:
        raise error("connection reset by peer")

    monkeypatch.setattr(runner.client, "_gather", fetch)
    with pytest.raises(PlumecastError, match="the Dask scheduler does not answer any more; start"):
        runner.sum(abs, [1])


def test_a_worker_out_of_memory_is_named(runner):
    def greedy(item: int) -> int:
        return np.ones(1 << 58).size

    with pytest.raises(PlumecastError, match="a worker has too little memory for its block; give"):
        runner.sum(greedy, range(1))


def test_a_block_lost_with_every_worker_is_named(mortal):
    with pytest.raises(PlumecastError, match=r"a block was lost with each of 2 workers .* memory"):
        mortal.sum(lambda item: os._exit(1), range(1))


def test_no_worker_at_all_is_named():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(PlumecastError, match="no worker has been available for 1 s; start workers"),
    ):
        scale.ClusterRunner(client, grace=1.0).sum(abs, [1])


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(scale, "CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://here", "localhost", ""):
        with (
            pytest.raises(PlumecastError, match=f"no Dask scheduler answers at {address}"),
            pc.cluster(address),
        ):
            pass


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "{model}", "{store}", "--baselines", "none"],
        ["ingest", "rasters", "fire.asc", "-o", "{out}", "--unit", "min"],
        ["predict", "{model}", "fire.asc", "-o", "{out}.nc", "--unit", "min"],
        ["ensemble", "{drawn}", "--simulate", "2", "-o", "{out}.nc"],
    ],
)
def test_commands_name_a_scheduler_that_does_not_answer(
    refused, monkeypatch, store, tmp_path, command
):
    monkeypatch.setattr(scale, "CONNECT_SECONDS", 0.5)
    places = {name: tmp_path / name for name in ("model", "drawn", "out")} | {"store": store}
    split = pc.split_by_fire(open_snapshots(store))
    for name, train in (("model", split.train.load()), ("drawn", on_demo_grid())):
        pc.fit_surrogate(train, "paper-linear").save(places[name])
    words = [word.format(**places) for word in command]
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


def test_device_and_runner_exclude_each_other(runner, store):
    with pytest.raises(PlumecastError, match="give a runner or device 'torch', not both"):
        pc.fit_surrogate(
            open_snapshots(store),
            "paper-linear",
            resources=Resources(device="torch", runner=runner),
        )


def test_commands_on_a_local_cluster(succeed, refused, store, on_raster_grid, tmp_path):
    model = tmp_path / "smoke.plume"
    place = ("--scheduler", "local", "--memory", "1MB")
    succeed("train", store, "-o", model, "--preset", "paper-linear", *place)
    common = ("--scheduler", "local")
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
    shown = succeed("evaluate", model, store, *common)
    assert "mean-field" in shown
    assert open_snapshots(tmp_path / "a.nc", fields=["smoke"]).sizes["snapshot"] == 120
    assert xr.load_dataset(tmp_path / "s.nc").attrs["snapshots"] == 120
    message = refused(
        "predict", model, store, "-o", tmp_path / "b.nc", *common, "--device", "torch"
    )
    assert message == "--scheduler cannot be combined with --device torch; give one"


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_a_store_that_changes_while_it_is_read_is_refused(tmp_path, kind):
    path = tmp_path / f"fires.{kind}"
    pc.export_snapshots(make_snapshots(fires=12), path)
    surrogate = pc.fit_surrogate(open_snapshots(path).load(), "paper-linear")
    blocks = predict_store(surrogate, path, resources=Resources(memory="100kB"))
    next(blocks)
    touch(path)
    with pytest.raises(PlumecastError, match="changed while it was read"):
        list(blocks)


def test_an_icechunk_store_is_read_at_the_commit_it_was_opened_at(tmp_path):
    path = tmp_path / "fires.zarr"
    snapshots = make_snapshots(fires=12)
    names = snapshots.fire_id.values
    pc.data.append_fire(path, snapshots.isel(snapshot=names != names[-1]))
    opened = open_snapshots(path)
    pc.data.append_fire(path, snapshots.isel(snapshot=names == names[-1]))
    surrogate = pc.fit_surrogate(opened, "paper-linear", resources=Resources(memory="1MB"))
    assert surrogate.training["data_version"] == opened.attrs["data_version"]
    assert surrogate.training["snapshots"] == np.count_nonzero(names != names[-1])


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
        found = [c for p in [me, *me.children(recursive=True)] for c in p.net_connections("inet")]
        return {tuple(item.laddr) for item in found if item.status == psutil.CONN_LISTEN}

    before = listening()
    with scale.cluster("local", 1):
        opened = listening() - before
    assert opened
    assert {address for address, _ in opened} == {scale.LOOPBACK}
