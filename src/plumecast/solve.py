"""Least squares in closed form: linear, primal, dual, and the whole penalty path.

All minimise ‖Z θ − B‖² + λ‖θ‖² over θ, with Z (M, P) the features of the training codes and
B (M, q) the codes of the target; λ is added to the Gram diagonal as is. Arrays only, no labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumecast._array import Array, array_namespace
from plumecast.errors import PlumecastError
from plumecast.linalg import solve_positive, symmetric_eigen


def linear_closed_form(codes: Array, singular_values: Array, targets: Array) -> Array:
    """Theorem 1 of the paper: θ = Σ⁻² Aᵀ B, (r, q), for the codes A that made the basis.

    There AᵀA = Σ² exactly, so the Gramian system needs no factorisation.
    """
    return (codes.T @ targets) / singular_values[:, None] ** 2


def ridge_primal(features: Array, targets: Array, penalty: float = 0.0) -> Array:
    """θ = (ZᵀZ + λI)⁻¹ ZᵀB, (P, q): the Gramian system. Cheapest when P ≤ M."""
    return solve_positive(_shifted(features.T @ features, penalty), features.T @ targets)


def ridge_dual(kernel: Array, targets: Array, penalty: float) -> Array:
    """α = (K + λI)⁻¹ B, (M, q), with K = ZZᵀ; then θ = Zᵀα. Cheapest when M < P."""
    return solve_positive(_shifted(kernel, penalty), targets)


def _shifted(gram: Array, penalty: float) -> Array:
    xp = array_namespace(gram)
    return gram + penalty * xp.eye(gram.shape[0], dtype=gram.dtype)


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
        xp = array_namespace(self.vectors)
        residuals = self.residuals(penalty)
        damping = self._damping(penalty)
        left_out = []
        for rows in groups:
            q = xp.take(self.vectors, rows, axis=0)
            if self.outside is None:
                block = (q * damping) @ q.T
            else:  # R = I − Q (1 − damping) Qᵀ: the part outside the span is kept whole
                block = xp.eye(q.shape[0], dtype=q.dtype) - (q * (1.0 - damping)) @ q.T
            left_out.append(xp.linalg.solve(block, xp.take(residuals, rows, axis=0)))
        return xp.take(xp.concat(left_out), xp.argsort(xp.concat(groups)), axis=0)

    def _damping(self, penalty: float) -> Array:
        """λ / (Λ + λ): the share of each component that the fit leaves over."""
        if penalty < 0.0 or (penalty == 0.0 and self.outside is None):
            raise PlumecastError(
                f"penalty={penalty} interpolates the training snapshots; give a penalty > 0"
            )
        return penalty / (self.eigenvalues + penalty)


def dual_path(kernel: Array, targets: Array) -> PenaltyPath:
    """Penalty path from the (M, M) kernel, for more features than snapshots."""
    eigenvalues, vectors = symmetric_eigen(kernel)
    return PenaltyPath(eigenvalues, vectors, vectors.T @ targets, None)


def primal_path(features: Array, targets: Array) -> PenaltyPath:
    """Penalty path from the (P, P) Gram matrix of (M, P) features, for fewer features than
    snapshots: the eigenvectors of K are Z W Λ^(−1/2)."""
    xp = array_namespace(features)
    eigenvalues, right = symmetric_eigen(features.T @ features)
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
    errors: list[float]  # Σ over groups of squared residuals, relative to ‖B‖²

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
    errors = [
        float(xp.sum(path.leave_group_out(penalty, groups) ** 2)) / size for penalty in penalties
    ]
    return PenaltyScan(list(penalties), errors)
