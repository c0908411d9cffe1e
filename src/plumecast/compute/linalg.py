"""The few factorisations plumecast needs, for NumPy (through LAPACK) and any array namespace.

SciPy is imported where NumPy arrays need it: on a GPU the numerics run without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    contiguous,
    device_of,
    is_cupy_array,
    is_numpy_array,
    is_numpy_namespace,
    is_torch_array,
)

MIRRORED = 512
"""Rows of an inverse whose other half is filled in together."""

SYRK_LIMIT = 8192
"""Rows of the largest symmetric product handed to BLAS in one piece."""


def gram(rows: Array) -> Array:
    """rows @ rows.T, each product of two different rows computed once.

    NumPy hands this to BLAS's symmetric product, which corrupts memory in common OpenBLAS builds
    from about 20,000 rows (numpy issue 19685); larger ones are therefore put together from tiles.
    """
    xp = array_namespace(rows)
    n = rows.shape[0]
    if not is_numpy_namespace(xp) or n <= SYRK_LIMIT:
        return rows @ rows.T
    out = np.empty((n, n), dtype=rows.dtype)
    tiles = [slice(start, start + SYRK_LIMIT) for start in range(0, n, SYRK_LIMIT)]
    for i, one in enumerate(tiles):
        for other in tiles[: i + 1]:
            np.matmul(rows[one], rows[other].T, out=out[one, other])
            out[other, one] = out[one, other].T
    return out


def squared_distances(a: Array, b: Array) -> Array:
    """‖aᵢ − bⱼ‖², (Ma, Mb), from one matrix product; never below zero."""
    xp = array_namespace(a, b)
    squares = xp.sum(a**2, axis=1)[:, None] + xp.sum(b**2, axis=1)[None, :]
    return xp.clip(squares - 2.0 * (a @ b.T), 0.0, None)


def symmetric_eigen(matrix: Array) -> tuple[Array, Array]:
    """All eigenvalues (descending, negative rounding set to 0) and vectors of a PSD matrix."""
    xp = array_namespace(matrix)
    if is_numpy_namespace(xp):
        import scipy.linalg

        # Divide and conquer: all vectors are wanted, and it spends its time in matrix products.
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=False)
    else:
        values, vectors = xp.linalg.eigh(matrix)
    # A flipped view has negative strides, which BLAS does not take: products would crawl.
    return xp.clip(xp.flip(values), 0.0, None), contiguous(xp.flip(vectors, axis=1))


@dataclass(frozen=True, slots=True)
class LeadingEigen:
    """All eigenvalues of a PSD matrix, and its leading vectors on demand."""

    values: Array  # (n,), descending
    vectors: Callable[[int], Array]  # k → (n, k), the vectors of the k largest values


def leading_eigen(matrix: Array) -> LeadingEigen:
    """Eigenvalues first, then as many vectors as they turn out to call for.

    How many vectors are kept depends on all eigenvalues, so one library call would factor twice
    or compute every vector. Here the matrix is reduced to tridiagonal form once; the values cost
    O(n²) after that, and only the wanted vectors are computed and transformed back.
    """
    xp = array_namespace(matrix)
    if is_numpy_namespace(xp) and matrix.shape[0] > 2:
        return _leading_eigen_lapack(matrix)
    values, vectors = symmetric_eigen(matrix)
    return LeadingEigen(values, lambda count: vectors[:, :count])


def _leading_eigen_lapack(matrix: Array) -> LeadingEigen:
    import scipy.linalg
    from scipy.linalg import lapack

    n = matrix.shape[0]
    lwork = int(lapack.dsytrd_lwork(n, lower=1)[0])
    reflectors, diagonal, off_diagonal, tau, info = lapack.dsytrd(matrix, lower=1, lwork=lwork)
    _check_lapack("dsytrd", info)
    ascending = scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal, check_finite=False)

    def vectors(count: int) -> Array:
        _, tridiagonal = scipy.linalg.eigh_tridiagonal(
            diagonal, off_diagonal, select="i", select_range=(n - count, n - 1), check_finite=False
        )
        # Q of the reduction is 1 ⊕ Q₁, with Q₁ the QR reflectors below the first subdiagonal.
        lower = np.asfortranarray(reflectors[1:, :-1])
        rest = np.asfortranarray(tridiagonal[1:])
        work = lapack.dormqr("L", "N", lower, tau, rest, -1)[1]
        rest, _, info = lapack.dormqr("L", "N", lower, tau, rest, int(work[0]), overwrite_c=1)
        _check_lapack("dormqr", info)
        return np.ascontiguousarray(np.concatenate([tridiagonal[:1], rest])[:, ::-1])

    return LeadingEigen(np.clip(ascending[::-1], 0.0, None), vectors)


def _check_lapack(routine: str, info: int) -> None:
    if info != 0:
        raise ArithmeticError(f"LAPACK {routine} failed with info={info}")


def solve_positive(matrix: Array, right: Array) -> Array:
    """Solve a symmetric positive definite system by Cholesky; refuse a singular one."""
    if is_numpy_array(matrix):
        import scipy.linalg

        with _naming_singular(matrix.shape[0]):
            factor = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        return scipy.linalg.cho_solve(factor, right, check_finite=False)
    lower = cholesky(matrix)
    return solve_upper(lower, solve_lower(lower, right))


def inverse_positive(matrix: Array, *, overwrite: bool = False) -> Array:
    """The inverse of a symmetric positive definite matrix; refuse a singular one.

    With `overwrite` a NumPy matrix in rows is lost, and the inverse may be in its memory.
    """
    if not is_numpy_array(matrix):
        xp, order = array_namespace(matrix), matrix.shape[0]
        return solve_positive(matrix, xp.eye(order, dtype=matrix.dtype, device=device_of(matrix)))
    from scipy.linalg import lapack

    with _naming_singular(matrix.shape[0]):
        # Of a symmetric matrix the transpose is the same, and in LAPACK's order.
        upper, info = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=overwrite)
        if info != 0:
            raise np.linalg.LinAlgError
    inverse, info = lapack.dpotri(upper, lower=0, overwrite_c=1)
    _check_lapack("dpotri", info)
    half = inverse.T  # its lower triangle holds the inverse
    for start in range(0, half.shape[0], MIRRORED):
        rows = slice(start, start + MIRRORED)
        half[:start, rows] = half[rows, :start].T
        corner = np.tril(half[rows, rows])
        half[rows, rows] = corner + np.tril(corner, -1).T
    return half


def cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor; a matrix that is not positive definite is refused."""
    xp = array_namespace(matrix)
    with _naming_singular(matrix.shape[0]):
        lower = xp.linalg.cholesky(matrix)
        if not bool(xp.isfinite(xp.sum(xp.linalg.diagonal(lower)))):
            raise np.linalg.LinAlgError  # CuPy gives NaN where the others raise
    return lower


