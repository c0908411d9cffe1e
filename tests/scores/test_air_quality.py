"""The air quality index: the EPA's table, what is refused, and 24 h means from sums."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import LEVEL, LOWEST
from support.snapshots import make_snapshots
from support.two_outputs import add_surface

TABLE = {
    0.0: 0, 9.0: 50, 9.1: 51, 35.4: 100, 35.5: 101, 55.4: 150, 55.5: 151, 125.4: 200,
    125.5: 201, 225.4: 300, 225.5: 301, 325.4: 500,
}  # fmt: skip
"""Ends of the segments in the EPA's table of May 2024: 24 h mean PM2.5 and index."""


def test_nan_is_kept_and_values_above_the_table_are_beyond_the_index():
    found = pc.scores.air_quality_index(np.array([np.nan, 325.5, 1e4]))
    assert np.isnan(found[0])
    assert np.isinf(found[1:]).all()
    assert pc.scores.air_quality_category(found[1]) == "beyond the index"
    assert pc.scores.air_quality_category(found[0]) == "unknown"


@pytest.mark.parametrize(
    ("name", "attrs", "message"),
    [
        ("smoke", {}, "'smoke' is a column mean"),
        ("smoke_24h", {}, "'smoke' is a column mean"),
        ("smoke_PM2_5_DRY", {}, "is a column mean"),
        ("anything", {LEVEL: "column mean"}, "is a column mean"),
        ("surface_smoke_co", {LEVEL: LOWEST}, "is co, and the index is that of PM2.5"),
        ("surface_smoke", {INTERVAL: 6.0}, "is a sum over checkpoints"),
    ],
)
def test_fields_that_are_no_surface_mean_are_refused(name, attrs, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.scores.air_quality_index(xr.DataArray(np.ones(3), dims="x", name=name, attrs=attrs))


def test_the_mean_over_a_day_follows_from_the_sums():
    """Frames 6 h apart: the dose of the last day, with half of the frames at its ends."""
    data = add_surface(make_snapshots(fires=2, checkpoints=6)).isel(snapshot=slice(0, 6))
    sums = data.surface_smoke.values.astype(np.float64)
    found = pc.scores.day_mean(data)
    frames = np.maximum(np.diff(sums, axis=0, prepend=0.0), 0.0)
    np.testing.assert_allclose(found[1], (frames[0] + frames[1] / 2.0) / 4.0, rtol=1e-5)
    np.testing.assert_allclose(found[3], (sums[3] - frames[3] / 2.0) / 4.0, rtol=1e-5)
    whole = sums[5] - frames[5] / 2.0 - sums[1] + frames[1] / 2.0
    np.testing.assert_allclose(found[5], whole / 4.0, rtol=1e-4, atol=1e-4)
    index = pc.scores.air_quality_index(found)
    assert index.name == "air_quality_index"
    assert index.dims == data.surface_smoke.dims


def test_a_missing_checkpoint_or_interval_is_not_guessed():
    data = add_surface(make_snapshots(fires=2, checkpoints=6)).isel(snapshot=[0, 2, 3, 4, 5])
    assert np.isnan(pc.scores.day_mean(data)[-1]).all()
    del data.surface_smoke.attrs[INTERVAL]
    with pytest.raises(pc.PlumecastError, match="does not record the interval"):
        pc.scores.day_mean(data)
    with pytest.raises(pc.PlumecastError, match="'surface_smoke' is missing"):
        pc.scores.day_mean(data.drop_vars("surface_smoke"))


def test_the_index_is_that_of_the_table():
    """(151 … 200) over (55.5 … 125.4): 100 is at 151 + 49 · 44.5 / 69.9 = 182.2. Tenths are cut."""
    found = pc.scores.air_quality_index([*TABLE, 9.09, 35.49, 100.0])
    np.testing.assert_array_equal(found, [*TABLE.values(), 50.0, 100.0, 182.0])
    with pytest.raises(pc.PlumecastError, match="-1 µg m⁻³"):
        pc.scores.air_quality_index([-1.0, np.nan])
