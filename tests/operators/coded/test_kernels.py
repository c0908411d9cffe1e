"""Kernels of the distance between codes: the textbook's formulas, refits, and what they refuse."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from plumecast.base.errors import PlumecastError
from plumecast.compute.linalg import inverse_positive
from plumecast.operators.coded import kernel_tuning as kernel_search
from plumecast.operators.coded.kernel_tuning import Walk, tune_kernel_map
from plumecast.operators.coded.kernels import (
    STATIONARY,
    TERMS,
    check_kernel,
    fit_kernel_map,
    kernel_terms,
    monomial_count,
    monomial_kernel,
    monomials,
    term_kernel,
    training_kernel,
    typical_distance,
)

seeds = st.integers(0, 2**32 - 1)
SUM = "polynomial-1 + matern-5/2"
LIBRARY = {"matern-5/2": Matern(nu=2.5), "squared-exponential": RBF()}

FORMULA = 1e-12  # absolute: kernel values are at most 1; distances come from a matrix product
SOLVE = 1e-8  # relative: Cholesky against eigen or another Cholesky at λ ≥ 1e-3 of the diagonal


def problem(snapshots: int = 30, rank: int = 3, seed: int = 0):
    """Codes with falling weights, and a smooth function of them that is 0 at 0."""
    rng = np.random.default_rng(seed)
    codes = 40.0 * rng.normal(size=(snapshots, rank)) * 0.5 ** np.arange(rank)
    targets = np.stack([np.sin(codes[:, 0] / 20.0), codes[:, 0] * codes[:, 1] / 800.0], axis=1)
    return codes, targets


def groups_of(size: int, count: int) -> list[np.ndarray]:
    return np.split(np.random.default_rng(1).permutation(size * count), count)


@pytest.mark.parametrize("term", STATIONARY)
@pytest.mark.parametrize("length_scale", [0.3, 7.0])
def test_kernels_are_the_librarys(term, length_scale):
    codes, _ = problem()
    a, b = codes[:20] / 40.0, codes[20:] / 40.0
    found = term_kernel(term, a, b, length_scale=length_scale, anchored=False)
    expected = LIBRARY[term].set_params(length_scale=length_scale)(a, b)
    np.testing.assert_allclose(found, expected, atol=FORMULA)


@given(seed=seeds, term=st.sampled_from(TERMS), anchored=st.booleans())
def test_kernels_are_symmetric_and_positive(seed, term, anchored):
    codes = np.random.default_rng(seed).normal(size=(8, 2))
    matrix = term_kernel(term, codes, codes, length_scale=0.8, anchored=anchored)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12 * np.abs(matrix).max())
    values = np.linalg.eigvalsh(matrix)
    assert values[0] > -1e-12 * values[-1]


@given(seed=seeds)
def test_typical_distance_is_the_root_mean_square_over_pairs(seed):
    codes = 3.0 + np.random.default_rng(seed).normal(size=(7, 4))
    pairs = np.linalg.norm(codes[:, None] - codes[None], axis=2)
    assert typical_distance(codes) == pytest.approx(np.sqrt(np.mean(pairs**2)), rel=1e-12)


@pytest.mark.parametrize("kernel", STATIONARY)
def test_anchored_map_is_the_gaussian_process_that_was_told_zero(kernel):
    """A training row 0 → 0 with a penalty of rounding size, beside the others with theirs."""
    codes, targets = problem()
    new, _ = problem(seed=5)
    unit = typical_distance(codes)
    ours = fit_kernel_map(
        codes, targets, kernel=kernel, length_scale=0.7, penalty=0.01, anchored=True
    )
    told = np.concatenate([np.zeros((1, 3)), codes / unit])
    known = np.concatenate([np.zeros((1, 2)), targets])
    # Our penalty is relative to a mean diagonal of 1, from which the anchor takes a share.
    share = 1.0 / ours.term_weights[0]
    noise = np.concatenate([[1e-14], np.full(30, 0.01 * share)])
    library = LIBRARY[kernel].set_params(length_scale=0.7)
    theirs = GaussianProcessRegressor(library, alpha=noise, optimizer=None).fit(told, known)
    expected = theirs.predict(new / unit)
    np.testing.assert_allclose(ours.predict(new), expected, atol=SOLVE * np.abs(expected).max())
    np.testing.assert_array_equal(ours.predict(np.zeros((1, 3))), 0.0)


@pytest.mark.parametrize("kernel", [*STATIONARY, SUM])
@pytest.mark.parametrize("anchored", [True, False])
def test_left_out_error_equals_refits(kernel, anchored):
    codes, targets = problem()
    groups = groups_of(5, 6)
    fitted, scan = tune_kernel_map(
        codes, targets, kernel=kernel, groups=groups, length_scale=1.2, penalty=0.02,
        anchored=anchored,
    )  # fmt: skip
    support, unit = codes / fitted.unit, fitted.unit
    assert unit == typical_distance(codes)
    matrix = sum(
        weight * term_kernel(term, support, support, length_scale=1.2, anchored=anchored)
        for term, weight in zip(kernel_terms(kernel), fitted.term_weights, strict=True)
    )
    left = np.empty_like(targets)
    for rows in groups:
        rest = np.setdiff1d(np.arange(30), rows)
        system = matrix[np.ix_(rest, rest)] + 0.02 * np.eye(rest.size)
        left[rows] = targets[rows] - matrix[np.ix_(rows, rest)] @ np.linalg.solve(
            system, targets[rest]
        )
    expected = np.linalg.norm(left) / np.linalg.norm(targets)
    assert scan.error == pytest.approx(expected, rel=SOLVE)
    assert (scan.length_scale, scan.penalty) == (1.2, 0.02)


@pytest.mark.parametrize("kernel", [*STATIONARY, SUM])
def test_search_ends_at_a_length_scale_better_than_its_neighbours(kernel):
    codes, targets = problem(snapshots=60)
    groups = groups_of(4, 15)
    fitted, scan = tune_kernel_map(codes, targets, kernel=kernel, groups=groups, anchored=True)
    best = scan.length_scale
    assert fitted.length_scale == best
    alone = {"kernel": kernel, "length_scale": best, "penalty": scan.penalty, "anchored": True}
    expected = fit_kernel_map(codes, targets, **alone).predict(codes)
    np.testing.assert_allclose(fitted.predict(codes), expected, atol=1e-6)
    for ratio in (2.0**0.5, 2.0**-0.5, 2.0, 0.5):
        _, other = tune_kernel_map(
            codes, targets, kernel=kernel, groups=groups, length_scale=best * ratio, anchored=True
        )
        assert other.error >= scan.error * 0.98  # the search sees a coarse grid of penalties


@pytest.mark.parametrize("penalty", [None, 0.02])
def test_the_walk_reports_left_out_errors_and_residuals_of_its_map(monkeypatch, penalty):
    codes, targets = problem(snapshots=60)
    choices = {"kernel": SUM, "groups": groups_of(5, 12), "anchored": True}
    monkeypatch.setattr(kernel_search, "SEARCH_ROWS", 30)
    fitted, walked = tune_kernel_map(codes, targets, penalty=penalty, **choices)
    found = {"length_scale": walked.length_scale, "penalty": walked.penalty}
    by_eigen, scan = tune_kernel_map(codes, targets, **found, **choices)
    assert walked.error == pytest.approx(scan.error, rel=SOLVE)
    np.testing.assert_allclose(walked.residuals, scan.residuals, atol=SOLVE)
    np.testing.assert_allclose(fitted.predict(codes), by_eigen.predict(codes), atol=SOLVE)


def test_the_walk_leaves_singular_systems_by_a_higher_penalty(monkeypatch):
    codes, targets = problem(snapshots=30)
    codes, targets = np.repeat(codes, 2, axis=0), np.repeat(targets, 2, axis=0)
    training = training_kernel(codes, "squared-exponential", anchored=False)
    grid = [1e-30, 1e-25, 1e-2, 1e-1]
    walk = Walk(training, targets, groups_of(10, 6), 1.0, grid)
    assert walk(1e-30).penalty in grid[2:]
    assert not np.isfinite(walk.errors[0, 0])
    singular = Walk(training, targets, groups_of(10, 6), 1.0, grid[:2])
    with pytest.raises(PlumecastError, match="singular up to a penalty of 1e-25; give"):
        singular(1e-30)


def test_inverse_of_a_positive_matrix():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(12, 20))
    matrix = rows @ rows.T
    np.testing.assert_allclose(inverse_positive(matrix) @ matrix, np.eye(12), atol=1e-10)
    with pytest.raises(PlumecastError, match="12×12 least-squares system is singular"):
        inverse_positive(-matrix)


def test_kernel_learns_what_no_polynomial_can():
    codes = np.random.default_rng(2).normal(size=(200, 1))
    targets = np.tanh(10.0 * codes)
    groups = groups_of(1, 200)
    _, smooth = tune_kernel_map(codes, targets, kernel="matern-5/2", groups=groups, anchored=True)
    _, cubic = tune_kernel_map(codes, targets, kernel="polynomial-3", groups=groups, anchored=True)
    assert smooth.error < 0.1 * cubic.error


def test_far_from_all_fires_only_the_trend_is_left():
    codes, targets = problem()
    choices = {"length_scale": 1.0, "penalty": 0.01, "anchored": False}
    far = np.full((1, 3), 1e5)
    alone = fit_kernel_map(codes, targets, kernel="matern-5/2", **choices)
    trend = fit_kernel_map(codes, targets, kernel=SUM, **choices)
    np.testing.assert_array_equal(alone.predict(far), 0.0)
    scaled = monomial_kernel(far / trend.unit, trend.support, 1) * trend.term_weights[0]
    np.testing.assert_allclose(trend.predict(far), scaled @ trend.dual_weights, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "length_scale", "message"),
    [
        ("matern-5/2 + ", None, "is unknown; choose from"),
        ("polynomial + matern-5/2", None, "kernel 'polynomial' is unknown; .* 'polynomial-1 \\+"),
        ("matern-5/2 + matern-5/2", None, "names a term twice"),
        ("polynomial-2", 1.0, "kernel 'polynomial-2' has no length scale"),
        ("matern-5/2", 0.0, "length_scale=0 must be a finite number above 0"),
        ("matern-5/2", float("nan"), "length_scale=nan must be"),
    ],
)
def test_kernels_and_length_scales_that_are_none_are_refused(kernel, length_scale, message):
    with pytest.raises(PlumecastError, match=message):
        check_kernel(kernel, length_scale)


@pytest.mark.parametrize("kernel", [*STATIONARY, SUM])
@pytest.mark.parametrize(
    ("length_scale", "message"),
    [(1e-4, "so short that a training snapshot has no neigh"), (1e5, "so long that a training sn")],
)
def test_degenerate_length_scales_are_refused(kernel, length_scale, message):
    codes, targets = problem()
    choices = {"kernel": kernel, "length_scale": length_scale, "anchored": True}
    with pytest.raises(PlumecastError, match=message):
        tune_kernel_map(codes, targets, groups=groups_of(5, 6), **choices)
    with pytest.raises(PlumecastError, match=message):
        fit_kernel_map(codes, targets, penalty=1.0, **choices)


def test_interpolation_and_equal_snapshots_are_refused():
    codes, targets = problem()
    choices = {"kernel": "matern-5/2", "length_scale": 1.0, "anchored": True}
    with pytest.raises(PlumecastError, match=r"penalty=0 lets a kernel interpolate"):
        fit_kernel_map(codes, targets, penalty=0.0, **choices)
    with pytest.raises(PlumecastError, match="training codes are all alike"):
        fit_kernel_map(np.ones((4, 2)), targets[:4], penalty=1.0, **choices)
    with pytest.raises(PlumecastError, match="are of one group"):
        tune_kernel_map(codes, targets, groups=[np.arange(30)], **choices)


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


@pytest.mark.parametrize("degree", [0, 5, -1])
def test_unsupported_degrees_are_refused(degree):
    with pytest.raises(PlumecastError, match=f"degree={degree} is not one of 1…4"):
        monomials(np.ones((2, 2)), degree)


@pytest.mark.parametrize("kernel", [*STATIONARY, SUM])
def test_map_is_the_librarys_gaussian_process(kernel):
    codes, targets = problem()
    new, _ = problem(seed=5)
    ours = fit_kernel_map(
        codes, targets, kernel=kernel, length_scale=0.7, penalty=0.05, anchored=False
    )
    unit = typical_distance(codes)
    library = LIBRARY[kernel_terms(kernel)[-1]].set_params(length_scale=0.7)
    if kernel == SUM:  # the mean diagonal of the trend is divided out
        trend = np.mean(np.sum((codes / unit) ** 2, axis=1))
        library = library + DotProduct(0.0, sigma_0_bounds="fixed") * (1.0 / trend)
    theirs = GaussianProcessRegressor(library, alpha=0.05, optimizer=None)
    expected = theirs.fit(codes / unit, targets).predict(new / unit)
    np.testing.assert_allclose(ours.predict(new), expected, atol=SOLVE * np.abs(expected).max())
