"""Spectral operators: single precision, blocks by free memory, copies to a device."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.operators.family import NOTHING, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.spectral import map as spectral_map
from plumecast.operators.spectral.fit import fit_spectral
from plumecast.operators.spectral.map import Layer, SpectralMap, ramps_of
from support.convolved_fires import GRID, fires, plume

SINGLE = 2e-6
"""Relative to the largest value: sums of a few hundred float32 products in every layer."""


def training(count: int = 24) -> TrainingSet:
    fire = fires(count)
    smoke = plume(fire)
    targets = np.stack([smoke, np.log1p(smoke)], axis=1)
    return TrainingSet(fire, targets, np.arange(count) % 6, NOTHING)


@pytest.fixture(scope="module")
def fitted() -> SpectralMap:
    data = training()
    return fit_spectral(data, fit_lift(data.fire, bins=3), layers=2)[0]


def in_double_precision(fitted: SpectralMap, fire: np.ndarray) -> np.ndarray:
    """The definition by padded Fourier transforms in float64: ŷ(k) = x̂(k) W(k) of every layer."""
    kept = fitted.frequencies
    ages = np.moveaxis(fire, 0, -1).astype(np.float64)
    inputs = fitted.lift.fields(ages)[..., None, :] * fitted.lift.factors(ages)
    inputs = lifted = inputs.reshape(*ages.shape, -1)
    values, before = np.empty(0), None
    for layer in fitted.layers:
        if before is not None:
            inputs = np.concatenate([lifted, ramps_of(values, before)], axis=-1)
        spectra = np.fft.fftn(inputs, s=kept.padded, axes=(0, 1))[np.ix_(*kept.axes())]
        weights = _complex(layer).reshape(*spectra.shape[:2], inputs.shape[-1], -1)
        full = np.zeros((*kept.padded, ages.shape[-1], weights.shape[-1]), dtype=complex)
        times = kept.weight().reshape(*spectra.shape[:2], 1, 1)
        full[np.ix_(*kept.axes())] = times * (spectra @ weights)
        back = np.fft.ifftn(full, axes=(0, 1)).real
        values, before = back[: GRID[0], : GRID[1]], layer
    return np.moveaxis(values * fitted.target_scales, (-2, -1), (0, 1))


def _complex(layer: Layer) -> np.ndarray:
    return layer.weights[0, ..., 0].astype(np.float64) + 1j * layer.weights[0, ..., 1]


def test_single_precision_is_near_double(fitted):
    fire = fires(7, seed=5)
    expected = in_double_precision(fitted, fire)
    found = fitted.predict(fire)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=SINGLE * np.abs(expected).max())


@pytest.mark.parametrize("rows", [0.5, 40, 1e9])
def test_a_block_follows_the_free_memory_of_a_device(fitted, monkeypatch, rows):
    """Blocks are never smaller than those of the host, nor larger than DEVICE_BLOCK."""
    fire = fires(50, seed=2)
    alone = fitted.predict(fire)
    per_row = fitted.working_bytes()[0] / spectral_map.PREDICT_BLOCK
    free = rows * per_row / spectral_map.DEVICE_SHARE
    monkeypatch.setattr(spectral_map, "free_bytes", lambda array: int(free + 1))
    sizes = []
    through = spectral_map.through

    def counted(lifted, transform, steps):
        sizes.append(lifted.shape[2])
        return through(lifted, transform, steps)

    monkeypatch.setattr(spectral_map, "through", counted)
    found = fitted.predict(fire)
    assert max(sizes) == {0.5: 10, 40: 25, 1e9: 50}[rows]  # blocks of nearly equal length
    np.testing.assert_allclose(found, alone, atol=SINGLE * np.abs(alone).max())
