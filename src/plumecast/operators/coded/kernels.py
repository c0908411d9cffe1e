"""Kernels between codes, and sums of them. Arrays only, no labels.

A kernel is named by its terms, as in "polynomial-1 + matern-5/2". Terms are polynomials of degree 1
to 4 (see `monomials`) and two stationary kernels, functions of the distance d between codes in
units of the length scale:

    matern-5/2:           (1 + s + s²/3) exp(−s), s = √5 d     (twice differentiable functions)
    squared-exponential:  exp(−d²/2)                           (infinitely smooth functions)

In an uncentred basis the empty input has the code 0, and its output is known to be 0. The
stationary terms are therefore *anchored*: k(a, b) − k(a, 0) k(0, b) is the kernel of a Gaussian
process conditioned on f(0) = 0. Every function in its span vanishes at 0, as polynomials without a
constant do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace
from plumecast.compute.linalg import squared_distances
from plumecast.operators.coded.monomials import MAX_DEGREE, monomial_kernel

POLYNOMIAL = "polynomial"
"""The kernel whose degree is a separate setting; fitted by `polynomial_map`."""


def matern_52(squares: Array) -> Array:
    """Matérn kernel of smoothness 5/2 of squared distances in units of the length scale."""
    xp = array_namespace(squares)
    s = xp.sqrt(5.0 * squares)
    return (1.0 + s + s**2 / 3.0) * xp.exp(-s)


def squared_exponential(squares: Array) -> Array:
    """exp(−d²/2) of squared distances in units of the length scale."""
    return array_namespace(squares).exp(-0.5 * squares)


STATIONARY: dict[str, Callable[[Array], Array]] = {
    "matern-5/2": matern_52,
    "squared-exponential": squared_exponential,
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
        raise PlumecastError(
            f"length_scale={length_scale} must be a finite number above 0; 1 is the typical "
            "distance between training snapshots"
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
