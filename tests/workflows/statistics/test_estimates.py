"""Intervals of exceedance probabilities do not contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.scores.reading import Reading
from plumecast.workflows.statistics.estimates import Corrected, nested_shares
from support.snapshots import make_snapshots


def share(mean, lower, upper):
    return Corrected(*(np.array([value]) for value in (mean, 0.01, lower, upper, mean)))


def ends(parts):
    return [(float(part.lower[0]), float(part.upper[0])) for part in parts]


def test_intervals_in_order_stay_as_they_are():
    given = [share(0.5, 0.4, 0.6), share(0.2, 0.1, 0.3)]
    assert ends(nested_shares(given, (1.0, 35.0))) == [(0.4, 0.6), (0.1, 0.3)]


def test_a_rarer_event_extends_the_upper_end_of_a_more_frequent_one():
    given = [share(0.02, 0.01, 0.03), share(0.0, 0.0, 0.05)]
    assert ends(nested_shares(given, (1.0, 35.0))) == [(0.01, 0.05), (0.0, 0.05)]


def test_a_more_frequent_event_extends_the_lower_end_of_a_rarer_one():
    given = [share(0.9, 0.7, 1.0), share(0.8, 0.75, 0.85)]
    assert ends(nested_shares(given, (1.0, 35.0))) == [(0.7, 1.0), (0.7, 0.85)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_order_of_the_thresholds_does_not_matter(order):
    given = [share(0.5, 0.4, 0.6), share(0.3, 0.1, 0.7), share(0.2, 0.15, 0.65)]
    thresholds = (1.0, 10.0, 35.0)
    found = nested_shares([given[i] for i in order], [thresholds[i] for i in order])
    expected = [(0.4, 0.7), (0.1, 0.7), (0.1, 0.65)]
    assert ends(found) == [expected[i] for i in order]


def test_maps_and_places_of_an_ensemble_are_in_order(split):
    """With few fires the intervals of rare events are wider than those of frequent ones."""
    surrogate = pc.train_surrogate(split.train, "paper-linear", split=None)
    fires = make_snapshots(fires=20, checkpoints=2, seed=5)
    levels = [35.0, 0.1, 1.0, 5.0]
    found = pc.ensemble_statistics(surrogate, fires, Reading("sum", levels))
    for name in ("exceedance_lower", "exceedance_upper"):
        steps = found[name].sortby("threshold").diff("threshold")
        assert float(steps.max()) <= 0.0, name
