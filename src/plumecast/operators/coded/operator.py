"""Fitted maps from an input matrix (M, N) to an output matrix (M, Ñ). Arrays only, no labels.

Each is a frozen value of arrays and numbers with a `predict`; the surrogate gives it labels, the
store writes it field by field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from plumecast.compute.arrays import Array, contiguous
from plumecast.operators.coded.polynomial_map import PrimalMap
from plumecast.operators.pca import Basis


class Operator(Protocol):
    """Anything that maps input rows to output rows."""

    def predict(self, inputs: Array) -> Array:
        """(M, N) → (M, Ñ)."""
        ...


@dataclass(frozen=True, slots=True)
class CodedOperator:
    """Encode with one basis, map the codes, decode with another."""

    input_basis: Basis
    code_map: Operator
    output_basis: Basis

    def predict(self, inputs: Array) -> Array:
        """(M, N) fields → (M, Ñ) fields."""
        return self.output_basis.decode(self.code_map.predict(self.input_basis.encode(inputs)))


@dataclass(frozen=True, slots=True)
class FoldedLinear:
    """A linear coded operator with its map folded into the modes of the larger rank: two products
    through the smaller rank k, not three."""

    left: Array  # (N, k)
    right: Array  # (k, Ñ)
    constant: Array | None  # (Ñ,), what centred bases add

    def predict(self, inputs: Array) -> Array:
        """(M, N) fields → (M, Ñ) fields."""
        out = (inputs @ self.left) @ self.right
        return out if self.constant is None else out + self.constant


def folded(operator: Operator) -> Operator:
    """The operator itself, or a linear one in fewer products."""
    if not isinstance(operator, CodedOperator) or not isinstance(operator.code_map, PrimalMap):
        return operator
    if operator.code_map.degree != 1:
        return operator
    weights, source, target = operator.code_map.weights, operator.input_basis, operator.output_basis
    if weights.shape[1] <= weights.shape[0]:
        left, right = source.modes.T @ weights, target.modes
    else:
        left, right = source.modes.T, weights @ target.modes
    constant = target.mean
    if source.mean is not None:
        moved = -((source.mean[None, :] @ left) @ right)[0, :]
        constant = moved if constant is None else constant + moved
    return FoldedLinear(contiguous(left), right, constant)
