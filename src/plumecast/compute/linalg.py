"""Matrix products, factorisations and solvers, for NumPy (by LAPACK) and any array namespace.

SciPy is imported only where NumPy arrays need it; on a GPU the numerics run without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import (
    Array,
    Rows,
    array_namespace,
    clip,
    contiguous,
    device_of,
    is_cupy_array,
    is_numpy_array,
    is_numpy_namespace,
    is_torch_array,
    read_rows,
)
from plumecast.compute.blocks import ONE_PASS, Passes, row_blocks

MIRROR_ROWS = 512
"""Rows of a symmetric inverse that are copied to its other triangle at a time."""

SYRK_LIMIT = 8192
"""Largest number of rows for which BLAS computes a symmetric product in one call."""


def gram(rows: Array) -> Array:
    """rows @ rows.T, with each product of two different rows computed once.

    NumPy uses the symmetric product of BLAS (SYRK), which corrupts memory in common OpenBLAS builds
    from about 20,000 rows (numpy issue 19685). Larger products are therefore computed in tiles.
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
    """‖aᵢ − bⱼ‖², (Ma, Mb), from one matrix product; negative rounding errors are set to 0."""
    xp = array_namespace(a, b)
    squares = xp.sum(a**2, axis=1)[:, None] + xp.sum(b**2, axis=1)[None, :]
    return xp.clip(squares - 2.0 * (a @ b.T), 0.0, None)


def symmetric_eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (descending, negative rounding errors set to 0) and vectors of a PSD matrix."""
    xp = array_namespace(matrix)
    if is_numpy_namespace(xp):
        import scipy.linalg

        # Divide and conquer is the fastest driver for all eigenvectors.
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=False)
    else:
        values, vectors = xp.linalg.eigh(matrix)
    # BLAS does not accept the negative strides of a flipped view; products would be slow.
    return xp.clip(xp.flip(values), 0.0, None), contiguous(xp.flip(vectors, axis=1))


@dataclass(frozen=True, slots=True)
class LeadingEigen:
    """All eigenvalues of a PSD matrix, and a function for its leading eigenvectors."""

    values: Array  # (n,), descending
    vectors: Callable[[int], Array]  # k → (n, k), the vectors of the k largest values


def leading_eigen(matrix: Array) -> LeadingEigen:
    """All eigenvalues of a PSD matrix first, then only as many eigenvectors as the caller needs.

    The number of eigenvectors is chosen from all eigenvalues, so standard routines would factor
    the matrix twice or compute every eigenvector. Here LAPACK reduces the matrix to tridiagonal
    form once. The eigenvalues then cost O(n²), and only the requested eigenvectors are computed and
    transformed back.
    """
    n = matrix.shape[0]
    if not is_numpy_array(matrix) or n <= 2:
        values, every = symmetric_eigen(matrix)
        return LeadingEigen(values, lambda count: every[:, :count])
    import scipy.linalg
    from scipy.linalg import lapack

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
    """Solve a symmetric positive definite system by Cholesky; raises if it is singular."""
    if is_numpy_array(matrix):
        import scipy.linalg

        with _naming_singular(matrix.shape[0]):
            factor = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        return scipy.linalg.cho_solve(factor, right, check_finite=False)
    lower = cholesky(matrix)
    return solve_upper(lower, solve_lower(lower, right))


def inverse_positive(matrix: Array, *, overwrite: bool = False) -> Array:
    """The inverse of a symmetric positive definite matrix; raises if it is singular.

    With `overwrite`, the memory of a row-major NumPy matrix is reused for the inverse.
    """
    if not is_numpy_array(matrix):
        xp, order = array_namespace(matrix), matrix.shape[0]
        return solve_positive(matrix, xp.eye(order, dtype=matrix.dtype, device=device_of(matrix)))
    from scipy.linalg import lapack

    with _naming_singular(matrix.shape[0]):
        # The transpose of a row-major symmetric matrix is the same matrix in LAPACK's order.
        upper, info = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=overwrite)
        if info != 0:
            raise np.linalg.LinAlgError
    inverse, info = lapack.dpotri(upper, lower=0, overwrite_c=1)
    _check_lapack("dpotri", info)
    half = inverse.T  # the inverse is in its lower triangle; the loop fills the upper one
    for start in range(0, half.shape[0], MIRROR_ROWS):
        rows = slice(start, start + MIRROR_ROWS)
        half[:start, rows] = half[rows, :start].T
        corner = np.tril(half[rows, rows])
        half[rows, rows] = corner + np.tril(corner, -1).T
    return half


def cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor; raises if the matrix is not positive definite."""
    xp = array_namespace(matrix)
    with _naming_singular(matrix.shape[0]):
        lower = xp.linalg.cholesky(matrix)
        if not bool(xp.isfinite(xp.sum(xp.linalg.diagonal(lower)))):
            raise np.linalg.LinAlgError  # CuPy returns NaN instead of raising
    return lower


