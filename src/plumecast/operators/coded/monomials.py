"""Monomials of codes, and their kernel, whose cost does not grow with the number of monomials.

Degree d has one column per multiset of d codes (i ≤ j ≤ …), as in the paper: r + r(r+1)/2 columns
up to degree 2. The inner product of the monomials of degree d is the complete homogeneous symmetric
polynomial h_d of the products aᵢ bᵢ. Newton's identity computes it from power sums:
d · h_d = Σₖ pₖ h_{d−k} with pₖ(a, b) = Σᵢ (aᵢ bᵢ)ᵏ. Arrays only, no labels.
"""

from __future__ import annotations

import math

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace
from plumecast.compute.linalg import gram

MAX_DEGREE = 4


def monomial_count(rank: int, degree: int) -> int:
    """Number of monomials of degree 1…degree in `rank` codes: Σ_d C(rank + d − 1, d)."""
    return sum(math.comb(rank + d - 1, d) for d in range(1, check_degree(degree) + 1))


def check_degree(degree: int) -> int:
    """Return the degree; raise if it is not supported."""
    if degree not in range(1, MAX_DEGREE + 1):
        raise PlumecastError(f"degree={degree} is not one of 1…{MAX_DEGREE}")
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