@contextlib.contextmanager
def _naming_singular(order: int) -> Iterator[None]:
    """Say what to do about a system that is not positive definite."""
    try:
        yield
    except Exception as error:  # each namespace has its own class of this name
        if type(error).__name__ not in ("LinAlgError", "_LinAlgError"):
            raise
        raise PlumecastError(
            f"the {order}×{order} least-squares system is singular; "
            "give a penalty > 0 or lower the rank"
        ) from error


def solve_lower(lower: Array, right: Array) -> Array:
    """L⁻¹ B for a lower triangular L."""
    return _solve_triangular(lower, right, transposed=False)


def solve_upper(lower: Array, right: Array) -> Array:
    """L⁻ᵀ B for a lower triangular L."""
    return _solve_triangular(lower, right, transposed=True)


def _solve_triangular(lower: Array, right: Array, *, transposed: bool) -> Array:
    """The one operation the array API lacks: a general solve would factor L again."""
    if is_numpy_array(lower):
        import scipy.linalg

        return scipy.linalg.solve_triangular(
            lower, right, lower=True, trans=int(transposed), check_finite=False
        )
    if is_torch_array(lower):
        import torch

        factor = lower.mT if transposed else lower
        return torch.linalg.solve_triangular(factor, right, upper=transposed)
    if is_cupy_array(lower):
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(lower, right, lower=True, trans=int(transposed))
    xp = array_namespace(lower, right)
    return xp.linalg.solve(xp.matrix_transpose(lower) if transposed else lower, right)


def orthonormal_rows(rows: Array) -> Array:
    """Rows made orthonormal by one Cholesky step; they must be nearly so already."""
    return solve_lower(cholesky(gram(rows)), rows)
