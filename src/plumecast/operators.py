"""Fitted maps from an input matrix (M, N) to an output matrix (M, Ñ). Arrays only, no labels.

Each is a frozen value of arrays and numbers with a `predict`; the surrogate gives it labels, the
store writes it field by field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from plumecast._array import Array, array_namespace, contiguous
from plumecast.encode import Basis
from plumecast.errors import PlumecastError
from plumecast.features import (
    interaction_kernel,
    monomial_count,
    monomial_kernel,
    monomials,
    power_features,
)
from plumecast.solve import (
    PenaltyScan,
    dual_path,
    linear_closed_form,
    penalty_grid,
    primal_path,
    ridge_dual,
    ridge_primal,
    scan_penalties,
)


class Operator(Protocol):
    """Anything that maps input rows to output rows."""

    def predict(self, inputs: Array) -> Array:
        """(M, N) → (M, Ñ)."""
        ...


@dataclass(frozen=True, slots=True)
class PrimalMap:
    """b = monomials(a) θ: a polynomial of the codes by its explicit weights."""

    weights: Array  # (P, q)
    degree: int

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes."""
        return monomials(codes, self.degree) @ self.weights


@dataclass(frozen=True, slots=True)
class DualMap:
    """The same polynomial by its kernel: b = k(a, support) α, never forming the P weights.

    The part of the kernel that is a plain inner product is folded into `power_weights`.
    """

    support: Array  # (M, r), the training codes
    dual_weights: Array  # (M, q)
    power_weights: Array  # (degree·r, q)
    degree: int

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes."""
        mixed = interaction_kernel(codes, self.support, self.degree) @ self.dual_weights
        return mixed + power_features(codes, self.degree) @ self.power_weights


@dataclass(frozen=True, slots=True)
class CodedOperator:
    """Encode with one basis, map the codes, decode with another."""

    input_basis: Basis
    code_map: Operator
    output_basis: Basis

    def predict(self, inputs: Array) -> Array:
        """(M, N) fields → (M, Ñ) fields."""
        return self.output_basis.decode(self.code_map.predict(self.input_basis.encode(inputs)))


def dual_map(support: Array, dual_weights: Array, degree: int) -> DualMap:
    """A dual map with its plain inner products folded into weights."""
    power_weights = power_features(support, degree).T @ dual_weights
    return DualMap(contiguous(support), contiguous(dual_weights), power_weights, degree)


def prefers_primal(codes: Array, degree: int) -> bool:
    """Explicit features where they are no more than the snapshots, the kernel otherwise."""
    return monomial_count(codes.shape[1], degree) <= int(codes.shape[0])


def fit_linear_map(codes: Array, singular_values: Array, targets: Array) -> PrimalMap:
    """The paper's linear operator by Theorem 1."""
    return PrimalMap(linear_closed_form(codes, singular_values, targets), degree=1)


def fit_polynomial_map(
    codes: Array, targets: Array, *, degree: int, penalty: float
) -> PrimalMap | DualMap:
    """Polynomial of the given degree and penalty, by whichever system is smaller."""
    if prefers_primal(codes, degree):
        weights = ridge_primal(monomials(codes, degree), targets, penalty)
        return PrimalMap(contiguous(weights), degree)
    if not penalty > 0.0:
        raise PlumecastError(
            f"{monomial_count(codes.shape[1], degree)} features (degree {degree}, rank "
            f"{codes.shape[1]}) for {codes.shape[0]} snapshots are not determined without "
            "a penalty; give penalty > 0, or leave it out to have it chosen"
        )
    kernel = monomial_kernel(codes, codes, degree)
    return dual_map(codes, ridge_dual(kernel, targets, penalty), degree)


def tune_polynomial_map(
    codes: Array, targets: Array, *, degree: int, groups: list[Array], penalties: list[float] | None
) -> tuple[PrimalMap | DualMap, PenaltyScan]:
    """Polynomial whose penalty minimises the leave-one-group-out error; one eigendecomposition.

    `penalties` defaults to a grid relative to the kernel's mean diagonal.
    """
    xp = array_namespace(codes)
    primal = prefers_primal(codes, degree)
    features = monomials(codes, degree) if primal else None
    if features is not None:
        path = primal_path(features, targets)
    else:
        path = dual_path(monomial_kernel(codes, codes, degree), targets)
    grid = penalties or penalty_grid(float(xp.sum(path.eigenvalues)) / codes.shape[0])
    scan = scan_penalties(path, grid, groups)
    alpha = path.dual_weights(scan.best)
    if features is not None:
        return PrimalMap(features.T @ alpha, degree), scan
    return dual_map(codes, alpha, degree), scan
