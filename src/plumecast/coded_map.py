"""The coded family on lifted fields, several targets and covariates. Arrays only, no labels.

Principal components of all channels together and of all targets together, and a polynomial or
another kernel between the codes; covariates stand beside the codes, as large as a code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumecast._array import Array
from plumecast.encode import Basis
from plumecast.lift import Lift
from plumecast.operators import Operator

BLOCK = 512
"""Snapshots lifted together."""


@dataclass(frozen=True, slots=True)
class CodedMap:
    """Codes of lifted input and covariates to codes of the targets."""

    lift: Lift
    inputs: Basis
    code_map: Operator
    outputs: Basis
    covariate_size: float  # what a normalised covariate is multiplied by beside the codes
    target_scales: Array  # (T,)

    def predict(self, fire: Array, covariates: Array | None = None) -> Array:
        """(M, *grid) and (M, P) → (M, T, *grid), in the targets' own units; no fire, no smoke."""
        codes = join_codes(encode(self.inputs, self.lift, fire), covariates, self.covariate_size)
        shape = (self.target_scales.size, *fire.shape[1:])
        kind = self.inputs.modes.dtype
        fields = self.decode(self.code_map.predict(codes.astype(kind, copy=False)), shape)
        fields[~(fire != 0.0).any(axis=tuple(range(1, fire.ndim)))] = 0.0
        return fields

    def decode(self, codes: Array, shape: tuple[int, ...]) -> Array:
        """(M, q) codes → (M, T, *grid) targets in their own units; `shape` is (T, *grid)."""
        own = codes.astype(self.outputs.modes.dtype, copy=False)
        fields = self.outputs.decode(own).reshape(codes.shape[0], *shape)
        return fields * self.target_scales.reshape(-1, *([1] * (len(shape) - 1)))


def encode(basis: Basis, lift: Lift, fire: Array) -> Array:
    """(M, *grid) → (M, r) codes of the lifted fields, block by block."""
    parts = [fire[start : start + BLOCK] for start in range(0, fire.shape[0], BLOCK)]
    kind = basis.modes.dtype
    blocks = [basis.encode(lifted(lift, part).astype(kind, copy=False)) for part in parts]
    return np.concatenate([np.empty((0, basis.rank), dtype=kind), *blocks])


def lifted(lift: Lift, fire: Array) -> Array:
    """(M, *grid) → (M, C · N) channels as rows."""
    return lift(fire).reshape(fire.shape[0], -1).astype(np.float64, copy=False)


def join_codes(codes: Array, covariates: Array | None, size: float) -> Array:
    """Covariates beside the codes."""
    return codes if covariates is None else np.concatenate([codes, size * covariates], axis=1)


def fit_coded_map(
    fire: Array,
    targets: Array,
    folds: Array,
    groups: list[Array],
    *,
    lift: Lift,
    covariates: Array | None,
    fit_basis: Callable[[str, Array], Basis],
    fit_map: Callable[[Array, Array, list[Array]], Operator],
) -> tuple[CodedMap, Array, Array]:
    """Fit (M, *grid) inputs to (M, T, *grid) targets; also the rows of the last fold, and their
    targets as predicted by a map that was fitted without them.

    `fit_basis` makes the basis of the "inputs" or "outputs", `fit_map` the map between codes with
    the rows of every group; the bases see all snapshots, the map that leaves out does not.
    """
    scales = np.sqrt([np.mean(np.square(t, dtype=np.float64)) for t in np.moveaxis(targets, 1, 0)])
    scales = np.where(scales > 0.0, scales, 1.0)
    shaped = scales.reshape(-1, *([1] * (targets.ndim - 2)))
    inputs = fit_basis("inputs", lifted(lift, fire))
    outputs_matrix = (targets / shaped).reshape(fire.shape[0], -1)
    outputs = fit_basis("outputs", outputs_matrix)
    codes, goal = encode(inputs, lift, fire), outputs.encode(outputs_matrix)
    size = float(np.sqrt(np.mean(np.square(codes[:, 0]))))
    codes = join_codes(codes, covariates, size)
    left_out = np.flatnonzero(folds == folds.max())
    kept = np.flatnonzero(folds != folds.max())
    number = np.empty(fire.shape[0], dtype=np.int64)
    for index, rows in enumerate(groups):
        number[rows] = index
    parts = [np.flatnonzero(number[kept] == g) for g in np.unique(number[kept])]
    if len(parts) == 1:  # of two groups one is left: its penalty is chosen by single snapshots
        parts = [np.array([row]) for row in range(kept.size)]
    partial = fit_map(codes[kept], goal[kept], parts)
    flat = outputs.decode(partial.predict(codes[left_out]))
    predicted = flat.reshape(left_out.size, *targets.shape[1:]) * shaped
    whole = fit_map(codes, goal, groups)
    return CodedMap(lift, inputs, whole, outputs, size, scales), left_out, predicted
