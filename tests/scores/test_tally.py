"""Tallies of blocks are added; medians leave out scores that are undefined."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from plumecast.scores.footprint import relative_error
from plumecast.scores.tally import (
    exceedance_counts,
    exceedance_of,
    join_tallies,
    known_median,
    known_values,
    tally_rows,
)


def test_tallies_of_blocks_add_up_to_that_of_the_whole():
    rng = np.random.default_rng(0)
    smoke, detected, observed = rng.random((3, 5, 12))
    levels = {"tau": 0.4, "alpha": 0.6}
    whole = tally_rows(smoke, detected, observed, seconds=3.0, **levels)
    first, second = (
        tally_rows(smoke[rows], detected[rows], observed[rows], seconds=1.5, **levels)
        for rows in (slice(0, 2), slice(2, 5))
    )
    joined = join_tallies([first, second])
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


PREDICTED = np.array([[0.0, 40.0, 50.0, 120.0], [36.0, 0.0, 35.0, 10.0]])
OBSERVED = np.array([[0.0, 60.0, 20.0, 90.0], [40.0, 80.0, 0.0, 0.0]])


def test_a_table_computed_by_hand():
    counts = exceedance_counts(PREDICTED, OBSERVED, [35.0, 100.0])
    np.testing.assert_array_equal(counts, [[3, 4, 4], [0, 1, 0]])
    found = exceedance_of(35.0, counts[0])
    assert (found.hit_rate, found.false_alarm_ratio, found.bias) == (0.75, 0.25, 1.0)
    assert found.iou == 3 / 5


def test_counts_of_blocks_add_up():
    levels = [0.0, 35.0, 100.0]
    parts = sum(exceedance_counts(PREDICTED[[row]], OBSERVED[[row]], levels) for row in (0, 1))
    np.testing.assert_array_equal(parts, exceedance_counts(PREDICTED, OBSERVED, levels))


@pytest.mark.parametrize(
    ("counts", "hit_rate", "false_alarms", "bias", "iou"),
    [
        ([0, 0, 0], math.nan, math.nan, math.nan, 1.0),
        ([0, 2, 0], math.nan, 1.0, math.nan, 0.0),
        ([0, 0, 2], 0.0, math.nan, 0.0, 0.0),
    ],
)
def test_without_observed_or_predicted_smoke(counts, hit_rate, false_alarms, bias, iou):
    found = exceedance_of(35.0, np.array(counts))
    expected = [hit_rate, false_alarms, bias, iou]
    given = [found.hit_rate, found.false_alarm_ratio, found.bias, found.iou]
    np.testing.assert_array_equal(given, expected)
