"""Add snapshots to a fitted operator between codes. Arrays on the host, no labels.

The penalty, the kernel and its length scale are kept. A polynomial by its weights (primal) follows
from sums of its features, to which those of new snapshots are added. A polynomial or another kernel
by dual weights follows from a Cholesky factor of K + λI, to which rows are appended:

    L₂₁ = K₂₁ L₁₁⁻ᵀ,  L₂₂ L₂₂ᵀ = K₂₂ + λI − L₂₁ L₂₁ᵀ.

Bases get modes for what they do not represent of the new snapshots, so that a fire at a new place
can be learned: those of a linear operator are decomposed again with the new snapshots and truncated
by their rule; those of other dual maps get further modes after the earlier ones, which keeps the
kernel between earlier snapshots. Those of polynomials by weights of degree 2 and up are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, Rows
from plumecast.compute.linalg import cholesky, solve_lower, solve_upper
from plumecast.operators.coded.kernels import KernelMap
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PrimalMap,
    dual_map,
    feature_sums,
    intercept_constant,
    polynomial_kernel,
    primal_map,
)
from plumecast.operators.pca import EncodedRows, Truncation, append_rows, extend_basis
from plumecast.operators.ridge import plus_diagonal, ridge_normal


@dataclass(frozen=True, slots=True)
class CodedSums:
    """What new snapshots are added to, beside the operator itself: sums, or a factor."""

    penalty: float
    constant: float  # of the intercept column; 0 without one
    normal: Array | None = None  # (P, P), ZᵀZ of the features
    cross: Array | None = None  # (P, q), ZᵀB
    factor: Array | None = None  # (M (M + 1) / 2,), lower triangle of L, LLᵀ = K + λI


def coded_sums(operator: CodedOperator, inputs: Rows, outputs: Rows, penalty: float) -> CodedSums:
    """The sums of a fitted operator from its training snapshots, (M, N) and (M, Ñ)."""
    source, code_map = operator.input_basis, operator.code_map
    degree = getattr(code_map, "degree", 1)
    square = float(np.sum(source.singular_values**2)) / inputs.shape[0]
    constant = intercept_constant(square, degree) if source.mean is not None else 0.0
    if isinstance(code_map, PrimalMap):
        codes, targets = EncodedRows(source, inputs), EncodedRows(operator.output_basis, outputs)
        sums = feature_sums(codes, targets, degree, constant)
        return CodedSums(penalty, constant, sums.normal, sums.cross)
    assert isinstance(code_map, DualMap | KernelMap)
    kernel = _kernel(code_map, code_map.support, code_map.support, constant)
    factor = cholesky(plus_diagonal(kernel, penalty))
    return CodedSums(penalty, constant, factor=_packed(factor))


def update_coded_operator(
    operator: CodedOperator,
    sums: CodedSums,
    inputs: Array,
    outputs: Array,
    rules: tuple[Truncation, Truncation],
) -> tuple[CodedOperator, CodedSums]:
    """The operator and its sums with further snapshots; `rules` truncate the bases."""
    if isinstance(operator.code_map, DualMap | KernelMap):
        source = extend_basis(operator.input_basis, inputs, rules[0])
        target = extend_basis(operator.output_basis, outputs, rules[1])
        code_map, factor = _appended(
            operator.code_map, sums, source.encode(inputs), target.encode(outputs)
        )
        return CodedOperator(source, code_map, target), replace(sums, factor=factor)
    assert isinstance(operator.code_map, PrimalMap)
    degree = operator.code_map.degree
    if degree == 1:
        # Old codes a become a R, so ZᵀZ becomes Rᵀ ZᵀZ R: exact where the truncation of the earlier
        # bases lost nothing.
        source, left = append_rows(operator.input_basis, inputs, rules[0])
        target, right = append_rows(operator.output_basis, outputs, rules[1])
        sums = replace(sums, normal=left.T @ sums.normal @ left, cross=left.T @ sums.cross @ right)
        operator = replace(operator, input_basis=source, output_basis=target)
    codes, targets = operator.input_basis.encode(inputs), operator.output_basis.encode(outputs)
    new = feature_sums(codes, targets, degree, sums.constant)
    normal, cross = sums.normal + new.normal, sums.cross + new.cross
    weights = ridge_normal(normal, cross, sums.penalty)
    primal = primal_map(weights, degree, sums.constant)
    return replace(operator, code_map=primal), replace(sums, normal=normal, cross=cross)


def _appended(
    code_map: DualMap | KernelMap, sums: CodedSums, codes: Array, targets: Array
) -> tuple[DualMap | KernelMap, Array]:
    """The dual map with further rows, and the packed factor.

    The targets of the earlier rows follow from the factor: B = L Lᵀ α. Their codes of further modes
    are zero.
    """
    support = _widened(code_map.support, codes.shape[1])
    new = codes / code_map.unit if isinstance(code_map, KernelMap) else codes
    count = support.shape[0]
    factor = np.zeros((count, count))
    factor[np.tril_indices(count)] = sums.factor
    before = _widened(factor @ (factor.T @ code_map.dual_weights), targets.shape[1])
    across = _kernel(code_map, new, support, sums.constant)
    own = plus_diagonal(_kernel(code_map, new, new, sums.constant), sums.penalty)
    # The lower Cholesky factor of [[LLᵀ, Aᵀ], [A, D]].
    below = solve_lower(factor, across.T).T
    corner = cholesky(own - below @ below.T)
    joined = np.block([[factor, np.zeros((count, own.shape[0]))], [below, corner]])
    alpha = solve_upper(joined, solve_lower(joined, np.concatenate([before, targets])))
    every = np.concatenate([support, new])
    if isinstance(code_map, KernelMap):
        return replace(code_map, support=every, dual_weights=alpha), _packed(joined)
    return dual_map(every, alpha, code_map.degree, sums.constant), _packed(joined)


def _kernel(code_map: DualMap | KernelMap, a: Array, b: Array, constant: float) -> Array:
    """(Ma, Mb) kernel between codes, in the units of the map's support."""
    if isinstance(code_map, KernelMap):
        return code_map.between(a, b)
    return polynomial_kernel(a, b, code_map.degree, constant)


def _widened(codes: Array, columns: int) -> Array:
    return np.pad(codes, ((0, 0), (0, columns - codes.shape[1])))


def _packed(factor: Array) -> Array:
    return factor[np.tril_indices(factor.shape[0])]
