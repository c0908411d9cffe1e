"""Statistics of many fires are those of their fields, whatever the blocks."""

from __future__ import annotations

import threading

import array_api_strict as strict
import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import to_numpy
from plumecast.compute.resources import Resources
from plumecast.data.covariates import ExtrapolationWarning, extrapolating
from plumecast.scores.field_statistics import field_sums
from plumecast.scores.optical_depth import LOG_SMOKE, log_smoke, with_log_smoke
from plumecast.scores.reading import Reading
from plumecast.scores.roc import FLOOR, bin_edges, count_above, edges_at
from plumecast.scores.sampling import cluster_mean
from plumecast.simulator import ensemble as simulator
from plumecast.surrogate.guards import limits
from plumecast.workflows import ensemble
from plumecast.workflows.ensemble import BLOCK, DEVICE_BLOCK, block_size
from plumecast.workflows.fires import draw_fires as drawing
from plumecast.workflows.fires.sources import fire_blocks
from plumecast.workflows.statistics.cell_sums import EnsembleSums, block_sums, device_memory
from plumecast.workflows.statistics.request import Request, Statistics
from support.quantities import settled, time_mean
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots, on_demo_grid

THRESHOLDS, QUANTILES = (1.0, 35.0), (0.05, 0.5, 0.9, 0.99)
ROUNDING = 1e-12  # relative: sums in another order
ASKED = Reading("sum", THRESHOLDS), Statistics(QUANTILES)


@pytest.fixture(scope="module")
def surrogate(split):
    return pc.fit_surrogate(split.train, "paper-linear")


@pytest.fixture(scope="module")
def fires():
    return make_snapshots(fires=60, checkpoints=5, seed=3)


@pytest.fixture(scope="module")
def statistics(surrogate, fires):
    return pc.ensemble_statistics(surrogate, fires, *ASKED)


def test_statistics_are_those_of_the_fields(surrogate, fires, statistics):
    smoke = settled(surrogate, fires.astype(np.float64))
    xr.testing.assert_allclose(
        statistics.mean_log_smoke, log_smoke(smoke).mean(SNAPSHOT), rtol=ROUNDING
    )
    xr.testing.assert_allclose(statistics.mean_smoke, smoke.mean(SNAPSHOT), rtol=ROUNDING)
    for threshold in THRESHOLDS:
        np.testing.assert_allclose(
            statistics.exceedance.sel(threshold=threshold), (smoke > threshold).mean(SNAPSHOT)
        )
    assert statistics.attrs["fires"] == 60
    assert statistics.attrs["snapshots"] == 300
    assert statistics.smoke_quantile.attrs["units"] == "ug m-3"
    np.testing.assert_array_equal(statistics.x, fires.x)


def test_errors_take_a_fire_for_one_sample(surrogate, fires, statistics):
    log = log_smoke(settled(surrogate, fires.astype(np.float64)))
    error, share = log.std(SNAPSHOT) / np.sqrt(60), statistics.exceedance
    np.testing.assert_allclose(statistics.mean_log_smoke_error, error, atol=1e-9)
    np.testing.assert_allclose(
        statistics.exceedance_error, np.sqrt(share * (1 - share) / 60), atol=1e-15
    )


def test_means_and_thresholds_are_of_the_time_mean_unless_asked_otherwise(surrogate, fires):
    found = pc.ensemble_statistics(surrogate, fires, Reading(thresholds=[1.0]))
    smoke = pc.scores.as_quantity(settled(surrogate, fires.astype(np.float64)), "mean")
    xr.testing.assert_allclose(found.mean_smoke, smoke.mean(SNAPSHOT), rtol=ROUNDING)
    np.testing.assert_allclose(found.exceedance[0], (smoke > 1.0).mean(SNAPSHOT))
    assert found.attrs["quantity"] == "mean"
    assert "time-mean" in found.threshold.attrs["long_name"]
    dose = pc.ensemble_statistics(surrogate, fires, Reading("dose"))
    assert dose.mean_smoke.attrs["units"] == "ug m-3 h"


