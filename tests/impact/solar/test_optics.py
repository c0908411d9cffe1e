"""Column concentration → optical depth, and samples of the optical properties."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.impact.optics import Optics, column_depth, sample_optics


def test_optical_depth_is_extinction_times_column_mass():
    grams_per_m2 = 0.15  # 10 µg m⁻³ over 15 km
    field = xr.DataArray([0.0, 10.0], dims="x", coords={"x": [2.0, 3.0]}, attrs={"units": "ug m-3"})
    found = pc.optical_depth(field, 15_000.0, mee=4.0, growth=1.5)
    np.testing.assert_allclose(found, [0.0, 4.0 * 1.5 * grams_per_m2])
    assert found.attrs["units"] == "1"
    assert found.x.values.tolist() == [2.0, 3.0]
    with pytest.raises(pc.PlumecastError, match="column_depth=15 must be in m"):
        pc.optical_depth(field, 15.0)


def test_the_recorded_depth_is_used_and_a_missing_one_asked_for():
    smoke = xr.DataArray([1.0], name="smoke", attrs={"column_depth_m": 14_000.0})
    assert column_depth(smoke) == 14_000.0
    assert column_depth(smoke, 15_000.0) == 15_000.0
    with pytest.raises(pc.PlumecastError, match="column_depth is missing: 'smoke' does"):
        column_depth(smoke.drop_attrs())


def test_samples_fill_the_ranges_evenly_and_are_seeded():
    optics, count = Optics(), 50
    mee, ssa = sample_optics(optics, count, seed=3)
    again, _ = sample_optics(optics, count, seed=3)
    np.testing.assert_array_equal(mee, again)
    low, high = np.log(optics.mee_range)
    share = (np.log(np.sort(mee)) - low) / (high - low)
    # A Latin hypercube has one sample in each of its equal parts.
    np.testing.assert_array_equal(np.floor(share * count), np.arange(count))
    assert ssa.min() >= 0.88
    assert ssa.max() <= 0.97


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mee": 30.0}, "mee=30 must lie within 0.1 … 20 m²/g"),
        ({"mee": 2.0}, "mee=2 lies outside its range, 3.3,7.4"),
        ({"ssa": 1.2}, "ssa=1.2 must lie within"),
        ({"growth": 0.0}, "growth=0 must lie within"),
    ],
)
def test_properties_that_cannot_be_true_are_refused(given, message):
    with pytest.raises(pc.PlumecastError, match=message):
        Optics(**given)
