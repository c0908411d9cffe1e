"""Tallies of blocks are added; medians leave out scores that are undefined."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.scores.footprint import relative_error
from plumecast.scores.tally import known_median, known_values, tally_rows


def test_tallies_of_blocks_add_up_to_that_of_the_whole():
    rng = np.random.default_rng(0)
    smoke, detected, observed = rng.random((3, 5, 12))
    levels = {"tau": 0.4, "alpha": 0.6}
    whole = tally_rows(smoke, detected, observed, seconds=3.0, **levels)
    first, second = (
        tally_rows(smoke[rows], detected[rows], observed[rows], seconds=1.5, **levels)
        for rows in (slice(0, 2), slice(2, 5))
    )
    joined = first + second
    np.testing.assert_array_equal(joined.above, whole.above)
    for name, values in whole.each.items():
        np.testing.assert_array_equal(joined.each[name], values)
    assert joined.relative_error == pytest.approx(whole.relative_error, rel=1e-12)
    assert whole.relative_error == relative_error(smoke, observed)
    assert joined.seconds == whole.seconds


def test_undefined_scores_do_not_count():
    scores = np.array([np.nan, 0.2, 0.8, np.nan, 0.3])
    assert known_median(scores) == 0.3
    assert known_median(xr.DataArray(scores, dims="snapshot")) == 0.3
    np.testing.assert_array_equal(known_values(scores), [0.2, 0.8, 0.3])


def test_the_median_of_no_known_score_is_undefined():
    assert np.isnan(known_median(np.full(3, np.nan)))
    assert np.isnan(known_median(np.array([])))