def test_intervals_are_clustered_by_ignition(surrogate, fires):
    found = pc.ensemble_statistics(
        surrogate, fires, Reading(thresholds=[1.0]), Statistics(coverage=0.9)
    )
    predicted = settled(surrogate, fires.astype(np.float64))
    mean = pc.scores.as_quantity(predicted, "mean")
    for name, smoke in (("mean_smoke", mean), ("mean_log_smoke", log_smoke(predicted))):
        want = cluster_mean(smoke.values, fires.ignition_id.values)
        upper = np.where(want.mean > 0.0, want.interval(0.9)[1], np.nan)  # no smoke: unknown
        np.testing.assert_allclose(found[f"{name}_upper"], upper, rtol=1e-9)
    assert found.attrs["ignitions"] == 30
    none = found.exceedance.values == 0.0
    assert none.any()
    assert (found.exceedance_upper.values[none] > 0.05).all(), "0 of 30 ignitions is not certain"


def test_true_smoke_corrects_the_fields(split, fires):
    twice = split.train.assign(smoke=2.0 * split.train.smoke)
    surrogate = pc.fit_surrogate(twice, "paper-linear")
    truth = make_snapshots(fires=24, checkpoints=5, seed=11)
    names = np.char.add("true-", truth.ignition_id.values.astype(str))
    truth = truth.assign_coords(ignition_id=(SNAPSHOT, names))
    found = pc.ensemble_statistics(surrogate, fires, Reading(thresholds=[1.0]), truth=truth)
    known = time_mean(fires.smoke, settled(surrogate, fires)).mean(SNAPSHOT)
    wrong = float(np.abs(found.mean_smoke_surrogate - known).sum())
    assert float(np.abs(found.mean_smoke - known).sum()) < 0.5 * wrong
    assert set(np.unique(found.mean_smoke_corrected)) <= {0, 1}
    assert found.attrs["true_ignitions"] == 12
    assert found.mean_smoke_corrected.attrs["flag_meanings"] == "monte_carlo control_variate"


@pytest.mark.parametrize("error", [0.001, 0.1])
def test_quantiles_are_within_their_bound(surrogate, fires, error):
    found = pc.ensemble_statistics(
        surrogate, fires, Reading("sum"), Statistics(QUANTILES, quantile_error=error)
    ).smoke_quantile
    smoke = settled(surrogate, fires.astype(np.float64))
    exact = np.quantile(smoke.values, QUANTILES, axis=0, method="inverted_cdf")
    assert (exact > FLOOR).any()
    np.testing.assert_allclose(found.values, exact, rtol=error * (1.0 + 1e-9), atol=FLOOR)


@pytest.mark.parametrize("size", [1, 64])
def test_any_blocks_give_the_same(surrogate, fires, size):
    request = Request(*ASKED)
    parts = [block_sums(surrogate, request, b) for b in fire_blocks(surrogate, fires, size)]
    total = sum(reversed(parts[:-1]), start=parts[-1])
    assert isinstance(total, EnsembleSums)
    whole = block_sums(surrogate, request, fires).fields
    np.testing.assert_array_equal(total.fields.bins, whole.bins)
    np.testing.assert_array_equal(total.fields.above, whole.above)
    np.testing.assert_allclose(total.fields.log, whole.log, rtol=ROUNDING)
    assert len(total.fires) == 60
    assert total.fields.bins.sum() == 300 * surrogate.outputs.size


@pytest.fixture(scope="module")
def stores(fires, tmp_path_factory):
    """The fires in two stores, every second one in each."""
    folder = tmp_path_factory.mktemp("stores")
    _, fire = np.unique(fires.fire_id.values.astype(str), return_inverse=True)
    for number in range(2):
        part = fires.isel({SNAPSHOT: np.flatnonzero(fire % 2 == number)})
        pc.data.append_fire(folder / f"{number}.zarr", part)
    return [folder / "0.zarr", folder / "1.zarr"]


def test_stores_memory_and_device_change_nothing(surrogate, stores, statistics):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    resources = Resources(device="torch", memory="4MB")
    found = pc.ensemble_statistics(surrogate, stores, *ASKED, resources=resources)
    xr.testing.assert_allclose(found, statistics, rtol=1e-8)


