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
from plumecast.scores.field_statistics import bin_count, count_bins, field_sums, quantile_fields
from plumecast.scores.optical_depth import LOG_SMOKE, log_smoke, with_log_smoke
from plumecast.scores.reading import Reading
from plumecast.scores.roc import CEILING, FLOOR, bin_edges, count_above, edges_at
from plumecast.scores.sampling import cluster_mean
from plumecast.simulator import ensemble as simulator
from plumecast.surrogate.guards import limits
from plumecast.workflows import ensemble
from plumecast.workflows.ensemble import BLOCK, DEVICE_BLOCK, block_size
from plumecast.workflows.fires import draw_fires as drawing
from plumecast.workflows.fires.sources import fire_blocks
from plumecast.workflows.statistics.cell_sums import EnsembleSums, block_sums, device_memory
from plumecast.workflows.statistics.request import Request, Statistics
from support.quantities import time_mean
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
    smoke = surrogate.predict(fires.astype(np.float64))
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
    log = log_smoke(surrogate.predict(fires.astype(np.float64)))
    np.testing.assert_allclose(
        statistics.mean_log_smoke_error, log.std(SNAPSHOT) / np.sqrt(60), atol=1e-9
    )
    share = statistics.exceedance
    np.testing.assert_allclose(
        statistics.exceedance_error, np.sqrt(share * (1 - share) / 60), atol=1e-15
    )


def test_means_and_thresholds_are_of_the_time_mean_unless_asked_otherwise(surrogate, fires):
    found = pc.ensemble_statistics(surrogate, fires, Reading(thresholds=[1.0]))
    smoke = pc.scores.as_quantity(surrogate.predict(fires.astype(np.float64)), "mean")
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
    smoke = pc.scores.as_quantity(surrogate.predict(fires.astype(np.float64)), "mean")
    want = cluster_mean(smoke.values, fires.ignition_id.values)
    upper = np.where(want.mean > 0.0, want.interval(0.9)[1], np.nan)  # no smoke at all: unknown
    np.testing.assert_allclose(found.mean_smoke_upper, upper, rtol=1e-9)
    assert found.attrs["ignitions"] == 30
    none = found.exceedance.values == 0.0
    assert none.any()
    assert (found.exceedance_upper.values[none] > 0.05).all(), "0 of 30 ignitions is not certain"
    log = log_smoke(surrogate.predict(fires.astype(np.float64)))
    want = cluster_mean(log.values, fires.ignition_id.values)
    upper = np.where(want.mean > 0.0, want.interval(0.9)[1], np.nan)
    np.testing.assert_allclose(found.mean_log_smoke_upper, upper, rtol=1e-9)


def test_true_smoke_corrects_the_fields(split, fires):
    twice = split.train.assign(smoke=2.0 * split.train.smoke)
    surrogate = pc.fit_surrogate(twice, "paper-linear")
    truth = make_snapshots(fires=24, checkpoints=5, seed=11)
    names = np.char.add("true-", truth.ignition_id.values.astype(str))
    truth = truth.assign_coords(ignition_id=(SNAPSHOT, names))
    found = pc.ensemble_statistics(surrogate, fires, Reading(thresholds=[1.0]), truth=truth)
    known = time_mean(fires.smoke, surrogate.predict(fires)).mean(SNAPSHOT)
    wrong = float(np.abs(found.mean_smoke_surrogate - known).sum())
    assert float(np.abs(found.mean_smoke - known).sum()) < 0.5 * wrong
    assert set(np.unique(found.mean_smoke_corrected)) <= {0, 1}
    assert found.attrs["true_ignitions"] == 12
    assert found.mean_smoke_corrected.attrs["flag_meanings"] == "monte_carlo control_variate"


def test_a_surrogate_without_interval_asks_for_it(split, fires):
    plain = split.train.assign(smoke=split.train.smoke.drop_attrs().assign_attrs(units="ug m-3"))
    surrogate = pc.fit_surrogate(plain, "paper-linear")
    with pytest.raises(PlumecastError, match=r"checkpoint_interval.*or use the quantity 'sum'"):
        pc.ensemble_statistics(surrogate, fires)
    stated = pc.ensemble_statistics(surrogate, fires, Reading(interval=6.0))
    summed = pc.ensemble_statistics(surrogate, fires, Reading("sum"))
    assert float(stated.mean_smoke.sum()) < float(summed.mean_smoke.sum())


@pytest.mark.parametrize("error", [0.001, 0.025, 0.1])
def test_quantiles_are_within_their_bound(surrogate, fires, error):
    found = pc.ensemble_statistics(
        surrogate, fires, Reading("sum"), Statistics(QUANTILES, quantile_error=error)
    ).smoke_quantile
    smoke = surrogate.predict(fires.astype(np.float64))
    exact = np.quantile(smoke.values, QUANTILES, axis=0, method="inverted_cdf")
    assert (exact > FLOOR).any()
    np.testing.assert_allclose(found.values, exact, rtol=error * (1.0 + 1e-9), atol=FLOOR)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_any_blocks_give_the_same(surrogate, fires, statistics, size):
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


