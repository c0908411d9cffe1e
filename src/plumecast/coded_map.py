"""The coded family on lifted fields, several targets and covariates. Arrays only, no labels.

Principal components of all channels together and of all targets together, and a polynomial or
another kernel between the codes; covariates stand beside the codes, as large as a code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plumecast._array import (
    Array,
    array_namespace,
    device_of,
    like,
    map_arrays,
    take_rows,
    to_numpy,
)
from plumecast.blocks import row_blocks
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
        """(M, *grid) and (M, P) → (M, T, *grid), in the targets' own units; no fire, no smoke.

        Where the fire is; the covariates are on the host.
        """
        xp = array_namespace(fire)
        here = map_arrays(self, lambda array: like(array, fire))
        codes = join_codes(encode(here.inputs, here.lift, fire), covariates, self.covariate_size)
        codes = xp.astype(codes, here.inputs.modes.dtype, copy=False)
        shape = (self.target_scales.shape[0], *fire.shape[1:])
        fields = here.decode(here.code_map.predict(codes), shape)
        fields[~xp.any(fire != 0.0, axis=tuple(range(1, fire.ndim)))] = 0.0
        return fields

    def decode(self, codes: Array, shape: tuple[int, ...]) -> Array:
        """(M, q) codes → (M, T, *grid) targets in their own units; `shape` is (T, *grid)."""
        xp = array_namespace(codes)
        own = xp.astype(codes, self.outputs.modes.dtype, copy=False)
        fields = xp.reshape(self.outputs.decode(own), (codes.shape[0], *shape))
        scales = xp.reshape(like(self.target_scales, codes), (-1, *[1] * (len(shape) - 1)))
        return fields * scales


def encode(basis: Basis, lift: Lift, fire: Array) -> Array:
    """(M, *grid) → (M, r) codes of the lifted fields, block by block."""
    xp, kind = array_namespace(fire), basis.modes.dtype
    none = xp.zeros((0, basis.rank), dtype=kind, device=device_of(fire))
    parts = (fire[rows, ...] for rows in row_blocks(fire.shape[0], BLOCK))
    blocks = [basis.encode(xp.astype(lifted(lift, part), kind, copy=False)) for part in parts]
    return xp.concat([none, *blocks], axis=0)


def lifted(lift: Lift, fire: Array) -> Array:
    """(M, *grid) → (M, C · N) channels as rows."""
    xp = array_namespace(fire)
    return xp.astype(xp.reshape(lift(fire), (fire.shape[0], -1)), xp.float64, copy=False)


def join_codes(codes: Array, covariates: Array | None, size: float) -> Array:
    """Covariates, which are on the host, beside the codes."""
    if covariates is None:
        return codes
    return array_namespace(codes).concat([codes, like(size * covariates, codes)], axis=1)


def code_size(codes: Array) -> float:
    """Root mean square of the first code."""
    return math.sqrt(float(array_namespace(codes).mean(codes[:, 0] ** 2)))


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
    put: Callable[[Array], Array] = lambda array: array,
) -> tuple[CodedMap, Array, Array]:
    """Fit (M, *grid) inputs to (M, T, *grid) targets; also the rows of the last fold, and their
    targets as predicted by a map that was fitted without them.

    `fit_basis` makes the basis of the "inputs" or "outputs", `fit_map` the map between codes with
    the rows of every group; the bases see all snapshots, the map that leaves out does not. `put`
    brings arrays to the device that computes; the map is on the host.
    """
    scales = np.sqrt([np.mean(np.square(t, dtype=np.float64)) for t in np.moveaxis(targets, 1, 0)])
    scales = np.where(scales > 0.0, scales, 1.0)
    shaped = scales.reshape(-1, *([1] * (targets.ndim - 2)))
    ages = put(fire)
    inputs = fit_basis("inputs", lifted(lift, ages))
    outputs_matrix = put((targets / shaped).reshape(fire.shape[0], -1))
    outputs = fit_basis("outputs", outputs_matrix)
    codes, goal = encode(inputs, lift, ages), outputs.encode(outputs_matrix)
    size = code_size(codes)
    codes = join_codes(codes, covariates, size)
    left_out = np.flatnonzero(folds == folds.max())
    kept = np.flatnonzero(folds != folds.max())
    number = np.empty(fire.shape[0], dtype=np.int64)
    for index, rows in enumerate(groups):
        number[rows] = index
    parts = [np.flatnonzero(number[kept] == g) for g in np.unique(number[kept])]
    if len(parts) == 1:  # of two groups one is left: its penalty is chosen by single snapshots
        parts = [np.array([row]) for row in range(kept.size)]
    partial = fit_map(take_rows(codes, kept), take_rows(goal, kept), parts)
    without = CodedMap(lift, inputs, partial, outputs, size, scales)
    predicted = without.decode(partial.predict(take_rows(codes, left_out)), targets.shape[1:])
    whole = replace(without, code_map=fit_map(codes, goal, groups))
    return map_arrays(whole, to_numpy), left_out, predicted
