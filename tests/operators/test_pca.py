"""PCA: orthonormal modes, best approximation, one decomposition for every rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.operators.pca import (
    Truncation,
    fit_basis,
    gram_modes,
    projection_error,
    rank_for_std,
    rank_for_variance,
    svd_modes,
)

ORTHONORMAL = 1e-12  # float64 rounding over a few hundred cells
SUBSPACE = 1e-6  # a Gram matrix squares the condition number: modes to √ε near its limit

shapes = st.tuples(st.integers(3, 30), st.integers(3, 30))
seeds = st.integers(0, 2**32 - 1)


def decaying(seed: int, shape: tuple[int, int], decay: float = 0.8) -> np.ndarray:
    """Random snapshots whose singular values fall geometrically."""
    rng = np.random.default_rng(seed)
    k = min(shape)
    left, _ = np.linalg.qr(rng.normal(size=(shape[0], k)))
    right, _ = np.linalg.qr(rng.normal(size=(shape[1], k)))
    return (left * (10.0 * decay ** np.arange(k))) @ right.T


@given(seed=seeds, shape=shapes, center=st.booleans())
def test_modes_are_orthonormal(seed, shape, center):
    rank = min(shape) - 1
    basis = fit_basis(decaying(seed, shape), rank=rank, center=center)
    np.testing.assert_allclose(basis.modes @ basis.modes.T, np.eye(rank), atol=ORTHONORMAL)


@given(seed=seeds, shape=shapes)
def test_encode_after_decode_is_the_identity_on_codes(seed, shape):
    basis = fit_basis(decaying(seed, shape), std_fraction=0.9)
    codes = np.random.default_rng(seed).normal(size=(5, basis.rank))
    np.testing.assert_allclose(basis.encode(basis.decode(codes)), codes, atol=1e-10)


@given(seed=seeds, shape=shapes)
def test_method_of_snapshots_agrees_with_an_svd(seed, shape):
    fields = decaying(seed, shape)
    rule = Truncation(rank=min(shape) - 1)
    spectrum, modes = gram_modes(fields, rule)
    exact_spectrum, exact_modes = svd_modes(fields, rule)
    np.testing.assert_allclose(spectrum[:-1], exact_spectrum[:-1], rtol=1e-9)
    np.testing.assert_allclose(np.abs(modes @ exact_modes.T), np.eye(rule.rank), atol=SUBSPACE)


@settings(max_examples=20)
@given(seed=seeds, shape=shapes)
def test_projection_error_is_the_tail_of_the_spectrum(seed, shape):
    fields = decaying(seed, shape)
    rank = max(1, min(shape) // 2)
    basis = fit_basis(fields, rank=rank)
    tail = np.sqrt(np.sum(basis.spectrum[rank:] ** 2) / np.sum(basis.spectrum**2))
    direct = np.linalg.norm(fields - basis.decode(basis.encode(fields))) / np.linalg.norm(fields)
    assert projection_error(basis, fields) == pytest.approx(tail, abs=1e-7)
    assert projection_error(basis, fields) == pytest.approx(direct, abs=1e-7)


def test_signs_make_the_largest_entry_positive():
    modes = fit_basis(decaying(0, (15, 25)), rank=10).modes
    largest = np.take_along_axis(modes, np.abs(modes).argmax(axis=1)[:, None], axis=1)
    assert (largest > 0.0).all()


def test_rank_rules_count_as_by_hand():
    spectrum = np.array([4.0, 3.0, 2.0, 1.0])  # Σσ: .4 .7 .9 1; Σσ²: 16/30 25/30 29/30 1
    std = [rank_for_std(spectrum, fraction) for fraction in (0.4, 0.41, 0.7, 0.9, 0.95, 1.0)]
    variance = [rank_for_variance(spectrum, fraction) for fraction in (0.5, 0.54, 0.83, 0.84, 1.0)]
    assert std == [1, 2, 2, 3, 4, 4]
    assert variance == [1, 2, 2, 3, 4]


def test_tiny_singular_values_come_from_an_svd():
    """Modes at σ/σ₁ = 1e-10 are invisible in a Gram matrix but must still be right."""
    left, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 3)))
    right, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(9, 3)))
    fields = (left * [1.0, 1e-4, 1e-10]) @ right.T
    assert gram_modes(fields, Truncation(rank=3)) is None
    basis = fit_basis(fields, rank=3)
    np.testing.assert_allclose(np.abs(basis.modes @ right), np.eye(3), atol=1e-4)


def test_centred_basis_restores_the_mean():
    fields = decaying(1, (20, 30)) + 5.0
    basis = fit_basis(fields, std_fraction=1.0, center=True)
    np.testing.assert_allclose(basis.decode(basis.encode(fields)), fields, atol=1e-9)
    np.testing.assert_allclose(basis.encode(fields.mean(axis=0)[None]), 0.0, atol=1e-9)


def test_empty_fields_project_without_error():
    basis = fit_basis(decaying(1, (20, 30)), rank=3)
    assert projection_error(basis, np.zeros((2, 30))) == 0.0
    centred = fit_basis(decaying(1, (20, 30)) + 1.0, rank=3, center=True)
    assert projection_error(centred, np.zeros((2, 30))) == np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 9}, "rank=9 exceeds 5, the rank of 5 snapshots on 8 cells"),
        ({"rank": 0}, "rank=0 must be at least 1"),
        ({}, "exactly one of rank, std_fraction and variance_fraction"),
        ({"rank": 2, "std_fraction": 0.9}, "exactly one of"),
        ({"std_fraction": 1.2}, r"std_fraction=1.2 is not within \(0, 1\]"),
        ({"variance_fraction": 0.0}, "variance_fraction=0 is not within"),
    ],
)
def test_impossible_truncations_are_refused(arguments, message):
    with pytest.raises(PlumecastError, match=message):
        fit_basis(decaying(0, (5, 8)), **arguments)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda own: fit_basis(np.repeat(own[:3], 4, 0), rank=5), "exceeds 3, the rank of 12 snap"),
        (lambda own: fit_basis(0.0 * own, rank=1), "all 5 snapshots are zero"),
        (lambda own: fit_basis(own, rank=3).truncate(6), "rank=6 is not within 1…3"),
    ],
)
def test_ranks_beyond_the_snapshots_are_refused(fit, message):
    with pytest.raises(PlumecastError, match=message):
        fit(decaying(0, (5, 8)))
