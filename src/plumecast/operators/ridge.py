"""Ridge regression in closed form: linear, primal, dual, and for a path of penalties.

All minimise ‖Z θ − B‖² + λ‖θ‖² over θ, with Z (M, P) the features of the training codes and
B (M, q) the codes of the targets; λ is added to the Gram diagonal as is. Arrays only, no labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    device_of,
    is_numpy_array,
    like,
    to_numpy,
)
from plumecast.compute.blocks import row_blocks
from plumecast.compute.linalg import gram, solve_positive, symmetric_eigen

GROUP_ROWS = 512
"""Rows whose leave-group-out blocks are built at a time: few enough for a cache, many enough for a
GPU."""


def linear_closed_form(cross: Array, singular_values: Array) -> Array:
    """Theorem 1 of the paper: θ = Σ⁻² AᵀB, (r, q), from `cross` = AᵀB.

    A are the codes of the snapshots to which the basis was fitted, so that AᵀA = Σ² exactly and the
    normal equations need no factorisation. AᵀB is a sum over snapshots.
    """
    return cross / singular_values[:, None] ** 2


def ridge_primal(features: Array, targets: Array, penalty: float = 0.0) -> Array:
    """θ = (ZᵀZ + λI)⁻¹ ZᵀB, (P, q): the Gramian system. Cheapest when P ≤ M."""
    return ridge_normal(gram(features.T), features.T @ targets, penalty)


def ridge_normal(normal: Array, cross: Array, penalty: float = 0.0) -> Array:
    """`ridge_primal` from ZᵀZ and ZᵀB, which are sums over snapshots."""
    return solve_positive(plus_diagonal(normal, penalty), cross)


def ridge_dual(kernel: Array, targets: Array, penalty: float) -> Array:
    """α = (K + λI)⁻¹ B, (M, q), with K = ZZᵀ; then θ = Zᵀα. Cheapest when M < P."""
    return solve_positive(plus_diagonal(kernel, penalty), targets)


def plus_diagonal(matrix: Array, penalty: float) -> Array:
    """A copy of a square matrix with the penalty added to its diagonal."""
    xp = array_namespace(matrix)
    if is_numpy_array(matrix):
        out = np.array(matrix, order="C")
        out.flat[:: matrix.shape[0] + 1] += penalty
        return out
    identity = xp.eye(matrix.shape[0], dtype=matrix.dtype, device=device_of(matrix))
    return matrix + penalty * identity


@dataclass(frozen=True, slots=True)
class PenaltyPath:
    """Solutions for every penalty, from one eigendecomposition K = Q Λ Qᵀ of the training kernel.

    The columns of Q (M, k) are the eigenvectors with Λ > 0. `projected` = QᵀB; `outside` = B − QQᵀB
    is the part of the targets outside the span of the kernel (zero if the kernel has full rank).
    """

    eigenvalues: Array  # (k,), descending
    vectors: Array  # (M, k)
    projected: Array  # (k, q)
    outside: Array | None  # (M, q)

    def dual_weights(self, penalty: float) -> Array:
        """α on the span of the kernel, (M, q); θ = Zᵀα and predictions are K(·, train) α."""
        return self.vectors @ (self.projected / (self.eigenvalues + penalty)[:, None])

    def residuals(self, penalty: float) -> Array:
        """B − K α, (M, q), the training residuals."""
        inside = self.vectors @ (self._damping(penalty)[:, None] * self.projected)
        return inside if self.outside is None else inside + self.outside

    def leave_group_out(self, penalty: float, groups: list[Array]) -> Array:
        """(M, q) residuals of every group by a fit without it, computed without refits.

        With R = I − K(K + λI)⁻¹, the residual of group g is (R_gg)⁻¹ (R B)_g. `groups` are row
        indices that cover every row once; groups of one row give leave-one-out residuals.
        """
        return next(self.leave_groups_out([penalty], groups))

    def leave_groups_out(self, penalties: list[float], groups: list[Array]) -> Iterator[Array]:
        """`leave_group_out` for many penalties; the blocks R_gg are computed for all at once."""
        stacks = stack_by_size(groups, self.vectors)
        blocks = [self._blocks(rows, penalties) for rows in stacks]
        for index, penalty in enumerate(penalties):
            some = [block[..., index] for block in blocks]
            yield solve_blocks(stacks, some, self.residuals(penalty))

    def _blocks(self, rows: Array, penalties: list[float]) -> Array:
        """R_gg of groups of one size for every penalty, (groups, n, n, penalties).

        Computed column by column for many groups at once; each is one matrix product over the
        spectrum, with one column per penalty.
        """
        xp = array_namespace(self.vectors)
        damping = xp.stack([self._damping(penalty) for penalty in penalties], axis=1)
        kept = damping if self.outside is None else 1.0 - damping
        total, size = rows.shape
        built = []
        for part in row_blocks(total, max(1, GROUP_ROWS // size)):
            chosen = xp.reshape(rows[part, :], (-1,))
            q = xp.reshape(xp.take(self.vectors, chosen, axis=0), (-1, size, kept.shape[0]))
            columns = [
                xp.reshape(q * q[:, i : i + 1, :], (-1, kept.shape[0])) @ kept for i in range(size)
            ]
            built.append(xp.reshape(xp.stack(columns, axis=1), (-1, size, size, kept.shape[1])))
        products = xp.permute_dims(xp.concat(built), (0, 2, 1, 3))
        if self.outside is None:
            return products
        # R = I − Q (1 − damping) Qᵀ: the part outside the span of the features stays in full.
        identity = xp.eye(size, dtype=products.dtype, device=device_of(products))
        return identity[None, :, :, None] - products

    def _damping(self, penalty: float) -> Array:
        """λ / (Λ + λ): the share of each component that remains in the residual."""
        if penalty < 0.0 or (penalty == 0.0 and self.outside is None):
            problem = "interpolates the training snapshots"
            raise ArgumentError("penalty", penalty, "give a penalty > 0", problem=problem)
        return penalty / (self.eigenvalues + penalty)


def stack_by_size(groups: list[Array], other: Array) -> list[Array]:
    """One (count, size) array of row indices for the groups of each size, on `other`'s device."""
    members = [to_numpy(rows) for rows in groups]
    sizes = sorted({rows.size for rows in members})
    return [like(np.stack([r for r in members if r.size == size]), other) for size in sizes]