def test_threads_that_read_for_a_gpu_change_nothing(surrogate, stores, monkeypatch):
    """Blocks of several stores, read by threads, give the same to the last bit."""
    used = []

    def statistics(free):
        monkeypatch.setattr(ensemble, "device_memory", lambda placed: free)
        monkeypatch.setattr(ensemble, "block_size", lambda *given: 16)
        return pc.ensemble_statistics(surrogate, stores, *ASKED)

    def recorded(*given):
        used.append(threading.current_thread().name)
        return block_sums(*given)

    alone = statistics(None)
    monkeypatch.setattr(ensemble, "block_sums", recorded)
    xr.testing.assert_identical(statistics(10**9), alone)
    assert threading.current_thread().name not in used


def test_blocks_follow_the_free_memory_of_a_gpu(surrogate):
    """Twice the memory gives twice the snapshots, up to a limit; `memory` may allow fewer."""
    request = Request(Reading(thresholds=THRESHOLDS))
    few = block_size(surrogate, request, None, 10_000_000)
    assert 1 < few < BLOCK
    assert block_size(surrogate, request, None, 20_000_000) == pytest.approx(2 * few, abs=1)
    assert block_size(surrogate, request, None, 10**12) == DEVICE_BLOCK
    assert block_size(surrogate, request, None) == BLOCK
    assert block_size(surrogate, request, "4MB", 10**12) == block_size(surrogate, request, "4MB")
    assert device_memory(surrogate) is None


def test_mean_of_unclipped_logarithms_is_taken_in_code_space(split, fires):
    train = with_log_smoke(split.train)
    surrogate = pc.fit_surrogate(train, "paper-linear", outputs=LOG_SMOKE, nonnegative=False)
    request = Request()
    sums = block_sums(surrogate, request, fires).fields
    assert not hasattr(sums, "bins")
    found = pc.ensemble_statistics(surrogate, fires)
    predicted = surrogate.predict(fires.astype(np.float64))
    xr.testing.assert_allclose(found.mean_log_smoke, predicted.mean(SNAPSHOT), atol=1e-10)
    expected = predicted.std(SNAPSHOT) / np.sqrt(60)
    np.testing.assert_allclose(found.mean_log_smoke_error, expected, atol=1e-8)
    more = pc.ensemble_statistics(surrogate, fires, Reading("sum", [1.0]))
    smoke = np.expm1(predicted.clip(min=0.0))
    np.testing.assert_allclose(more.exceedance[0], (smoke > 1.0).mean(SNAPSHOT))


def test_final_takes_one_snapshot_of_every_fire_and_single_precision_is_near(surrogate, fires):
    asked = {
        precision: Statistics(final=True, precision=precision)
        for precision in ("float64", "float32")
    }
    exact, near = (pc.ensemble_statistics(surrogate, fires, statistics=s) for s in asked.values())
    assert (exact.attrs["fires"], exact.attrs["snapshots"]) == (60, 60)
    np.testing.assert_allclose(near.mean_log_smoke, exact.mean_log_smoke, atol=1e-4)


def test_sums_on_another_namespace_equal_numpy():
    fields = np.exp(np.random.default_rng(0).normal(size=(9, 5), scale=8.0))
    fields[:, 0] = 0.0
    one = field_sums(fields, (1.0,), quantiles=True)
    other = field_sums(strict.asarray(fields), (1.0,), quantiles=True)
    np.testing.assert_array_equal(to_numpy(other.bins), one.bins)
    np.testing.assert_array_equal(to_numpy(other.above), one.above)


def test_edges_of_a_stream_are_quantiles_to_one_bin():
    values = np.exp(np.random.default_rng(1).normal(size=4000))
    edges = bin_edges(values)
    above = sum(count_above(part, edges) for part in np.split(values, 5))
    shares = [0.1, 0.5, 0.9]
    found = edges_at(shares, above, edges)
    np.testing.assert_allclose(found, np.quantile(values, shares), rtol=0.025)


