"""ROC scores: equal to scikit-learn's, to hand-computed tables, and monotone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score, roc_auc_score, roc_curve

from plumecast.scores.roc import iou_at, iou_sums, roc_curves, roc_scores

seeds = st.integers(0, 2**32 - 1)


def rows(seed: int, levels: int, snapshots: int = 4, cells: int = 25):
    """Predictions with many ties and about half zeros, observations that depend on them."""
    rng = np.random.default_rng(seed)
    predicted = np.maximum(rng.integers(-levels, levels + 1, size=(snapshots, cells)), 0) / levels
    observed = predicted + rng.normal(scale=0.5, size=predicted.shape) > 0.4
    observed[:, 0], observed[:, 1] = True, False
    return predicted, observed


@given(seed=seeds, levels=st.integers(1, 30))
def test_curves_are_monotone_and_end_at_all_cells(seed, levels):
    predicted, observed = rows(seed, levels)
    curves = roc_curves(predicted, observed)
    for counts in (curves.true_positives, curves.false_positives):
        assert (np.diff(counts, axis=1) >= 0).all()
    total = curves.true_positives[:, -1] + curves.false_positives[:, -1]
    assert (total == predicted.shape[1]).all()


def test_hand_computed_table():
    """Four cells, smoke in the first two; predictions 3 1 2 0.

    α=2: TPR ½ FPR 0 (distance² ¼); α=1: ½, ½; α=0: 1, ½ (¼, later). AUC: steps (0,½) (½,½) (½,1)
    (1,1): ½·½ + ½·1 = ¾.
    """
    scores = roc_scores(np.array([[3.0, 1.0, 2.0, 0.0]]), np.array([[True, True, False, False]]))
    assert scores.auc[0] == 0.75
    assert (scores.true_positive_rate[0], scores.false_positive_rate[0]) == (0.5, 0.0)
    assert scores.iou[0] == 0.5
    assert scores.decision_threshold[0] == 2.0


def test_empty_cases():
    """No smoke: AUC undefined, IoU 1 if none is predicted, else 0. All smoke: AUC undefined."""
    predicted = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
    observed = np.array([[False, False], [False, False], [True, True]])
    scores = roc_scores(predicted, observed)
    assert np.isnan(scores.auc).all()
    np.testing.assert_array_equal(scores.iou, [1.0, 0.0, 1.0])


def test_many_thresholds_at_once_are_each_threshold_alone():
    rng = np.random.default_rng(2)
    guess = np.round(rng.uniform(0, 1, (6, 50)), 1)  # ties with the thresholds
    truth = rng.uniform(0, 1, (6, 50)) > 0.6
    truth[0], guess[0] = False, 0.0
    alphas = np.array([0.0, 0.1, 0.35, 0.5, 1.0])
    alone = [iou_at(guess, truth, alpha).sum() for alpha in alphas]
    np.testing.assert_allclose(iou_sums(guess, truth, alphas), alone, rtol=1e-14)


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        ([0.0, 0.0, 1.0, 2.0], (1.0, 1.0, 0.0)),
        ([2.0] * 4, (0.5, 0.0, 2.0)),
        ([0.0] * 4, (0.5, 0.0, 0.0)),
    ],
    ids=["perfect", "constant", "zero"],
)
def test_scores_of_simple_predictions(predicted, expected):
    """All cells alike: calling all of them and calling none are equally far from (0, 1)."""
    scores = roc_scores(np.array([predicted]), np.array([[False, False, True, True]]))
    assert (scores.auc[0], scores.iou[0], scores.decision_threshold[0]) == expected
    empty = np.array([[0.0, 0.1], [0.0, 0.3]])
    np.testing.assert_array_equal(iou_at(empty, np.zeros((2, 2), bool), 0.2), [1.0, 0.0])


@settings(max_examples=30)
@given(seed=seeds, levels=st.integers(1, 30), alpha=st.floats(0.0, 1.0))
def test_scores_are_those_of_scikit_learn(seed, levels, alpha):
    """The area, the point of the curve nearest (0, 1), and the IoU at two thresholds."""
    predicted, observed = rows(seed, levels)
    scores, one = roc_scores(predicted, observed), iou_at(predicted, observed, alpha)
    for m, (guess, truth) in enumerate(zip(predicted, observed, strict=True)):
        assert scores.auc[m] == pytest.approx(roc_auc_score(truth, guess), abs=1e-12)
        fpr, tpr, thresholds = roc_curve(truth, guess, drop_intermediate=False)
        reachable = thresholds > 0.0  # scikit-learn calls p ≥ t smoke; t = 0 calls every cell
        nearest = np.min(np.hypot(fpr, 1.0 - tpr)[reachable])
        ours = np.hypot(scores.false_positive_rate[m], 1.0 - scores.true_positive_rate[m])
        assert ours == pytest.approx(nearest, abs=1e-12)
        for found, threshold in ((scores.iou[m], scores.decision_threshold[m]), (one[m], alpha)):
            assert found == pytest.approx(jaccard_score(truth, guess > threshold, zero_division=1))
