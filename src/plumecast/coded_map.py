"""The coded family on lifted fields, several targets and covariates. Arrays only, no labels.

Principal components of all channels together and of all targets together, and a polynomial or
another kernel between the codes; covariates stand beside the codes, as large as a code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from plumecast._array import Array, Rows, bytes_in
from plumecast.blocks import VALUES, Runner, row_blocks
from plumecast.encode import Basis
from plumecast.lift import Lift
from plumecast.operators import Operator
from plumecast.target import target_sizes

EncodeSide: TypeAlias = Callable[[str, Rows, int], tuple[Basis, Array]]
"""From "inputs" or "outputs", their matrix and the bytes already held, to the basis and the codes
of all rows."""

FitMap: TypeAlias = Callable[[Array, Array, list[Array], int], Operator]
"""From codes of both sides, the rows of groups that follow each other, and the bytes already held,
to the map between them."""


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
    kind = basis.modes.dtype
    blocks = [
        basis.encode(lifted(lift, fire[rows]).astype(kind, copy=False))
        for rows in row_blocks(fire.shape[0], VALUES // basis.modes.shape[1])
    ]
    return np.concatenate([np.empty((0, basis.rank), dtype=kind), *blocks])


def lifted(lift: Lift, fire: Array) -> Array:
    """(M, *grid) → (M, C · N) channels as rows."""
    return lift(fire).reshape(fire.shape[0], -1).astype(np.float64, copy=False)


def join_codes(codes: Array, covariates: Array | None, size: float) -> Array:
    """Covariates beside the codes."""
    return codes if covariates is None else np.concatenate([codes, size * covariates], axis=1)


@dataclass(frozen=True, slots=True)
class FieldRows:
    """(M, …) fields as the rows of a matrix in float64, changed as they are read.

    Few at a time, so that what a change needs on its way does not grow with what is read.
    """

    fields: Array  # (M, …), an array or what gives one of some rows
    change: Callable[[Array], Array]  # (B, …) → (B, columns)
    columns: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, columns)."""
        return (self.fields.shape[0], self.columns)

    @property
    def runner(self) -> Runner | None:
        """Who works on blocks of these rows."""
        return getattr(self.fields, "runner", None)

    def read(self, rows: slice) -> Array:
        """Some rows."""
        first, last, _ = rows.indices(self.fields.shape[0])
        out = np.empty((last - first, self.columns))
        for part in row_blocks(last - first, VALUES // math.prod(self.fields.shape[1:])):
            out[part] = self.change(self.fields[first + part.start : first + part.stop])
        return out


@dataclass(frozen=True, slots=True)
class CodedLeftOut:
    """Targets of snapshots by a map that did not see them, decoded when they are indexed."""

    coded: CodedMap
    codes: Array  # (m, r), of the input with its covariates
    shape: tuple[int, ...]  # (T, *grid)

    def __getitem__(self, some: Array) -> Array:
        fields = self.coded.decode(self.coded.code_map.predict(self.codes[some]), self.shape)
        return fields.astype(np.float32)


def fit_coded_map(
    fire: Array,
    targets: Array,
    folds: Array,
    groups: list[Array],
    *,
    lift: Lift,
    covariates: Array | None,
    encode_side: EncodeSide,
    fit_map: FitMap,
) -> tuple[CodedMap, Array, CodedLeftOut]:
    """Fit (M, *grid) inputs to (M, T, *grid) targets; also the rows of the last fold, and their
    targets as predicted by a map that was fitted without them.

    Both are arrays, or what gives arrays of some rows when indexed. The rows of a group are in one
    fold; the bases see all snapshots, the map that leaves out does not.
    """
    cells, kinds = math.prod(fire.shape[1:]), targets.shape[1]
    scales, _ = target_sizes(targets)
    units = scales.reshape(-1, *[1] * (len(targets.shape) - 2))
    inputs, codes = encode_side(
        "inputs", FieldRows(fire, lambda ages: lifted(lift, ages), lift.channels * cells), 0
    )
    outputs, goal = encode_side(
        "outputs",
        FieldRows(targets, lambda own: _flat(own / units), kinds * cells),
        bytes_in((inputs, codes)),
    )
    size = float(np.sqrt(np.mean(np.square(codes[:, 0]))))
    codes = join_codes(codes, covariates, size)

    def fit(parts: list[Array]) -> CodedMap:
        rows = np.concatenate(parts)
        ends = np.cumsum([part.size for part in parts])
        # Groups that follow each other can be left out block by block.
        follow = np.split(np.arange(rows.size), ends[:-1])
        held = bytes_in((inputs, outputs, codes, goal))
        code_map = fit_map(codes[rows], goal[rows], follow, held)
        return CodedMap(lift, inputs, code_map, outputs, size, scales)

    last = folds.max()
    kept = [rows for rows in groups if folds[rows[0]] != last]
    if len(kept) == 1:  # of two groups one is left: its penalty is chosen by single snapshots
        kept = list(kept[0][:, None])
    left_out = np.flatnonzero(folds == last)
    without = CodedLeftOut(fit(kept), codes[left_out], targets.shape[1:])
    return fit(groups), left_out, without


def _flat(fields: Array) -> Array:
    return fields.reshape(fields.shape[0], -1)
