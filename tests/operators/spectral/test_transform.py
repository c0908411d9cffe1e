"""Transforms by products of even and odd parts: the same on every device, and parts of systems."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from plumecast.compute.arrays import to_numpy
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.systems import PENALTIES, Systems
from plumecast.operators.spectral.transform import choose_frequencies, make_transform

SINGLE = 1e-5
"""Float32 sums of at most 400 values of size one, in another order."""


def _torch(array: np.ndarray):
    return pytest.importorskip("torch").from_numpy(array)


@pytest.mark.parametrize("put", [_torch, strict.asarray], ids=["torch", "array-api-strict"])
@pytest.mark.parametrize("grid", [(12, 15), (20,), (4, 5, 6)])
def test_a_transform_is_the_same_on_every_device(put, grid):
    fields = np.random.default_rng(0).normal(size=(*grid, 2, 3)).astype(np.float32)
    kept = choose_frequencies(grid, budget=100)
    host = make_transform(kept, fields)
    spectra = host.spectra(fields)
    assert spectra.shape == (kept.count, 2, 2, 3)
    placed = make_transform(kept, put(fields))
    there = placed.spectra(put(fields))
    np.testing.assert_allclose(to_numpy(there), spectra, atol=SINGLE * np.abs(spectra).max())
    back = host.fields(spectra)
    np.testing.assert_allclose(to_numpy(placed.fields(there)), back, atol=SINGLE)


def test_blocks_for_the_cache_do_not_change_a_transform(monkeypatch):
    fields = np.random.default_rng(1).normal(size=(9, 14, 4)).astype(np.float32)
    transform = make_transform(choose_frequencies((9, 14)), fields)
    whole = transform.spectra(fields)
    monkeypatch.setattr("plumecast.operators.spectral.transform.CACHED", 1)
    np.testing.assert_allclose(transform.spectra(fields), whole, atol=SINGLE * np.abs(whole).max())
    np.testing.assert_allclose(transform.fields(whole), fields, atol=SINGLE)


def test_a_penalty_for_every_frequency_solves_each_with_its_own():
    rng = np.random.default_rng(2)
    x, y = (
        (rng.normal(size=(3, 8, n)) + 1j * rng.normal(size=(3, 8, n))).astype(np.complex64)
        for n in (4, 2)
    )
    equations = Equations.of(x, y)
    penalties = np.array([0.1, 1.0, 10.0])
    found = equations.solve(penalties)
    for number, penalty in enumerate(penalties):
        alone = equations.at(np.array([number])).solve(float(penalty))[0]
        np.testing.assert_allclose(found[number], alone, rtol=SINGLE)
    assert np.abs(found - equations.solve(0.1)).max() > 0.01


def test_transform_equals_a_padded_fft_and_its_inverse_returns():
    rng = np.random.default_rng(0)
    for grid in ((8, 10), (7, 9), (16,), (4, 5, 6)):
        fields = rng.normal(size=(*grid, 3)).astype(np.float32)
        kept = choose_frequencies(grid)
        transform = make_transform(kept, fields)
        axes = tuple(range(len(grid)))
        wanted = np.fft.fftn(fields, s=kept.padded, axes=axes)[np.ix_(*kept.axes())]
        for axis, (waves, count) in enumerate(zip(kept.axes(), grid, strict=True)):
            # The origin of the phases is the centre of the grid.
            phase = np.exp(1j * np.pi * waves * (count - 1) / kept.padded[axis])
            wanted = wanted * np.expand_dims(phase, [n for n in range(wanted.ndim) if n != axis])
        wanted = wanted.reshape(kept.count, 3)
        # Float32 sums of at most a few hundred values of size one.
        pair = np.stack([wanted.real, wanted.imag], axis=1)
        np.testing.assert_allclose(transform.spectra(fields), pair, atol=1e-3)
        np.testing.assert_allclose(transform.fields(transform.spectra(fields)), fields, atol=1e-5)


def test_a_budget_keeps_the_lowest_frequencies():
    kept = choose_frequencies((100, 80), budget=2000)
    assert 1500 < kept.count <= 2000
    assert kept.highest[0] / kept.padded[0] == pytest.approx(
        kept.highest[1] / kept.padded[1], abs=0.015
    )


def test_shrinkage_meets_its_limits():
    """Without snapshots the weights are the prior; without a penalty, those of least squares."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4, 9, 2)) + 1j * rng.normal(size=(4, 9, 2))).astype(np.complex128)
    y = (rng.normal(size=(4, 9, 1)) + 1j * rng.normal(size=(4, 9, 1))).astype(np.complex128)
    prior = np.ones((4, 2, 1)) + 0j
    nothing = Equations.of(x[:, :0], y[:, :0])
    np.testing.assert_allclose(nothing.solve(0.3, prior), prior)
    exact = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(Equations.of(x, y).solve(1e-12, prior), exact, rtol=1e-8)


def test_out_of_fold_weights_are_those_of_a_fit_without_the_fold():
    rng = np.random.default_rng(1)
    kept = choose_frequencies((6, 6))
    x, y = (
        (rng.normal(size=(kept.count, 12, c)) + 1j * rng.normal(size=(kept.count, 12, c)))
        for c in (3, 2)
    )
    folds = (slice(0, 4), slice(4, 9), slice(9, 12))
    parts = [Equations.of(x[:, rows], y[:, rows]) for rows in folds]
    systems = Systems([list(parts)], kept)
    _, without, _ = systems.solve()
    # Noise cannot be predicted: every ring and target has the largest penalty.
    alone = (parts[0] + parts[2]).solve(PENALTIES[-1] * systems.scale())
    np.testing.assert_allclose(without[0][1], alone, atol=1e-12)
