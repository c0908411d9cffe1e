"""Claims of single studies: slices equal refits, the literal fit equals ours, training sets."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast.paper.methods
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.schema import select_drought
from plumecast.data.split import split_by_fire
from plumecast.operators.coded.kernels import monomials
from plumecast.operators.coded.polynomial_map import fit_polynomial_map
from plumecast.paper import learning_curve, shift, summary
from plumecast.paper import published as paper
from plumecast.paper.context import Context, rows_of, select
from plumecast.paper.methods import fitted, neural_methods, quadratic_of
from plumecast.paper.scoring import outcome, score_surrogate
from plumecast.paper.summary import blocked_cholesky, literal_quadratic, too_large
from plumecast.scores.footprint import choose_decision_threshold, score_footprints
from plumecast.scores.tally import known_median
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.thresholds import Thresholds, joint_score
from plumecast.workflows.held_out.scoring import agreeing
from support.snapshots import make_snapshots
from support.study_runs import SMALL

SCORE = 1e-6
"""Tolerance of median scores: two ways to compute a prediction differ by rounding."""


@pytest.mark.parametrize("parameter", ["std_fraction", "penalty"])
def test_a_slice_of_the_decomposition_scores_like_a_refit(context, finished, parameter):
    rows = rows_of(select(finished["sensitivity"].finding, parameter=parameter))
    split = context.split
    if parameter == "penalty":
        assert quadratic_of(context).scan.best in [row["value"] for row in rows]
    for row in rows[::3] if parameter == "std_fraction" else rows[-2:-1]:
        if parameter == "penalty":
            refit = fit_surrogate(split.train, "paper-quadratic", penalty=row["value"])
        else:
            refit = fit_surrogate(
                split.train, degree=1, penalty=0.0,
                fire_std_fraction=row["value"], smoke_std_fraction=row["value"],
            )  # fmt: skip
        assert refit.training["fire_rank"] == row["fire_rank"]
        guess, observed = refit.predict(split.validation), split.validation[SMOKE]
        scores = score_footprints(guess, observed, context.smoke_threshold)
        for name in ("auc", "iou"):
            assert row[name] == pytest.approx(known_median(scores[name].values), abs=SCORE)


def test_one_threshold_from_validation_scores_every_test_set(context):
    surrogate = fitted(context, "recommended").surrogate
    validation, test, tau = context.split.validation, context.split.test, context.smoke_threshold
    tests = [test, test.isel({SNAPSHOT: slice(5, None)})]
    whole, part = score_surrogate(surrogate, validation, tests, tau=tau)
    smoke, score = surrogate.predict_both(validation)
    detected = score.copy(data=joint_score(smoke.values, score.values, tau))
    alpha = choose_decision_threshold(detected, validation[SMOKE], tau)
    assert whole.score.decision_threshold == part.score.decision_threshold == alpha
    agreed = agreeing(surrogate, Thresholds(tau, alpha))
    expected = score_footprints(agreed.predict_footprint(test), test[SMOKE], tau, alpha)
    beyond = ["relative_error", "log_error", "smoke_iou", "mass_ratio"]
    xr.testing.assert_identical(whole.scores.drop_vars(beyond), expected)
    np.testing.assert_array_equal(whole.scores.smoke_iou, expected.deployable_iou)
    again = score_surrogate(agreed, validation, [test], tau=tau)[0]
    xr.testing.assert_identical(again.scores, whole.scores)
    np.testing.assert_array_equal(whole.scores.iou[5:], part.scores.iou)


def test_the_literal_fit_predicts_like_ours():
    rng = np.random.default_rng(0)
    codes, targets = rng.normal(size=(40, 6)), rng.normal(size=(40, 3))
    made = literal_quadratic(codes, targets, penalty=0.1)
    assert made.weights.shape == (27, 3)
    ours = fit_polynomial_map(codes, targets, degree=2, penalty=0.1)
    theirs = monomials(codes, 2) @ made.weights
    np.testing.assert_allclose(ours.predict(codes), theirs, atol=1e-10)  # condition about 1e4


def test_a_blocked_cholesky_factor_is_the_factor():
    rows = np.random.default_rng(1).normal(size=(50, 60))
    matrix = rows @ rows.T
    lower = np.tril(blocked_cholesky(matrix.copy(), block=16))
    np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-10)


def test_a_literal_fit_that_cannot_fit_in_memory_is_not_tried():
    if not Path("/proc/meminfo").exists():
        pytest.skip("this system does not report its free memory")
    assert too_large(20) is None
    assert "GB are free" in str(too_large(5000))


def test_the_summary_has_the_papers_rows_and_our_own(context, finished):
    finding = finished["summary"].finding
    rows = {row["method"]: row for row in rows_of(finding)}
    assert set(rows) == {*context.methods, summary.LITERAL}
    for name, published in paper.TABLE.items():
        assert rows[name]["paper_auc"] == published.auc
        assert rows[name]["paper_training"] == published.training
    assert np.isnan(rows["recommended"]["paper_auc"])
    for name in context.methods:
        assert rows[name]["iou"] == outcome(context, name).score.iou
        assert rows[name]["training"] > 0.0
    # A penalty tuned to little noise leaves the features nearly collinear.
    assert finding.attrs["literal_difference"] < 1e-3
    assert rows[summary.LITERAL]["tuning"] > rows[summary.LITERAL]["training"]
    remarks = " ".join(summary.remarks(finding))
    assert "paper: 436 s" in remarks
    assert "The literal method takes" in remarks


def test_networks_join_the_summary_where_pytorch_is(context, monkeypatch, one_thread):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PlumecastError, match="needs PyTorch"):
        neural_methods()
    monkeypatch.undo()
    asked = replace(context, limits=replace(SMALL, neural=neural_methods(), literal=False))

    def briefly(train, **choices):
        return fit_surrogate(train, **choices, **({"epochs": 1} if "family" in choices else {}))

    monkeypatch.setattr(plumecast.paper.methods, "fit_surrogate", briefly)
    rows = {row["method"]: row for row in rows_of(summary.run(asked))}
    for name in ("unet", "fno"):
        assert 0.0 <= rows[name]["deployable_iou"] <= 1.0
        assert rows[name]["training"] > 0.0


def test_shift_trains_on_what_it_says_and_tests_on_every_drought(context, finished):
    table = finished["shift"].finding
    pairs = set(zip(table.trained_on.values.tolist(), table.tested_on.values.tolist(), strict=True))
    droughts = ("low", "medium", "high")
    assert pairs == {(a, b) for a in (*droughts, shift.OTHERS) for b in droughts}
    part = select(table, method="paper-linear", covariates=0, trained_on="medium", tested_on="low")
    test = select_drought(context.split.test, "low")
    assert part.sizes["row"] == min(test.sizes[SNAPSHOT], SMALL.scored // 2)
    assert table.attrs["covariates"] == "wind_speed,wind_from_direction"
    both = select(table, method="recommended", trained_on=shift.OTHERS, tested_on="medium")
    assert set(both.covariates.values.tolist()) == {0, 1}
    assert set(select(table, method="paper-linear").covariates.values.tolist()) == {0}
    assert shift.known_covariates(context.split.train.drop_vars("wind_from_direction")) == ()


@pytest.mark.parametrize(
    ("study", "droughts", "message"),
    [
        (shift, ("high",), "only drought 'high'; a shift needs at least two"),
        (learning_curve, ("low", "high"), "too few for a learning curve"),
    ],
)
def test_data_that_shows_nothing_is_refused(study, droughts, message):
    few = split_by_fire(make_snapshots(fires=12, droughts=droughts))
    with pytest.raises(PlumecastError, match=message):
        study.run(Context(few, limits=SMALL))


def test_learning_curves_double_up_to_all_ignitions(context, finished):
    assert learning_curve.curve_sizes(112) == [4, 8, 16, 32, 64, 112]
    assert learning_curve.curve_sizes(8) == [4, 8]
    table = finished["learning-curve"].finding
    ignitions = len(np.unique(context.split.train.ignition_id.values))
    assert table.ignitions.values.max() == ignitions
    whole = select(table, method="nearest-fire", ignitions=ignitions)
    assert int(whole.snapshots[0]) == context.split.train.sizes[SNAPSHOT]