def test_stores_memory_and_device_change_nothing(surrogate, fires, statistics, tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    half = fires.sizes[SNAPSHOT] // 2
    for number, rows in enumerate((slice(0, half), slice(half, None))):
        pc.data.append_fire(tmp_path / f"{number}.zarr", fires.isel({SNAPSHOT: rows}))
    found = pc.ensemble_statistics(
        surrogate,
        [tmp_path / "0.zarr", tmp_path / "1.zarr"],
        *ASKED,
        resources=Resources(device="torch", memory="4MB"),
    )
    xr.testing.assert_allclose(found, statistics, rtol=1e-8)


def test_threads_that_read_for_a_gpu_change_nothing(surrogate, fires, monkeypatch, tmp_path):
    """Blocks of several stores, read by threads, give the same to the last bit."""
    for number in range(2):
        pc.data.append_fire(
            tmp_path / f"{number}.zarr", fires.isel({SNAPSHOT: slice(number, None, 2)})
        )
    used = []

    def statistics(free):
        monkeypatch.setattr(ensemble, "device_memory", lambda placed: free)
        monkeypatch.setattr(ensemble, "block_size", lambda *given: 16)
        return pc.ensemble_statistics(
            surrogate,
            [tmp_path / "0.zarr", tmp_path / "1.zarr"],
            Reading(thresholds=THRESHOLDS),
            Statistics(QUANTILES),
        )

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


def test_final_takes_one_snapshot_of_every_fire(surrogate, fires):
    found = pc.ensemble_statistics(surrogate, fires, statistics=Statistics(final=True))
    assert (found.attrs["fires"], found.attrs["snapshots"]) == (60, 60)


def test_single_precision_is_near(surrogate, fires, statistics):
    found = pc.ensemble_statistics(surrogate, fires, statistics=Statistics(precision="float32"))
    np.testing.assert_allclose(found.mean_log_smoke, statistics.mean_log_smoke, atol=1e-4)


def test_sums_on_another_namespace_equal_numpy():
    fields = np.exp(np.random.default_rng(0).normal(size=(9, 5), scale=8.0))
    fields[:, 0] = 0.0
    one = field_sums(fields, (1.0,), quantiles=True)
    other = field_sums(strict.asarray(fields), (1.0,), quantiles=True)
    np.testing.assert_array_equal(to_numpy(other.bins), one.bins)
    np.testing.assert_array_equal(to_numpy(other.above), one.above)


def test_bins_hold_every_value_and_their_edges():
    values = np.array([[0.0, FLOOR, 1.0, CEILING, 10 * CEILING]])
    bins = count_bins(values, 0.025)
    assert bins.shape == (5, bin_count(0.025))
    assert bins.sum() == 5
    assert [int(np.argmax(row)) for row in bins[:2]] == [0, 0]
    assert [int(np.argmax(row)) for row in bins[3:]] == [bins.shape[1] - 1] * 2
    assert quantile_fields(bins, (0.5,), 0.025)[0, 2] == pytest.approx(1.0, rel=0.025)


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
    written = xr.load_dataset(tmp_path / "stats.nc")
    xr.testing.assert_allclose(written, statistics, rtol=1e-6)


@pytest.fixture(scope="module")
def on_simulated_grid():
    return pc.fit_surrogate(on_demo_grid(), "paper-linear")


@pytest.fixture(scope="module")
def drawn(on_simulated_grid):
    return pc.draw_fires(3, like=on_simulated_grid.grid, droughts=["low", "high"])


@pytest.fixture(scope="module")
def made(drawn):
    """The same fires all at once."""
    return drawn.make(drawn.plans)


def test_statistics_of_drawn_fires_are_those_of_their_fields(
    succeed, on_simulated_grid, drawn, made, tmp_path, monkeypatch
):
    monkeypatch.setattr(drawing, "TOGETHER", 2)
    heard = []
    found = pc.ensemble_statistics(
        on_simulated_grid,
        drawn,
        statistics=Statistics([0.5]),
        resources=Resources(progress=lambda *step: heard.append(step)),
    )
    expected = pc.ensemble_statistics(on_simulated_grid, made, statistics=Statistics([0.5]))
    xr.testing.assert_allclose(found, expected, rtol=ROUNDING)
    assert heard == [(2, 3, "fires"), (3, 3, "fires")]
    assert found.attrs["snapshots"] == 3 * 15
    last = pc.ensemble_statistics(
        on_simulated_grid,
        drawn,
        statistics=Statistics(final=True),
        resources=Resources(memory="3MB"),
    )
    assert last.attrs["snapshots"] == 3
    on_simulated_grid.save(tmp_path / "smoke.plume")
    printed = succeed(
        "ensemble", tmp_path / "smoke.plume", "--simulate", 3, "--drought", "low,high",
        "--quantiles", "0.5", "-o", tmp_path / "stats.nc",
    )  # fmt: skip
    assert "statistics of 45 snapshots of 3 fires" in printed
    written = xr.load_dataset(tmp_path / "stats.nc")
    xr.testing.assert_allclose(written, expected, rtol=1e-6)


def test_drawn_fires_are_those_of_the_simulator_without_smoke(drawn, made):
    assert "smoke" not in made
    plan = drawn.plans[1]
    whole = drawn.simulator.fire(plan)
    front = made.isel(snapshot=made.fire_id.values == plan.fire_id)
    xr.testing.assert_identical(whole.drop_vars(["smoke", "dose_scale"]), front)


def test_drawn_fires_are_new_ignitions_under_the_droughts_in_turn(drawn):
    trained = {plan.number for plan in simulator.plan_fires(1000, ["low"], seed=0)}
    assert not trained & {plan.number for plan in drawn.plans}
    assert [plan.drought for plan in drawn.plans] == ["low", "high", "low"]
    assert drawn.plans[0].number == drawn.plans[1].number != drawn.plans[2].number
    other = pc.draw_fires(1, preset="demo", seed=7)
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
    common = ("ensemble", model, *out)
    said = refused(*common, "--simulate", 2)
    where = "simulated fires are not on the surrogate's grid of 8 × 10 cells of 3000 m"
    assert said == f"{where}; no preset has it, give elevation and fuel rasters"
    either = "give either stores or rasters of fires, or --simulate with a number"
    assert refused(*common) == either
    assert refused(*common, "a.zarr", "--simulate", 2) == either
    other = "--format and --unit are for rasters, not for --simulate"
    assert refused(*common, "--simulate", 2, "--unit", "min") == other
    for name, value in (("preset", "demo"), ("steering", 0), ("seed", 0), ("dem", "dem.tif")):
        said = refused(*common, "a.zarr", f"--{name}", value)
        assert said == f"--{name} is for --simulate; leave it out"
    two = with_log_smoke(split.train)
    pc.fit_surrogate(two, inputs=["time_since_ignition", LOG_SMOKE]).save(model)
    said = refused(*common, "--simulate", 2)
    assert "simulated fires give only time_since_ignition" in said


def test_command_takes_rasters(run, surrogate, tmp_path):
    surrogate.save(tmp_path / "smoke.plume")
    arrival = np.full((12, 20), np.nan)
    arrival[4, 2:18] = 30.0 * np.arange(16)
    size = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": CELL / 5}
    write_ascii(tmp_path / "a.asc", arrival, XLLCORNER=6000.0, YLLCORNER=6000.0, **size)
    write_ascii(tmp_path / "b.asc", arrival, XLLCORNER=-1e6, YLLCORNER=6000.0, **size)
    result = run(
        "ensemble", tmp_path / "smoke.plume", tmp_path / "a.asc", tmp_path / "b.asc",
        "--format", "farsite", "-o", tmp_path / "stats.nc",
    )  # fmt: skip
    assert result.code == 1
    assert "statistics of 1 snapshots of 1 fires" in result.out
    assert "b.asc" in result.err


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


def test_arguments_of_the_last_version_are_taken_with_a_warning(surrogate, fires):
    with pytest.warns(DeprecationWarning, match=r"use (reading=Reading|statistics=Statistics)"):
        old = pc.ensemble_statistics(
            surrogate, fires, thresholds=[1.0], checkpoint_interval=6.0, final=True
        )
    new = pc.ensemble_statistics(
        surrogate, fires, Reading(thresholds=[1.0], interval=6.0), Statistics(final=True)
    )
    xr.testing.assert_identical(old, new)


def test_command_refuses_what_it_cannot_read(refused, surrogate, tmp_path):
    surrogate.save(tmp_path / "smoke.plume")
    common = ("ensemble", tmp_path / "smoke.plume", "none.zarr", "-o")
    assert "unknown file ending '.png'" in refused(*common, tmp_path / "a.png")
    out = tmp_path / "a.nc"
    assert refused(*common, out, "--thresholds", "a") == (
        "--thresholds 'a' is not a list of numbers separated by commas"
    )
    assert refused(*common, out) == "none.zarr does not exist"


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
    assert found[0][1] == int((flags_of(surrogate, mixed) != 0).sum())
    assert "of 130 snapshots" in found[0][0]


def flags_of(surrogate, fires):
    with extrapolating():
        return surrogate.predict_checked(fires)[1].flags(limits(surrogate))


def test_command_warns_of_rasters_beyond_training(run, surrogate, tmp_path):
    surrogate.save(tmp_path / "smoke.plume")
    arrival = np.full((12, 20), np.nan)
    arrival[4, 2:18] = 2500.0 * np.arange(16)
    size = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": CELL / 5}
    for name in "ab":
        write_ascii(tmp_path / f"{name}.asc", arrival, XLLCORNER=6000.0, YLLCORNER=6000.0, **size)
    result = run(
        "ensemble", tmp_path / "smoke.plume", tmp_path / "a.asc", tmp_path / "b.asc",
        "--format", "farsite", "-o", tmp_path / "stats.nc",
    )  # fmt: skip
    assert result.code == 0
    assert result.err.count("warning:") == 1
    assert (
        "2 of 2 snapshots lie beyond the training fires: fire a at 625 h and 1 more" in result.err
    )
