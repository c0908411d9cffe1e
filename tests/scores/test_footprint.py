"""Smoke threshold, footprint scores and relative errors."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.scores.footprint import (
    choose_decision_threshold,
    relative_error,
    score_footprints,
    smoke_threshold,
    snapshot_relative_errors,
)
from plumecast.scores.roc import iou_at

seeds = st.integers(0, 2**32 - 1)


def captured_share(smoke: np.ndarray, tau: float) -> float:
    """The paper's formula, literally."""
    rows = smoke[(smoke > 0.0).any(axis=1)]
    return float(np.mean((rows > tau).sum(axis=1) / (rows > 0.0).sum(axis=1)))


def some_smoke(seed: int, snapshots: int = 5, cells: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.maximum(np.round(rng.normal(size=(snapshots, cells)), 1), 0.0)


@given(seed=seeds, captured=st.floats(0.05, 0.97))
def test_threshold_is_the_largest_that_captures_enough(seed, captured):
    smoke = some_smoke(seed)
    tau = smoke_threshold(smoke, captured)
    values = np.unique(smoke[smoke > 0.0])
    larger = values[values > tau]
    assert tau == 0.0 or captured_share(smoke, tau) > captured
    assert larger.size == 0 or captured_share(smoke, larger[0]) <= captured + 1e-12


def test_scores_are_per_snapshot_with_their_coordinates():
    smoke = some_smoke(1, snapshots=600).reshape(600, 5, 6)  # more than one block
    observed = xr.DataArray(
        smoke,
        dims=("snapshot", "y", "x"),
        coords={"fire_id": ("snapshot", np.arange(600).astype(str))},
    )
    predicted = (observed + 0.3).transpose("y", "snapshot", "x")
    scores = score_footprints(predicted, observed, 0.5, decision_threshold=0.8)
    assert scores.sizes == {"snapshot": 600}
    assert scores.fire_id.values[-1] == "599"
    np.testing.assert_allclose(scores.extent, (smoke > 0.5).mean(axis=(1, 2)))
    np.testing.assert_array_equal(scores.iou.values[scores.extent.values > 0.0], 1.0)
    np.testing.assert_array_equal(
        scores.deployable_iou,
        iou_at(smoke.reshape(600, -1) + 0.3, smoke.reshape(600, -1) > 0.5, 0.8),
    )


def test_one_threshold_is_the_best_of_its_candidates():
    smoke = some_smoke(2, snapshots=20)
    predicted = 2.0 * smoke  # a biased prediction needs another threshold than τ
    alpha = choose_decision_threshold(predicted, smoke, 0.5)
    assert iou_at(predicted, smoke > 0.5, alpha).mean() == 1.0
    assert iou_at(predicted, smoke > 0.5, 0.5).mean() < 1.0


def test_errors_by_hand():
    observed = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 5.0]])
    predicted = np.array([[3.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 5.0]])
    np.testing.assert_array_equal(
        snapshot_relative_errors(predicted, observed), [0.8, 0.0, np.nan, 0.0]
    )
    assert relative_error(predicted, observed) == pytest.approx(np.sqrt(17.0 / 50.0))
    assert relative_error(np.zeros((1, 2)), np.zeros((1, 2))) == 0.0
    assert np.isnan(relative_error(np.ones((1, 2)), np.zeros((1, 2))))


def test_scores_do_not_depend_on_the_order_of_dimensions():
    smoke = xr.DataArray(some_smoke(3).reshape(5, 5, 6), dims=("snapshot", "y", "x"))
    turned = smoke.transpose("y", "x", "snapshot")
    guess = (smoke * 1.3 + 0.1).transpose("x", "snapshot", "y")
    assert smoke_threshold(turned, 0.6) == smoke_threshold(smoke, 0.6)
    assert choose_decision_threshold(guess, turned, 0.5) == choose_decision_threshold(
        guess.transpose("snapshot", "y", "x"), smoke, 0.5
    )
    one, other = (score_footprints(guess, field, 0.5) for field in (smoke, turned))
    np.testing.assert_array_equal(one.iou, other.iou)


def test_what_cannot_be_scored_is_refused():
    for call, words in (
        (lambda: smoke_threshold(np.zeros((2, 3))), "no snapshot holds smoke"),
        (lambda: smoke_threshold(np.ones((2, 3)), 1.0), "captured=1 is not within"),
        (lambda: relative_error(np.ones((2, 3)), np.ones((3, 3))), "differ"),
        (lambda: score_footprints(*np.ones((2, 0, 3)), 0.5), "no snapshots to score"),
    ):
        with pytest.raises(PlumecastError, match=words):
            call()
    assert choose_decision_threshold(np.zeros((2, 3)), np.ones((2, 3)), 0.5) == 0.5
