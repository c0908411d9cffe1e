"""Least squares in closed form: linear, primal, dual, and the whole penalty path.

All minimise ‖Z θ − B‖² + λ‖θ‖² over θ, with Z (M, P) the features of the training codes and
B (M, q) the codes of the target; λ is added to the Gram diagonal as is. Arrays only, no labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from plumecast._array import Array, array_namespace
from plumecast.errors import PlumecastError
from plumecast.linalg import gram, solve_positive, symmetric_eigen


def linear_closed_form(codes: Array, singular_values: Array, targets: Array) -> Array:
    """Theorem 1 of the paper: θ = Σ⁻² Aᵀ B, (r, q), for the codes A that made the basis.

    There AᵀA = Σ² exactly, so the Gramian system needs no factorisation.
    """
    return (codes.T @ targets) / singular_values[:, None] ** 2


def ridge_primal(features: Array, targets: Array, penalty: float = 0.0) -> Array:
    """θ = (ZᵀZ + λI)⁻¹ ZᵀB, (P, q): the Gramian system. Cheapest when P ≤ M."""
    return solve_positive(_shifted(gram(features.T), penalty), features.T @ targets)


def ridge_dual(kernel: Array, targets: Array, penalty: float) -> Array:
    """α = (K + λI)⁻¹ B, (M, q), with K = ZZᵀ; then θ = Zᵀα. Cheapest when M < P."""
    return solve_positive(_shifted(kernel, penalty), targets)


def _shifted(matrix: Array, penalty: float) -> Array:
    xp = array_namespace(matrix)
    return matrix + penalty * xp.eye(matrix.shape[0], dtype=matrix.dtype)


@dataclass(frozen=True, slots=True)
class PenaltyPath:
    """Every penalty from one eigendecomposition K = Q Λ Qᵀ of the training kernel.

    Q (M, k) holds the eigenvectors with Λ > 0. `projected` = QᵀB; `outside` = B − QQᵀB is the part
    of the targets no penalty can reach (zero when the kernel has full rank).
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
        """Residuals of every group predicted by a fit without it, (M, q), without refitting.

        With R = I − K(K + λI)⁻¹, the residual of group g is (R_gg)⁻¹ (R B)_g. `groups` are row
        indices that cover every row once; one row each is leave-one-out.
        """
        return next(self.leave_groups_out([penalty], groups))

    def leave_groups_out(self, penalties: list[float], groups: list[Array]) -> Iterator[Array]:
        """`leave_group_out` of many penalties; the blocks R_gg of all of them are built at once."""
        xp = array_namespace(self.vectors)
        alike = _stack_by_size(groups)
        blocks = [self._blocks(rows, penalties) for rows in alike]
        order = xp.argsort(xp.concat([xp.reshape(rows, (-1,)) for rows in alike]))
        for index, penalty in enumerate(penalties):
            residuals = self.residuals(penalty)
            left_out = []
            for rows, block in zip(alike, blocks, strict=True):
                count, size = rows.shape
                part = xp.take(residuals, xp.reshape(rows, (-1,)), axis=0)
                solved = xp.linalg.solve(block[..., index], xp.reshape(part, (count, size, -1)))
                left_out.append(xp.reshape(solved, (count * size, -1)))
            yield xp.take(xp.concat(left_out), order, axis=0)

    def _blocks(self, rows: Array, penalties: list[float]) -> Array:
        """R_gg of groups of one size for every penalty, (groups, n, n, penalties).

        Row by row of a group, as one product over the spectrum with all penalties as columns.
        """
        xp = array_namespace(self.vectors)
        damping = xp.stack([self._damping(penalty) for penalty in penalties], axis=1)
        kept = damping if self.outside is None else 1.0 - damping
        blocks = []
        for group in range(rows.shape[0]):
            q = xp.take(self.vectors, rows[group, :], axis=0)
            blocks.append(xp.stack([(q * q[i : i + 1, :]) @ kept for i in range(q.shape[0])]))
        products = xp.stack(blocks)
        if self.outside is None:
            return products
        # R = I − Q (1 − damping) Qᵀ: the part outside the span of the features is kept whole.
        identity = xp.eye(rows.shape[1], dtype=products.dtype)
        return identity[None, :, :, None] - products

    def _damping(self, penalty: float) -> Array:
        """λ / (Λ + λ): the share of each component that the fit leaves over."""
        if penalty < 0.0 or (penalty == 0.0 and self.outside is None):
            raise PlumecastError(
                f"penalty={penalty} interpolates the training snapshots; give a penalty > 0"
            )
        return penalty / (self.eigenvalues + penalty)


def _stack_by_size(groups: list[Array]) -> list[Array]:
    """Groups of equal size as the rows of one (count, size) index array each."""
    xp = array_namespace(*groups)
    sizes = sorted({int(rows.shape[0]) for rows in groups})
    return [xp.stack([rows for rows in groups if rows.shape[0] == size]) for size in sizes]


def dual_path(kernel: Array, targets: Array) -> PenaltyPath:
    """Penalty path from the (M, M) kernel, for more features than snapshots."""
    eigenvalues, vectors = symmetric_eigen(kernel)
    return PenaltyPath(eigenvalues, vectors, vectors.T @ targets, None)


def primal_path(features: Array, targets: Array) -> PenaltyPath:
    """Penalty path from the (P, P) Gram matrix of (M, P) features, for fewer features than
    snapshots: the eigenvectors of K are Z W Λ^(−1/2)."""
    xp = array_namespace(features)
    eigenvalues, right = symmetric_eigen(gram(features.T))
    floor = float(eigenvalues[0]) * features.shape[1] * float(xp.finfo(xp.float64).eps)
    kept = int(xp.sum(xp.astype(eigenvalues > floor, xp.int64)))
    eigenvalues, right = eigenvalues[:kept], right[:, :kept]
    vectors = features @ (right / xp.sqrt(eigenvalues))
    projected = vectors.T @ targets
    return PenaltyPath(eigenvalues, vectors, projected, targets - vectors @ projected)


def penalty_grid(mean_diagonal: float, count: int = 40) -> list[float]:
    """Penalties from 1e-10 to 10 times the mean diagonal of the kernel, evenly in the logarithm.

    Relative to the kernel, because an absolute λ means nothing without the size of the codes.
    """
    if not mean_diagonal > 0.0:
        raise PlumecastError("the kernel of the training codes is zero: there is nothing to fit")
    return [mean_diagonal * 10.0 ** (-10.0 + 11.0 * i / (count - 1)) for i in range(count)]


@dataclass(frozen=True, slots=True)
class PenaltyScan:
    """Leave-one-group-out error over a grid of penalties, and the penalty that minimises it."""

    penalties: list[float]
    errors: list[float]  # norm of the residuals of all groups, relative to ‖B‖

    @property
    def best(self) -> float:
        """The penalty with the smallest error."""
        return self.penalties[self.errors.index(min(self.errors))]


def scan_penalties(path: PenaltyPath, penalties: list[float], groups: list[Array]) -> PenaltyScan:
    """Score every penalty by leave-one-group-out; no refits."""
    if len(groups) < 2:
        raise PlumecastError(
            "choosing a penalty leaves one fire out at a time, but training holds a single fire; "
            "add fires or give the penalty"
        )
    xp = array_namespace(path.vectors)
    size = float(xp.sum(path.projected**2))
    if path.outside is not None:
        size += float(xp.sum(path.outside**2))
    left_out = path.leave_groups_out(penalties, groups)
    return PenaltyScan(penalties, [math.sqrt(float(xp.sum(part**2)) / size) for part in left_out])
