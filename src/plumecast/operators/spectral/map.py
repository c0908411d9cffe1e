"""Translation-equivariant operators by least squares per Fourier frequency. Arrays only.

A fire that is moved by a few cells causes the same plume, moved by as many cells. A linear operator
with this property is a convolution, ŷ(k) = x̂(k) W(k). In a Fourier basis it is block-diagonal:
there is one small independent ridge system per frequency, (C, C) for C channels. The inputs of a
further layer are the lifted fire and pointwise ramps of the predictions of the previous layer; it
is fitted in the same way (see `fit`), in closed form without an optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from plumecast.compute.arrays import (
    Array,
    array_namespace,
    assembled,
    contiguous,
    device_of,
    is_array_api_obj,
    is_numpy_array,
    like,
    positive_part,
    take_rows,
    to_complex,
    write_difference,
    write_sum,
)
from plumecast.compute.blocks import cores, map_threads
from plumecast.compute.resources import free_bytes, keep_freed_memory
from plumecast.operators.family import NOTHING, Conditions
from plumecast.operators.lift import Lift
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.transform import Frequencies, Transform, make_transform

PREDICT_BLOCK = 12
"""Snapshots in a block on the host; few enough for their spectra to stay in the cache."""

DEVICE_BLOCK, DEVICE_SHARE = 4096, 0.4
"""Largest number of snapshots in a block on a GPU, and the share of its free memory that their
spectra may use."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One convolution from channels to targets, by scenario and frequency."""

    weights: Array  # (S, F, C, T, 2) float32: real and imaginary part
    knots: Array  # (U, R), where the ramps of its first U predictions begin, for the next layer
    limits: Array  # (T,), predictions are clipped to [0, limit] before the ramps
    signed: bool = False  # to [−limit, limit], with ramps to both sides of zero


Steps: TypeAlias = Sequence[tuple[Layer | None, Array]]
"""Layers, each with the (F, C, T, 2) weights of one scenario on the device. The last layer may be
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
        keep_freed_memory()
        count = int(fire.shape[0])
        numbers = np.zeros(count, dtype=np.int64) if given.scenarios is None else given.scenarios
        shape = (count, self.target_scales.shape[0], *self.frequencies.grid)
        return assembled(self._parts(fire, given, numbers), shape, fire)

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes; per_row covers blocks that run in parallel."""
        row = self._row_bytes()
        return PREDICT_BLOCK * row, row if cores() > 1 else 0.0

    def _row_bytes(self) -> float:
        """Working bytes of one snapshot."""
        channels = max(layer.weights.shape[2] for layer in self.layers)
        cells = math.prod(self.frequencies.grid)
        return float(channels * (3.0 * 8.0 * self.frequencies.count + 12.0 * cells))

    def _block(self, fire: Array) -> int:
        """Snapshots in a block: those that the cache holds, or the free memory of a GPU."""
        free = free_bytes(fire)
        if free is None:
            return PREDICT_BLOCK
        fit = int(DEVICE_SHARE * free / self._row_bytes())
        return max(PREDICT_BLOCK, min(DEVICE_BLOCK, fit))

    def _parts(
        self, fire: Array, given: Conditions, numbers: Array
    ) -> Iterator[tuple[Array, Array]]:
        """Row indices and their predictions, scenario by scenario."""
        transform, size = make_transform(self.frequencies, fire), self._block(fire)
        for number in np.unique(numbers):
            steps = [(layer, like(layer.weights[int(number), ...], fire)) for layer in self.layers]
            parts = row_parts(np.flatnonzero(numbers == number), size)

            def predict(rows: Array, steps: Steps = steps) -> Array:
                covariates = None if given.covariates is None else given.covariates[rows]
                physics = None if given.physics is None else take_rows(given.physics, rows)
                ages = fire_block(take_rows(fire, rows))
                lifted = lifted_spectra(self.lift, transform, ages, covariates, physics)
                return through(lifted, transform, steps)

            threads = min(cores(), len(parts)) if is_numpy_array(fire) else 1
            for rows, values in zip(parts, map_threads(predict, parts, threads), strict=True):
                yield rows, snapshot_first(values * like(self.target_scales, values, values.dtype))


