"""Baselines of a surrogate: mean field, nearest training fire, Gaussian process. Arrays only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, contiguous
from plumecast.compute.linalg import squared_distances
from plumecast.operators.family import NOTHING, Conditions, Operator

GP_SAMPLES = 100
"""The paper trains its Gaussian processes on 100 random snapshots."""

GP_JITTER = 1e-6
"""Added to the unit diagonal of the GP's kernel so that its Cholesky factor exists."""


@dataclass(frozen=True, slots=True)
class MeanField(Operator):
    """Predicts the mean training output for every input."""

    mean: Array  # (Ñ,)

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, Ñ), every row the mean."""
        xp = array_namespace(inputs, self.mean)
        return xp.broadcast_to(self.mean[None, :], (inputs.shape[0], self.mean.shape[0])) + 0.0


@dataclass(frozen=True, slots=True)
class NearestFire(Operator):
    """Predicts the output of the training snapshot whose input is nearest in ℓ²."""

    inputs: Array  # (M, N)
    outputs: Array  # (M, Ñ)

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, Ñ), rows of the training outputs."""
        xp = array_namespace(inputs, self.inputs)
        nearest = xp.argmin(squared_distances(inputs, self.inputs), axis=1)
        return xp.take(self.outputs, nearest, axis=0)


@dataclass(frozen=True, slots=True)
class GaussianProcess(Operator):
    """Posterior mean of a zero-mean GP with kernel exp(−‖a − b‖² / 2l²)."""

    support: Array  # (n, N), the training inputs
    weights: Array  # (n, Ñ), K⁻¹ times the training outputs
    length_scale: float

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, Ñ)."""
        distances = squared_distances(inputs, self.support)
        xp = array_namespace(distances)
        return xp.exp(distances / (-2.0 * self.length_scale**2)) @ self.weights


def sample_rows(count: int, seed: int) -> Array:
    """Indices of the random snapshots a GP is trained on, at most GP_SAMPLES."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.permutation(count)[:GP_SAMPLES])


def fit_gaussian_process(inputs: Array, outputs: Array) -> GaussianProcess:
    """Squared-exponential GP; all outputs share one length scale l, which L-BFGS chooses.

    The variance of the outputs is profiled out, σ² = tr(Yᵀ K⁻¹ Y) / nq, so that l maximises
    −½ q (n ln σ² + ln|K|), which does not depend on the unit of the output.
    """
    distances = squared_distances(inputs, inputs)
    np.fill_diagonal(distances, 0.0)
    typical = math.sqrt(float(np.median(distances[np.triu_indices_from(distances, 1)])))
    if not typical > 0.0:
        raise PlumecastError(
            "the training inputs of the Gaussian process are all alike; add other fires"
        )
    outer = outputs @ outputs.T
    optimum = scipy.optimize.minimize(
        lambda log_scale: _negative_likelihood(log_scale[0], distances, outer),
        x0=[math.log(typical)],
        jac=True,
        method="L-BFGS-B",
        bounds=[(math.log(typical) - 6.0, math.log(typical) + 6.0)],
    )
    length_scale = math.exp(float(optimum.x[0]))
    kernel = _kernel(distances, length_scale)
    weights = scipy.linalg.cho_solve(scipy.linalg.cho_factor(kernel, lower=True), outputs)
    return GaussianProcess(contiguous(inputs), contiguous(weights), length_scale)


def _kernel(distances: Array, length_scale: float) -> Array:
    return np.exp(distances / (-2.0 * length_scale**2)) + GP_JITTER * np.eye(distances.shape[0])


def _negative_likelihood(log_scale: float, distances: Array, outer: Array) -> tuple[float, Array]:
    """½ (n ln tr(K⁻¹ YYᵀ) + ln|K|) and its derivative in ln l, up to a constant."""
    n = distances.shape[0]
    length_scale = math.exp(log_scale)
    kernel = _kernel(distances, length_scale)
    factor = scipy.linalg.cho_factor(kernel, lower=True)
    inverse = scipy.linalg.cho_solve(factor, np.eye(n))
    fit = float(np.sum(inverse * outer))
    log_determinant = 2.0 * float(np.sum(np.log(np.diag(factor[0]))))
    slope = kernel * (distances / length_scale**2)  # dK / d ln l
    curved = inverse @ slope
    gradient = 0.5 * (float(np.trace(curved)) - n * float(np.sum(curved * (outer @ inverse))) / fit)
    return 0.5 * (n * math.log(fit) + log_determinant), np.array([gradient])
