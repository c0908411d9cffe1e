"""Maps between codes by a kernel or a sum of kernels. Arrays only, no labels.

b = k(a / u, support) α with α = (K + λI)⁻¹ B. The unit u is the root mean square distance between
two training snapshots. It is one number for all codes, so that the leading modes keep their weight,
and a length scale of 1 is a typical distance. Each term of a sum is divided by the mean of its
diagonal over the training snapshots, so that all terms have the same scale.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, contiguous, device_of
from plumecast.compute.linalg import squared_distances
from plumecast.operators.coded.kernels import (
    STATIONARY,
    has_length_scale,
    kernel_terms,
    squared_norms,
    stationary_kernel,
    term_kernel,
    typical_distance,
)
from plumecast.operators.ridge import ridge_dual

REACH = 1e-8
"""Kernel values closer than this to 0 or 1 count as equal to them; the smallest penalty tried is
1e-10 of the diagonal."""


@dataclass(frozen=True, slots=True)
class KernelMap:
    """b = Σ wₜ kₜ(a / unit, support) α over the terms of a kernel."""

    kernel: str
    length_scale: float  # in units of `unit`
    unit: float  # divides the codes: their typical distance in training
    term_weights: tuple[float, ...]
    anchored: bool  # the prediction at the code 0 is 0
    support: Array  # (M, r), the training codes / unit
    dual_weights: Array  # (M, q)

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes.

        Far from all training codes a stationary term tends to 0 and a polynomial extrapolates. The
        code 0 (in an uncentred basis, the empty fire) gives 0 if the kernel is anchored.
        """
        scaled = codes / self.unit
        terms = kernel_terms(self.kernel)
        parts = [
            weight
            * term_kernel(
                term,
                scaled,
                self.support,
                length_scale=self.length_scale,
                anchored=self.anchored,
            )
            for term, weight in zip(terms, self.term_weights, strict=True)
        ]
        return sum(parts[1:], start=parts[0]) @ self.dual_weights


@dataclass(frozen=True, slots=True)
class TrainingKernel:
    """The (M, M) kernel of the training codes at any length scale; distances are computed once."""

    kernel: str
    anchored: bool
    unit: float
    support: Array  # (M, r)
    squares: Array | None  # (M, M) squared distances; None if no term needs them

    def __call__(self, length_scale: float) -> tuple[Array, tuple[float, ...]]:
        """The sum of the terms, each scaled to a mean diagonal of 1, and the scale factors."""
        xp = array_namespace(self.support)
        norms = squared_norms(self.support) / length_scale**2 if self.anchored else None
        total, weights = 0.0, []
        for term in kernel_terms(self.kernel):
            if self.squares is not None and term in STATIONARY:
                matrix = stationary_kernel(term, self.squares / length_scale**2, norms, norms)
            else:
                matrix = term_kernel(
                    term, self.support, self.support, length_scale=1.0, anchored=False
                )
            size = float(xp.linalg.trace(matrix)) / matrix.shape[0]
            if not size > 0.0:
                raise PlumecastError(_too_long(length_scale))
            weights.append(1.0 / size)
            total = total + matrix / size
        return total, tuple(weights)

    def check(self, length_scale: float) -> None:
        """Raise for a length scale at which the kernel is the identity or a constant."""
        if self.squares is None:
            return
        xp = array_namespace(self.support)
        term = next(term for term in kernel_terms(self.kernel) if term in STATIONARY)
        values = STATIONARY[term](self.squares / length_scale**2)
        if float(1.0 - xp.min(values)) < REACH:
            raise PlumecastError(_too_long(length_scale))
        others = values - xp.eye(values.shape[0], dtype=values.dtype, device=device_of(values))
        nearest = xp.sort(xp.max(others, axis=1))
        if float(nearest[nearest.shape[0] // 2]) < REACH:
            raise PlumecastError(
                f"length_scale={length_scale:g} is so short that a training snapshot has no "
                f"neighbours within it; {_LENGTH_ADVICE}"
            )

    def fitted(self, length_scale: float, weights: tuple[float, ...], alpha: Array) -> KernelMap:
        """The map with its dual weights."""
        return KernelMap(
            kernel=self.kernel,
            length_scale=length_scale,
            unit=self.unit,
            term_weights=weights,
            anchored=self.anchored,
            support=self.support,
            dual_weights=contiguous(alpha),
        )


def training_kernel(codes: Array, kernel: str, anchored: bool) -> TrainingKernel:
    """Normalise the training codes and compute their distances."""
    unit = typical_distance(codes)
    if not unit > 0.0:
        raise PlumecastError("the training codes are all alike, so there is nothing to fit")
    support = contiguous(codes / unit)
    squares = squared_distances(support, support) if has_length_scale(kernel) else None
    return TrainingKernel(kernel, anchored, unit, support, squares)


_LENGTH_ADVICE = (
    "use a value near 1, the typical distance between snapshots, or leave it out to have it chosen"
)


def _too_long(length_scale: float) -> str:
    return (
        f"length_scale={length_scale:g} is so long that a training snapshot looks the same to the "
        f"kernel as every other; {_LENGTH_ADVICE}"
    )


def fit_kernel_map(
    codes: Array,
    targets: Array,
    *,
    kernel: str,
    length_scale: float,
    penalty: float,
    anchored: bool,
) -> KernelMap:
    """The map of a kernel with a given length scale and penalty."""
    if not penalty > 0.0:
        raise PlumecastError(
            f"penalty={penalty:g} lets a kernel interpolate the training snapshots; give penalty > "
            "0, or leave it out to have it chosen"
        )
    training = training_kernel(codes, kernel, anchored)
    training.check(length_scale)
    matrix, weights = training(length_scale)
    return training.fitted(length_scale, weights, ridge_dual(matrix, targets, penalty))
