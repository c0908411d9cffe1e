"""The optical-depth proxy and its three estimators."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.operators.pca import fit_basis


def test_monte_carlo_is_the_mean_of_the_logarithm(snapshots):
    labelled = pc.scores.mean_log_smoke(snapshots.smoke)
    np.testing.assert_allclose(labelled, np.log1p(snapshots.smoke.values).mean(axis=0), rtol=1e-6)
    assert labelled.dims == ("y", "x")
    assert labelled.attrs["units"] == "1"
    np.testing.assert_allclose(
        pc.scores.mean_log_smoke(snapshots.smoke.values), labelled, rtol=1e-6
    )


def test_operator_estimate_is_the_mean_of_its_predictions(split):
    train = pc.scores.with_log_smoke(split.train)
    surrogate = pc.fit_surrogate(train, "paper-linear", outputs="log_smoke")
    estimate = pc.scores.operator_mean_log_smoke(surrogate, split.test)
    np.testing.assert_allclose(estimate, surrogate.predict(split.test).mean("snapshot"))
    assert estimate.name == "log_smoke"
    with pytest.raises(pc.PlumecastError, match="outputs='log_smoke'"):
        pc.scores.operator_mean_log_smoke(pc.fit_surrogate(train, "paper-linear"), split.test)


def test_operator_estimate_on_its_own_training_fires_is_near_monte_carlo(split):
    """With all modes kept on both sides and fewer fires than cells, the fit interpolates."""
    train = pc.scores.with_log_smoke(pc.data.final_snapshots(split.train))
    surrogate = pc.fit_surrogate(
        train,
        degree=1,
        penalty=0.0,
        fire_std_fraction=1.0,
        smoke_std_fraction=1.0,
        outputs="log_smoke",
    )
    np.testing.assert_allclose(
        pc.scores.operator_mean_log_smoke(surrogate, train),
        pc.scores.mean_log_smoke(train.smoke),
        atol=1e-4,
    )


def test_reduced_monte_carlo_is_the_projected_mean(snapshots):
    logarithm = np.log1p(snapshots.smoke.values.reshape(snapshots.sizes["snapshot"], -1))
    basis = fit_basis(logarithm, rank=5)
    projected = basis.decode(basis.encode(logarithm)).mean(axis=0)
    smoke = snapshots.smoke.values.reshape(logarithm.shape)
    np.testing.assert_allclose(pc.scores.reduced_mean_log_smoke(basis, smoke), projected, atol=1e-6)