@contextlib.contextmanager
def _naming_singular(order: int) -> Iterator[None]:
    """Turn the error of a singular system into one that names the next step."""
    try:
        yield
    except Exception as error:  # every array library has its own LinAlgError
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
    """The array API has no triangular solve, and a general solve would factor L again."""
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
    """Orthonormalise nearly orthonormal rows by one Cholesky step."""
    return solve_lower(cholesky(gram(rows)), rows)


def interpolation(places: Array, wanted: Array) -> Array:
    """(…, n, K) matrices of linear interpolation from (…, K) ascending places to (…, n) others.

    Beyond the ends, and where all places are one, the nearest place is used. A value is the first
    one plus the share of every gap that has been passed times the change across it.
    """
    xp = array_namespace(wanted)
    gaps = (places[..., 1:] - places[..., :-1])[..., None, :]
    lengths = xp.where(gaps > 0.0, gaps, xp.ones_like(gaps))
    passed = clip((wanted[..., None] - places[..., None, :-1]) / lengths, 0.0, 1.0)
    passed = xp.where(gaps > 0.0, passed, xp.ones_like(passed))
    end = xp.zeros_like(wanted)[..., None]
    reached = xp.concat([end + 1.0, passed, end], axis=-1)
    weights: Array = reached[..., :-1] - reached[..., 1:]
    return weights


def integration(places: Array, wanted: Array) -> Array:
    """(…, n, K) weights of the integral of a piecewise linear function from the first place on.

    Its values are known at (…, K) ascending places; (…, n) are the upper limits. After the last
    place it keeps its value, before the first one the integral is 0.
    """
    gaps = np.diff(places, axis=-1)[..., None, :]
    passed = np.minimum(np.clip(wanted[..., None] - places[..., None, :-1], 0.0, None), gaps)
    late = 0.5 * passed**2 / np.where(gaps > 0.0, gaps, 1.0)
    weights = np.zeros((*wanted.shape, places.shape[-1]))
    weights[..., :-1] += passed - late
    weights[..., 1:] += late
    weights[..., -1] += np.clip(wanted - places[..., -1:], 0.0, None)
    return weights


# -- Gram matrices of a matrix that is read in blocks of rows


def cell_gram(matrix: Rows, passes: Passes = ONE_PASS) -> Array:
    """Xᵀ X, (N, N), as a sum over blocks of rows."""
    return passes.sum(lambda part: gram(read_rows(matrix, part).T), matrix.shape[0])


def snapshot_gram(matrix: Rows, passes: Passes = ONE_PASS) -> Array:
    """X Xᵀ, (M, M), computed tile by tile.

    In this process a panel of `block` rows stays in memory while all earlier rows are read in
    blocks of a quarter of its size, so that every row is read about M / 2·block times. With an
    executor, a task reads two panels of half a `block` each and multiplies them; only tiles on and
    below the diagonal are computed, and this process stores the result and one tile.
    """
    count, block = matrix.shape[0], passes.block or matrix.shape[0]
    if passes.runner is None and block >= count:
        return gram(read_rows(matrix, slice(0, count)))
    if passes.runner is None:
        tiles = _tiles(matrix, block)
    else:
        panels = list(row_blocks(count, max(1, block // 2)))
        pairs = [(one, other) for n, one in enumerate(panels) for other in panels[: n + 1]]
        made = passes.runner.map(_tile, matrix, pairs)
        tiles = ((*pair, tile) for pair, tile in zip(pairs, made, strict=True))
    out: Array = None
    for rows, columns, tile in tiles:
        if out is None:
            xp = array_namespace(tile)
            out = xp.empty((count, count), dtype=tile.dtype, device=device_of(tile))
        out[rows, columns] = tile
        if rows != columns:
            out[columns, rows] = tile.T
    return out


def _tiles(matrix: Rows, block: int) -> Iterator[tuple[slice, slice, Array]]:
    """(rows, columns, product) of the tiles on and below the diagonal."""
    for panel in row_blocks(matrix.shape[0], block):
        rows = read_rows(matrix, panel)
        yield panel, panel, gram(rows)
        for before in row_blocks(panel.start, max(1, block // 4)):
            yield panel, before, rows @ read_rows(matrix, before).T


def _tile(matrix: Rows, pair: tuple[slice, slice]) -> Array:
    one, other = pair
    rows = read_rows(matrix, one)
    return gram(rows) if one == other else rows @ read_rows(matrix, other).T
