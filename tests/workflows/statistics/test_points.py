"""Statistics at places are those of the samples there; intervals are clustered by ignition."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.scores.reading import Reading
from plumecast.scores.sampling import cluster_mean, quantiles_with_intervals
from plumecast.sources.places import read_places
from plumecast.workflows.statistics.estimates import Corrected, nested_shares
from plumecast.workflows.statistics.request import Statistics
from plumecast.workflows.statistics.samples import predicted_at, surrogate_at
from support.calibrations import calibrate
from support.quantities import settled, time_mean
from support.snapshots import CELL, make_snapshots
from support.two_outputs import add_surface

ROUNDING = 1e-12
OUTPUTS = ["smoke", "surface_smoke"]


@pytest.fixture(scope="module")
def surrogate(split):
    return pc.fit_surrogate(split.train, "paper-quadratic")


@pytest.fixture(scope="module")
def fires():
    made = make_snapshots(fires=40, checkpoints=3, seed=8)
    return renamed(made, "new")


def renamed(snapshots, prefix):
    names = {
        name: ("snapshot", np.char.add(f"{prefix}-", snapshots[name].values.astype(str)))
        for name in ("fire_id", "ignition_id")
    }
    return snapshots.assign_coords(names)


@pytest.fixture
def towns(tmp_path):
    path = tmp_path / "towns.csv"
    rows = [f"A,{5 * CELL},{3 * CELL},100", f"B,{7 * CELL},{5 * CELL},900", f"C,{2 * CELL},0,"]
    path.write_text("\n".join(["name,x,y,population", *rows]) + "\n")
    return path


def test_statistics_are_those_of_the_time_mean_at_the_cells(surrogate, fires, towns):
    found = pc.evaluate_points(
        surrogate, fires, towns, Reading(thresholds=[1.0]), Statistics([0.5])
    )
    smoke = pc.scores.as_quantity(settled(surrogate, fires.astype(np.float64)), "mean")
    mean = smoke.values[:, [3, 5, 0], [5, 7, 2]]
    want = cluster_mean(mean, fires.ignition_id.values)
    np.testing.assert_allclose(found.mean_smoke, want.mean, rtol=1e-9)
    upper = np.where(want.mean > 0.0, want.interval(0.95)[1], np.nan)  # no smoke at C: unknown
    np.testing.assert_allclose(found.mean_smoke_upper, upper, rtol=1e-9)
    np.testing.assert_allclose(found.exceedance[0], (mean > 1.0).mean(axis=0))
    assert (found.exceedance_lower <= found.exceedance).all()
    assert (found.exceedance_upper > found.exceedance_lower).all()
    middle = np.quantile(mean, 0.5, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(found.smoke_quantile[0], middle, rtol=1e-9)
    assert found.attrs["ignitions"] == 20
    people = cluster_mean(mean @ [0.1, 0.9, 0.0], fires.ignition_id.values)
    np.testing.assert_allclose(found.exposure, people.mean, rtol=1e-9)
    np.testing.assert_allclose(found.exposure_upper, people.interval(0.95)[1], rtol=1e-9)
    persons = ((mean > 1.0) @ [100.0, 900.0, 0.0]).mean()
    np.testing.assert_allclose(found.persons_above, [persons])


def test_only_the_columns_of_places_are_decoded(surrogate, fires, towns):
    places = read_places(towns, surrogate.grid)
    restricted = surrogate_at(surrogate, places)
    assert restricted.operator.output_basis.modes.shape[1] == 3
    fields = settled(surrogate, fires.astype(np.float64)).values.reshape(120, -1)
    found = predicted_at(places, surrogate, fires, Reading("sum"))
    np.testing.assert_allclose(found.values, fields[:, places.cells], rtol=1e-9, atol=1e-12)


def test_true_smoke_corrects_a_surrogate_that_is_twice_too_large(split, fires, towns):
    twice = split.train.assign(smoke=2.0 * split.train.smoke)
    surrogate = pc.fit_surrogate(twice, "paper-linear")
    truth = renamed(make_snapshots(fires=24, checkpoints=3, seed=9), "true")
    both = xr.concat([truth, split.train], "snapshot", combine_attrs="override")
    found = pc.evaluate_points(surrogate, fires, towns, Reading(thresholds=[1.0]), truth=both)
    assert found.attrs["true_ignitions"] == 12
    trained = np.unique(split.train.ignition_id).size
    assert found.attrs["training_ignitions_left_out"] == trained
    truly = time_mean(fires.smoke, settled(surrogate, fires))
    known = truly.values[:, [3, 5, 0], [5, 7, 2]]
    used = found.mean_smoke_corrected.values == 1
    assert used.any()
    wrong = np.abs(found.mean_smoke_surrogate.values - known.mean(axis=0))
    right = np.abs(found.mean_smoke.values - known.mean(axis=0))
    assert right[used].sum() < wrong[used].sum()
    assert (found.mean_smoke_correlation.values[used] > 0.3).all()


@pytest.fixture(scope="module")
def twice(split):
    """A calibrated surrogate that predicts twice the smoke."""
    doubled = split.train.assign(smoke=2.0 * split.train.smoke)
    seen = renamed(make_snapshots(fires=32, checkpoints=3, seed=9), "seen")
    return calibrate(pc.fit_surrogate(doubled, "paper-linear"), seen)


def test_a_calibration_corrects_a_surrogate_that_is_twice_too_large(twice, fires, towns):
    found = pc.evaluate_points(twice, fires, towns, Reading(thresholds=[1.0]))
    assert found.attrs["calibration_ignitions"] == 16
    plain = pc.evaluate_points(
        replace(twice, error_bars=None), fires, towns, Reading(thresholds=[1.0])
    )
    for name in ("mean_smoke", "exceedance"):
        np.testing.assert_allclose(found[f"{name}_surrogate"], plain[name], rtol=ROUNDING)
    assert (found.mean_smoke_lower <= found.mean_smoke).all()
    assert (found.mean_smoke_upper > found.mean_smoke).all()
    assert float(found.mean_smoke[2]) > 0.0, "smoke that is not predicted is expected still"
    share = np.array([0.1, 0.9, 0.0])
    np.testing.assert_allclose(found.exposure, found.mean_smoke.values @ share, rtol=ROUNDING)


def test_cells_and_places_agree(twice, fires, towns):
    """The streamed sums of all cells are those of the samples at places."""
    asked = Reading(thresholds=[1.0, 5.0]), Statistics(coverage=0.8)
    places = pc.evaluate_points(twice, fires, towns, *asked)
    cells = pc.ensemble_statistics(twice, fires, *asked)
    at = {"y": xr.DataArray([3, 5, 0], dims="place"), "x": xr.DataArray([5, 7, 2], dims="place")}
    for name in ("mean_smoke", "exceedance"):
        for ending in ("", "_lower", "_upper", "_surrogate"):
            one, two = places[name + ending], cells[name + ending].isel(at)
            np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12, err_msg=name + ending)
    assert (cells.mean_log_smoke_upper > cells.mean_log_smoke).all()
    known = float(time_mean(fires.smoke, settled(twice, fires)).mean())
    own, best = (float(cells[name].mean()) for name in ("mean_smoke_surrogate", "mean_smoke"))
    assert own > 1.5 * known, "the mean over the grid is too large"
    assert abs(best - known) < 0.3 * (own - known)
    log = float(np.log1p(fires.smoke).mean())
    own, best = (
        float(cells[name].mean()) for name in ("mean_log_smoke_surrogate", "mean_log_smoke")
    )
    assert abs(best - log) < 0.5 * abs(own - log)


def test_fires_of_training_are_told(twice, fires, split, towns):
    said = []
    pc.evaluate_points(twice, fires, towns, notify=said.append)
    assert not any("those of training" in notice.text for notice in said)
    pc.evaluate_points(twice, split.train, towns, notify=said.append)
    count = np.unique(split.train.ignition_id).size
    assert f"{count} of the ignitions are those of training" in said[-1].text


def test_the_error_of_few_calibration_ignitions_widens_the_interval(twice, fires, towns):
    table = twice.error_bars
    few = replace(table, groups=table.groups[:6], counts=table.counts[:6], scores=table.scores[:6])
    wide = pc.evaluate_points(replace(twice, error_bars=few), fires, towns)
    found = pc.evaluate_points(twice, fires, towns)
    width = [(part.exposure_upper - part.exposure_lower) / part.exposure for part in (wide, found)]
    assert width[0] > width[1]


def test_training_ignitions_are_no_truth(split, fires, towns):
    surrogate = pc.fit_surrogate(split.train, "paper-linear")
    with pytest.raises(pc.PlumecastError, match="has 0 ignitions that the surrogate was not"):
        pc.evaluate_points(surrogate, fires, towns, truth=split.train)
    with pytest.raises(pc.PlumecastError, match="has no 'smoke'"):
        pc.evaluate_points(surrogate, fires, towns, truth=fires.drop_vars("smoke"))


def test_quantile_intervals_cover():
    """400 repetitions of 30 clusters: 95 % has a standard error of 1.1 %; Wilson's are wide."""
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(30), 4)
    hits = 0
    for _ in range(400):
        values = rng.normal(size=30)[clusters] + 0.3 * rng.normal(size=120)
        _, low, high = quantiles_with_intervals(values[:, None], clusters, (0.5,), 0.95)
        hits += bool(low[0, 0] <= 0.0 <= high[0, 0])
    assert 0.92 <= hits / 400 <= 0.98