def through(lifted: Array, transform: Transform, steps: Steps) -> Array:
    """(F, 2, B, C) spectra of the lifted fire → (*grid, B, T) predictions of the last layer."""
    channels = lifted.shape[-1]
    values, before = None, None
    for layer, weights in steps:
        products = _products(lifted, weights[:, :channels, ...])
        if before is not None:
            ramps = transform.spectra(ramps_of(values, before))
            products = products + _products(ramps, weights[:, channels:, ...])
        values, before = transform.fields(_convolved(products)), layer
    return values


def _products(spectra: Array, weights: Array) -> Array:
    """(F, 2, B, C) and (F, C, T, 2) → (F, 2, B, T, 2): every part of one times that of the other.

    Two complex products as one real product, whose operands need no copy.
    """
    xp = array_namespace(spectra)
    count, channels, targets, _ = weights.shape
    rows = xp.reshape(spectra, (spectra.shape[0], -1, spectra.shape[-1]))
    products = rows @ xp.reshape(weights, (count, channels, 2 * targets))
    return xp.reshape(products, (*spectra.shape[:-1], targets, 2))


def _convolved(products: Array) -> Array:
    """(F, 2, B, T, 2) products of parts → (F, 2, B, T) parts of the complex product."""
    xp = array_namespace(products)
    shape = products.shape[:-1]
    out = xp.empty(shape, dtype=products.dtype, device=device_of(products))
    write_difference(out[:, 0, ...], products[:, 0, ..., 0], products[:, 1, ..., 1])
    write_sum(out[:, 1, ...], products[:, 0, ..., 1], products[:, 1, ..., 0])
    return out


def lifted_spectra(
    lift: Lift,
    transform: Transform,
    fire: Array,
    covariates: Array | None,
    physics: Array | None = None,
) -> Array:
    """(*grid, B) ages → (F, 2, B, C): spectra of the lifted fields times their factors.

    They are followed by the spectra of the channels of (B, K, *grid) physics.
    """
    xp = array_namespace(fire)
    spectra = transform.spectra(lift.fields(fire))
    factors = xp.astype(lift.factors(fire, covariates), spectra.dtype)
    snapshots, scalars, fields = factors.shape
    # A product with identities repeats the fields: NumPy is slow on short last axes.
    repeat = like(np.tile(np.eye(fields), scalars), spectra, spectra.dtype)
    repeated = xp.reshape(spectra, (-1, spectra.shape[-1])) @ repeat
    lifted = xp.reshape(repeated, (-1, snapshots * scalars * fields)) * xp.reshape(factors, (-1,))
    lifted = xp.reshape(lifted, (*spectra.shape[:3], -1))
    if lift.physics is None:
        return lifted
    return xp.concat([lifted, transform.spectra(lift.physics.of(physics))], axis=3)


def ramps_of(predicted: Array, layer: Layer) -> Array:
    """(*grid, B, T) predictions → (*grid, B, U·R): max(clipped prediction − knot, 0).

    They are those of the first U targets, which have knots. Ramps v ↦ r(v) of signed predictions
    are odd: r(−v) = −r(v).
    """
    xp = array_namespace(predicted)
    count = layer.knots.shape[0]
    predicted = predicted if predicted.shape[-1] == count else predicted[..., :count]
    if layer.signed:
        sizes = ramps_of(xp.abs(predicted), replace(layer, signed=False))
        signs = xp.broadcast_to(
            xp.sign(predicted)[..., None], (*predicted.shape, layer.knots.shape[1])
        )
        return sizes * xp.reshape(signs, sizes.shape)
    snapshots = predicted.shape[-2]
    # Limits and knots are repeated for every snapshot: NumPy is slow on short last axes.
    limits = xp.tile(like(layer.limits[:count], predicted, predicted.dtype), (snapshots,))
    knots = like(layer.knots, predicted, predicted.dtype)
    knots = xp.tile(xp.reshape(knots, (-1,)), (snapshots,))
    flat = xp.reshape(predicted, (*predicted.shape[:-2], snapshots * count))
    bounded = xp.minimum(positive_part(flat + 0.0), limits)
    above = xp.repeat(bounded, layer.knots.shape[1], axis=-1) - knots
    return xp.reshape(positive_part(above), (*predicted.shape[:-1], -1))


