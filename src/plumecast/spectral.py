"""Translation-equivariant operators by least squares per Fourier frequency. Arrays only.

The same fire a few cells away makes the same plume a few cells away. A linear operator with that
property is a convolution, ŷ(k) = x̂(k) W(k): in a Fourier basis it is block-diagonal, so fitting it
is one small ridge system per frequency, (C, C) for C channels, all independent. Fields are padded
with zeros to twice their size against wrap-around. A further layer takes pointwise ramps of the
layer before, predicted for every fire by weights fitted without that fire's fold, beside the lifted
input, and solves the same systems again: closed form, no optimiser. (From the third layer on, the
inputs of other folds come from weights that saw the fire; its own never do.)
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import scipy.fft

from plumecast._array import Array
from plumecast.errors import PlumecastError
from plumecast.lift import AgeLift

BLOCK = 48
"""Snapshots transformed together: bounds the memory of their spectra."""

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Penalties tried, relative to the mean diagonal of the Gram matrices."""

BANDS = 6
"""Rings of frequencies that choose their penalty on their own."""

RAMPS = (0.25, 0.5, 0.75, 0.9)
"""Quantiles of the positive predictions at which the ramps of a further layer begin; one more
begins at zero."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One convolution from channels to targets, by frequency."""

    weights: Array  # (F, C, T, 2) float32: real and imaginary part
    knots: Array  # (T, R) where the ramps of its predictions begin, for the next layer
    limits: Array  # (T,) predictions are kept within 0 and this


@dataclass(frozen=True, slots=True)
class SpectralMap:
    """Layers from lifted input to targets, each target in units of its root mean square."""

    lift: AgeLift
    layers: tuple[Layer, ...]
    target_scales: Array  # (T,)
    shape: tuple[int, ...]  # the grid

    def predict(self, fire: Array) -> Array:
        """(M, *grid) → (M, T, *grid), in the targets' own units."""
        blocks = [np.empty((0, self.target_scales.size, *self.shape))]
        for start in range(0, fire.shape[0], BLOCK):
            lifted = self.lift(fire[start : start + BLOCK])
            channels = lifted
            for depth, layer in enumerate(self.layers):
                targets = _apply(_weights(layer.weights), _transform(channels), self.shape)
                if depth + 1 < len(self.layers):
                    channels = np.concatenate([lifted, _ramps(targets, layer)], axis=1)
            blocks.append(targets * _along(self.target_scales, targets))
        return np.concatenate(blocks)


@dataclass(frozen=True, slots=True)
class NormalEquations:
    """Σ x̂ᴴx̂ and Σ x̂ᴴŷ over snapshots, by frequency; sums of parts are those of the whole."""

    gram: Array  # (F, C, C) complex
    cross: Array  # (F, C, T) complex
    size: Array  # (F, T), Σ |ŷ|²

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram + other.gram, self.cross + other.cross, self.size + other.size
        )

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            self.gram - other.gram, self.cross - other.cross, self.size - other.size
        )

    def solve(self, penalty: float) -> Array:
        """(F, C, T) weights of the ridge systems."""
        eye = np.eye(self.gram.shape[1], dtype=self.gram.dtype)
        return np.linalg.solve(self.gram + self.gram.dtype.type(penalty) * eye, self.cross)

    def error(self, weights: Array) -> Array:
        """Σ |ŷ − x̂ W|², (F, T), of the snapshots summed here, without going back to them."""
        fitted = np.sum(np.conj(weights) * (self.gram @ weights), axis=1).real
        return self.size - 2.0 * np.sum(np.conj(weights) * self.cross, axis=1).real + fitted


