"""Doses from sums over frames: the sliding integral has no trace of where the frames fall."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plumecast.compute.dose import sliding_dose

EXACT = 1e-9


def column(seed: int, hours: np.ndarray) -> np.ndarray:
    """A column mean ≥ 0 that comes in bursts, linear between whole hours and 0 at ignition."""
    rng = np.random.default_rng(seed)
    values = np.append(0.0, rng.exponential(1.0, 48) * (rng.uniform(size=48) < 0.3))
    return np.interp(hours, np.arange(49.0), values)


def sums(seed: int, hours: np.ndarray, interval: float) -> np.ndarray:
    """g(h) = c(h) + c(h − Δ) + … since ignition."""
    return np.array(
        [
            column(seed, np.arange(hour, 0.0, -interval)).sum() if hour > 0.0 else 0.0
            for hour in hours
        ]
    )


@given(seed=st.integers(0, 2**16), interval=st.sampled_from([3.0, 4.0, 6.0]))
def test_the_sliding_dose_is_the_integral_of_bursts(seed, interval):
    """At whole hours, between which everything is linear."""
    hours = np.arange(1.0, 49.0)
    fine = np.linspace(0.0, 48.0, 48 * 20 + 1)
    known = column(seed, fine)
    exact = np.append(0.0, np.cumsum(0.5 * (known[1:] + known[:-1]) * np.diff(fine)))[20::20]
    dose, told = sliding_dose(sums(seed, hours, interval), np.repeat("a", 48), hours, interval)
    assert told.all()
    np.testing.assert_allclose(dose, exact, rtol=1e-6, atol=EXACT)
    assert (np.diff(dose) >= -EXACT).all()


@given(seed=st.integers(0, 2**16), order=st.permutations(range(12)))
def test_the_sliding_dose_does_not_depend_on_the_order_of_snapshots(seed, order):
    hours = np.tile(np.arange(1.0, 7.0), 2)
    fire = np.repeat(["a", "b"], 6)
    values = np.random.default_rng(seed).uniform(size=12)
    dose, told = sliding_dose(values, fire, hours, 3.0)
    again, same = sliding_dose(values[order], fire[order], hours[order], 3.0)
    np.testing.assert_allclose(again, dose[order])
    assert same.all()
    assert told.all()


def test_hours_far_apart_tell_no_sliding_dose():
    """From the first gap of more than about a third of an interval on."""
    hours = np.array([1.0, 2.0, 3.0, 6.0, 7.0])
    _, told = sliding_dose(np.ones(5), np.repeat("a", 5), hours, 3.0)
    assert told.tolist() == [True, True, True, False, False]
    _, told = sliding_dose(np.ones(5), np.repeat("a", 5), hours, 1.0)
    assert not told.any()