@pytest.fixture
def files(twice, fires, tmp_path):
    """The calibrated surrogate and the fires in files."""
    return twice.save(tmp_path / "twice.plume"), pc.export_snapshots(fires, tmp_path / "fires.nc")


def test_command_writes_the_table(succeed, run, surrogate, fires, towns, tmp_path):
    model, store = tmp_path / "smoke.plume", tmp_path / "fires.nc"
    surrogate.save(model)
    pc.export_snapshots(fires, store)
    asked = ("ensemble", model, store, "--points", towns, "--thresholds", "1", "--quantiles", "0.5")
    for ending in ("csv", "json", "nc"):
        printed = succeed(*asked, "--points-out", tmp_path / f"table.{ending}")
        assert "contain the sampling of fires only" in printed
    assert "no smoke in any of 40 fires at C" in run(*asked).err
    header, *rows = (tmp_path / "table.csv").read_text().splitlines()
    assert header.startswith("name,population,mean,mean_lower,mean_upper,above_1,above_1_lower")
    assert [row.split(",")[0] for row in rows] == ["A", "B", "C", "all people"]
    written = xr.load_dataset(tmp_path / "table.nc")
    listed = json.loads((tmp_path / "table.json").read_text())["places_table"]
    np.testing.assert_allclose(listed[1]["mean"], written.mean_smoke[1])
    np.testing.assert_allclose(float(rows[1].split(",")[2]), written.mean_smoke[1], rtol=1e-5)


