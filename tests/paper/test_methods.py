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
from plumecast.paper import learning_curve, sensitivity, shift, summary
from plumecast.paper import published as paper
from plumecast.paper.context import Context, bounded, rows_of, select
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


def test_a_std_fraction_by_slices_scores_like_a_refit(context):
    rows = rows_of(select(sensitivity.run(context), parameter="std_fraction"))
    validation = context.split.validation
    for row in rows[::3]:
        refit = fit_surrogate(
            context.split.train, degree=1, penalty=0.0,
            fire_std_fraction=row["value"], smoke_std_fraction=row["value"],
        )  # fmt: skip
        assert refit.training["fire_rank"] == row["fire_rank"]
        scores = score_footprints(
            refit.predict(validation), validation[SMOKE], context.smoke_threshold
        )
        assert row["auc"] == pytest.approx(known_median(scores.auc.values), abs=SCORE)
        assert row["iou"] == pytest.approx(known_median(scores.iou.values), abs=SCORE)


def test_a_penalty_of_the_path_scores_like_a_refit(context):
    rows = rows_of(select(sensitivity.run(context), parameter="penalty"))
    assert quadratic_of(context).scan.best in [row["value"] for row in rows]
    validation = context.split.validation
    row = rows[-2]
    refit = fit_surrogate(context.split.train, "paper-quadratic", penalty=row["value"])
    scores = score_footprints(refit.predict(validation), validation[SMOKE], context.smoke_threshold)
    assert row["iou"] == pytest.approx(known_median(scores.iou.values), abs=SCORE)


def test_a_smaller_captured_share_means_a_higher_threshold(context):
    rows = rows_of(select(sensitivity.run(context), parameter="captured"))
    thresholds = [row["smoke_threshold"] for row in rows]
    assert thresholds == sorted(thresholds, reverse=True)


def test_one_threshold_from_validation_scores_every_test_set(context):
    surrogate = fitted(context, "recommended").surrogate
    validation, test, tau = context.split.validation, context.split.test, context.smoke_threshold
    tests = [test, test.isel({SNAPSHOT: slice(5, None)})]
    whole, part = score_surrogate(surrogate, validation, tests, tau=tau)
    smoke, score = surrogate.predict_both(validation)
    detected = score.copy(data=joint_score(smoke.values, score.values, tau))
    alpha = choose_decision_threshold(detected, validation[SMOKE], tau)
    assert whole.decision_threshold == part.decision_threshold == alpha
    agreed = agreeing(surrogate, Thresholds(tau, alpha))
    expected = score_footprints(agreed.predict_footprint(test), test[SMOKE], tau, alpha)
    beyond = ["relative_error", "log_error", "smoke_iou"]
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
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 60))
    matrix = rows @ rows.T
    lower = np.tril(blocked_cholesky(matrix.copy(), block=16))
    np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-10)


def test_a_literal_fit_that_cannot_fit_in_memory_is_not_tried():
    if not Path("/proc/meminfo").exists():
        pytest.skip("this system does not report its free memory")
    assert too_large(20) is None
    assert "GB are free" in str(too_large(5000))


def test_the_summary_has_the_papers_rows_and_our_own(context):
    found = summary.run(context)
    rows = {row["method"]: row for row in rows_of(found)}
    assert set(rows) == {*context.methods, summary.LITERAL}
    for name, known in paper.TABLE.items():
        assert rows[name]["paper_auc"] == known.auc
        assert rows[name]["paper_training"] == known.training
    assert np.isnan(rows["recommended"]["paper_auc"])
    for name in context.methods:
        assert rows[name]["iou"] == outcome(context, name).score.iou
        assert rows[name]["training"] > 0.0
    # A penalty tuned to little noise leaves the features nearly collinear.
    assert found.attrs["literal_difference"] < 1e-3
    assert rows[summary.LITERAL]["tuning"] > rows[summary.LITERAL]["training"]
    remarks = " ".join(summary.remarks(found))
    assert "paper: 436 s" in remarks
    assert "The literal method takes" in remarks


@pytest.fixture(scope="module")
def shifted(context) -> xr.Dataset:
    return shift.run(context)


def test_shift_trains_on_what_it_says_and_tests_on_every_drought(context, shifted):
    found = shifted
    pairs = set(zip(found.trained_on.values.tolist(), found.tested_on.values.tolist(), strict=True))
    droughts = ("low", "medium", "high")
    assert pairs == {(a, b) for a in (*droughts, shift.OTHERS) for b in droughts}
    part = select(found, method="paper-linear", covariates=0, trained_on="medium", tested_on="low")
    test = select_drought(context.split.test, "low")
    assert part.sizes["row"] == min(test.sizes[SNAPSHOT], SMALL.scored // 2)


def test_one_drought_is_no_shift():
    alone = Context(split_by_fire(make_snapshots(fires=12, droughts=("high",))), limits=SMALL)
    with pytest.raises(PlumecastError, match="only drought 'high'; a shift needs at least two"):
        shift.run(alone)


def test_learning_curves_double_up_to_all_ignitions(context):
    assert learning_curve.curve_sizes(112) == [4, 8, 16, 32, 64, 112]
    assert learning_curve.curve_sizes(8) == [4, 8]
    found = learning_curve.run(context)
    ignitions = len(np.unique(context.split.train.ignition_id.values))
    assert found.ignitions.values.max() == ignitions
    whole = select(found, method="nearest-fire", ignitions=ignitions)
    assert int(whole.snapshots[0]) == context.split.train.sizes[SNAPSHOT]


def test_too_few_ignitions_make_no_learning_curve():
    few = Context(split_by_fire(make_snapshots(fires=12)), limits=SMALL)
    with pytest.raises(PlumecastError, match="too few for a learning curve"):
        learning_curve.run(few)


def test_a_bounded_part_keeps_its_order(context):
    part = bounded(context.split.train, 10, np.random.default_rng(0))
    names = context.split.train.fire_id.values.tolist()
    kept = part.fire_id.values.tolist()
    assert len(kept) == 10
    assert kept == sorted(kept, key=names.index)
    assert bounded(part, 10, np.random.default_rng(0)) is part


def test_networks_join_the_summary_where_pytorch_is(context, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PlumecastError, match="a neural network needs PyTorch"):
        neural_methods()
    monkeypatch.undo()
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    limits = replace(SMALL, neural=neural_methods(), literal=False)
    asked = Context(context.split, limits=limits)

    def briefly(train, **given):
        return fit_surrogate(train, **given, **({"epochs": 1} if "family" in given else {}))

    monkeypatch.setattr(plumecast.paper.methods, "fit_surrogate", briefly)
    rows = {row["method"]: row for row in rows_of(summary.run(asked))}
    for name in ("unet", "fno"):
        assert 0.0 <= rows[name]["deployable_iou"] <= 1.0
        assert rows[name]["training"] > 0.0


def test_the_wind_frame_is_tried_if_the_data_has_wind(context, shifted):
    assert shifted.attrs["covariates"] == "wind_speed,wind_from_direction"
    both = select(shifted, method="recommended", trained_on=shift.OTHERS, tested_on="medium")
    assert set(both.covariates.values.tolist()) == {0, 1}
    linear = select(shifted, method="paper-linear")
    assert set(linear.covariates.values.tolist()) == {0}
    calm = context.split.train.drop_vars("wind_from_direction")
    assert shift.known_covariates(calm) == ()
