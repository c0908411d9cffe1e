"""Translation-equivariant operators by least squares per Fourier frequency. Arrays only.

The same fire a few cells away makes the same plume a few cells away. A linear operator with that
property is a convolution, ŷ(k) = x̂(k) W(k): in a Fourier basis it is block-diagonal, so fitting it
is one small ridge system per frequency, (C, C) for C channels, all independent. A further layer
takes pointwise ramps of the layer before, predicted for every fire by weights fitted without that
fire's fold, beside the lifted input, and solves the same systems again: closed form, no optimiser.
(From the second layer on, the inputs of other folds come from weights that saw the fire; its own
never do. Left-out errors of deep operators are therefore a little optimistic.)

Scenarios have weights of their own, drawn towards zero or towards the weights of all scenarios
together, whichever serves the fires left out better: a rare scenario borrows from the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumecast._array import Array, array_namespace, like, positive_part, to_numpy
from plumecast.errors import PlumecastError
from plumecast.fourier import BUDGET, Frequencies, Transform, choose_frequencies, make_transform
from plumecast.lift import Lift
from plumecast.normal_equations import Equations, Systems
from plumecast.target import sample_rows

BLOCK = 96
"""Snapshots transformed together: bounds the memory of their spectra."""

PREDICT_BLOCK = 24
"""Snapshots predicted together: few enough for their spectra to stay in the cache."""

RAMPS = (0.25, 0.5, 0.75, 0.9)
"""Quantiles of the positive predictions at which the ramps of a further layer begin; one more
begins at zero."""

QUANTILE_VALUES = 200_000
"""Predictions from which those quantiles are read, at most."""


def _host(array: Array) -> Array:
    return array


@dataclass(frozen=True, slots=True)
class Layer:
    """One convolution from channels to targets, by scenario and frequency."""

    weights: Array  # (S, F, C, T, 2) float32: real and imaginary part
    knots: Array  # (T, R) where the ramps of its predictions begin, for the next layer
    limits: Array  # (T,) predictions are kept within 0 and this


@dataclass(frozen=True, slots=True)
class SpectralMap:
    """Layers from lifted input to targets, each target in units of its root mean square."""

    lift: Lift
    frequencies: Frequencies
    layers: tuple[Layer, ...]
    target_scales: Array  # (T,)

    def predict(
        self,
        fire: Array,
        covariates: Array | None = None,
        scenarios: Array | None = None,
        put: Callable[[Array], Array] = _host,
    ) -> Array:
        """(M, *grid) → (M, T, *grid), in the targets' own units.

        `covariates` (M, P) and `scenarios` (M,) as in the fit; `put` brings an array to the device
        that computes.
        """
        count = fire.shape[0]
        numbers = np.zeros(count, dtype=np.int64) if scenarios is None else scenarios
        out = np.empty((count, self.target_scales.size, *self.frequencies.grid), dtype=np.float32)
        scales = self.target_scales.astype(np.float32)
        channels = self.lift.channels
        for number in np.unique(numbers):
            weights = [put(_complex(layer.weights[number])) for layer in self.layers]
            transform = make_transform(self.frequencies, weights[0])
            for rows in _blocks(np.flatnonzero(numbers == number), PREDICT_BLOCK):
                own = None if covariates is None else covariates[rows]
                lifted = _lifted(self.lift, transform, put(_fire_block(fire[rows])), own)
                values, before = None, None
                for layer, by_frequency in zip(self.layers, weights, strict=True):
                    spectra = lifted @ by_frequency[:, :channels, :]
                    if before is not None:
                        ramps = transform.spectra(_ramps(values, before))
                        spectra = spectra + ramps @ by_frequency[:, channels:, :]
                    values, before = transform.fields(spectra), layer
                assert values is not None
                out[rows] = _snapshot_first(to_numpy(values) * scales)
        return out


def _lifted(lift: Lift, transform: Transform, fire: Array, covariates: Array | None) -> Array:
    """(*grid, B) ages → (F, B, C) spectra: of the fields, times the factors."""
    xp = array_namespace(fire)
    spectra = transform.spectra(lift.fields(fire))
    factors = xp.astype(lift.factors(fire, covariates), spectra.dtype)
    return xp.reshape(spectra[:, :, None, :] * factors[None], (*spectra.shape[:2], -1))


def fit_spectral(
    fire: Array,
    targets: Array,
    folds: Array,
    *,
    lift: Lift,
    layers: int = 3,
    covariates: Array | None = None,
    scenarios: Array | None = None,
    budget: int = BUDGET,
    put: Callable[[Array], Array] = _host,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[SpectralMap, Array]:
    """Fit layers to (M, *grid) inputs and (M, T, *grid) targets; also every snapshot's targets as
    predicted by the last layer without its own fold.

    `folds` (M,) numbers the part of every snapshot; parts are left out in turn to choose penalties
    and to make the inputs of the next layer, so a fire must not be in two of them. `scenarios` (M,)
    counts from 0. `put` brings blocks to the device that computes; what is returned is on the host.
    """
    numbers = np.zeros(fire.shape[0], dtype=np.int64) if scenarios is None else scenarios
    parts = [
        [np.flatnonzero((numbers == number) & (folds == fold)) for fold in np.unique(folds)]
        for number in range(int(numbers.max()) + 1)
    ]
    if len(parts[0]) < 2:
        raise PlumecastError("a spectral operator needs at least two ignitions to leave one out")
    frequencies = choose_frequencies(fire.shape[1:], budget)
    scales = np.sqrt([np.mean(np.square(t, dtype=np.float64)) for t in np.moveaxis(targets, 1, 0)])
    scales = np.where(scales > 0.0, scales, 1.0)
    units = scales.astype(np.float32).reshape(-1, *([1] * (targets.ndim - 2)))
    transform = make_transform(frequencies, put(np.zeros(1, dtype=np.float32)))
    training = _Training(fire, targets / units, covariates, lift, transform, put)
    fitted: list[Layer] = []
    before: tuple[Layer, Array] | None = None
    for depth in range(layers):
        progress(f"layer {depth + 1} of {layers}")
        systems = [[training.equations(rows, before) for rows in own] for own in parts]
        weights, without = Systems(systems, frequencies).solve()
        del systems
        predicted = training.left_out(parts, without, before)
        fitted.append(_layer(weights, predicted, training.targets))
        before = fitted[-1], predicted
    return SpectralMap(lift, frequencies, tuple(fitted), scales), predicted * units


@dataclass(frozen=True, slots=True)
class _Training:
    """Training snapshots on the host, brought to the device block by block.

    `before` is the layer before with its left-out predictions; None for the first layer.
    """

    fire: Array  # (M, *grid)
    targets: Array  # (M, T, *grid), in units of their root mean square
    covariates: Array | None
    lift: Lift
    transform: Transform
    put: Callable[[Array], Array]

    def spectra(self, rows: Array, before: tuple[Layer, Array] | None) -> Array:
        """(F, B, C) inputs of a layer: the lifted fire, then ramps of the layer before."""
        own = None if self.covariates is None else self.covariates[rows]
        fire = self.put(_fire_block(self.fire[rows]))
        lifted = _lifted(self.lift, self.transform, fire, own)
        if before is None:
            return lifted
        layer, predicted = before
        ramps = _ramps(self.put(_target_block(predicted[rows])), layer)
        return array_namespace(lifted).concat([lifted, self.transform.spectra(ramps)], axis=2)

    def equations(self, rows: Array, before: tuple[Layer, Array] | None) -> Equations | None:
        """Normal equations of some snapshots; None without snapshots."""
        total: Equations | None = None
        for some in _blocks(rows):
            targets = self.transform.spectra(self.put(_target_block(self.targets[some])))
            part = Equations.of(self.spectra(some, before), targets)
            total = part if total is None else total + part
        return total

    def left_out(
        self,
        parts: list[list[Array]],
        weights: list[list[Array]],
        before: tuple[Layer, Array] | None,
    ) -> Array:
        """(M, T, *grid) targets of every part, by weights that were fitted without it."""
        predicted = np.empty_like(self.targets)
        for own, own_weights in zip(parts, weights, strict=True):
            for rows, by_frequency in zip(own, own_weights, strict=True):
                for some in _blocks(rows):
                    values = self.transform.fields(self.spectra(some, before) @ by_frequency)
                    predicted[some] = _snapshot_first(to_numpy(values))
        return predicted


def _layer(weights: list[Array], predicted: Array, targets: Array) -> Layer:
    rows = sample_rows(predicted.shape[0], QUANTILE_VALUES // predicted[0, 0].size + 1)
    knots = []
    for t in range(predicted.shape[1]):
        values = predicted[rows, t]
        positive = values[values > 0.0]
        starts = np.quantile(positive, RAMPS) if positive.size else np.zeros(len(RAMPS))
        knots.append(np.concatenate([[0.0], starts]))
    limits = np.max(targets, axis=(0, *range(2, targets.ndim)))
    together = np.stack([to_numpy(own) for own in weights])
    pair = np.stack([together.real, together.imag], axis=-1).astype(np.float32)
    return Layer(pair, np.stack(knots).astype(np.float32), limits.astype(np.float32))


def _ramps(predicted: Array, layer: Layer) -> Array:
    """(*grid, B, T) predictions → (*grid, B, T·R): how far each exceeds every knot, bounded."""
    xp = array_namespace(predicted)
    limits = like(layer.limits, predicted, predicted.dtype)
    bounded = xp.minimum(xp.clip(predicted, 0.0, None), limits)
    above = bounded[..., None] - like(layer.knots, predicted, predicted.dtype)
    return xp.reshape(positive_part(above), (*predicted.shape[:-1], -1))


def _blocks(rows: Array, size: int = BLOCK) -> list[Array]:
    return np.array_split(rows, -(-rows.size // size)) if rows.size else []


def _fire_block(fire: Array) -> Array:
    """(B, *grid) → (*grid, B), float32 in rows."""
    return np.ascontiguousarray(np.moveaxis(fire, 0, -1), dtype=np.float32)


def _target_block(fields: Array) -> Array:
    """(B, T, *grid) → (*grid, B, T), float32 in rows."""
    return np.ascontiguousarray(np.moveaxis(fields, (0, 1), (-2, -1)), dtype=np.float32)


def _snapshot_first(fields: Array) -> Array:
    return np.moveaxis(fields, (-2, -1), (0, 1))


def _complex(pair: Array) -> Array:
    return np.ascontiguousarray(pair).view(np.complex64)[..., 0]


def fold_numbers(labels: Array, folds: int) -> Array:
    """(M,) part of every snapshot: groups dealt in turn, in the order of their labels."""
    groups, member = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    return member % min(folds, groups.size)
