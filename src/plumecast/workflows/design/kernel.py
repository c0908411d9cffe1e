"""The kernel of a design: how much the run of one fire tells of another.

It is the inner product of what the surrogate sees (`features`), as in a ridge regression on it. A
large fire has large features and tells more, as it does in a fit by least squares.
"""

from __future__ import annotations

import numpy as np

from plumecast.compute.arrays import Array
from plumecast.compute.blocks import sampled_rows
from plumecast.compute.selection import Kernel
from plumecast.operators.pca import Truncation, fit_truncated_basis

NOISE = 0.1
"""Noise λ of an output, relative to the mean variance before any run: what cannot be learned."""

LEADING = Truncation(variance_fraction=0.9999, max_rank=150)
"""Principal components that stand for the features; 100 have 99.8 % of the variance of simulated
fires."""

SAMPLE = 1024
"""Snapshots from which the components are computed."""


def fit_kernel(pool: Array, rows: Array) -> tuple[Kernel, Array]:
    """The kernel, and the (M, r) rows that it takes, from (M, D) features of all fires.

    k(a, b) = ⟨a, b⟩ / mean over the pool of ‖a‖², of the leading uncentred components of the
    features. The `pool` is some of the rows.
    """
    some = pool[sampled_rows(pool.shape[0], SAMPLE)].astype(np.float64)
    basis = fit_truncated_basis(some, LEADING)
    codes = np.concatenate([basis.encode(part) for part in np.array_split(rows, _parts(rows))])
    size = float(np.mean(np.square(basis.encode(some)).sum(axis=1)))
    return inner_product, codes / np.sqrt(size)


def inner_product(a: Array, b: Array) -> Array:
    """⟨a, b⟩ of all pairs of rows."""
    return a @ b.T


def _parts(rows: Array) -> int:
    """Number of blocks in which rows are encoded in double precision."""
    return -(-int(rows.shape[0]) // SAMPLE)
