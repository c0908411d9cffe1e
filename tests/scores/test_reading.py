"""Quantities of predicted smoke that comes in blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.scores.reading import read_as
from support.snapshots import make_snapshots

SMOKE = {"smoke": {"units": "ug m-3", INTERVAL: 6.0}}


@pytest.fixture
def predicted() -> xr.Dataset:
    """Sums of three fires with four snapshots each."""
    return make_snapshots(fires=3)[["smoke"]]


def in_blocks(data: xr.Dataset, size: int) -> list[xr.Dataset]:
    starts = range(0, data.sizes["snapshot"], size)
    return [data.isel(snapshot=slice(start, start + size)) for start in starts]


@pytest.mark.parametrize("quantity", ["mean", "dose", "between"])
@pytest.mark.parametrize("size", [4, 12])  # whole fires
def test_blocks_have_the_quantity_of_the_whole(predicted, quantity, size):
    reading = read_as(SMOKE, quantity)
    blocks = reading.applied(in_blocks(predicted, size), keep=True)
    found = xr.concat(list(blocks), "snapshot")
    fires = predicted.fire_id.values.astype(str)
    if quantity == "between":
        whole = pc.scores.smoke_between(predicted.smoke, fires)
    else:
        whole = pc.scores.as_quantity(predicted.smoke, quantity)
    np.testing.assert_array_equal(found[f"smoke_{quantity}"], whole)
    assert found[f"smoke_{quantity}"].attrs == whole.attrs
    xr.testing.assert_identical(found.smoke, predicted.smoke)


def with_bars(predicted: xr.Dataset) -> xr.Dataset:
    known = {"units": "ug m-3", "coverage": 0.9}
    lower, upper = (factor * predicted.smoke for factor in (0.5, 2.0))
    return predicted.assign(lower=lower.assign_attrs(known), upper=upper.assign_attrs(known))


@pytest.mark.parametrize("quantity", ["mean", "dose"])
def test_error_bars_are_of_the_quantity_that_they_stand_beside(predicted, quantity):
    """The surrogate records the interval with its smoke alone."""
    reading = replace(read_as(SMOKE, quantity), bands={"lower": "smoke", "upper": "smoke"})
    factors = {"dose_hours": [6.0, 12.0, 18.0, 24.0], "dose_factors": [0.5, 0.7, 0.8, 0.85]}
    data = with_bars(predicted)  # by a surrogate, which records the factors of its dose
    data["smoke"].attrs |= factors
    (block,) = reading.applied([data], keep=False)
    names = [f"{name}_{quantity}" for name in ("smoke", "lower", "upper")]
    assert list(block.data_vars) == names == reading.written(list(data.data_vars), keep=False)
    smoke, lower, upper = (block[name] for name in names)
    per = {"mean": data.hours, "dose": 1.0}[quantity]
    alone = (
        data.smoke
        * xr.DataArray(np.interp(data.hours, *factors.values()) * 6.0, dims="snapshot")
        / per
    )
    np.testing.assert_allclose(lower, np.minimum(0.5 * alone, smoke), rtol=1e-5)  # float32
    np.testing.assert_allclose(upper, np.maximum(2.0 * alone, smoke), rtol=1e-5)
    assert lower.attrs["units"] == smoke.attrs["units"]
    assert lower.attrs["coverage"] == 0.9
    assert lower.attrs["long_name"].startswith("lower end of the error bar of the time")
    (kept,) = reading.applied([data], keep=True)
    xr.testing.assert_identical(kept.upper, data.upper)


def test_smoke_between_snapshots_has_no_error_bars(predicted):
    reading = replace(read_as(SMOKE, "between"), bands={"lower": "smoke", "upper": "smoke"})
    (kept,) = reading.applied([with_bars(predicted)], keep=True)
    assert list(kept.data_vars) == ["smoke_between", "smoke", "lower", "upper"]
    assert reading.written(["smoke", "lower", "upper"], keep=False) == ["smoke_between"]


@pytest.mark.parametrize("fallen", [0.0, 0.01])
def test_error_bars_stay_on_their_sides_of_a_dose_that_may_not_fall(fallen):
    """A predicted sum falls; its dose does not, and neither end of its error bar crosses it."""
    labels = {"hours": ("snapshot", [2.0, 3.0]), "fire_id": ("snapshot", ["a", "a"])}
    attrs = {"checkpoint_interval_hours": 1.0, "units": "ug m-3"}
    values = {"smoke": [100.0, fallen], "lower": [50.0, 0.0], "upper": [200.0, 5.0]}
    block = xr.Dataset(
        {name: (("snapshot", "x"), np.array(own)[:, None], attrs) for name, own in values.items()},
        coords=labels,
    )
    reading = replace(read_as({"smoke": attrs}, "dose"), bands={"lower": "smoke", "upper": "smoke"})
    (found,) = reading.applied([block], keep=True)
    low, dose, high = (found[name].values for name in ("lower_dose", "smoke_dose", "upper_dose"))
    assert (low <= dose).all()
    assert (dose <= high).all()
    assert high.max() < 300.0


def test_without_an_interval_the_sum_is_read_unless_it_is_stated(predicted):
    unknown = {"smoke": {"units": "ug m-3"}}
    assert read_as(unknown).quantity.name == "sum"
    assert read_as(unknown, interval=6.0).quantity.name == "mean"
    assert read_as({"log_smoke": {"units": "1", INTERVAL: 6.0}}).names == ()
    del predicted.smoke.attrs[INTERVAL]
    (block,) = read_as(unknown, interval=6.0).applied([predicted], keep=True)
    assert block.smoke.attrs[INTERVAL] == 6.0


@pytest.mark.parametrize(
    ("outputs", "arguments", "words"),
    [
        (SMOKE, ("median",), "quantity='median' is unknown; choose from mean, dose, sum, between"),
        (SMOKE, ("mean", 1.0), "checkpoint_interval=1 contradicts the 6 h that 'smoke' records"),
        (SMOKE, ("mean", -1.0), "checkpoint_interval=-1 must be a positive number of hours"),
        ({"smoke": {"units": "ug m-3"}}, ("mean",), "does not record the interval"),
        ({"log_smoke": {INTERVAL: 6.0}}, ("dose",), "the surrogate predicts log_smoke"),
    ],
)
def test_quantities_that_cannot_be_read_are_refused(outputs, arguments, words):
    with pytest.raises(pc.PlumecastError, match=words):
        read_as(outputs, *arguments)
