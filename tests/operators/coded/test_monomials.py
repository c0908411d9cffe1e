"""Monomials and their kernel: two routes to one inner product."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.operators.coded.kernels import (
    interaction_kernel,
    monomial_count,
    monomial_kernel,
    monomials,
    power_features,
)

degrees = st.integers(1, 4)
seeds = st.integers(0, 2**32 - 1)


def test_quadratic_columns_are_the_papers():
    a1, a2, a3 = 2.0, 3.0, 5.0
    expected = [a1, a2, a3, a1 * a1, a1 * a2, a1 * a3, a2 * a2, a2 * a3, a3 * a3]
    np.testing.assert_array_equal(monomials(np.array([[a1, a2, a3]]), 2), [expected])


@given(seed=seeds, rank=st.integers(1, 5), degree=degrees)
def test_monomials_are_all_multisets_once(seed, rank, degree):
    codes = np.random.default_rng(seed).normal(size=(3, rank))
    columns = [
        np.prod(codes[:, list(chosen)], axis=1)
        for d in range(1, degree + 1)
        for chosen in combinations_with_replacement(range(rank), d)
    ]
    found = monomials(codes, degree)
    assert found.shape[1] == monomial_count(rank, degree) == len(columns)
    np.testing.assert_allclose(found, np.stack(columns, axis=1), rtol=1e-12)


@given(seed=seeds, rank=st.integers(1, 6), degree=degrees)
def test_kernel_is_the_inner_product_of_monomials(seed, rank, degree):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(4, rank)), rng.normal(size=(5, rank))
    explicit = monomials(a, degree) @ monomials(b, degree).T
    scale = np.abs(monomials(a, degree)) @ np.abs(monomials(b, degree)).T
    assert np.max(np.abs(monomial_kernel(a, b, degree) - explicit) / scale) < 1e-12


@given(seed=seeds, degree=st.integers(2, 4))
def test_kernel_is_powers_plus_interactions(seed, degree):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    powers = power_features(a, degree) @ power_features(b, degree).T
    np.testing.assert_allclose(
        powers + interaction_kernel(a, b, degree), monomial_kernel(a, b, degree), atol=1e-10
    )


def test_the_paper_has_20300_features():
    assert monomial_count(200, 2) == 20300


@pytest.mark.parametrize("degree", [0, 5, -1])
def test_unsupported_degrees_are_refused(degree):
    with pytest.raises(PlumecastError, match=f"degree={degree} is not one of 1…4"):
        monomials(np.ones((2, 2)), degree)