def row_parts(rows: Array, size: int) -> list[Array]:
    """Row indices in parts of nearly equal length, at most `size`."""
    return np.array_split(rows, -(-rows.size // size)) if rows.size else []


def fire_block(fire: Array) -> Array:
    """(B, *grid) → (*grid, B), float32 in row-major order."""
    xp = array_namespace(fire)
    return contiguous(xp.astype(xp.moveaxis(fire, 0, -1), xp.float32, copy=False))


def snapshot_first(fields: Array) -> Array:
    """(*grid, B, T) → (B, T, *grid)."""
    return array_namespace(fields).moveaxis(fields, (-2, -1), (0, 1))


@dataclass(frozen=True, slots=True)
class SpectralBlocks:
    """Training snapshots on the device, or copied to it block by block."""

    fire: Array  # (M, *grid)
    targets: Array  # (M, T, *grid)
    physics: Array | None  # (M, K, *grid)
    covariates: Array | None
    scales: Array  # (T,), divide the targets
    lift: Lift
    transform: Transform
    block: int
    put: Callable[[Array], Array]  # copies an array to the device
    leading: int  # number of targets whose predictions are inputs of the next layer

    def _on_device(self, fields: Array, rows: Array) -> Array:
        """Some snapshots, of an array on the device or of one that is read by rows on the host."""
        if is_array_api_obj(fields) and not is_numpy_array(fields):
            return take_rows(fields, rows)
        return self.put(fields[rows])

    def lifted(self, rows: Array) -> Array:
        """(F, 2, B, C) spectra of the lifted fire."""
        own = None if self.covariates is None else self.covariates[rows]
        carried = None if self.physics is None else self._on_device(self.physics, rows)
        fire = fire_block(self._on_device(self.fire, rows))
        return lifted_spectra(self.lift, self.transform, fire, own, carried)

    def inputs(self, rows: Array, steps: Steps) -> Array:
        """(F, 2, B, C) inputs of a layer: the lifted fire, then ramps of the previous layer."""
        lifted = self.lifted(rows)
        if not steps:
            return lifted
        before = steps[-1][0]
        assert before is not None
        ramps = ramps_of(through(lifted, self.transform, steps), before)
        return array_namespace(lifted).concat([lifted, self.transform.spectra(ramps)], axis=3)

    def equations(self, rows: Array, steps: Steps) -> Equations:
        """Normal equations of some snapshots, whose inputs pass through the previous layers."""
        total: Equations | None = None
        for some in row_parts(rows, self.block):
            fields = self._on_device(self.targets, some)
            xp = array_namespace(fields)
            last = xp.moveaxis(fields, (0, 1), (-2, -1)) / like(self.scales, fields)
            targets = contiguous(xp.astype(last, xp.float32))  # (*grid, B, T)
            pairs = self.inputs(some, steps), self.transform.spectra(targets)
            part = Equations.of(*(to_complex(own[:, 0, ...], own[:, 1, ...]) for own in pairs))
            total = part if total is None else total + part
        assert total is not None
        return total

    def predictions(self, rows: Array, steps: Steps) -> Array:
        """(B, T, *grid) targets of some snapshots, in their own units."""
        parts = []
        for some in row_parts(rows, self.block):
            values = through(self.lifted(some), self.transform, steps)
            parts.append(snapshot_first(values * like(self.scales, values, values.dtype)))
        return array_namespace(parts[0]).concat(parts)
