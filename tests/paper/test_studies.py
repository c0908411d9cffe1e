"""Studies end to end on small fires, and the algebra that lets them share their work."""

from __future__ import annotations

import json
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
from plumecast.paper.methods import encodings_of, fitted, linear_surrogate
from plumecast.paper.optical_depth import fit_subset, make_pool
from plumecast.paper.results import read_results, study_fingerprint
from plumecast.paper.scoring import FPR_GRID, curves_on_grid
from plumecast.paper.studies import STUDIES, find_studies
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.scores.roc import roc_scores
from plumecast.surrogate.fit import fit_surrogate
from support.snapshots import make_snapshots
from support.study_runs import SMALL, three_droughts

ROUNDING = 1e-8
"""Relative: two routes to one least-squares solution, whose Gram matrices square the condition."""

QUICK = ["optical-depth", "footprint-linear"]


@pytest.fixture(scope="session")
def store(large_snapshots, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "ensemble.nc"
    large_snapshots.to_netcdf(path)
    return path


@pytest.fixture
def less_work(monkeypatch):
    """The command's own steps with less work."""
    monkeypatch.setattr("plumecast.cli.commands.study.StudyLimits", lambda **given: SMALL)


@pytest.fixture
def small(less_work, monkeypatch):
    """The command's own steps with less work, without the files of figures."""
    monkeypatch.setattr("plumecast.paper.results.save_all", lambda *given: [])


def test_the_same_seed_gives_the_same_tables_to_the_last_digit(
    small, succeed, store, tmp_path, results
):
    """The tables of the command equal those of the library, `results`."""
    succeed("study", "all", "--data", store, "--out", tmp_path)
    for name in STUDIES:
        one, two = (folder / name / "table.csv" for folder in (tmp_path, results))
        assert one.read_bytes() == two.read_bytes()
        assert len(one.read_text().splitlines()) > 2
    again = succeed("study", "all", "--data", store, "-o", tmp_path)
    assert again.count("reused") == len(STUDIES)


def test_another_seed_gives_another_table(small, succeed, store, tmp_path):
    for seed in (0, 1):
        succeed(
            "study", "optical-depth", "--data", store, "--seed", seed, "-o", tmp_path / f"{seed}"
        )
    one, two = ((tmp_path / f"{s}" / "optical-depth" / "table.csv").read_text() for s in (0, 1))
    assert one != two


def test_a_finished_study_is_reused_until_something_changes(small, succeed, run, store, tmp_path):
    arguments = ("study", "optical-depth", "--data", store, "--out", tmp_path)
    assert " done " in succeed(*arguments)
    assert " reused " in succeed(*arguments)
    again = run(*arguments, "--seed", 1)
    assert "the settings have changed" in again.err
    assert " done " in again.out
    assert " done " in succeed(*arguments, "--seed", 1, "--fresh")
    (tmp_path / "optical-depth" / "table.nc").unlink()
    assert " done " in succeed(*arguments, "--seed", 1)


def test_a_limit_decides_only_about_the_studies_it_changes(context):
    other = Context(context.split, limits=replace(SMALL, repeats=4))
    changed = {
        name
        for name, study in STUDIES.items()
        if study_fingerprint(study, context) != study_fingerprint(study, other)
    }
    assert changed == {"optical-depth"}
    named = {name for study in STUDIES.values() for name in study.limits}
    assert named == {field.name for field in fields(StudyLimits)}


def test_costly_surrogates_are_kept_and_read_back_bit_for_bit(context, tmp_path):
    kept = Context(context.split, fingerprint="one", folder=tmp_path, limits=SMALL)
    fresh = fitted(kept, "recommended")
    later = Context(context.split, fingerprint="one", folder=tmp_path, limits=SMALL)
    loaded = fitted(later, "recommended")
    assert loaded.seconds == fresh.seconds
    test = context.split.test
    xr.testing.assert_identical(loaded.surrogate.predict(test), fresh.surrogate.predict(test))
    changed = Context(context.split, fingerprint="two", folder=tmp_path, limits=SMALL)
    assert fitted(changed, "recommended").seconds != fresh.seconds


def test_a_study_that_cannot_run_says_why_and_the_others_go_on(
    small, run, large_snapshots, tmp_path
):
    unfinished = large_snapshots.assign_coords(
        is_final=(SNAPSHOT, np.zeros(large_snapshots.sizes[SNAPSHOT], dtype=bool))
    )
    unfinished.to_netcdf(tmp_path / "unfinished.nc")
    result = run("study", *QUICK, "--data", tmp_path / "unfinished.nc", "-o", tmp_path / "out")
    assert result.code == 1
    errors = [line for line in result.err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert re.match(r"error: optical-depth: .*no final snapshots", errors[0])
    _, finished, stale = read_results(tmp_path / "out")
    assert [item.study.name for item in finished] == QUICK[1:]
    assert stale == []


def test_bad_input_is_refused_with_the_next_step(small, refused, succeed, store, tmp_path):
    assert "choose from optical-depth" in refused("study", "everything", "--data", store)
    assert "--data" in refused("study", "all")
    assert "no study is named" in refused("study", "--data", store)
    assert "drought 'extreme' is not in the data" in refused(
        "study", "all", "--data", store, "--drought", "extreme", "-o", tmp_path / "x"
    )
    out = tmp_path / "results"
    succeed("study", "optical-depth", "--data", store, "-o", out)
    other = tmp_path / "other.nc"
    make_snapshots(fires=8, shape=(10, 12), seed=3).to_netcdf(other)
    message = refused("study", "all", "--data", other, "--min-acres", 1, "-o", out)
    assert "results of another data set" in message
    assert read_results(out)[0]["data"] == str(store)


def test_too_few_fires_for_a_split_are_refused(small, run, tmp_path):
    make_snapshots(fires=4).to_netcdf(tmp_path / "few.nc")
    result = run("study", "all", "--data", tmp_path / "few.nc", "-o", tmp_path / "out")
    assert result.code == 2
    assert "cannot make three parts; add fires" in result.err.splitlines()[-1]


def test_the_list_names_every_study(succeed):
    said = succeed("study", "--list")
    assert all(name in said for name in STUDIES)


def test_studies_come_in_the_order_of_the_registry():
    assert [study.name for study in find_studies(["all"])] == list(STUDIES)
    assert [s.name for s in find_studies(QUICK[::-1])] == QUICK


@pytest.mark.parametrize("name", ["paper-linear", "paper-quadratic"])
def test_slices_of_one_decomposition_are_the_fitted_surrogates(context, name):
    ours = fitted(context, name).surrogate
    direct = fit_surrogate(context.split.train, name)
    assert ours.training["fire_rank"] == direct.training["fire_rank"]
    assert ours.training["penalty"] == pytest.approx(direct.training["penalty"], rel=ROUNDING)
    assert ours.settings == direct.settings
    truth = direct.predict(context.split.test).values
    found = ours.predict(context.split.test).values
    assert np.linalg.norm(found - truth) <= 1e-6 * np.linalg.norm(truth)  # float32 fields


def test_a_subset_of_one_gram_matrix_is_the_operator_of_that_subset(context):
    train, test = (with_log_smoke(part) for part in (context.split.train, context.split.test))
    rows = np.arange(0, train.sizes[SNAPSHOT], 2)
    chosen = train.isel({SNAPSHOT: rows})
    direct = fit_surrogate(chosen, "paper-linear", outputs="log_smoke")

    def matrix(part, name):
        return part[name].values.reshape(part.sizes[SNAPSHOT], -1).astype(np.float64)

    pool = make_pool(
        matrix(train, "time_since_ignition"),
        np.log1p(matrix(train, SMOKE)),
        matrix(test, "time_since_ignition"),
        0.95,
    )
    subset = fit_subset(pool, rows)
    expected = direct.predict_rows(matrix(test, "time_since_ignition"))
    # The stored logarithm is float32, the pool's float64.
    assert np.linalg.norm(subset.predict_others() - expected) <= 1e-5 * np.linalg.norm(expected)
    basis = direct.operator.output_basis
    field = pool.outputs[1]
    projected = basis.decode(basis.encode(field[None]))[0]
    assert np.linalg.norm(subset.project(field) - projected) <= 1e-5 * np.linalg.norm(field)


def test_curves_on_a_grid_are_those_the_auc_is_the_area_of():
    context = Context(split_by_fire(three_droughts(shape=(10, 12))), limits=SMALL)
    test = context.split.test
    guess = fitted(context, "paper-linear").surrogate.predict(test)
    tau = context.smoke_threshold
    found = curves_on_grid(guess, test[SMOKE], tau)
    count = test.sizes[SNAPSHOT]
    rows = guess.values.reshape(count, -1)
    truth = (test[SMOKE].values > tau).reshape(count, -1)
    known = ~np.isnan(found).any(axis=1)
    assert known.any()
    assert (np.diff(found[known], axis=1) >= 0.0).all()
    area = np.trapezoid(found[known], FPR_GRID, axis=1)
    # A grid of 101 points cuts corners of at most one cell of it.
    np.testing.assert_allclose(area, roc_scores(rows, truth).auc[known], atol=0.01)


def test_the_corrected_mean_is_exact_where_the_operator_is():
    rng = np.random.default_rng(0)
    fires = rng.uniform(0.1, 1.0, (60, 4)) @ rng.uniform(0.1, 1.0, (4, 20))  # four modes
    logs = fires @ rng.uniform(0.0, 1.0, (20, 30))  # linear, never negative
    pool = make_pool(fires[:40], logs[:40], fires[40:], std_fraction=1.0 - 1e-9)
    found = optical_depth.corrected_mean(pool, np.arange(40))
    truth = logs[40:].mean(axis=0)
    assert found.coefficient == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(found.mean - truth) <= 1e-4 * np.linalg.norm(truth)
    assert np.linalg.norm(found.standard_error) <= 1e-4 * np.linalg.norm(truth)


def test_the_corrected_mean_falls_back_to_the_samples_where_the_operator_knows_nothing():
    rng = np.random.default_rng(1)
    fires, logs = rng.uniform(0, 1, (200, 30)), rng.uniform(0, 1, (200, 50))
    pool = make_pool(fires[:100], logs[:100], fires[100:], std_fraction=0.95)
    found = optical_depth.corrected_mean(pool, np.arange(100))
    assert found.coefficient < 0.3
    within = np.abs(found.mean - 0.5) <= 2.0 * found.standard_error
    assert 0.85 <= within.mean() <= 1.0  # 95 % of 50 cells, give or take three deviations


def test_samples_needed_are_read_off_between_sizes():
    sizes, errors = np.array([10, 40, 160]), np.array([0.4, 0.2, 0.1])
    assert optical_depth.samples_needed(sizes, errors, 0.2) == pytest.approx(40.0)
    assert optical_depth.samples_needed(sizes, errors, 0.4 / 2**0.5) == pytest.approx(20.0)
    assert np.isnan(optical_depth.samples_needed(sizes, errors, 0.05))
    assert optical_depth.samples_needed(sizes, errors, 0.9) == 10.0


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


def test_a_study_writes_table_figures_and_record(less_work, succeed, store, tmp_path):
    succeed("study", "footprint-linear", "--data", store, "-o", tmp_path)
    folder = tmp_path / "footprint-linear"
    record = json.loads((folder / "record.json").read_text())
    assert set(record["figures"]) == {"classification", "maps", "extent"}
    for name in record["figures"]:
        for ending in ("svg", "png"):
            assert (folder / f"{name}.{ending}").stat().st_size > 1000
    with xr.open_dataset(folder / "table.nc", decode_timedelta=False) as found:
        assert found.attrs["paper_iou"] == 0.61
        assert found.attrs["seconds"] == pytest.approx(record["seconds"])
        assert found.sizes["percentile"] == 5
        assert found.sizes["row"] == found.auc.size


def test_presets_of_the_paper_use_one_encoding(context):
    encodings = encodings_of(context)
    assert encodings_of(context) is encodings
    cut = linear_surrogate(encodings)
    assert cut.operator.input_basis.rank < encodings.inputs.rank


def test_no_optical_depth_without_smoke_or_with_too_few_fires(context):
    split = context.split
    few = Context(split_by_fire(make_snapshots(fires=8, checkpoints=2)), limits=SMALL)
    with pytest.raises(PlumecastError, match="too few to estimate"):
        optical_depth.run(few)
    clear = Context(
        type(split)(
            split.train, split.validation, split.test.assign({SMOKE: 0.0 * split.test[SMOKE]})
        ),
        limits=SMALL,
    )
    with pytest.raises(PlumecastError, match="without smoke"):
        optical_depth.run(clear)
