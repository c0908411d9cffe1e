"""The numerics run unchanged on another array namespace and agree with NumPy."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from plumecast.encode import fit_basis, projection_error
from plumecast.kernel_search import tune_kernel_map
from plumecast.operators import CodedOperator, fit_linear_map, tune_polynomial_map
from plumecast.roc import iou_at, rates_at, roc_scores

AGREE = 1e-8  # relative: another factorisation, the same mathematics in float64


def problem():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(24, 6)) * 0.7 ** np.arange(6)
    fire = latent @ rng.normal(size=(6, 30))
    smoke = np.maximum(latent**2 @ rng.normal(size=(6, 35)), 0.0)
    return fire, smoke


def fit(fire, smoke, groups, degree):
    fire_basis, smoke_basis = fit_basis(fire, rank=5), fit_basis(smoke, std_fraction=0.9)
    codes, targets = fire_basis.encode(fire), smoke_basis.encode(smoke)
    if degree == 1:
        code_map = fit_linear_map(codes, fire_basis.singular_values, targets)
    else:
        code_map, _ = tune_polynomial_map(
            codes, targets, degree=degree, groups=groups, penalties=[0.1, 1.0, 10.0]
        )
    return CodedOperator(fire_basis, code_map, smoke_basis)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_fit_and_predict(degree):
    fire, smoke = problem()
    groups = np.split(np.arange(24), 6)
    expected = fit(fire, smoke, groups, degree).predict(fire)
    other = fit(
        strict.asarray(fire), strict.asarray(smoke), [strict.asarray(g) for g in groups], degree
    )
    found = np.asarray(other.predict(strict.asarray(fire)))
    np.testing.assert_allclose(found, expected, atol=AGREE * np.abs(expected).max())


@pytest.mark.parametrize("search_rows", [1500, 16])
def test_kernels_and_their_length_scale(search_rows, monkeypatch):
    monkeypatch.setattr("plumecast.kernel_search.SEARCH_ROWS", search_rows)
    codes, targets = problem()
    groups = np.split(np.arange(24), 6)

    def fit_with(asarray):
        fitted, _ = tune_kernel_map(
            asarray(codes),
            asarray(targets),
            kernel="polynomial-1 + matern-5/2",
            groups=[asarray(rows) for rows in groups],
            penalty=0.1,
            anchored=True,
        )
        return fitted, np.asarray(fitted.predict(asarray(codes[:5])))

    ours, expected = fit_with(np.asarray)
    other, found = fit_with(strict.asarray)
    assert other.length_scale == ours.length_scale
    np.testing.assert_allclose(found, expected, atol=AGREE * np.abs(expected).max())


def test_projection_error():
    fire, _ = problem()
    expected = projection_error(fit_basis(fire, rank=2), fire)
    other = strict.asarray(fire)
    assert projection_error(fit_basis(other, rank=2), other) == pytest.approx(expected, rel=1e-6)


def test_scores():
    _, smoke = problem()
    predicted, observed = np.round(smoke + 0.2, 1), smoke > 0.5
    ours = roc_scores(predicted, observed)
    other = roc_scores(strict.asarray(predicted), strict.asarray(observed))
    for name in ("auc", "iou", "decision_threshold", "true_positive_rate", "false_positive_rate"):
        np.testing.assert_allclose(np.asarray(getattr(other, name)), getattr(ours, name))
    grid = [0.0, 0.3, 1.0]
    np.testing.assert_allclose(
        np.asarray(rates_at(grid, strict.asarray(predicted), strict.asarray(observed))),
        rates_at(grid, predicted, observed),
    )
    np.testing.assert_allclose(
        np.asarray(iou_at(strict.asarray(predicted), strict.asarray(observed), 0.4)),
        iou_at(predicted, observed, 0.4),
    )
