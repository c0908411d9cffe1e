"""Translation-equivariant operators by least squares per Fourier frequency. Arrays only.

A fire that is moved by a few cells causes the same plume, moved by as many cells. A linear operator
with this property is a convolution, ŷ(k) = x̂(k) W(k). In a Fourier basis it is block-diagonal:
there is one small independent ridge system per frequency, (C, C) for C channels. The inputs of a
further layer are the lifted fire and pointwise ramps of the predictions of the previous layer; it
is fitted in the same way (see `fit`), in closed form without an optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from plumecast.compute.arrays import (
    Array,
    array_namespace,
    as_complex,
    assembled,
    contiguous,
    is_numpy_array,
    like,
    positive_part,
    take_rows,
)
from plumecast.compute.threads import cores, map_threads
from plumecast.operators.family import NOTHING, Conditions
from plumecast.operators.fields.lift import Lift
from plumecast.operators.spectral.transform import Frequencies, Transform, make_transform

PREDICT_BLOCK = 24
"""Snapshots in a block; few enough for their spectra to stay in the cache."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One convolution from channels to targets, by scenario and frequency."""

    weights: Array  # (S, F, C, T, 2) float32: real and imaginary part
    knots: Array  # (T, R), where the ramps of its predictions begin, for the next layer
    limits: Array  # (T,), predictions are clipped to [0, limit] before the ramps
    signed: bool = False  # to [−limit, limit], with ramps to both sides of zero


Steps: TypeAlias = Sequence[tuple[Layer | None, Array]]
"""Layers, each with the (F, C, T) weights of one scenario on the device. The last layer may be
None, because only its weights are used."""


@dataclass(frozen=True, slots=True)
class SpectralMap:
    """Layers from lifted input to targets, each target in units of its root mean square."""

    lift: Lift
    frequencies: Frequencies
    layers: tuple[Layer, ...]
    target_scales: Array  # (T,)

    def predict(self, fire: Array, given: Conditions = NOTHING) -> Array:
        """(M, *grid) → (M, T, *grid), in the targets' own units, on the device of the fire."""
        count = int(fire.shape[0])
        numbers = np.zeros(count, dtype=np.int64) if given.scenarios is None else given.scenarios
        shape = (count, self.target_scales.shape[0], *self.frequencies.grid)
        return assembled(self._parts(fire, given.covariates, numbers), shape, fire)

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes; per_row covers blocks that run in parallel."""
        channels = max(layer.weights.shape[2] for layer in self.layers)
        cells = math.prod(self.frequencies.grid)
        row = float(channels * (3.0 * 8.0 * self.frequencies.count + 12.0 * cells))
        return PREDICT_BLOCK * row, row if cores() > 1 else 0.0

    def _parts(
        self, fire: Array, covariates: Array | None, numbers: Array
    ) -> Iterator[tuple[Array, Array]]:
        """Row indices and their predictions, scenario by scenario."""
        transform = make_transform(self.frequencies, fire)
        for number in np.unique(numbers):
            steps = [
                (layer, like(as_complex(layer.weights[int(number), ...]), fire))
                for layer in self.layers
            ]
            parts = row_parts(np.flatnonzero(numbers == number), PREDICT_BLOCK)
            blocks = (
                (take_rows(fire, rows), None if covariates is None else covariates[rows])
                for rows in parts
            )
            predict = partial(_block_through, self.lift, transform, steps)
            threads = min(cores(), len(parts)) if is_numpy_array(fire) else 1
            for rows, values in zip(parts, map_threads(predict, blocks, threads), strict=True):
                yield rows, snapshot_first(values * like(self.target_scales, values, values.dtype))


def _block_through(
    lift: Lift, transform: Transform, steps: Steps, block: tuple[Array, Array | None]
) -> Array:
    fire, covariates = block
    lifted = lifted_spectra(lift, transform, fire_block(fire), covariates)
    return through(lifted, transform, steps)


def through(lifted: Array, transform: Transform, steps: Steps) -> Array:
    """(F, B, C) spectra of the lifted fire → (*grid, B, T) predictions of the last layer."""
    channels = lifted.shape[-1]
    values, before = None, None
    for layer, weights in steps:
        spectra = lifted @ weights[:, :channels, :]
        if before is not None:
            ramps = transform.spectra(ramps_of(values, before))
            spectra = spectra + ramps @ weights[:, channels:, :]
        values, before = transform.fields(spectra), layer
    return values


def lifted_spectra(
    lift: Lift, transform: Transform, fire: Array, covariates: Array | None
) -> Array:
    """(*grid, B) ages → (F, B, C): spectra of the lifted fields times their factors."""
    xp = array_namespace(fire)
    spectra = transform.spectra(lift.fields(fire))
    factors = xp.astype(lift.factors(fire, covariates), spectra.dtype)
    return xp.reshape(spectra[:, :, None, :] * factors, (*spectra.shape[:2], -1))


def ramps_of(predicted: Array, layer: Layer) -> Array:
    """(*grid, B, T) predictions → (*grid, B, T·R): max(clipped prediction − knot, 0).

    Ramps v ↦ r(v) of signed predictions are odd: r(−v) = −r(v).
    """
    xp = array_namespace(predicted)
    if layer.signed:
        sizes = ramps_of(xp.abs(predicted), replace(layer, signed=False))
        signs = xp.broadcast_to(
            xp.sign(predicted)[..., None], (*predicted.shape, layer.knots.shape[1])
        )
        return sizes * xp.reshape(signs, sizes.shape)
    limits = like(layer.limits, predicted, predicted.dtype)
    bounded = xp.minimum(xp.clip(predicted, 0.0, None), limits)
    above = bounded[..., None] - like(layer.knots, predicted, predicted.dtype)
    return xp.reshape(positive_part(above), (*predicted.shape[:-1], -1))


def row_parts(rows: Array, size: int) -> list[Array]:
    """Row indices in parts of nearly equal length, at most `size`."""
    return np.array_split(rows, -(-rows.size // size)) if rows.size else []


def fire_block(fire: Array) -> Array:
    """(B, *grid) → (*grid, B), float32 in row-major order."""
    xp = array_namespace(fire)
    return contiguous(xp.astype(xp.moveaxis(fire, 0, -1), xp.float32, copy=False))


def target_block(targets: Array, scales: Array) -> Array:
    """(B, T, *grid) → (*grid, B, T), divided by the (T,) scales; float32 in row-major order."""
    xp = array_namespace(targets)
    fields = xp.moveaxis(targets, (0, 1), (-2, -1)) / like(scales, targets)
    return contiguous(xp.astype(fields, xp.float32))


def snapshot_first(fields: Array) -> Array:
    """(*grid, B, T) → (B, T, *grid)."""
    return array_namespace(fields).moveaxis(fields, (-2, -1), (0, 1))
