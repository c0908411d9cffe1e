"""What a surrogate predicts from: wrong values are refused, and no prediction is infinite."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.data.covariates import wind_vector
from plumecast.surrogate.fit import fit_surrogate
from support.snapshots import make_snapshots

UNIT = 1e-4  # of the largest smoke: float32 weights of data in another unit round differently


def test_quick_does_not_depend_on_the_unit_of_smoke():
    data = make_snapshots(fires=12)
    scaled = data.assign(smoke=(1e-3 * data.smoke).assign_attrs(data.smoke.attrs))
    smoke = fit_surrogate(data, "quick").predict(data)
    other = fit_surrogate(scaled, "quick")
    np.testing.assert_allclose(1e3 * other.predict(data), smoke, atol=UNIT * float(smoke.max()))
    assert other.training["log_scale"] == other.operator.targets.epsilon
    assert 0.0 < other.training["log_scale"] < float(scaled.smoke.max())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, r"'time_since_ignition' holds 1 negative values, first in row 1, cell \(2, 3\): -1"),
        (np.nan, r"holds 1 NaN or infinite values, first in row 1, cell \(2, 3\): nan"),
        (-np.inf, r"holds 1 NaN or infinite values, first in row 1, cell \(2, 3\): -inf"),
        (9.97e36, r"holds 1 values beyond ±1e\+18, first in row 1, cell \(2, 3\): 9.97e\+36"),
    ],
)
def test_predict_refuses_values_that_are_no_ages(split, value, message):
    surrogate = fit_surrogate(split.train)
    fires = split.test.time_since_ignition.values.copy()
    fires[1, 2, 3] = value
    with pytest.raises(PlumecastError, match=message):
        surrogate.predict(fires)


def test_predict_refuses_masked_values_and_takes_an_empty_mask(split):
    surrogate = fit_surrogate(split.train)
    fires = np.ma.array(split.test.time_since_ignition.values)
    np.testing.assert_array_equal(surrogate.predict(fires), surrogate.predict(fires.data))
    fires[0, 1] = np.ma.masked
    with pytest.raises(PlumecastError, match="data has 10 masked values; fill them"):
        surrogate.predict(fires)


@pytest.mark.parametrize("dtype", [bool, complex, object, "datetime64[s]", "U3"])
def test_predict_refuses_what_are_no_numbers(split, dtype):
    surrogate = fit_surrogate(split.train)
    with pytest.raises(PlumecastError, match="not numbers"):
        surrogate.predict(np.zeros((2, 8, 10), dtype=dtype))


def test_no_prediction_is_infinite(split):
    surrogate = fit_surrogate(split.train, degree=3, fire_rank=5)
    fires = np.full((3, 8, 10), 1e17, dtype=np.float32)
    with pytest.raises(PlumecastError, match="prediction of snapshot 0 is not finite in float32"):
        surrogate.predict(fires)


def test_a_negative_wind_speed_is_refused():
    with pytest.raises(PlumecastError, match="wind_speed has negative values, such as -3"):
        wind_vector(np.array([2.0, -3.0]), np.array([0.0, 90.0]))


def test_eight_threads_predict_the_same(split):
    surrogate = fit_surrogate(split.train, "quick")
    expected = surrogate.predict(split.test)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: surrogate.predict(split.test), range(16)))
    assert all(smoke.identical(expected) for smoke in found)
