"""Quantities that people read do not depend on the interval between checkpoints."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.scores.quantities import (
    as_quantity,
    dose_factor,
    dose_table,
    smoke_between,
)


def sums_of(rate: np.ndarray, every: int) -> xr.DataArray:
    """Sums over frames `every` h apart of an hourly concentration (hours,), from hour 1."""
    hours = np.arange(every, rate.size + 1, every)
    return xr.DataArray(
        np.cumsum(rate[hours - 1])[:, None],
        dims=["snapshot", "x"],
        coords={
            "hours": ("snapshot", hours.astype(float)),
            "fire_id": ("snapshot", np.repeat("a", hours.size)),
        },
        attrs={INTERVAL: float(every), "units": "ug m-3"},
    )


def test_smoke_that_grows_evenly_reads_the_same_with_every_interval():
    """The trapezoid is exact for c = 2 t, whose dose is t²."""
    growing = 2.0 * np.arange(1.0, 25.0)
    for every in (1, 2, 3, 6):
        sums = sums_of(growing, every)
        np.testing.assert_allclose(as_quantity(sums, "dose")[:, 0], sums.hours**2)
        np.testing.assert_allclose(as_quantity(sums, "mean")[:, 0], sums.hours)
        alone = sums.isel(snapshot=[-1])
        assert as_quantity(alone, "dose").item() == pytest.approx(24.0**2)


@settings(max_examples=30)
@given(
    rate=hnp.arrays(float, 24, elements=st.floats(0.0, 1e3)),
    every=st.sampled_from([1, 2, 3, 6]),
    phase=st.floats(0.05, 1.0),
)
def test_the_dose_is_the_trapezoid_over_the_frames_from_ignition(rate, every, phase):
    """Whatever the time of the first frame; the intervals add up to it."""
    sums = sums_of(rate, every)
    hours = (np.arange(sums.sizes["snapshot"]) + phase) * every
    sums = sums.assign_coords(hours=("snapshot", hours))
    frames = np.append(0.0, rate[every - 1 :: every])
    expected = [np.trapezoid(frames[: n + 2], np.append(0.0, hours)[: n + 2])
                for n in range(hours.size)]  # fmt: skip
    dose = as_quantity(sums, "dose").values[:, 0]
    np.testing.assert_allclose(dose, expected, rtol=1e-9, atol=1e-9 * (1.0 + rate.sum()))
    gaps = np.diff(np.append(0.0, hours))
    between = smoke_between(sums, sums.fire_id.values).values[:, 0]
    np.testing.assert_allclose(np.cumsum(between * gaps), dose, rtol=1e-9, atol=1e-6)


def test_a_missing_snapshot_costs_half_a_frame_at_most():
    """Its frames are in the sum; only how the last of them differ is unknown."""
    rate = np.arange(1.0, 13.0)
    whole, some = sums_of(rate, 1), sums_of(rate, 1).isel(snapshot=[0, 1, 2, 3, 4, 11])
    exact = as_quantity(whole, "dose")[-1].item()
    assert as_quantity(some, "dose")[-1].item() == pytest.approx(exact, abs=0.5 * np.ptp(rate[5:]))


def test_fires_are_kept_apart():
    two = xr.concat([sums_of(np.full(6, 2.0), 1), sums_of(np.full(6, 8.0), 1)], "snapshot")
    two = two.assign_coords(fire_id=("snapshot", np.repeat(["a", "b"], 6)))
    mixed = two.isel(snapshot=[0, 6, 7, 1, 2, 8, 3, 9, 4, 10, 11, 5])
    dose = as_quantity(mixed, "dose").values[:, 0]
    np.testing.assert_allclose(dose[-2:], [8.0 * 5.5, 2.0 * 5.5])


def test_a_decrease_of_a_predicted_sum_counts_as_no_smoke():
    falling = sums_of(np.array([3.0, -2.9]), 1)
    found = smoke_between(falling, np.repeat("a", 2))
    assert found.values[1, 0] == 0.0
    assert (np.diff(as_quantity(falling, "dose").values[:, 0]) >= 0.0).all()


def test_predicted_smoke_is_read_by_the_factors_of_training_alone():
    """So that an answer does not depend on which other hours were asked for."""
    train = sums_of(np.array([1.0, 3.0, 5.0, 4.0]), 1)
    table = dose_table(train.fire_id.values, train.hours.values, train.values[:, 0], interval=1.0)
    predicted = train.assign_attrs(table)
    expected = as_quantity(train, "dose").values
    np.testing.assert_allclose(as_quantity(predicted, "dose").values, expected)
    for row in range(4):
        one = as_quantity(predicted.isel(snapshot=[row]), "dose")
        np.testing.assert_allclose(one.values, expected[[row]])


@given(hours=st.floats(1e-3, 60.0), interval=st.sampled_from([0.5, 1.0, 6.0]))
def test_the_factor_of_the_dose_is_continuous_and_never_falls(hours, interval):
    tables = [
        {},
        dose_table(np.repeat("a", 8), interval * np.arange(1.0, 9.0), np.arange(1.0, 9.0) ** 2,
                   interval),
    ]  # fmt: skip
    for table in tables:
        here, later = dose_factor(table, np.array([hours, hours + 0.01]), interval)
        assert 0.0 <= here <= later <= 1.0
        assert later - here <= 0.01 / interval


def test_hours_before_the_first_of_training_follow_even_growth():
    """Training on final snapshots alone must not make earlier doses fall to nothing."""
    table = dose_table(np.array(["a"]), np.array([24.0]), np.array([5.0]), 1.0)
    even, found = (dose_factor(own, np.array([6.0, 12.0, 24.0]), 1.0) for own in ({}, table))
    np.testing.assert_allclose(found, even)


def test_predictions_closer_than_the_frames_are_not_taken_for_frames():
    """Surrogates of earlier versions have no table; hourly answers of six-hourly frames."""
    hours = np.arange(1.0, 13.0)
    sums = xr.DataArray(
        np.maximum(hours - 6.0, 0.0)[:, None] + hours[:, None],  # c = t at h and at h − 6
        dims=["snapshot", "x"],
        coords={"hours": ("snapshot", hours), "fire_id": ("snapshot", np.repeat("a", 12))},
        attrs={INTERVAL: 6.0},
    )
    dose = as_quantity(sums, "dose").values[:, 0]
    np.testing.assert_allclose(dose[[5, 11]], [18.0, 72.0])
    assert np.abs(dose / (hours**2 / 2.0) - 1.0).max() < 0.35


def test_the_scale_of_a_dose_is_that_of_smoke_alone():
    sums = sums_of(np.arange(1.0, 7.0), 1).assign_coords(dose_scale=("snapshot", np.full(6, 2.0)))
    plain = as_quantity(sums.drop_vars("dose_scale"), "dose").values
    np.testing.assert_allclose(as_quantity(sums.rename("smoke"), "dose"), 2.0 * plain)
    np.testing.assert_allclose(as_quantity(sums.rename("surface_smoke"), "dose"), plain)


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        ({}, {"quantity": "median"}, "'median' is unknown; choose from mean, dose, sum"),
        ({}, {"checkpoint_interval": -1.0}, "must be a positive number of hours"),
        ({INTERVAL: None}, {}, "does not record the interval.*quantity 'sum'"),
    ],
)
def test_what_has_no_quantity_is_refused(change, arguments, words):
    sums = sums_of(np.ones(6), 6).assign_attrs(change)
    with pytest.raises(pc.PlumecastError, match=words):
        as_quantity(sums, **arguments)
    with pytest.raises(pc.PlumecastError, match=r"one variable, such as data\['smoke'\], of smoke"):
        as_quantity(sums.to_dataset(name="smoke"))
