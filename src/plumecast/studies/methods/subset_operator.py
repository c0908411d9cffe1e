"""Linear operators fitted to many subsets of one training set, from two Gram matrices.

With the rows of a subset X = U Σ Wᵀ and Y = Ũ Σ̃ W̃ᵀ, the paper's linear operator (Theorem 1) on the
first r and r̃ modes predicts, for new inputs x,

    ŷ = x Xᵀ · U Σ⁻² Uᵀ · Ũ Ũᵀ · Y,

so a subset of n rows costs two n × n eigendecompositions and one product over the cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from plumecast.compute.arrays import Array
from plumecast.compute.linalg import gram
from plumecast.operators.pca import GRAM_LIMIT, rank_for_std


@dataclass(frozen=True, slots=True)
class Pool:
    """Inner products of all training rows and of the new inputs to predict."""

    outputs: Array  # (M, N)
    input_gram: Array  # (M, M)
    output_gram: Array  # (M, M)
    cross: Array  # (K, M), new inputs times training inputs
    std_fraction: float


def make_pool(inputs: Array, outputs: Array, others: Array, std_fraction: float) -> Pool:
    """Compute every inner product that a subset can need."""
    return Pool(outputs, gram(inputs), gram(outputs), others @ inputs.T, std_fraction)


@dataclass(frozen=True, slots=True)
class SubsetOperator:
    """The linear operator fitted to a subset of the rows of a pool."""

    pool: Pool
    rows: Array  # (n,)
    mixing: Array  # (n, n), U Σ⁻² Uᵀ Ũ Ũᵀ
    output_vectors: Array  # (n, r̃), Ũ
    output_spectrum: Array  # (r̃,)

    def predict_others(self) -> Array:
        """Predictions for the new inputs, (K, N), clipped at zero."""
        return self._predict(self.pool.cross[:, self.rows])

    def predict_rows(self, rows: Array) -> Array:
        """Predictions for rows of the pool, (m, N), clipped at zero."""
        return self._predict(self.pool.input_gram[np.ix_(rows, self.rows)])

    def _predict(self, products: Array) -> Array:
        out = (products @ self.mixing) @ self.pool.outputs[self.rows]
        return np.maximum(out, 0.0, out=out)

    def project(self, field: Array) -> Array:
        """Projection of a field (N,) onto the output modes of this subset."""
        outputs = self.pool.outputs[self.rows]
        codes = (self.output_vectors.T @ (outputs @ field)) / self.output_spectrum**2
        projected: Array = (self.output_vectors @ codes) @ outputs
        return projected


def fit_subset(pool: Pool, rows: Array) -> SubsetOperator:
    """Fit the operator to a subset of the rows."""
    spectrum, vectors = _modes(pool.input_gram[np.ix_(rows, rows)], pool.std_fraction)
    out_spectrum, out_vectors = _modes(pool.output_gram[np.ix_(rows, rows)], pool.std_fraction)
    mixing = ((vectors / spectrum**2) @ (vectors.T @ out_vectors)) @ out_vectors.T
    return SubsetOperator(pool, rows, mixing, out_vectors, out_spectrum)


def _modes(products: Array, std_fraction: float) -> tuple[Array, Array]:
    """Leading singular values and left singular vectors, up to the std fraction."""
    values, vectors = scipy.linalg.eigh(products, driver="evd", check_finite=False)
    spectrum = np.sqrt(np.clip(values[::-1], 0.0, None))
    spectrum[spectrum < GRAM_LIMIT * spectrum[0]] = 0.0  # rounding error
    rank = rank_for_std(spectrum, std_fraction)
    return spectrum[:rank], np.ascontiguousarray(vectors[:, ::-1][:, :rank])