def fit_spectral(
    fire: Array, targets: Array, folds: Array, *, lift: AgeLift, layers: int = 3
) -> tuple[SpectralMap, Array]:
    """Fit layers to (M, *grid) inputs and (M, T, *grid) targets; also every snapshot's targets as
    predicted by the last layer without its own part.

    `folds` (M,) numbers the part of every snapshot; parts are left out in turn to choose penalties
    and to make the inputs of the next layer, so a fire must not be in two of them.
    """
    parts = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    if len(parts) < 2:
        raise PlumecastError("a spectral operator needs at least two ignitions to leave one out")
    grid = fire.shape[1:]
    scales = np.sqrt(
        np.mean(np.square(targets, dtype=np.float64), axis=(0, *range(2, targets.ndim)))
    )
    scales = np.where(scales > 0.0, scales, 1.0)
    targets = (targets / _along(scales, targets)).astype(np.float32)
    fitted: list[Layer] = []
    before: Array | None = None
    predicted = targets
    for _ in range(layers):
        equations = [
            _accumulate(lift, fire[rows], None if before is None else before[rows], targets[rows])
            for rows in parts
        ]
        chosen, out_of_part = _fit_layer(equations, grid)
        predicted = np.empty_like(targets)
        for rows, weights in zip(parts, out_of_part, strict=True):
            for block in np.array_split(rows, -(-rows.size // BLOCK)):
                channels = _join(lift(fire[block]), None if before is None else before[block])
                predicted[block] = _apply(weights, _transform(channels), grid)
        layer = _with_ramps(chosen, predicted, targets)
        fitted.append(layer)
        before = _ramps(predicted, layer)
    fitted_map = SpectralMap(lift, tuple(fitted), scales, tuple(int(n) for n in grid))
    return fitted_map, predicted * _along(scales, predicted)


def _fit_layer(
    equations: list[NormalEquations], grid: tuple[int, ...]
) -> tuple[Array, list[Array]]:
    """Weights from all parts, and from all but each; the penalty of every band and target is the
    one with the smallest error on the parts left out."""
    whole = equations[0]
    for part in equations[1:]:
        whole = whole + part
    channels = whole.gram.shape[1]
    scale = float(np.trace(whole.gram, axis1=1, axis2=2).real.mean()) / channels
    bands, multiplicity = _rings(grid)
    best: Array | None = None
    chosen_whole: Array | None = None
    chosen_parts: list[Array] = []
    for penalty in PENALTIES:
        without = [(whole - part).solve(penalty * scale) for part in equations]
        by_frequency = sum(part.error(w) for part, w in zip(equations, without, strict=True))
        assert not isinstance(by_frequency, int)
        errors = np.stack(
            [np.sum((by_frequency * multiplicity)[bands == band], axis=0) for band in range(BANDS)]
        )
        weights = whole.solve(penalty * scale)
        if best is None or chosen_whole is None:
            best, chosen_whole, chosen_parts = errors, weights, without
            continue
        better = (errors < best)[bands][:, None, :]
        best = np.minimum(best, errors)
        chosen_whole = np.where(better, weights, chosen_whole)
        pairs = zip(without, chosen_parts, strict=True)
        chosen_parts = [np.where(better, new, old) for new, old in pairs]
    assert chosen_whole is not None
    return chosen_whole, chosen_parts


def _accumulate(
    lift: AgeLift, fire: Array, before: Array | None, targets: Array
) -> NormalEquations:
    """Normal equations of some snapshots, block by block."""
    total: NormalEquations | None = None
    for start in range(0, fire.shape[0], BLOCK):
        rows = slice(start, start + BLOCK)
        x = _transform(_join(lift(fire[rows]), None if before is None else before[rows]))
        y = _transform(targets[rows])
        adjoint = np.conj(np.swapaxes(x, 1, 2))
        part = NormalEquations(adjoint @ x, adjoint @ y, np.sum(np.abs(y) ** 2, axis=1))
        total = part if total is None else total + part
    assert total is not None
    return total


def _join(lifted: Array, before: Array | None) -> Array:
    return lifted if before is None else np.concatenate([lifted, before], axis=1)


def padded_shape(grid: tuple[int, ...]) -> tuple[int, ...]:
    """Twice the grid, rounded up to lengths that transform fast."""
    return tuple(int(scipy.fft.next_fast_len(2 * n, real=True)) for n in grid)


def _transform(fields: Array) -> Array:
    """(M, C, *grid) → (F, M, C) complex64, padded with zeros."""
    grid = fields.shape[2:]
    axes = tuple(range(2, fields.ndim))
    spectrum = scipy.fft.rfftn(
        fields.astype(np.float32, copy=False), s=padded_shape(grid), axes=axes, workers=_workers()
    )
    flat = spectrum.reshape(*spectrum.shape[:2], -1)
    return np.ascontiguousarray(np.moveaxis(flat, 2, 0))


def _apply(weights: Array, spectrum: Array, grid: tuple[int, ...]) -> Array:
    """(F, C, T) weights on (F, M, C) spectra → (M, T, *grid) fields."""
    padded = padded_shape(grid)
    product = np.moveaxis(spectrum @ weights, 0, 2)
    half = (*padded[:-1], padded[-1] // 2 + 1)
    fields = scipy.fft.irfftn(
        np.ascontiguousarray(product).reshape(*product.shape[:2], *half),
        s=padded,
        axes=tuple(range(2, 2 + len(grid))),
        workers=_workers(),
    )
    inside = (slice(None), slice(None), *(slice(0, n) for n in grid))
    return fields[inside]


def _workers() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


def _rings(grid: tuple[int, ...]) -> tuple[Array, Array]:
    """Band of every frequency by its distance from zero, and how often it counts: a real field's
    half spectrum stands for both signs of its last axis."""
    padded = padded_shape(grid)
    axes = [np.fft.fftfreq(n) for n in padded[:-1]] + [np.fft.rfftfreq(padded[-1])]
    mesh = np.meshgrid(*axes, indexing="ij")
    radius = np.sqrt(sum(axis**2 for axis in mesh)).ravel()
    edges = np.quantile(radius, np.linspace(0.0, 1.0, BANDS + 1)[1:-1] ** 2)
    last = mesh[-1].ravel()
    multiplicity = np.where((last == 0.0) | (last == 0.5), 1.0, 2.0)
    return np.searchsorted(edges, radius), multiplicity[:, None]


def _with_ramps(weights: Array, predicted: Array, targets: Array) -> Layer:
    knots = [
        np.concatenate([[0.0], np.quantile(values, RAMPS)])
        for values in (_positive(predicted[:, t]) for t in range(predicted.shape[1]))
    ]
    limits = np.max(targets, axis=(0, *range(2, targets.ndim)))
    pair = np.stack([weights.real, weights.imag], axis=-1).astype(np.float32)
    return Layer(pair, np.stack(knots).astype(np.float32), limits.astype(np.float32))


def _positive(values: Array) -> Array:
    positive = values[values > 0.0]
    return positive if positive.size else np.zeros(1, dtype=values.dtype)


def _ramps(predicted: Array, layer: Layer) -> Array:
    """(M, T, *grid) predictions → (M, T·R, *grid): how far each exceeds every knot, bounded."""
    bounded = np.clip(predicted, 0.0, _along(layer.limits, predicted))
    ramps = [
        np.maximum(bounded[:, t] - knot, 0.0)
        for t in range(predicted.shape[1])
        for knot in layer.knots[t]
    ]
    return np.stack(ramps, axis=1).astype(np.float32)


def _weights(pair: Array) -> Array:
    return np.ascontiguousarray(pair).view(np.complex64)[..., 0]


def _along(values: Array, fields: Array) -> Array:
    """(T,) values shaped to multiply (M, T, *grid) fields."""
    return values.reshape(1, -1, *([1] * (fields.ndim - 2)))


def fold_numbers(labels: Array, folds: int) -> Array:
    """(M,) part of every snapshot: groups dealt in turn, in the order of their labels."""
    groups, member = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    return member % min(folds, groups.size)
