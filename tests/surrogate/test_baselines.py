"""Baselines: what they predict, by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import pairwise_distances

import plumecast as pc
from plumecast.operators import baselines as operators


def test_mean_field_and_nearest_fire_are_those_of_training(split):
    mean = pc.surrogate.fit_baseline("mean-field", split.train).predict(split.test)
    expected = np.broadcast_to(split.train.smoke.mean("snapshot"), mean.shape)
    np.testing.assert_allclose(mean, expected, rtol=1e-6)
    nearest = pc.surrogate.fit_baseline("nearest-fire", split.train)
    train, test = (
        part.time_since_ignition.values.reshape(part.sizes["snapshot"], -1)
        for part in (split.train, split.test)
    )
    rows = pairwise_distances(test, train).argmin(axis=1)
    np.testing.assert_array_equal(nearest.predict(split.test), split.train.smoke.values[rows])
    np.testing.assert_array_equal(nearest.predict(split.train), split.train.smoke.values)


def toy(seed: int = 0):
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-2.0, 2.0, size=(25, 2))
    outputs = np.stack([np.sin(inputs[:, 0]), np.cos(inputs[:, 1])], axis=1)
    return inputs, outputs + 0.01 * rng.normal(size=outputs.shape)


def test_likelihood_gradient_is_its_derivative():
    inputs, outputs = toy()
    distances = operators.squared_distances(inputs, inputs)
    outer = outputs @ outputs.T

    def value(log_scale):
        return operators._negative_likelihood(log_scale[0], distances, outer)[0]

    for log_scale in (-1.0, 0.0, 0.5):
        _, gradient = operators._negative_likelihood(log_scale, distances, outer)
        numeric = scipy.optimize.approx_fprime([log_scale], value, 1e-6)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)


def test_gaussian_process_agrees_with_scikit_learn():
    """The same kernel and jitter give the same mean; our scale is a maximum of its likelihood."""
    inputs, outputs = toy()
    ours = operators.fit_gaussian_process(inputs, outputs)

    def theirs(length_scale):
        unit = RBF(length_scale)(inputs) + operators.GP_JITTER * np.eye(len(inputs))
        variance = np.sum(outputs * np.linalg.solve(unit, outputs)) / outputs.size
        kernel = ConstantKernel(variance) * RBF(length_scale)
        alpha = operators.GP_JITTER * variance
        return GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(inputs, outputs)

    new = np.random.default_rng(1).uniform(-2.0, 2.0, size=(10, 2))
    best = theirs(ours.length_scale)
    np.testing.assert_allclose(ours.predict(new), best.predict(new), atol=1e-6)
    for factor in (0.98, 1.02):
        other = theirs(factor * ours.length_scale)
        assert best.log_marginal_likelihood() > other.log_marginal_likelihood()


def test_gaussian_process_on_codes_predicts_smoke_on_the_grid(split):
    fitted = pc.surrogate.fit_baseline("gp-codes", split.train)
    predicted = fitted.predict(split.test)
    assert predicted.dims == ("snapshot", "y", "x")
    assert float(predicted.min()) >= 0.0
    assert pc.scores.relative_error(fitted.predict(split.train), split.train.smoke) < 0.5
    assert operators.sample_rows(1000, seed=0).size == 100


def test_unknown_baselines_and_equal_inputs_are_refused(split):
    with pytest.raises(pc.PlumecastError, match="baseline 'magic' is unknown; choose from mean-f"):
        pc.surrogate.fit_baseline("magic", split.train)
    with pytest.raises(pc.PlumecastError, match="all alike"):
        operators.fit_gaussian_process(np.ones((4, 2)), np.ones((4, 1)))
