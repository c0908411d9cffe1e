"""The quadratic fit exactly as the paper writes it, to compare its time with ours."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg

from plumecast.compute.arrays import Array
from plumecast.compute.linalg import gram
from plumecast.operators.coded.kernels import monomial_count, monomials


@dataclass(frozen=True, slots=True)
class LiteralFit:
    """Explicit weights, and the seconds to form and to solve the normal equations."""

    weights: Array
    forming: float
    solving: float


def literal_quadratic(codes: Array, targets: Array, penalty: float) -> LiteralFit:
    """Solve (ΦᵀΦ + λI) θ = ΦᵀY by Cholesky, with all monomials Φ formed explicitly."""
    start = time.perf_counter()
    features = monomials(codes, 2)
    normal = gram(features.T)
    right = features.T @ targets
    formed = time.perf_counter()
    normal.flat[:: normal.shape[0] + 1] += penalty
    lower = blocked_cholesky(normal)
    half = scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False)
    weights = scipy.linalg.solve_triangular(lower.T, half, lower=False, check_finite=False)
    return LiteralFit(weights, formed - start, time.perf_counter() - formed)


def blocked_cholesky(matrix: Array, block: int = 2048) -> Array:
    """Lower Cholesky factor in place, panel by panel; entries above the diagonal are not changed.

    The LAPACK routine crashes at 20,300 rows in common OpenBLAS builds.
    """
    n = matrix.shape[0]
    for start in range(0, n, block):
        stop = min(start + block, n)
        corner = matrix[start:stop, start:stop]
        corner[:] = np.tril(scipy.linalg.cholesky(corner, lower=True, check_finite=False))
        if stop == n:
            break
        panel = scipy.linalg.solve_triangular(
            corner, matrix[stop:, start:stop].T, lower=True, check_finite=False
        ).T
        matrix[stop:, start:stop] = panel
        for row in range(stop, n, block):
            last = min(row + block, n)
            matrix[row:last, stop:last] -= panel[row - stop : last - stop] @ panel[: last - stop].T
    return matrix


def too_large(rank: int) -> str | None:
    """The reason why the literal fit exceeds the free memory, or None if it fits.

    The normal matrix and a copy must fit.
    """
    features = monomial_count(rank, 2)
    needed = 10.0 * features**2
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(float(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    if needed <= 1024.0 * free:
        return None
    return f"{features:,} features need {needed / 1e9:.1f} GB and {free / 1e6:.1f} GB are free"
