"""Least squares: closed form = Gramian = lstsq, primal = dual, path = solves, left out = refits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.compute.linalg import gram
from plumecast.operators.coded.kernels import monomial_kernel, monomials
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PrimalMap,
    dual_map,
    fit_linear_map,
    fit_polynomial_map,
    intercept_constant,
    polynomial_features,
    polynomial_path,
    tune_polynomial_map,
)
from plumecast.operators.pca import fit_basis
from plumecast.operators.ridge import (
    dual_path,
    linear_closed_form,
    penalty_grid,
    primal_path,
    ridge_dual,
    ridge_primal,
    scan_penalties,
)

seeds = st.integers(0, 2**32 - 1)
DUAL = 1e-9  # relative, for λ ≥ 1e-4 ‖K‖: rounding grows like ε ‖K‖ / λ


def problem(seed: int, snapshots: int = 14, rank: int = 3, outputs: int = 2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(snapshots, rank)), rng.normal(size=(snapshots, outputs))


def groups_of(sizes: list[int], seed: int = 0) -> list[np.ndarray]:
    order = np.random.default_rng(seed).permutation(sum(sizes))
    return np.split(order, np.cumsum(sizes)[:-1])


@given(seed=seeds, rank=st.integers(1, 8), center=st.booleans())
def test_theorem_1_is_the_least_squares_solution(seed, rank, center):
    rng = np.random.default_rng(seed)
    fields, targets = rng.normal(size=(20, 30)), rng.normal(size=(20, 4))
    basis = fit_basis(fields, rank=rank, center=center)
    codes = basis.encode(fields)
    theorem = linear_closed_form(codes.T @ targets, basis.singular_values)
    np.testing.assert_allclose(theorem, np.linalg.lstsq(codes, targets)[0], atol=1e-10)
    np.testing.assert_allclose(theorem, ridge_primal(codes, targets), atol=1e-10)


def test_theorem_1_for_smaller_ranks_is_a_slice_of_the_largest():
    rng = np.random.default_rng(0)
    fields, smoke = rng.normal(size=(20, 30)), rng.normal(size=(20, 25))
    fire, plume = fit_basis(fields, rank=10), fit_basis(smoke, rank=8)
    whole = fit_linear_map(fire.encode(fields), fire.singular_values, plume.encode(smoke))
    small, small_plume = fire.truncate(4), plume.truncate(3)
    part = fit_linear_map(small.encode(fields), small.singular_values, small_plume.encode(smoke))
    np.testing.assert_allclose(part.weights, whole.weights[:4, :3], atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("relative_penalty", [1e-4, 1.0])
def test_primal_equals_dual(degree, relative_penalty):
    codes, targets = problem(degree)
    new, _ = problem(99)
    kernel = monomial_kernel(codes, codes, degree)
    penalty = relative_penalty * np.linalg.norm(kernel, 2)
    primal = PrimalMap(ridge_primal(monomials(codes, degree), targets, penalty), degree)
    dual = dual_map(codes, ridge_dual(kernel, targets, penalty), degree)
    expected = primal.predict(new)
    np.testing.assert_allclose(dual.predict(new), expected, atol=DUAL * np.abs(expected).max())


@given(seed=seeds, degree=st.integers(1, 3), exponent=st.floats(-4, 1))
def test_path_equals_separate_solves(seed, degree, exponent):
    codes, targets = problem(seed)
    kernel, features = monomial_kernel(codes, codes, degree), monomials(codes, degree)
    penalty = 10.0**exponent * np.linalg.norm(kernel, 2)
    alone = kernel @ ridge_dual(kernel, targets, penalty)
    by_kernel = dual_path(kernel, targets)
    by_features = primal_path(features, targets)
    np.testing.assert_allclose(kernel @ by_kernel.dual_weights(penalty), alone, atol=1e-8)
    np.testing.assert_allclose(kernel @ by_features.dual_weights(penalty), alone, atol=1e-8)
    for path in (by_kernel, by_features):
        np.testing.assert_allclose(path.residuals(penalty), targets - alone, atol=1e-8)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("sizes", [[1] * 14, [3, 5, 2, 4]])
@pytest.mark.parametrize("penalty", [0.05, 3.0])
def test_left_out_residuals_equal_brute_force_refits(degree, sizes, penalty):
    codes, targets = problem(5)
    groups = groups_of(sizes)
    features = monomials(codes, degree)
    brute = np.empty_like(targets)
    for rows in groups:
        rest = np.setdiff1d(np.arange(14), rows)
        weights = ridge_primal(features[rest], targets[rest], penalty)
        brute[rows] = targets[rows] - features[rows] @ weights
    for path in (
        dual_path(monomial_kernel(codes, codes, degree), targets),
        primal_path(features, targets),
    ):
        np.testing.assert_allclose(path.leave_group_out(penalty, groups), brute, atol=1e-9)


@pytest.mark.parametrize("snapshots", [30, 8])  # 9 features: primal, dual
def test_tuned_map_is_the_fit_with_the_best_penalty_of_the_scan(snapshots):
    codes, targets = problem(1, snapshots=snapshots)
    targets = targets + monomials(codes, 2) @ np.ones((9, 2))
    groups = groups_of([2] * (snapshots // 2))
    tuned, scan = tune_polynomial_map(codes, targets, degree=2, groups=groups, penalties=None)
    alone = fit_polynomial_map(codes, targets, degree=2, penalty=scan.best)
    assert isinstance(tuned, PrimalMap if snapshots == 30 else DualMap)
    assert scan.errors[scan.penalties.index(scan.best)] == min(scan.errors)
    np.testing.assert_allclose(tuned.predict(codes), alone.predict(codes), rtol=1e-6, atol=1e-6)


def test_tiled_gram_matrix_is_the_product(monkeypatch):
    monkeypatch.setattr("plumecast.compute.linalg.SYRK_LIMIT", 4)
    rows = np.random.default_rng(0).normal(size=(10, 3))
    np.testing.assert_allclose(gram(rows), rows @ rows.T, atol=1e-14)
    np.testing.assert_array_equal(gram(rows), gram(rows).T)


def test_undetermined_fits_are_refused():
    codes, targets = problem(0, snapshots=5)
    with pytest.raises(PlumecastError, match=r"9 features \(degree 2, rank 3\) for 5 snapshots"):
        fit_polynomial_map(codes, targets, degree=2, penalty=0.0)
    with pytest.raises(PlumecastError, match=r"penalty=0 interpolates"):
        dual_path(monomial_kernel(codes, codes, 2), targets).residuals(0.0)
    twice = np.concatenate([codes, codes], axis=1)
    with pytest.raises(PlumecastError, match="6×6 least-squares system is singular"):
        ridge_primal(np.round(twice), np.ones((5, 1)))
    with pytest.raises(PlumecastError, match="are of one group"):
        scan_penalties(primal_path(codes, targets), [1.0], [np.arange(5)])
    with pytest.raises(PlumecastError, match="kernel of the training codes is zero"):
        penalty_grid(0.0)


@pytest.mark.parametrize("snapshots", [40, 8])  # 9 features: primal, dual
def test_an_intercept_takes_what_products_of_centred_codes_have_in_the_mean(snapshots):
    codes, _ = problem(2, snapshots=snapshots)
    codes = codes - codes.mean(axis=0)
    targets = monomials(codes, 2) @ np.ones((9, 2))
    targets = targets - targets.mean(axis=0)
    constant = intercept_constant(float(np.sum(codes**2)) / snapshots, 2)
    penalty = 1e-3 * constant**2
    found = fit_polynomial_map(codes, targets, degree=2, penalty=penalty, constant=constant)
    # The same with an intercept that is not penalised at all: features and targets centred.
    features = monomials(codes, 2)
    mean = features.mean(axis=0)
    expected = (features - mean) @ ridge_primal(features - mean, targets, penalty)
    # The intercept's weight is penalised by penalty / (M constant²) of itself.
    near = 1e-3 / snapshots * np.abs(expected).max()
    np.testing.assert_allclose(found.predict(codes), expected, atol=2.0 * near)
    without = fit_polynomial_map(codes, targets, degree=2, penalty=penalty)
    assert np.abs(without.predict(codes) - expected).max() > 10.0 * near


@pytest.mark.parametrize("snapshots", [30, 8])
def test_a_tuned_intercept_is_that_of_one_fit_and_of_the_path(snapshots):
    codes, targets = problem(3, snapshots=snapshots)
    groups = groups_of([2] * (snapshots // 2))
    tuned, scan = tune_polynomial_map(
        codes, targets + 5.0, degree=2, groups=groups, penalties=None, constant=3.0
    )
    alone = fit_polynomial_map(codes, targets + 5.0, degree=2, penalty=scan.best, constant=3.0)
    on_path = polynomial_path(codes, targets + 5.0, 2, 3.0).at(scan.best)
    for other in (alone, on_path):
        np.testing.assert_allclose(tuned.predict(codes), other.predict(codes), rtol=1e-6, atol=1e-6)
    features = polynomial_features(codes, 2, 3.0)
    rest = np.setdiff1d(np.arange(snapshots), groups[0])
    weights = ridge_primal(features[rest], targets[rest] + 5.0, scan.best)
    left_out = polynomial_path(codes, targets + 5.0, 2, 3.0).path.leave_group_out(scan.best, groups)
    brute = targets[groups[0]] + 5.0 - features[groups[0]] @ weights
    np.testing.assert_allclose(left_out[groups[0]], brute, atol=1e-6)
