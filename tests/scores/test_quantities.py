"""Quantities that people read do not depend on the interval between checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.scores.quantities import as_quantity, quantity_factors, smoke_between


def sums_of(rate: np.ndarray, every: int) -> xr.DataArray:
    """Sums over checkpoints `every` h apart of an hourly concentration (hours,), from hour 1."""
    hours = np.arange(every, rate.size + 1, every)
    return xr.DataArray(
        np.cumsum(rate[hours - 1])[:, None],
        dims=["snapshot", "x"],
        coords={"hours": ("snapshot", hours.astype(float))},
        attrs={INTERVAL: float(every), "units": "ug m-3"},
    )


@pytest.mark.parametrize("quantity", ["mean", "dose"])
def test_a_steady_concentration_reads_the_same_with_every_interval(quantity):
    steady = np.full(24, 5.0)
    last = [as_quantity(sums_of(steady, every), quantity)[-1].item() for every in (1, 3, 6)]
    assert last == [5.0 if quantity == "mean" else 120.0] * 3


def test_the_mean_between_snapshots_is_the_concentration_of_each_interval():
    rate = np.arange(1.0, 9.0)
    found = smoke_between(sums_of(rate, 2), np.repeat("a", 4))
    np.testing.assert_allclose(found.values.ravel(), rate[1::2])
    assert found.attrs["units"] == "ug m-3"


def test_fires_are_kept_apart_and_missing_checkpoints_are_averaged_over():
    sums = xr.DataArray(
        [[2.0], [1.0], [6.0]],
        dims=["snapshot", "x"],
        coords={"hours": ("snapshot", [6.0, 6.0, 18.0])},
        attrs={INTERVAL: 6.0},
    )
    found = smoke_between(sums, np.array(["a", "b", "a"]))
    np.testing.assert_allclose(found.values.ravel(), [2.0, 1.0, 2.0])


def test_a_decrease_of_a_predicted_sum_counts_as_no_smoke():
    found = smoke_between(sums_of(np.array([3.0, -1.0]), 1), np.repeat("a", 2))
    np.testing.assert_allclose(found.values.ravel(), [3.0, 0.0])


def test_smoke_without_an_interval_has_no_time_mean():
    sums = sums_of(np.ones(6), 6)
    del sums.attrs[INTERVAL]
    with pytest.raises(pc.PlumecastError, match=r"does not record the interval.*quantity='sum'"):
        as_quantity(sums)
    assert as_quantity(sums, checkpoint_interval=6.0).item() == 1.0
    assert as_quantity(sums, "sum").item() == 1.0


def test_the_sum_says_that_it_depends_on_the_interval():
    found = as_quantity(sums_of(np.ones(6), 6), "sum")
    assert found.attrs[INTERVAL] == 6.0
    assert "not a mean over time" in found.attrs["comment"]
    assert INTERVAL not in as_quantity(sums_of(np.ones(6), 6), "mean").attrs


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"quantity": "median"}, "quantity='median' is unknown; choose from mean, dose, sum"),
        ({"interval": -1.0}, "checkpoint_interval=-1 must be a positive number of hours"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    sums = sums_of(np.ones(6), 6)
    with pytest.raises(pc.PlumecastError) as raised:
        quantity_factors(sums, sums, **arguments)
    assert str(raised.value) == words
