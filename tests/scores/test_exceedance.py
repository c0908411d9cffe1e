"""Smoke above thresholds: a table computed by hand, sums over blocks, edge cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from plumecast.scores.tally import exceedance_counts, exceedance_of

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
