"""Polynomial maps between codes, by explicit weights (primal) or by a kernel (dual).

Each is fitted with one penalty, or tuned over a path of penalties. Arrays only, no labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, Rows, array_namespace, contiguous, read_rows
from plumecast.compute.blocks import ONE_PASS, Passes, group_blocks
from plumecast.compute.linalg import gram
from plumecast.operators.coded.kernels import (
    interaction_kernel,
    monomial_count,
    monomial_kernel,
    monomials,
    power_features,
)
from plumecast.operators.ridge import (
    PenaltyPath,
    PenaltyScan,
    check_groups,
    dual_path,
    feature_span,
    left_out_squares,
    linear_closed_form,
    penalty_grid,
    primal_path,
    relative_scan,
    ridge_dual,
    ridge_normal,
    scan_penalties,
)


@dataclass(frozen=True, slots=True)
class PrimalMap:
    """b = monomials(a) θ: a polynomial of the codes, by its weights."""

    weights: Array  # (P, q)
    degree: int
    intercept: Array | None = None  # (q,)

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes."""
        out = monomials(codes, self.degree) @ self.weights
        return out if self.intercept is None else out + self.intercept


@dataclass(frozen=True, slots=True)
class DualMap:
    """The same polynomial by its kernel: b = k(a, support) α, without the P weights.

    The part of the kernel that is an inner product of few features is stored as `power_weights`.
    """

    support: Array  # (M, r), the training codes
    dual_weights: Array  # (M, q)
    power_weights: Array  # (degree·r, q)
    degree: int
    intercept: Array | None = None  # (q,)

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes."""
        mixed = interaction_kernel(codes, self.support, self.degree) @ self.dual_weights
        out = mixed + power_features(codes, self.degree) @ self.power_weights
        return out if self.intercept is None else out + self.intercept


def dual_map(support: Array, dual_weights: Array, degree: int, constant: float = 0.0) -> DualMap:
    """A dual map from its dual weights: computes the power weights and the intercept."""
    xp = array_namespace(support)
    power_weights = power_features(support, degree).T @ dual_weights
    intercept = constant**2 * xp.sum(dual_weights, axis=0) if constant > 0.0 else None
    return DualMap(contiguous(support), contiguous(dual_weights), power_weights, degree, intercept)


def primal_map(weights: Array, degree: int, constant: float = 0.0) -> PrimalMap:
    """A primal map from the weights of `polynomial_features`."""
    if not constant > 0.0:
        return PrimalMap(contiguous(weights), degree)
    return PrimalMap(contiguous(weights[:-1, :]), degree, constant * weights[-1, :])


def polynomial_features(codes: Array, degree: int, constant: float = 0.0) -> Array:
    """(M, P) monomials; a `constant` > 0 adds a column with this value for the intercept."""
    xp = array_namespace(codes)
    features = monomials(codes, degree)
    if not constant > 0.0:
        return features
    return xp.concat([features, constant + 0.0 * codes[:, :1]], axis=1)


def polynomial_kernel(a: Array, b: Array, degree: int, constant: float = 0.0) -> Array:
    """(Ma, Mb) inner products of `polynomial_features`, without forming them."""
    kernel = monomial_kernel(a, b, degree)
    kernel += constant**2
    return kernel


def intercept_constant(square: float, degree: int) -> float:
    """The constant of the intercept column, for codes of mean square norm `square`.

    It is large enough for its weight to be hardly penalised (its eigenvalue is about M times the
    mean of the kernel), and small enough not to dominate the rounding errors. A linear map between
    centred codes needs no intercept.
    """
    if degree == 1:
        return 0.0
    return math.sqrt(sum(square**d for d in range(1, degree + 1)))


def prefers_primal(codes: Rows, degree: int, constant: float = 0.0) -> bool:
    """Whether the primal system is used: there are at most as many features as snapshots."""
    return monomial_count(codes.shape[1], degree) + (constant > 0.0) <= int(codes.shape[0])


def fit_linear_map(
    codes: Rows, singular_values: Array, targets: Rows, passes: Passes = ONE_PASS
) -> PrimalMap:
    """The paper's linear operator by Theorem 1."""

    def cross_of(part: slice) -> Array:
        return read_rows(codes, part).T @ read_rows(targets, part)

    cross = passes.sum(cross_of, codes.shape[0])
    return PrimalMap(linear_closed_form(cross, singular_values), degree=1)


@dataclass(frozen=True, slots=True)
class FeatureSums:
    """Sums over snapshots that determine the primal system."""

    normal: Array  # (P, P), ZᵀZ
    cross: Array  # (P, q), ZᵀB
    size: float  # ‖B‖²

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(
            self.normal + other.normal, self.cross + other.cross, self.size + other.size
        )


