"""Studies from the command line on small fires, and the algebra that lets them share their work."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.split import split_by_fire
from plumecast.paper import optical_depth
from plumecast.paper.context import (
    Context,
    StudyLimits,
    columns_of,
    rows_of,
    select,
    tidy,
    write_csv,
)
from plumecast.paper.methods import fitted
from plumecast.paper.optical_depth import fit_subset, make_pool
from plumecast.paper.results import STUDIES, read_results, study_fingerprint
from plumecast.paper.scoring import FPR_GRID, curves_on_grid
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.scores.roc import roc_scores
from plumecast.surrogate.fit import fit_surrogate
from support.snapshots import make_snapshots
from support.study_runs import SMALL, three_droughts

ROUNDING = 1e-8
"""Relative: two routes to one least-squares solution, whose Gram matrices square the condition."""

QUICK = ["optical-depth", "footprint-linear", "sensitivity"]


@pytest.fixture(scope="session")
def store(large_snapshots, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "ensemble.nc"
    large_snapshots.to_netcdf(path)
    return path


def test_the_command_makes_the_tables_of_the_library_to_the_last_digit(
    small, succeed, store, tmp_path, results
):
    said = succeed("study", *QUICK[::-1], "--data", store, "--out", tmp_path)
    assert [said.index(name) for name in QUICK] == sorted(said.index(name) for name in QUICK)
    for name in QUICK:
        one, two = (folder / name / "table.csv" for folder in (tmp_path, results))
        assert one.read_bytes() == two.read_bytes()
        assert len(one.read_text().splitlines()) > 2
    again = succeed("study", *QUICK, "--data", store, "-o", tmp_path)
    assert again.count("reused") == len(QUICK)


def test_a_finished_study_is_reused_until_something_changes(small, succeed, run, store, tmp_path):
    arguments = ("study", "optical-depth", "--data", store, "--out", tmp_path)
    table = tmp_path / "optical-depth" / "table.csv"
    assert " done " in succeed(*arguments)
    first = table.read_bytes()
    assert " reused " in succeed(*arguments)
    again = run(*arguments, "--seed", 1)
    assert "the settings have changed" in again.err
    assert " done " in again.out
    assert table.read_bytes() != first
    assert " done " in succeed(*arguments, "--seed", 1, "--fresh")
    table.with_suffix(".nc").unlink()
    assert " done " in succeed(*arguments, "--seed", 1)


def test_a_limit_decides_only_about_the_studies_it_changes(context):
    other = replace(context, limits=replace(SMALL, repeats=4))
    changed = {
        name
        for name, study in STUDIES.items()
        if study_fingerprint(study, context) != study_fingerprint(study, other)
    }
    assert changed == {"optical-depth"}
    named = {name for study in STUDIES.values() for name in study.limits}
    assert named == {field.name for field in fields(StudyLimits)}


def test_costly_surrogates_are_kept_and_read_back_bit_for_bit(context, tmp_path):
    def again(fingerprint):
        asked = Context(context.split, fingerprint=fingerprint, folder=tmp_path, limits=SMALL)
        return fitted(asked, "paper-linear")

    fresh, loaded = again("one"), again("one")
    assert loaded.seconds == fresh.seconds
    test = context.split.test
    xr.testing.assert_identical(loaded.surrogate.predict(test), fresh.surrogate.predict(test))
    assert again("two").seconds != fresh.seconds


def test_a_study_that_cannot_run_says_why_and_the_others_go_on(
    small, run, large_snapshots, tmp_path
):
    unfinished = large_snapshots.assign_coords(
        is_final=xr.zeros_like(large_snapshots.is_final, dtype=bool)
    )
    unfinished.to_netcdf(tmp_path / "unfinished.nc")
    out = tmp_path / "out"
    result = run("study", *QUICK[:2], "--data", tmp_path / "unfinished.nc", "-o", out)
    assert result.code == 1
    [error] = [line for line in result.err.splitlines() if line.startswith("error:")]
    assert re.match(r"error: optical-depth: .*no final snapshots", error)
    _, finished, stale = read_results(out)
    assert ([item.study.name for item in finished], stale) == (["footprint-linear"], [])


def test_bad_input_is_refused_with_the_next_step(
    small, refused, succeed, run, results, store, tmp_path
):
    few, other = tmp_path / "few.nc", tmp_path / "other.nc"
    make_snapshots(fires=4).to_netcdf(few)
    make_snapshots(fires=8, shape=(10, 12), seed=3).to_netcdf(other)
    assert "choose from optical-depth" in refused("study", "everything", "--data", store)
    assert "--data" in refused("study", "all")
    assert all(name in succeed("study", "--list") for name in STUDIES)
    assert "no study is named" in refused("study", "--data", store)
    assert "drought 'extreme' is not in the data" in refused(
        "study", "all", "--data", store, "--drought", "extreme", "-o", tmp_path / "x"
    )
    said = refused("study", "all", "--data", other, "--min-acres", 1, "-o", results)
    assert "results of another data set" in said
    result = run("study", "all", "--data", few, "-o", tmp_path / "out")
    assert result.code == 2
    assert "cannot make three parts; add fires" in result.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["paper-linear", "paper-quadratic"])
def test_slices_of_one_decomposition_are_the_fitted_surrogates(context, name):
    ours = fitted(context, name).surrogate
    direct = fit_surrogate(context.split.train, name)
    assert ours.training["fire_rank"] == direct.training["fire_rank"]
    assert ours.training["penalty"] == pytest.approx(direct.training["penalty"], rel=ROUNDING)
    assert ours.settings == direct.settings
    truth = direct.predict(context.split.test).values
    made = ours.predict(context.split.test).values
    assert np.linalg.norm(made - truth) <= 1e-6 * np.linalg.norm(truth)  # float32 fields


def test_a_subset_of_one_gram_matrix_is_the_operator_of_that_subset(context):
    train, test = (with_log_smoke(part) for part in (context.split.train, context.split.test))
    rows = np.arange(0, train.sizes[SNAPSHOT], 2)
    direct = fit_surrogate(train.isel({SNAPSHOT: rows}), "paper-linear", outputs="log_smoke")

    def matrix(part, name):
        return part[name].values.reshape(part.sizes[SNAPSHOT], -1).astype(np.float64)

    fires, logs = matrix(train, "time_since_ignition"), np.log1p(matrix(train, SMOKE))
    others = matrix(test, "time_since_ignition")
    pool = make_pool(fires, logs, others, 0.95)
    subset = fit_subset(pool, rows)
    expected = direct.predict_rows(others)
    # The stored logarithm is float32, the pool's float64.
    assert np.linalg.norm(subset.predict_others() - expected) <= 1e-5 * np.linalg.norm(expected)
    basis, field = direct.operator.output_basis, pool.outputs[1]
    projected = basis.decode(basis.encode(field[None]))[0]
    assert np.linalg.norm(subset.project(field) - projected) <= 1e-5 * np.linalg.norm(field)


def test_curves_on_a_grid_are_those_the_auc_is_the_area_of():
    context = Context(split_by_fire(three_droughts(shape=(10, 12))), limits=SMALL)
    test = context.split.test
    guess = fitted(context, "paper-linear").surrogate.predict(test)
    curves = curves_on_grid(guess, test[SMOKE], context.smoke_threshold)
    count = test.sizes[SNAPSHOT]
    truth = (test[SMOKE].values > context.smoke_threshold).reshape(count, -1)
    defined = ~np.isnan(curves).any(axis=1)
    assert defined.any()
    assert (np.diff(curves[defined], axis=1) >= 0.0).all()
    area = np.trapezoid(curves[defined], FPR_GRID, axis=1)
    auc = roc_scores(guess.values.reshape(count, -1), truth).auc
    # A grid of 101 points cuts corners of at most one cell of it.
    np.testing.assert_allclose(area, auc[defined], atol=0.01)


def test_the_corrected_mean_is_exact_where_the_operator_is():
    rng = np.random.default_rng(0)
    fires = rng.uniform(0.1, 1.0, (60, 4)) @ rng.uniform(0.1, 1.0, (4, 20))  # four modes
    logs = fires @ rng.uniform(0.0, 1.0, (20, 30))  # linear, never negative
    pool = make_pool(fires[:40], logs[:40], fires[40:], std_fraction=1.0 - 1e-9)
    corrected = optical_depth.corrected_mean(pool, np.arange(40))
    truth = logs[40:].mean(axis=0)
    assert corrected.coefficient == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(corrected.mean - truth) <= 1e-4 * np.linalg.norm(truth)
    assert np.linalg.norm(corrected.standard_error) <= 1e-4 * np.linalg.norm(truth)


def test_the_corrected_mean_falls_back_to_the_samples_where_the_operator_knows_nothing():
    rng = np.random.default_rng(1)
    fires, logs = rng.uniform(0, 1, (200, 30)), rng.uniform(0, 1, (200, 50))
    pool = make_pool(fires[:100], logs[:100], fires[100:], std_fraction=0.95)
    corrected = optical_depth.corrected_mean(pool, np.arange(100))
    assert corrected.coefficient < 0.3
    within = np.abs(corrected.mean - 0.5) <= 2.0 * corrected.standard_error
    assert 0.85 <= within.mean() <= 1.0  # 95 % of 50 cells, give or take three deviations


@pytest.mark.parametrize(
    ("wanted", "samples"), [(0.2, 40.0), (0.4 / 2**0.5, 20.0), (0.05, np.nan), (0.9, 10.0)]
)
def test_samples_needed_are_read_off_between_sizes(wanted, samples):
    sizes, errors = np.array([10, 40, 160]), np.array([0.4, 0.2, 0.1])
    needed = optical_depth.samples_needed(sizes, errors, wanted)
    assert needed == pytest.approx(samples, nan_ok=True)


def test_no_optical_depth_without_smoke_or_with_too_few_fires(context):
    few = Context(split_by_fire(make_snapshots(fires=8, checkpoints=2)), limits=SMALL)
    with pytest.raises(PlumecastError, match="too few to estimate"):
        optical_depth.run(few)
    test = context.split.test
    clear = replace(context.split, test=test.assign({SMOKE: 0.0 * test[SMOKE]}))
    with pytest.raises(PlumecastError, match="without smoke"):
        optical_depth.run(Context(clear, limits=SMALL))


def test_tables_keep_clocks_apart_and_read_back_to_the_last_digit(tmp_path):
    rows = [{"name": "a", "score": 0.1 + 0.2, "s": 1.5}, {"name": "b", "score": None, "s": 2.5}]
    table = tidy(rows, {"name": ("n", "1"), "score": ("x", "1"), "s": ("t", "s")}, clocks=["s"])
    assert columns_of(table, clocks=False) == ["name", "score"]
    assert columns_of(table, clocks=True) == ["s"]
    write_csv(table, tmp_path / "t.csv", ["name", "score"])
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "name,score"
    assert float(lines[1].split(",")[1]) == 0.1 + 0.2
    assert rows_of(select(table, name="b"))[0]["s"] == 2.5
