"""Smoke and footprint that agree: smoke above τ exactly where the score is above α."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import to_numpy
from plumecast.compute.resources import Resources
from plumecast.data.split import SplitRecipe
from plumecast.scores.reading import Reading
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.thresholds import (
    AGREE,
    Agreement,
    Thresholds,
    joint_score,
)
from plumecast.workflows.evaluate import evaluate
from plumecast.workflows.held_out.scoring import agreeing, separate
from plumecast.workflows.predict import predict_store
from support.quantities import settled
from support.snapshots import make_snapshots

RECIPE = SplitRecipe(fractions=(0.5, 0.25, 0.25))


@pytest.fixture(scope="module")
def fires() -> xr.Dataset:
    return make_snapshots(fires=16, shape=(8, 10)).astype(np.float32, keep_attrs=True)


@pytest.fixture(scope="module")
def trained(fires) -> pc.Surrogate:
    return pc.train_surrogate(fires, "recommended", layers=1, split=RECIPE)


def footprints(surrogate: pc.Surrogate, smoke, score) -> tuple[np.ndarray, np.ndarray]:
    """Where the smoke is above τ, and where the score is above α."""
    thresholds = surrogate.training["thresholds"]
    return np.asarray(smoke) > thresholds["smoke"], np.asarray(score) > thresholds["decision"]


@given(
    seed=st.integers(0, 2**32 - 1),
    tau=st.sampled_from([0.0, 1e-25, 0.1, 1.0 / 3.0, 35.0]),
    alpha=st.floats(0.0, 1.0),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_smoke_is_above_tau_exactly_where_the_score_is_above_alpha(seed, tau, alpha, dtype):
    rng = np.random.default_rng(seed)
    around = np.array([0.0, tau, np.float32(tau), np.nextafter(tau, 1e9), 2.0 * tau + 1e-3, 50.0])
    smoke = rng.choice(around, size=(3, 40))
    score = rng.choice([0.0, alpha, np.nextafter(alpha, 2.0), 1.0, *rng.random(5)], size=(3, 40))
    score = np.clip(score, 0.0, 1.0)
    made, joint = Agreement(Thresholds(tau, alpha)).reconcile(smoke, score)
    present = joint_score(smoke, score, tau) > alpha
    made, joint = made.astype(dtype), joint.astype(dtype)
    np.testing.assert_array_equal(made > tau, present)
    np.testing.assert_array_equal(made.astype(np.float64) > tau, present)
    np.testing.assert_array_equal(joint > alpha, present)
    assert made.min() >= 0.0


def test_the_joint_score_rises_and_smoke_on_the_right_side_keeps_its_value():
    smoke, score = np.meshgrid(np.geomspace(1e-6, 1e6, 30), np.linspace(0.0, 1.0, 20))
    joint = joint_score(smoke, score, 0.02)
    assert (np.diff(joint, axis=0) >= 0.0).all()  # thick smoke counts whatever the score
    assert (np.diff(joint, axis=0)[:, smoke[0] < 0.02] > 0.0).all()
    assert (np.diff(joint, axis=1) > 0.0).all()
    assert 0.0 <= joint.min() <= joint.max() <= 1.0
    assert joint_score(np.zeros(1), np.zeros(1), 0.0)[0] == 0.0
    smoke, score = np.array([0.0, 0.05, 3.0, 3.0, 0.05]), np.array([0.0, 0.1, 0.9, 0.0, 0.9])
    made, _ = Agreement(Thresholds(0.1, 0.4)).reconcile(smoke, score)
    np.testing.assert_array_equal(made[:3], smoke[:3])
    # Lowered to τ, as the joint score is 1/6; raised to τ.
    np.testing.assert_allclose(made[3:], 0.1, rtol=1e-6)


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_other_array_namespaces_give_the_same(namespace):
    library = pytest.importorskip(namespace)
    rng = np.random.default_rng(0)
    smoke, score = rng.gamma(0.3, 5.0, size=(4, 50)), rng.random((4, 50))
    agreement = Agreement(Thresholds(0.3, 0.4))
    found = agreement.reconcile(library.asarray(smoke), library.asarray(score))
    for ours, theirs in zip(agreement.reconcile(smoke, score), found, strict=True):
        # The same few operations in double precision, perhaps fused.
        np.testing.assert_allclose(to_numpy(theirs), ours, rtol=1e-15)


# -- surrogates


def test_training_makes_smoke_and_footprint_agree(trained, fires, tmp_path):
    assert trained.training[AGREE] == {"weight": 0.5, "scale": 30.0, "thick": 100.0}
    smoke, score = trained.predict_both(fires)
    above, present = footprints(trained, smoke, score)
    assert 0 < np.count_nonzero(present) < present.size
    np.testing.assert_array_equal(above, present)
    xr.testing.assert_identical(trained.predict(fires), smoke)
    xr.testing.assert_identical(trained.predict_footprint(fires), score)
    apart = separate(trained).predict_both(fires)
    above, present = footprints(trained, *apart)
    assert (above != present).any()
    bare = replace(separate(trained), training={})  # as files from before the agreement
    for one, other in zip(apart, bare.predict_both(fires), strict=True):
        np.testing.assert_array_equal(one, other)
    empty = fires.isel(snapshot=[0]).assign(time_since_ignition=0.0 * fires.time_since_ignition[:1])
    assert not any(part.any() for part in trained.predict_both(empty))
    thresholds, store = (
        trained.training["thresholds"],
        pc.export_snapshots(fires, tmp_path / "f.nc"),
    )
    for block in predict_store(
        trained, store, threshold=thresholds["decision"], resources=Resources(memory="40MB")
    ):
        np.testing.assert_array_equal(block.footprint, block.smoke > thresholds["smoke"])
        assert block.footprint.attrs["smoke_threshold"] == thresholds["smoke"]


def test_single_precision_tensors_and_thresholds_of_folds_agree(trained, fires):
    torch = pytest.importorskip("torch")
    one = fires.isel(snapshot=fires.drought.values == fires.drought.values[0])
    smoke, score = trained.predict_both_rows(*trained.read_rows(one))
    np.testing.assert_array_equal(*footprints(trained, smoke, score))
    apart = separate(trained).predict_both_rows(*trained.read_rows(one))
    made = trained.record.agreement.reconcile(
        *(torch.asarray(part).to(torch.float32) for part in apart)
    )
    np.testing.assert_array_equal(*footprints(trained, *(part.numpy() for part in made)))
    few = fires.isel(snapshot=slice(0, 32))
    surrogate = pc.train_surrogate(few, "recommended", layers=1, split=None, folds=2)
    np.testing.assert_array_equal(*footprints(surrogate, *surrogate.predict_both(fires)))
    scores = surrogate.training["out_of_fold"]["scores"][0]
    assert scores["smoke_iou"] == scores["deployable_iou"]
    linear = pc.train_surrogate(fires, "paper-linear", split=RECIPE)
    assert AGREE not in linear.training  # there is no score
    agreed = agreeing(linear, Thresholds(0.1, 0.2)).predict(fires)
    np.testing.assert_array_equal(agreed, linear.predict(fires))


def test_scores_are_those_of_the_predicted_smoke_and_of_the_record(trained, fires):
    split = RECIPE.split(fires)
    (score,) = evaluate({"own": trained}, split.validation, split.validation).scores
    recorded = trained.training["validation"]["scores"][0]
    assert score.deployable_iou == score.smoke_iou == recorded["deployable_iou"]
    assert score.snapshot_error == recorded["snapshot_error"]
    assert score.decision_threshold == trained.training["thresholds"]["decision"]
    levels = [0.5, 2.0]
    reading = Reading("sum", levels)
    (score,) = evaluate({"own": trained}, split.validation, split.test, reading=reading).scores
    tau = trained.training["thresholds"]["smoke"]
    assert [item.threshold for item in score.exceedances] == [tau, *levels]
    guess, truth = trained.predict(split.test), split.test.smoke
    for item in score.exceedances:
        called, present = guess > item.threshold, truth > item.threshold
        assert item.hit_rate == float((called & present).sum() / present.sum())
        assert item.bias == float(called.sum() / present.sum())
    with pytest.raises(PlumecastError, match=r"thresholds=-1 must be ≥ 0"):
        Reading(thresholds=[-1])


def test_the_statistics_of_an_ensemble_are_those_of_the_footprint(trained, fires):
    tau = trained.training["thresholds"]["smoke"]
    found = pc.ensemble_statistics(trained, fires, Reading("sum", [tau]))
    present = (settled(trained, fires) > tau).values
    np.testing.assert_allclose(found.exceedance[0], present.mean(axis=0), atol=1e-12)


# -- files


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({AGREE: True}, "does not say how smoke and footprint agree"),
        ({AGREE: {"weight": -1.0, "scale": 30.0, "thick": 100.0}}, "agree.weight=-1 must be ≥ 0"),
        ({"thresholds": {"smoke": 0.1}}, "needs both thresholds"),
    ],
)
def test_a_damaged_record_is_refused(trained, tmp_path, record, message):
    wrong = replace(trained, training=trained.training | record)
    path: Path = wrong.save(tmp_path / "wrong.plume")
    with pytest.raises(PlumecastError, match=message):
        load_surrogate(path)