def test_command_writes_the_statistics(succeed, surrogate, fires, statistics, tmp_path):
    surrogate.save(tmp_path / "smoke.plume")
    pc.data.append_fire(tmp_path / "fires.zarr", fires)
    for name in ("stats.nc", "stats.zarr"):
        printed = succeed(
            "ensemble", tmp_path / "smoke.plume", tmp_path / "fires.zarr", "-o", tmp_path / name,
            "--thresholds", "1,35", "--quantiles", "0.05,0.5,0.9,0.99", "--quantity", "sum",
        )  # fmt: skip
        assert "statistics of 300 snapshots of 60 fires" in printed
        options = {} if name == "stats.nc" else {"engine": "zarr", "consolidated": False}
        written = xr.load_dataset(tmp_path / name, **options)
        xr.testing.assert_allclose(written, statistics, rtol=1e-6)


@pytest.fixture(scope="module")
def on_simulated_grid():
    return pc.fit_surrogate(on_demo_grid(), "paper-linear")


@pytest.fixture(scope="module")
def drawn(on_simulated_grid):
    return pc.draw_fires(2, like=on_simulated_grid.grid, droughts=["low", "high"])


def test_statistics_of_drawn_fires_are_those_of_their_fields(
    succeed, on_simulated_grid, drawn, tmp_path, monkeypatch
):
    monkeypatch.setattr(drawing, "TOGETHER", 1)
    heard = []
    found = pc.ensemble_statistics(
        on_simulated_grid,
        drawn,
        statistics=Statistics([0.5]),
        resources=Resources(progress=lambda *step: heard.append(step)),
    )
    made = drawn.make(drawn.plans)  # the same fires all at once
    expected = pc.ensemble_statistics(on_simulated_grid, made, statistics=Statistics([0.5]))
    xr.testing.assert_allclose(found, expected, rtol=ROUNDING)
    assert heard == [(1, 2, "fires"), (2, 2, "fires")]
    assert found.attrs["snapshots"] == 2 * 15
    on_simulated_grid.save(tmp_path / "smoke.plume")
    printed = succeed(
        "ensemble", tmp_path / "smoke.plume", "--simulate", 2, "--drought", "low,high",
        "--quantiles", "0.5", "-o", tmp_path / "stats.nc",
    )  # fmt: skip
    assert "statistics of 30 snapshots of 2 fires" in printed
    written = xr.load_dataset(tmp_path / "stats.nc")
    xr.testing.assert_allclose(written, expected, rtol=1e-6)


def test_drawn_fires_are_new_ignitions_under_the_droughts_in_turn(drawn):
    trained = {plan.number for plan in simulator.plan_fires(1000, ["low"], seed=0)}
    assert not trained & {plan.number for plan in drawn.plans}
    other = pc.draw_fires(3, preset="demo", seed=7, droughts=["low", "high"])
    assert [plan.drought for plan in other.plans] == ["low", "high", "low"]
    assert other.plans[0].number == other.plans[1].number != other.plans[2].number
    assert other.simulator.world.seed == 7
    assert other.simulator.world.shape == (400, 500)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "cannot draw 0 fires; ask for at least 1"),
        ({"preset": "big"}, "unknown preset 'big'"),
        ({"droughts": ["wet"]}, "unknown drought 'wet'"),
        ({"droughts": []}, "droughts is empty"),
        ({"preset": "paper"}, r"preset 'paper' is not .* grid of 40 × 50 .* take preset 'demo'"),
    ],
)
def test_fires_that_cannot_be_drawn_are_refused(on_simulated_grid, given, message):
    with pytest.raises(PlumecastError, match=message):
        pc.draw_fires(**{"count": 2, "like": on_simulated_grid.grid, **given})


