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

from plumecast.compute.arrays import (
    Array,
    Rows,
    array_namespace,
    bytes_in,
    device_of,
    is_numpy_array,
    like,
    map_arrays,
    take_rows,
    to_numpy,
)
from plumecast.compute.blocks import VALUES, Runner, row_blocks
from plumecast.operators.coded.operator import Operator
from plumecast.operators.fields.lift import Lift
from plumecast.operators.fields.targets import target_sizes
from plumecast.operators.pca import Basis

DEVICE_BLOCK = 512
"""Snapshots lifted together on a GPU; on the host, so few that they stay in the cache."""

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
    size = VALUES // basis.modes.shape[1] if is_numpy_array(fire) else DEVICE_BLOCK
    none = xp.zeros((0, basis.rank), dtype=kind, device=device_of(fire))
    parts = (fire[rows, ...] for rows in row_blocks(fire.shape[0], size))
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
        codes = self.coded.code_map.predict(take_rows(self.codes, some))
        fields = self.coded.decode(codes, self.shape)
        xp = array_namespace(fields)
        return xp.astype(fields, xp.float32)


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
    fold; the bases see all snapshots, the map that leaves out does not. Computed where
    `encode_side` leaves the codes; the map is on the host.
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
    size = code_size(codes)
    codes = join_codes(codes, covariates, size)

    def fit(parts: list[Array]) -> CodedMap:
        rows = np.concatenate(parts)
        ends = np.cumsum([part.size for part in parts])
        # Groups that follow each other can be left out block by block.
        follow = np.split(np.arange(rows.size), ends[:-1])
        held = bytes_in((inputs, outputs, codes, goal))
        code_map = fit_map(take_rows(codes, rows), take_rows(goal, rows), follow, held)
        return CodedMap(lift, inputs, code_map, outputs, size, scales)

    last = folds.max()
    kept = [rows for rows in groups if folds[rows[0]] != last]
    if len(kept) == 1:  # of two groups one is left: its penalty is chosen by single snapshots
        kept = list(kept[0][:, None])
    left_out = np.flatnonzero(folds == last)
    without = CodedLeftOut(fit(kept), take_rows(codes, left_out), targets.shape[1:])
    return map_arrays(fit(groups), to_numpy), left_out, without


def _flat(fields: Array) -> Array:
    return fields.reshape(fields.shape[0], -1)
