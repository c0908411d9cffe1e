"""Maps between codes by a kernel of their distance, or a sum of kernels. Arrays only, no labels.

b = k(a / u, support) α with α = (K + λI)⁻¹ B. The unit u is the root mean square distance between
two training snapshots: one number for all codes, so that the leading modes keep their weight and a
length scale of 1 is a typical distance. Each term of a sum is divided by its mean over the
training snapshots, so that no unit decides which term prevails.
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
"""Kernel values this close to 0 or to 1 are no different from them: penalties tried begin at 1e-10
of the diagonal."""


@dataclass(frozen=True, slots=True)
class KernelMap:
    """b = Σ wₜ kₜ(a / unit, support) α over the terms of a kernel."""

    kernel: str
    length_scale: float  # in units of `unit`
    unit: float  # divides the codes: their typical distance in training
    term_weights: tuple[float, ...]
    anchored: bool  # functions of the code 0 are 0
    support: Array  # (M, r), the training codes / unit
    dual_weights: Array  # (M, q)

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes.

        Far from all training codes a stationary term gives 0 and a polynomial its trend. The code
        0 (of an uncentred basis: the empty fire) gives 0 where anchored; else what the training
        snapshots around it say.
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
    """The (M, M) kernel of the training codes at any length scale: distances are formed once."""

    kernel: str
    anchored: bool
    unit: float
    support: Array  # (M, r)
    squares: Array | None  # (M, M) squared distances, where a term needs them

    def __call__(self, length_scale: float) -> tuple[Array, tuple[float, ...]]:
        """The sum of the terms at unit mean diagonal each, and the weights that made it so."""
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
                raise PlumecastError(_no_scale(length_scale, "long", "looks like every other"))
            weights.append(1.0 / size)
            total = total + matrix / size
        return total, tuple(weights)

    def check(self, length_scale: float) -> None:
        """Refuse a length scale at which the kernel is the identity or a constant."""
        if self.squares is None:
            return
        xp = array_namespace(self.support)
        term = next(term for term in kernel_terms(self.kernel) if term in STATIONARY)
        values = STATIONARY[term](self.squares / length_scale**2)
        if float(1.0 - xp.min(values)) < REACH:
            raise PlumecastError(_no_scale(length_scale, "long", "looks like every other"))
        alone = values - xp.eye(values.shape[0], dtype=values.dtype, device=device_of(values))
        nearest = xp.sort(xp.max(alone, axis=1))
        if float(nearest[nearest.shape[0] // 2]) < REACH:
            raise PlumecastError(_no_scale(length_scale, "short", "has no neighbour"))

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
    """Normalise the training codes and form what every length scale shares."""
    unit = typical_distance(codes)
    if not unit > 0.0:
        raise PlumecastError("the training codes are all alike: there is nothing to fit")
    support = contiguous(codes / unit)
    squares = squared_distances(support, support) if has_length_scale(kernel) else None
    return TrainingKernel(kernel, anchored, unit, support, squares)


def _no_scale(length_scale: float, how: str, what: str) -> str:
    return (
        f"length_scale={length_scale:g} is so {how} that a training snapshot {what} to the "
        "kernel; 1 is the typical distance between them, and leaving it out has it chosen"
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
    """The map of a kernel with its length scale and penalty given."""
    if not penalty > 0.0:
        raise PlumecastError(
            f"penalty={penalty:g} lets a kernel interpolate the training snapshots; give penalty > "
            "0, or leave it out to have it chosen"
        )
    training = training_kernel(codes, kernel, anchored)
    training.check(length_scale)
    matrix, weights = training(length_scale)
    return training.fitted(length_scale, weights, ridge_dual(matrix, targets, penalty))
