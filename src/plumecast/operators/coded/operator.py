"""Operators of the coded family: encode, map the codes, decode. Arrays only, no labels.

A `CodedOperator` maps matrices. A `CodedMap` maps lifted fields, several targets and covariates:
all channels of the lifted fire share one PCA, and all targets share another. Scalars of the
snapshot are appended to the codes and scaled to their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from plumecast.compute.arrays import (
    Array,
    array_namespace,
    contiguous,
    device_of,
    is_numpy_array,
    like,
    map_arrays,
)
from plumecast.compute.blocks import VALUES, row_blocks
from plumecast.operators.coded.polynomial_map import PrimalMap
from plumecast.operators.family import NOTHING, ComputedFields, Conditions, Operator, in_float32
from plumecast.operators.lift import Lift
from plumecast.operators.pca import Basis

DEVICE_BLOCK = 512
"""Snapshots lifted at a time on a GPU; on the host a block is small enough for the cache."""


class CodeMap(Protocol):
    """A fitted map between codes."""

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes."""
        ...


@dataclass(frozen=True, slots=True)
class CodedMap:
    """A field map: codes of the lifted fire and scalars → codes of the targets."""

    lift: Lift
    inputs: Basis
    code_map: CodeMap
    outputs: Basis
    covariate_size: float  # multiplies the normalised scalars that are appended to the codes
    target_scales: Array  # (T,)

    def predict(self, fire: Array, given: Conditions = NOTHING) -> Array:
        """(M, *grid) → (M, T, *grid), in the targets' own units; an empty fire gives zero."""
        xp = array_namespace(fire)
        here = map_arrays(self, lambda array: like(array, fire))
        codes = encode(here.inputs, here.lift, fire, given.physics)
        codes = join_codes(codes, given.scalars(), self.covariate_size)
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

    def working_bytes(self) -> tuple[float, float]:
        """Zero: work arrays are small compared with the inputs and outputs."""
        return 0.0, 0.0


def encode(basis: Basis, lift: Lift, fire: Array, physics: Array | None = None) -> Array:
    """(M, *grid) → (M, r) codes of the lifted fields, block by block."""
    xp, kind = array_namespace(fire), basis.modes.dtype
    size = VALUES // basis.modes.shape[1] if is_numpy_array(fire) else DEVICE_BLOCK
    none = xp.zeros((0, basis.rank), dtype=kind, device=device_of(fire))
    parts = (
        (fire[rows, ...], None if physics is None else physics[rows, ...])
        for rows in row_blocks(fire.shape[0], size)
    )
    blocks = [basis.encode(xp.astype(lifted(lift, *part), kind, copy=False)) for part in parts]
    return xp.concat([none, *blocks], axis=0)


def lifted(lift: Lift, fire: Array, physics: Array | None = None) -> Array:
    """(M, *grid) → (M, C · N) channels as rows."""
    xp = array_namespace(fire)
    channels = lift(fire, physics=physics)
    return xp.astype(xp.reshape(channels, (fire.shape[0], -1)), xp.float64, copy=False)


def join_codes(codes: Array, scalars: Array | None, size: float) -> Array:
    """Append (M, P) scalars, which are on the host, to (M, r) codes, multiplied by `size`."""
    if scalars is None:
        return codes
    return array_namespace(codes).concat([codes, like(size * scalars, codes)], axis=1)


def code_size(codes: Array) -> float:
    """Root mean square of the first code."""
    return math.sqrt(float(array_namespace(codes).mean(codes[:, 0] ** 2)))


@dataclass(frozen=True, slots=True)
class FieldRows:
    """(M, …) fields as the rows of a float64 matrix, converted when they are read.

    Rows are converted in small blocks, so that temporary arrays do not grow with the slice.
    """

    fields: Array  # (M, …), an array or an object that gives one when indexed by rows
    convert: Callable[[Array], Array]  # (B, …) → (B, columns)
    columns: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, columns)."""
        return (self.fields.shape[0], self.columns)

    def read(self, rows: slice) -> Array:
        """Some rows."""
        first, last, _ = rows.indices(self.fields.shape[0])
        out = np.empty((last - first, self.columns))
        for part in row_blocks(last - first, VALUES // math.prod(self.fields.shape[1:])):
            out[part] = self.convert(self.fields[first + part.start : first + part.stop])
        return out


def lifted_rows(lift: Lift, fire: Array, physics: Array | None = None) -> FieldRows:
    """The lifted channels of (M, *grid) fires, and of their (M, K, *grid) physics, as rows."""
    columns = lift.channels * math.prod(fire.shape[1:])
    if physics is None:
        return FieldRows(fire, lambda ages: lifted(lift, ages), columns)

    def joined(rows: Array | slice) -> Array:
        return np.concatenate([fire[rows][:, None], physics[rows]], axis=1)

    count, kinds, *grid = physics.shape
    both = ComputedFields((count, 1 + kinds, *grid), joined)
    return FieldRows(both, lambda own: lifted(lift, own[:, 0], own[:, 1:]), columns)


def target_rows(targets: Array, scales: Array) -> FieldRows:
    """(M, T, *grid) targets as rows, each target divided by its scale."""
    units, columns = scales.reshape(-1, *[1] * (len(targets.shape) - 2)), targets.shape[1:]
    return FieldRows(targets, lambda own: (own / units).reshape(len(own), -1), math.prod(columns))


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