def test_command_takes_one_of_several_outputs(succeed, refused, split, fires, towns, tmp_path):
    both = pc.fit_surrogate(add_surface(split.train), "paper-linear", outputs=OUTPUTS)
    model, store = both.save(tmp_path / "both.plume"), tmp_path / "fires.nc"
    pc.export_snapshots(fires, store)
    asked = ("ensemble", model, store, "--points", towns)
    assert "choose one, as in --output smoke" in refused(*asked)
    unknown = refused(*asked, "--output", "pm")
    assert "output 'pm' is unknown; choose from smoke, surface_smoke" in unknown
    table = tmp_path / "table.nc"
    succeed(*asked, "--output", "surface_smoke", "--points-out", table)
    own = pc.evaluate_points(both.output("surface_smoke"), fires, towns)
    np.testing.assert_allclose(xr.load_dataset(table).mean_smoke, own.mean_smoke)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --out for the statistics of every cell, or --points, or both"),
        (("--points-out", "t.csv", "-o", "s.nc"), "--points-out=t.csv needs --points"),
        (("--points", "TOWNS", "--coverage", "2"), "--coverage=2 is not within (0, 1)"),
        (("--points", "TOWNS", "--quantity", "aqi"), "--quantity='aqi' is unknown"),
        (("--points", "far.csv"), "line 2, place 'Far': x 9e+09, y 0 lies outside the grid"),
        (("--points", "geo.csv"), "the grid has neither a projection nor latitudes"),
    ],
)
def test_bad_requests_are_refused_in_one_line(refused, files, towns, tmp_path, words, message):
    (tmp_path / "far.csv").write_text("name,x,y\nFar,9e9,0\n")
    (tmp_path / "geo.csv").write_text("name,lat,lon\nA,40,-120\n")
    places = {"TOWNS": towns, "far.csv": tmp_path / "far.csv", "geo.csv": tmp_path / "geo.csv"}
    assert message in refused("ensemble", *files, *(places.get(word, word) for word in words))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_intervals_of_exceedances_do_not_contradict_each_other(order):
    """A rarer event extends the upper end of a more frequent one, which extends its lower end."""
    ends = np.array([(0.5, 0.4, 0.6), (0.3, 0.1, 0.7), (0.2, 0.15, 0.65)])[list(order)]
    parts = [Corrected(mean, mean, low, high, mean) for mean, low, high in ends[:, :, None]]
    nested = nested_shares(parts, np.array([1.0, 10.0, 35.0])[list(order)])
    expected = np.array([(0.4, 0.7), (0.1, 0.7), (0.1, 0.65)])[list(order)]
    np.testing.assert_array_equal([(part.lower[0], part.upper[0]) for part in nested], expected)