def solve_blocks(stacks: list[Array], blocks: list[Array], right: Array) -> Array:
    """(M, q) solutions x of block · x = right_g for the rows of every group g.

    `blocks` are (count, size, size) for the groups of each size, whose rows are in `stacks`.
    """
    xp = array_namespace(right)
    parts = []
    for rows, block in zip(stacks, blocks, strict=True):
        chosen = xp.take(right, xp.reshape(rows, (-1,)), axis=0)
        solved = xp.linalg.solve(block, xp.reshape(chosen, (*rows.shape, -1)))
        parts.append(xp.reshape(solved, (chosen.shape[0], -1)))
    order = xp.argsort(xp.concat([xp.reshape(rows, (-1,)) for rows in stacks]))
    return xp.take(xp.concat(parts), order, axis=0)


def dual_path(kernel: Array, targets: Array) -> PenaltyPath:
    """Penalty path from the (M, M) kernel, for problems with more features than snapshots."""
    eigenvalues, vectors = symmetric_eigen(kernel)
    return PenaltyPath(eigenvalues, vectors, vectors.T @ targets, None)


def primal_path(features: Array, targets: Array) -> PenaltyPath:
    """Penalty path from the (P, P) Gram matrix of (M, P) features, if these are fewer than M.

    The eigenvectors of K are Z W Λ^(−1/2).
    """
    return feature_span(gram(features.T), features.T @ targets).path(features, targets)


