"""Medians of scores that are undefined for some snapshots."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.scores.summary import known_median, known_values


def test_undefined_scores_do_not_count():
    scores = np.array([np.nan, 0.2, 0.8, np.nan, 0.3])
    assert known_median(scores) == 0.3
    assert known_median(xr.DataArray(scores, dims="snapshot")) == 0.3
    np.testing.assert_array_equal(known_values(scores), [0.2, 0.8, 0.3])


def test_the_median_of_no_known_score_is_undefined():
    assert np.isnan(known_median(np.full(3, np.nan)))
    assert np.isnan(known_median(np.array([])))
