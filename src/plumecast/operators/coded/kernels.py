"""Kernels between codes, and maps by a kernel or a sum of kernels. Arrays only, no labels.

*Monomials.* Degree d has one column per multiset of d codes (i ≤ j ≤ …), as in the paper:
r + r(r+1)/2 columns up to degree 2. The inner product of the monomials of degree d is the complete
homogeneous symmetric polynomial h_d of the products aᵢ bᵢ. Newton's identity computes it from power
sums, at a cost that does not grow with the number of monomials:
d · h_d = Σₖ pₖ h_{d−k} with pₖ(a, b) = Σᵢ (aᵢ bᵢ)ᵏ.

*Kernels.* A kernel is named by its terms, as in "polynomial-1 + matern-5/2". Terms are polynomials
of degree 1 to 4 and two stationary kernels, functions of the distance d between codes in units of
the length scale:

    matern-5/2:           (1 + s + s²/3) exp(−s), s = √5 d     (twice differentiable functions)
    squared-exponential:  exp(−d²/2)                           (infinitely smooth functions)

In an uncentred basis the empty input has the code 0, and its output is known to be 0. The
stationary terms are therefore *anchored*: k(a, b) − k(a, 0) k(0, b) is the kernel of a Gaussian
process conditioned on f(0) = 0. Every function in its span vanishes at 0, as polynomials without a
constant do.

*Maps.* b = k(a / u, support) α with α = (K + λI)⁻¹ B. The unit u is the root mean square distance
between two training snapshots. It is one number for all codes, so that the leading modes keep their
weight, and a length scale of 1 is a typical distance. Each term of a sum is divided by the mean of
its diagonal over the training snapshots, so that all terms have the same scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.compute.arrays import Array, array_namespace, contiguous, device_of
from plumecast.compute.linalg import gram, squared_distances
from plumecast.operators.ridge import ridge_dual

MAX_DEGREE = 4


def monomial_count(rank: int, degree: int) -> int:
    """Number of monomials of degree 1…degree in `rank` codes: Σ_d C(rank + d − 1, d)."""
    return sum(math.comb(rank + d - 1, d) for d in range(1, check_degree(degree) + 1))


def check_degree(degree: int) -> int:
    """Return the degree; raise if it is not supported."""
    if degree not in range(1, MAX_DEGREE + 1):
        raise ArgumentError("degree", degree, problem=f"is not one of 1…{MAX_DEGREE}")
    return degree


def monomials(codes: Array, degree: int) -> Array:
    """(M, r) codes → (M, P) monomials of degree 1…degree, in the paper's order."""
    xp = array_namespace(codes)
    rank = codes.shape[1]
    blocks = [codes]
    for d in range(2, check_degree(degree) + 1):
        previous = blocks[-1]
        # In lexicographic order, monomials of degree d−1 whose first code is ≥ i come last.
        starts = [previous.shape[1] - math.comb(rank - i + d - 2, d - 1) for i in range(rank)]
        products = [codes[:, i : i + 1] * previous[:, start:] for i, start in enumerate(starts)]
        blocks.append(xp.concat(products, axis=1))
    return xp.concat(blocks, axis=1)


def monomial_kernel(a: Array, b: Array, degree: int) -> Array:
    """monomials(a) @ monomials(b).T, (Ma, Mb), without forming the monomials."""
    left = power_features(a, degree)
    kernel = _dot(left, left if a is b else power_features(b, degree))
    if degree > 1:
        kernel += interaction_kernel(a, b, degree)
    return kernel


def interaction_kernel(a: Array, b: Array, degree: int) -> Array:
    """The part of the kernel that mixes codes: Σ_d (h_d − p_d / d) for d = 2…degree.

    For degree 2 this is ½ (a·b)². The remainder, Σ_d p_d / d, is an inner product of
    `power_features`, so that predictions need no kernel matrix for it.
    """
    check_degree(degree)
    power_sums = [_dot(a, b)]
    if degree == 2:
        power_sums[0] *= power_sums[0]
        power_sums[0] *= 0.5
        return power_sums[0]
    power_sums += [_dot(a**k, b**k) for k in range(2, degree)]
    homogeneous = [power_sums[0]]
    total = 0.0 * power_sums[0]
    for d in range(2, degree + 1):
        mixed = sum(power_sums[k - 1] * homogeneous[d - k - 1] for k in range(1, d)) / d
        total += mixed
        if d < degree:
            homogeneous.append(mixed + power_sums[d - 1] / d)
    return total


def _dot(a: Array, b: Array) -> Array:
    return gram(a) if a is b else a @ b.T


def power_features(codes: Array, degree: int) -> Array:
    """(M, r) codes → (M, degree·r): aᵢᵏ / √k, whose inner products are Σ_k p_k / k."""
    xp = array_namespace(codes)
    check_degree(degree)
    return xp.concat([codes**k / math.sqrt(k) for k in range(1, degree + 1)], axis=1)


POLYNOMIAL = "polynomial"
"""The kernel whose degree is a separate setting; fitted by `polynomial_map`."""


def _matern_52(squares: Array) -> Array:
    xp = array_namespace(squares)
    s = xp.sqrt(5.0 * squares)
    return (1.0 + s + s**2 / 3.0) * xp.exp(-s)


STATIONARY: dict[str, Callable[[Array], Array]] = {
    "matern-5/2": _matern_52,
    "squared-exponential": lambda squares: array_namespace(squares).exp(-0.5 * squares),
}
"""Kernels that have a length scale."""

_DEGREES = {f"{POLYNOMIAL}-{degree}": degree for degree in range(1, MAX_DEGREE + 1)}