def feature_sums(
    codes: Rows, targets: Rows, degree: int, constant: float = 0.0, passes: Passes = ONE_PASS
) -> FeatureSums:
    """ZᵀZ, ZᵀB and ‖B‖² of the features Z of all codes, summed over blocks of rows."""

    def sums(part: slice) -> FeatureSums:
        features = polynomial_features(read_rows(codes, part), degree, constant)
        b = read_rows(targets, part)
        size = float(array_namespace(b).sum(b**2))
        return FeatureSums(gram(features.T), features.T @ b, size)

    total: FeatureSums = passes.sum(sums, codes.shape[0])
    return total


def fit_polynomial_map(
    codes: Rows,
    targets: Rows,
    *,
    degree: int,
    penalty: float,
    constant: float = 0.0,
    passes: Passes = ONE_PASS,
) -> PrimalMap | DualMap:
    """Polynomial of the given degree and penalty, by whichever system is smaller.

    The primal system is summed over blocks of rows; the dual system needs all codes at once. A
    `constant` > 0 (`intercept_constant`) adds an intercept.
    """
    if prefers_primal(codes, degree, constant):
        sums = feature_sums(codes, targets, degree, constant, passes)
        return primal_map(ridge_normal(sums.normal, sums.cross, penalty), degree, constant)
    if not penalty > 0.0:
        raise PlumecastError(
            f"{monomial_count(codes.shape[1], degree)} features (degree {degree}, rank "
            f"{codes.shape[1]}) for {codes.shape[0]} snapshots are not uniquely determined without "
            "a penalty; give penalty > 0, or leave it out to have it chosen"
        )
    support, right = passes.whole(codes), passes.whole(targets)
    kernel = polynomial_kernel(support, support, degree, constant)
    return dual_map(support, ridge_dual(kernel, right, penalty), degree, constant)


@dataclass(frozen=True, slots=True)
class PolynomialPath:
    """A polynomial map at every penalty, from one eigendecomposition."""

    codes: Array  # (M, r)
    targets: Array  # (M, q)
    features: Array | None  # (M, P) in the primal form; None in the dual form
    path: PenaltyPath
    degree: int
    constant: float = 0.0

    @property
    def mean_diagonal(self) -> float:
        """Mean of the kernel's diagonal: the scale of its penalties."""
        xp = array_namespace(self.codes)
        return float(xp.sum(self.path.eigenvalues) / self.codes.shape[0])

    def at(self, penalty: float) -> PrimalMap | DualMap:
        """The map of one penalty."""
        alpha = self.path.dual_weights(penalty)
        if self.features is not None:
            return primal_map(self.features.T @ alpha, self.degree, self.constant)
        return dual_map(self.codes, alpha, self.degree, self.constant)


def polynomial_path(
    codes: Array, targets: Array, degree: int, constant: float = 0.0
) -> PolynomialPath:
    """Eigendecompose the Gram matrix of the features or the kernel, whichever is smaller."""
    if prefers_primal(codes, degree, constant):
        features = polynomial_features(codes, degree, constant)
        path = primal_path(features, targets)
        return PolynomialPath(codes, targets, features, path, degree, constant)
    path = dual_path(polynomial_kernel(codes, codes, degree, constant), targets)
    return PolynomialPath(codes, targets, None, path, degree, constant)


def tune_polynomial_map(
    codes: Rows,
    targets: Rows,
    *,
    degree: int,
    groups: list[Array],
    penalties: list[float] | None,
    constant: float = 0.0,
    passes: Passes = ONE_PASS,
) -> tuple[PrimalMap | DualMap, PenaltyScan]:
    """Polynomial whose penalty minimises the leave-one-group-out error; one eigendecomposition.

    `penalties` defaults to a grid relative to the kernel's mean diagonal. If rows are read in
    blocks, every group must be a run of consecutive rows. A `constant` > 0 (`intercept_constant`)
    adds an intercept.
    """
    check_groups(groups)
    if not prefers_primal(codes, degree, constant):
        dual = polynomial_path(passes.whole(codes), passes.whole(targets), degree, constant)
        scan = scan_penalties(dual.path, penalties or penalty_grid(dual.mean_diagonal), groups)
        return dual.at(scan.best), scan
    # Two passes over the rows: sums of the features first, then leave-one-group-out errors.
    sums = feature_sums(codes, targets, degree, constant, passes)
    span = feature_span(sums.normal, sums.cross)
    kernel_trace = float(array_namespace(sums.normal).sum(span.eigenvalues))
    grid = penalties or penalty_grid(kernel_trace / codes.shape[0])

    def squares(part: tuple[slice, list[Array]]) -> Array:
        rows, members = part
        a, b = read_rows(codes, rows), read_rows(targets, rows)
        features = polynomial_features(a, degree, constant)
        return left_out_squares(span.path(features, b), grid, members)

    total = passes.sum_items(squares, group_blocks(groups, passes.block))
    scan = relative_scan(grid, total, sums.size)
    return primal_map(span.weights(scan.best), degree, constant), scan
