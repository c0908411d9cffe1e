"""The numerics run unchanged on other array namespaces and agree with NumPy.

array-api-strict represents all of them; CuPy is tested if it finds a GPU.
"""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import map_arrays, to_numpy
from plumecast.compute.resources import choose_device
from plumecast.operators.baselines import MeanField, NearestFire
from plumecast.operators.coded.correction import CorrectedMap
from plumecast.operators.coded.kernel_tuning import tune_kernel_map
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.lifted import LiftedOperator, fit_lifted_operator
from plumecast.operators.settings import choose_settings
from plumecast.operators.wind_frame import fit_wind_frame
from plumecast.scores.field_statistics import field_sums
from support.convolved_fires import rough

AGREE = 1e-8  # relative: another factorisation, the same mathematics in float64
SINGLE = 1e-3  # relative: float32 systems; a second layer on ramps that begin at quantiles
SPECTRA = 1e-5  # relative: predictions through float32 spectra, summed in another order

AWAY = strict.Device("device1")
"""A device whose arrays array-api-strict does not convert to NumPy, like those of a GPU."""


def put_on(device):
    """A function that copies arrays to a device; skips the test where the device is missing."""
    try:
        return choose_device(device).put
    except PlumecastError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["array-api-strict", "cupy"])
def asarray(request):
    """A function that makes arrays of the other namespace."""
    return strict.asarray if request.param == "array-api-strict" else put_on(request.param)


def problem():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(24, 6)) * 0.7 ** np.arange(6)
    fire = latent @ rng.normal(size=(6, 30))
    smoke = np.maximum(latent**2 @ rng.normal(size=(6, 35)), 0.0)
    return fire, smoke


@pytest.mark.parametrize("search_rows", [1500, 16])
def test_kernels_and_their_length_scale(search_rows, monkeypatch, asarray):
    monkeypatch.setattr("plumecast.operators.coded.kernel_tuning.SEARCH_ROWS", search_rows)
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


def test_sums_of_an_ensemble(asarray):
    _, smoke = problem()
    ours = field_sums(smoke, (0.1, 1.0), quantiles=True)
    other = field_sums(asarray(smoke), (0.1, 1.0), quantiles=True)
    for name in ("plain", "log", "log_squares", "above", "bins"):
        found, expected = to_numpy(getattr(other, name)), getattr(ours, name)
        np.testing.assert_allclose(found, expected, rtol=AGREE)


@pytest.fixture(scope="module")
def places() -> TrainingSet:
    """Snapshots whose smoke depends on the place, which a correction learns."""
    data = rough(40)
    rng = np.random.default_rng(0)
    count = data.sizes["snapshot"]
    given = Conditions(
        labels=data.drought.values,
        covariates=rng.normal(size=(count, 1)),
        wind=[1.0, 0.3] + 0.1 * rng.normal(size=(count, 2)),
    )
    return TrainingSet(
        data.time_since_ignition.values, data.smoke.values, data.ignition_id.values, given
    )


def away(array):
    return strict.asarray(array, device=AWAY)


def brought_back(array):
    if isinstance(array, type(away(0.0))):
        array = array.to_device(strict.Device("CPU_DEVICE"))
    return to_numpy(array)


@pytest.fixture(params=["away", "torch", "cupy"])
def there(request):
    """A function that copies arrays to another device."""
    return away if request.param == "away" else put_on(request.param)


@pytest.fixture(scope="module", params=[False, True], ids=["map", "wind"])
def operator(request, places) -> LiftedOperator:
    frame = None
    if request.param:
        frame = fit_wind_frame(places.fire.shape[1:], (1.0, 1.0), places.given.wind, stretch=False)
    settings = choose_settings(
        "recommended", lift=("age-bins", "position"), layers=2, correction=True, frame="map"
    )
    fitted, *_ = fit_lifted_operator(places, settings, threshold=0.05, frame=frame)
    return fitted


def test_a_corrected_operator_computes_on_the_device_of_its_inputs(places, operator, there):
    """Its arrays are on the device, or are copied there; leaving the strict device would raise."""
    assert isinstance(operator.field_map, CorrectedMap)
    flat = places.fire.reshape(places.fire.shape[0], -1)
    smoke, score = operator.predict_both(flat, places.given)
    for elsewhere in (operator, map_arrays(operator, there)):
        both = elsewhere.predict_both(there(flat), places.given)
        alone = elsewhere.predict(there(flat), places.given)
        for found, expected in ((both[0], smoke), (both[1], score), (alone, smoke)):
            assert type(found) is type(there(flat))
            np.testing.assert_allclose(brought_back(found), expected, atol=SPECTRA * expected.max())


@pytest.mark.parametrize("kind", [MeanField, NearestFire])
def test_baselines_predict_on_the_device_of_their_arrays(there, kind):
    """`train --all --device cuda` scores them beside the surrogate."""
    rng = np.random.default_rng(0)
    inputs, outputs = rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    baseline = kind(outputs.mean(axis=0)) if kind is MeanField else kind(inputs, outputs)
    found = map_arrays(baseline, there).predict(there(inputs + 0.01))
    np.testing.assert_allclose(
        brought_back(found), baseline.predict(inputs + 0.01), rtol=AGREE, atol=AGREE
    )
