"""The numerics run unchanged on other array namespaces and agree with NumPy.

array-api-strict stands for any of them; CuPy is tried where it finds a GPU.
"""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from plumecast._array import to_numpy
from plumecast.device import choose_device
from plumecast.encode import fit_basis, projection_error
from plumecast.ensemble_sums import field_sums
from plumecast.errors import PlumecastError
from plumecast.kernel_search import tune_kernel_map
from plumecast.operators import CodedOperator
from plumecast.plume import Conditions, PlumeChoices, fit_plume_operator
from plumecast.polynomial_map import fit_linear_map, tune_polynomial_map
from plumecast.roc import iou_at, rates_at, roc_scores

AGREE = 1e-8  # relative: another factorisation, the same mathematics in float64
SINGLE = 1e-3  # relative: float32 systems; a second layer on ramps that begin at quantiles


def put_on(device):
    """What makes arrays on a device; the test is skipped where it is missing."""
    try:
        return choose_device(device).put
    except PlumecastError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["array-api-strict", "cupy"])
def asarray(request):
    """What makes arrays of the other namespace."""
    return strict.asarray if request.param == "array-api-strict" else put_on(request.param)


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
def test_fit_and_predict(degree, asarray):
    fire, smoke = problem()
    groups = np.split(np.arange(24), 6)
    expected = fit(fire, smoke, groups, degree).predict(fire)
    other = fit(asarray(fire), asarray(smoke), [asarray(g) for g in groups], degree)
    found = to_numpy(other.predict(asarray(fire)))
    np.testing.assert_allclose(found, expected, atol=AGREE * np.abs(expected).max())


@pytest.mark.parametrize("search_rows", [1500, 16])
def test_kernels_and_their_length_scale(search_rows, monkeypatch, asarray):
    monkeypatch.setattr("plumecast.kernel_search.SEARCH_ROWS", search_rows)
    codes, targets = problem()
    groups = np.split(np.arange(24), 6)

    def fit_with(put):
        fitted, _ = tune_kernel_map(
            put(codes),
            put(targets),
            kernel="polynomial-1 + matern-5/2",
            groups=[put(rows) for rows in groups],
            penalty=0.1,
            anchored=True,
        )
        return fitted, to_numpy(fitted.predict(put(codes[:5])))

    ours, expected = fit_with(np.asarray)
    other, found = fit_with(asarray)
    assert other.length_scale == ours.length_scale
    np.testing.assert_allclose(found, expected, atol=AGREE * np.abs(expected).max())


def test_projection_error(asarray):
    fire, _ = problem()
    expected = projection_error(fit_basis(fire, rank=2), fire)
    other = asarray(fire)
    assert projection_error(fit_basis(other, rank=2), other) == pytest.approx(expected, rel=1e-6)


def test_scores(asarray):
    _, smoke = problem()
    predicted, observed = np.round(smoke + 0.2, 1), smoke > 0.5
    ours = roc_scores(predicted, observed)
    other = roc_scores(asarray(predicted), asarray(observed))
    for name in ("auc", "iou", "decision_threshold", "true_positive_rate", "false_positive_rate"):
        np.testing.assert_allclose(to_numpy(getattr(other, name)), getattr(ours, name))
    grid = [0.0, 0.3, 1.0]
    np.testing.assert_allclose(
        to_numpy(rates_at(grid, asarray(predicted), asarray(observed))),
        rates_at(grid, predicted, observed),
    )
    np.testing.assert_allclose(
        to_numpy(iou_at(asarray(predicted), asarray(observed), 0.4)),
        iou_at(predicted, observed, 0.4),
    )


def test_sums_of_an_ensemble(asarray):
    _, smoke = problem()
    ours = field_sums(smoke, (0.1, 1.0), quantiles=True)
    other = field_sums(asarray(smoke), (0.1, 1.0), quantiles=True)
    for name in ("plain", "log", "log_squares", "above", "bins"):
        found, expected = to_numpy(getattr(other, name)), getattr(ours, name)
        np.testing.assert_allclose(found, expected, rtol=AGREE)


@pytest.mark.parametrize("device", ["torch", "cupy"])
def test_spectral_operator(device):
    """Discs that grow around their ignition; the smoke is beside them and older where thicker."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:10, :12]
    centre = rng.uniform([3, 3], [7, 6], size=(12, 2)).repeat(3, axis=0)
    radius = np.tile([1.5, 2.5, 3.5], 12)[:, None, None]
    distance = np.hypot(y - centre[:, 0, None, None], x - centre[:, 1, None, None])
    fire = np.clip(radius - distance, 0.0, None).astype(np.float32)
    smoke = np.roll(fire**2 / (1.0 + fire), 3, axis=2)
    given = Conditions(labels=np.array(["low", "high"])[rng.integers(2, size=12).repeat(3)])
    groups = np.arange(12).repeat(3)
    smokes = []
    for put in (np.asarray, put_on(device)):
        operator, _ = fit_plume_operator(
            fire, smoke, groups, given, threshold=0.05, choices=PlumeChoices(layers=2), put=put
        )
        smokes.append(operator.predict(fire.reshape(36, -1), given, put))
    expected, found = smokes
    np.testing.assert_allclose(found, expected, atol=SINGLE * expected.max())