TERMS = (*STATIONARY, *_DEGREES)
"""Names of the terms of a sum."""


def kernel_terms(name: str) -> tuple[str, ...]:
    """The terms in the name of a kernel; "polynomial-1 + matern-5/2" has two."""
    terms = tuple(part.strip() for part in name.split("+"))
    for term in terms:
        if term not in TERMS:
            raise PlumecastError(
                f"kernel '{term or name}' is unknown; choose from {POLYNOMIAL}, {', '.join(TERMS)} "
                "or a sum such as 'polynomial-1 + matern-5/2'"
            )
    if len(set(terms)) < len(terms):
        raise PlumecastError(f"kernel '{name}' names a term twice; name every term once")
    return terms


def has_length_scale(name: str) -> bool:
    """Whether any term of a kernel depends on a length scale."""
    return name != POLYNOMIAL and any(term in STATIONARY for term in kernel_terms(name))


def check_kernel(name: str, length_scale: float | None) -> None:
    """Raise for an unknown kernel, and for a length scale that is invalid or not used by it."""
    stationary = has_length_scale(name)
    if length_scale is None:
        return
    if not stationary:
        raise PlumecastError(
            f"kernel '{name}' has no length scale; leave length_scale={length_scale} out or choose "
            f"a kernel with {' or '.join(STATIONARY)}"
        )
    if not (math.isfinite(length_scale) and length_scale > 0.0):
        raise ArgumentError(
            "length_scale",
            length_scale,
            "1 is the typical distance between training snapshots",
            problem="must be a finite number above 0",
        )


def term_kernel(term: str, a: Array, b: Array, *, length_scale: float, anchored: bool) -> Array:
    """(Ma, Mb) matrix of one term between (Ma, r) and (Mb, r) codes."""
    if term in _DEGREES:
        return monomial_kernel(a, b, _DEGREES[term])
    return stationary_kernel(
        term,
        squared_distances(a, b) / length_scale**2,
        squared_norms(a) / length_scale**2 if anchored else None,
        squared_norms(b) / length_scale**2 if anchored else None,
    )


def stationary_kernel(term: str, squares: Array, left: Array | None, right: Array | None) -> Array:
    """A stationary term from squared distances in units of the length scale.

    `left` and `right` are the squared distances to 0 of an anchored kernel; otherwise None.
    """
    function = STATIONARY[term]
    kernel = function(squares)
    if left is None or right is None:
        return kernel
    return kernel - function(left)[:, None] * function(right)[None, :]


def squared_norms(codes: Array) -> Array:
    """‖a‖² of every row, (M,)."""
    return array_namespace(codes).sum(codes**2, axis=1)


def typical_distance(codes: Array) -> float:
    """Root mean square distance between all pairs of (M, r) codes.

    Computed as √(2 (mean ‖a‖² − ‖mean a‖²)), without forming the pairs.
    """
    xp = array_namespace(codes)
    centred = codes - xp.mean(codes, axis=0)
    return math.sqrt(2.0 * float(xp.mean(squared_norms(centred))))


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
        return self.between(codes / self.unit, self.support) @ self.dual_weights

    def between(self, a: Array, b: Array) -> Array:
        """(Ma, Mb) kernel between codes / unit."""
        scale, anchored = self.length_scale, self.anchored
        terms = zip(kernel_terms(self.kernel), self.term_weights, strict=True)
        parts = [w * term_kernel(t, a, b, length_scale=scale, anchored=anchored) for t, w in terms]
        return sum(parts[1:], start=parts[0])


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
                matrix = monomial_kernel(self.support, self.support, _DEGREES[term])
            size = float(xp.linalg.trace(matrix)) / matrix.shape[0]
            if not size > 0.0:
                raise _unfit(length_scale, TOO_LONG)
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
            raise _unfit(length_scale, TOO_LONG)
        others = values - xp.eye(values.shape[0], dtype=values.dtype, device=device_of(values))
        nearest = xp.sort(xp.max(others, axis=1))
        if float(nearest[nearest.shape[0] // 2]) < REACH:
            problem = "is so short that a training snapshot has no neighbours within it"
            raise _unfit(length_scale, problem)

    def fitted(self, length_scale: float, weights: tuple[float, ...], alpha: Array) -> KernelMap:
        """The map with its dual weights."""
        return KernelMap(self.kernel, length_scale, self.unit, weights, self.anchored, self.support,
                         contiguous(alpha))  # fmt: skip


def training_kernel(codes: Array, kernel: str, anchored: bool) -> TrainingKernel:
    """Normalise the training codes and compute their distances."""
    unit = typical_distance(codes)
    if not unit > 0.0:
        raise PlumecastError("the training codes are all alike, so there is nothing to fit")
    support = contiguous(codes / unit)
    squares = squared_distances(support, support) if has_length_scale(kernel) else None
    return TrainingKernel(kernel, anchored, unit, support, squares)


TOO_LONG = "is so long that a training snapshot looks the same to the kernel as every other"


def _unfit(length_scale: float, problem: str) -> ArgumentError:
    advice = "use a value near 1, the typical distance between snapshots, or leave it out"
    return ArgumentError(
        "length_scale", length_scale, f"{advice} to have it chosen", problem=problem
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
        raise ArgumentError(
            "penalty",
            penalty,
            "give penalty > 0, or leave it out to have it chosen",
            problem="lets a kernel interpolate the training snapshots",
        )
    training = training_kernel(codes, kernel, anchored)
    training.check(length_scale)
    matrix, weights = training(length_scale)
    return training.fitted(length_scale, weights, ridge_dual(matrix, targets, penalty))
