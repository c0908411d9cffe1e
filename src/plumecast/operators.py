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
    PenaltyPath,
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


@dataclass(frozen=True, slots=True)
class PolynomialPath:
    """A polynomial map at every penalty, from one eigendecomposition."""

    codes: Array  # (M, r)
    targets: Array  # (M, q)
    features: Array | None  # (M, P) where they are no more than the snapshots
    path: PenaltyPath
    degree: int

    @property
    def mean_diagonal(self) -> float:
        """Mean of the kernel's diagonal: the scale of its penalties."""
        xp = array_namespace(self.codes)
        return float(xp.sum(self.path.eigenvalues) / self.codes.shape[0])

    def at(self, penalty: float) -> PrimalMap | DualMap:
        """The map of one penalty."""
        alpha = self.path.dual_weights(penalty)
        if self.features is not None:
            return PrimalMap(self.features.T @ alpha, self.degree)
        return dual_map(self.codes, alpha, self.degree)


def polynomial_path(codes: Array, targets: Array, degree: int) -> PolynomialPath:
    """Eigendecompose the Gram matrix of the features or the kernel, whichever is smaller."""
    if prefers_primal(codes, degree):
        features = monomials(codes, degree)
        return PolynomialPath(codes, targets, features, primal_path(features, targets), degree)
    path = dual_path(monomial_kernel(codes, codes, degree), targets)
    return PolynomialPath(codes, targets, None, path, degree)


def tune_polynomial_map(
    codes: Array, targets: Array, *, degree: int, groups: list[Array], penalties: list[float] | None
) -> tuple[PrimalMap | DualMap, PenaltyScan]:
    """Polynomial whose penalty minimises the leave-one-group-out error; one eigendecomposition.

    `penalties` defaults to a grid relative to the kernel's mean diagonal.
    """
    found = polynomial_path(codes, targets, degree)
    scan = scan_penalties(found.path, penalties or penalty_grid(found.mean_diagonal), groups)
    return found.at(scan.best), scan
