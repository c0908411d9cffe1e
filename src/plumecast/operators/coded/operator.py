"""Operators of the coded family between matrices: encode, map the codes, decode. Arrays only."""

from __future__ import annotations

from dataclasses import dataclass

from plumecast.compute.arrays import Array, array_namespace, contiguous, map_arrays
from plumecast.operators.coded.fields import CodeMap
from plumecast.operators.coded.polynomial_map import PrimalMap
from plumecast.operators.family import NOTHING, Conditions, Operator, in_float32
from plumecast.operators.pca import Basis


@dataclass(frozen=True, slots=True)
class CodedOperator(Operator):
    """Encode with one basis, map the codes, decode with another."""

    input_basis: Basis
    code_map: CodeMap
    output_basis: Basis

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) fields → (M, Ñ) fields."""
        return self.output_basis.decode(self.code_map.predict(self.input_basis.encode(inputs)))

    def represented(self, inputs: Array) -> Array:
        """(M,) ‖codes‖² / ‖f − mean‖² of each input f; NaN where the denominator is zero."""
        mean = self.input_basis.mean
        xp = array_namespace(inputs)
        centred = inputs if mean is None else inputs - mean
        codes = self.input_basis.encode(inputs)
        size, share = xp.vecdot(centred, centred), xp.vecdot(codes, codes)
        one = xp.ones_like(size)
        return xp.where(size > 0.0, share / xp.where(size > 0.0, size, one), xp.nan * one)

    def for_float32(self) -> Operator:
        """In single precision; a linear operator is folded into two products first."""
        return map_arrays(folded(self), in_float32)


@dataclass(frozen=True, slots=True)
class FoldedLinear(Operator):
    """A linear coded operator as two matrix products through the smaller rank k.

    Its map is multiplied into the modes of the basis with the larger rank.
    """

    left: Array  # (N, k)
    right: Array  # (k, Ñ)
    constant: Array | None  # (Ñ,), added by centred bases

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) fields → (M, Ñ) fields."""
        out = (inputs @ self.left) @ self.right
        return out if self.constant is None else out + self.constant


def folded(operator: CodedOperator) -> CodedOperator | FoldedLinear:
    """A linear operator as two matrix products; any other operator unchanged."""
    if not isinstance(operator.code_map, PrimalMap) or operator.code_map.degree != 1:
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