@dataclass(frozen=True, slots=True)
class FeatureSpan:
    """Solutions for every penalty, from one eigendecomposition ZᵀZ = W Λ Wᵀ.

    It stores nothing that grows with the number of snapshots. With the eigenvectors
    V = Z W Λ^(−1/2) of the kernel, `projected` = VᵀB.
    """

    eigenvalues: Array  # (k,), descending, those above rounding errors
    whitening: Array  # (P, k), W Λ^(−1/2)
    projected: Array  # (k, q)

    def path(self, features: Array, targets: Array) -> PenaltyPath:
        """The penalty path of some rows: (m, P) features and their (m, q) targets."""
        vectors = features @ self.whitening
        outside = targets - vectors @ self.projected
        return PenaltyPath(self.eigenvalues, vectors, self.projected, outside)

    def weights(self, penalty: float) -> Array:
        """θ = W Λ^(1/2) (Λ + λ)⁻¹ VᵀB, (P, q)."""
        share = self.eigenvalues / (self.eigenvalues + penalty)
        return self.whitening @ (share[:, None] * self.projected)


def feature_span(normal: Array, cross: Array) -> FeatureSpan:
    """The span of features from ZᵀZ (P, P) and ZᵀB (P, q), which are sums over snapshots."""
    xp = array_namespace(normal)
    eigenvalues, right = symmetric_eigen(normal)
    floor = float(eigenvalues[0]) * normal.shape[0] * float(xp.finfo(xp.float64).eps)
    kept = int(xp.sum(xp.astype(eigenvalues > floor, xp.int64)))
    eigenvalues, right = eigenvalues[:kept], right[:, :kept]
    whitening = right / xp.sqrt(eigenvalues)
    return FeatureSpan(eigenvalues, whitening, whitening.T @ cross)


def penalty_grid(mean_diagonal: float, count: int = 40) -> list[float]:
    """Penalties from 1e-10 to 10 times the mean diagonal of the kernel, evenly in the logarithm.

    They are relative to the kernel, because the effect of λ depends on the size of the codes.
    """
    if not mean_diagonal > 0.0:
        raise PlumecastError(
            "the kernel of the training codes is zero, so there is nothing to fit; check the input "
            "variable and the filters"
        )
    return [mean_diagonal * 10.0 ** (-10.0 + 11.0 * i / (count - 1)) for i in range(count)]


@dataclass(frozen=True, slots=True)
class PenaltyScan:
    """Leave-one-group-out error over a grid of penalties, and the penalty that minimises it."""

    penalties: list[float]
    errors: list[float]  # norms of the leave-one-group-out residuals, relative to ‖B‖

    @property
    def best(self) -> float:
        """The penalty with the smallest error."""
        return self.penalties[self.errors.index(self.error)]

    @property
    def error(self) -> float:
        """The smallest error."""
        return min(self.errors)


def scan_penalties(path: PenaltyPath, penalties: list[float], groups: list[Array]) -> PenaltyScan:
    """Leave-one-group-out errors of every penalty, without refits."""
    check_groups(groups)
    xp = array_namespace(path.vectors)
    size = float(xp.sum(path.projected**2))
    if path.outside is not None:
        size += float(xp.sum(path.outside**2))
    return relative_scan(penalties, left_out_squares(path, penalties, groups), size)


def check_groups(groups: list[Array]) -> None:
    """Raise unless there are at least two groups."""
    if len(groups) < 2:
        raise PlumecastError(
            "choosing a penalty leaves one group of fires out at a time, usually those of one "
            "ignition, but all training snapshots are of one group; add fires or give the penalty"
        )


def left_out_squares(path: PenaltyPath, penalties: list[float], groups: list[Array]) -> Array:
    """‖leave-one-group-out residuals‖² of the path's rows, by penalty; sums over blocks of rows."""
    xp = array_namespace(path.vectors)
    return xp.stack([xp.sum(part**2) for part in path.leave_groups_out(penalties, groups)])


def relative_scan(penalties: list[float], squares: Array, size: float) -> PenaltyScan:
    """The scan from summed squares of residuals, relative to ‖B‖² = `size`."""
    errors = [math.sqrt(float(squares[i]) / size) for i in range(len(penalties))]
    return PenaltyScan(penalties, errors)