def test_command_draws_fires_only_for_surrogates_that_know_their_grid(refused, split, tmp_path):
    model, out = tmp_path / "smoke.plume", ("-o", tmp_path / "a.nc")
    pc.fit_surrogate(split.train, "paper-linear").save(model)
    either = "give either stores or rasters of fires, or --simulate with a number"
    for words, said in (
        (
            "--simulate 2",
            "simulated fires are not on the surrogate's grid of 8 × 10 cells of 3000 m; no preset "
            "has it, give elevation and fuel rasters",
        ),
        ("", either),
        ("a.zarr --simulate 2", either),
        ("--simulate 2 --unit min", "--format and --unit are for rasters, not for --simulate"),
        ("a.zarr --preset demo", "--preset is for --simulate; leave it out"),
        ("a.zarr --steering 0", "--steering is for --simulate; leave it out"),
        ("a.zarr --seed 0", "--seed is for --simulate; leave it out"),
        ("a.zarr --dem dem.tif", "--dem is for --simulate; leave it out"),
        ("a.zarr -o a.png", "a.png: unknown file ending '.png'; use .nc, .zarr or .tif"),
        (
            "none.zarr --thresholds a",
            "'a' is not a list of numbers separated by commas",
        ),
        ("none.zarr", "none.zarr does not exist"),
    ):
        assert said in refused("ensemble", model, *out, *words.split())
    two = with_log_smoke(split.train)
    pc.fit_surrogate(two, inputs=["time_since_ignition", LOG_SMOKE]).save(model)
    said = refused("ensemble", model, *out, "--simulate", 2)
    assert "simulated fires give only time_since_ignition" in said


def test_command_takes_rasters_and_warns_of_those_beyond_training(run, surrogate, tmp_path):
    surrogate.save(tmp_path / "smoke.plume")
    arrival = np.full((12, 20), np.nan)
    arrival[4, 2:18] = 2500.0 * np.arange(16)
    size = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": CELL / 5, "YLLCORNER": 6000.0}
    rasters = [
        write_ascii(tmp_path / f"{name}.asc", arrival, XLLCORNER=left, **size)
        for name, left in (("a", 6000.0), ("b", 6000.0), ("away", -1e6))
    ]
    words = ("ensemble", tmp_path / "smoke.plume", *rasters, "--format", "farsite")
    result = run(*words, "-o", tmp_path / "stats.nc")
    assert result.code == 1
    assert "statistics of 2 snapshots of 2 fires" in result.out
    assert "away.asc" in result.err
    assert result.err.count("warning:") == 1
    beyond = "2 of 2 snapshots lie beyond the training fires: fire a at 625 h and 1 more"
    assert beyond in result.err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda *of: Statistics([1.0]), r"quantile 1 is not within \(0, 1\)"),
        (lambda *of: Reading(thresholds=[-1.0]), "must be ≥ 0"),
        (lambda *of: Statistics(quantile_error=0.0), "a quantile error of 0 is not within"),
        (
            lambda *of: pc.ensemble_statistics(
                *of, statistics=Statistics([0.5]), resources=Resources(memory="10kB")
            ),
            "ensemble statistics needs at least",
        ),
        (lambda model, fires: pc.ensemble_statistics(model, []), "there are no fires"),
    ],
)
def test_what_cannot_be_computed_is_refused(surrogate, fires, call, message):
    with pytest.raises(PlumecastError, match=message):
        call(surrogate, fires)


def test_one_warning_says_how_many_snapshots_lie_beyond_training(surrogate, fires):
    """Whatever the blocks are, and with fields that are never decoded."""
    old = fires.assign(time_since_ignition=fires.time_since_ignition * 50.0)
    mixed = xr.concat([fires.isel(snapshot=slice(0, 100)), old.isel(snapshot=slice(100, 130))],
                      SNAPSHOT, data_vars="minimal")  # fmt: skip
    found = []
    for memory in (None, "3MB"):
        with pytest.warns(ExtrapolationWarning, match="snapshots lie beyond the training fires"
                          ) as given:  # fmt: skip
            statistics = pc.ensemble_statistics(
                surrogate, mixed, resources=Resources(memory=memory)
            )
        assert len(given) == 1
        found.append((str(given[0].message), statistics.attrs["snapshots_beyond_training"]))
    assert found[0] == found[1]
    with extrapolating():
        flags = surrogate.predict_checked(mixed)[1].flags(limits(surrogate))
    assert found[0][1] == int((flags != 0).sum())
    assert "of 130 snapshots" in found[0][0]
