"""Maps that a person reads have colours of the time mean; the paper's have those of the sum."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.checkpoints import INTERVAL
from plumecast.paper.figures import MEAN, SUM, compare_maps, compare_one, mean_colours, sum_colours
from support.snapshots import CHECKPOINT, make_snapshots

TAU = 0.05


def test_colours_of_the_time_mean_hide_what_is_below_the_threshold_of_the_sum():
    snapshots = make_snapshots(fires=2)
    colours = mean_colours(snapshots)
    frames = snapshots.hours.values / CHECKPOINT
    np.testing.assert_allclose(colours.factors, 1.0 / (frames + 1.0))  # grows evenly
    rows = [0, 3]
    figure = compare_maps(
        snapshots, {"same": snapshots.smoke}, rows, ["a", "b"], TAU, colours=colours
    )
    assert figure.axes[-1].get_xlabel() == MEAN  # of the colour bar
    for panel, row in enumerate(rows):
        sums = snapshots.smoke.values[row]
        expected = np.where(sums > TAU, sums / (frames[row] + 1.0), np.nan)
        drawn = np.ma.filled(figure.axes[panel].collections[0].get_array(), np.nan)
        np.testing.assert_allclose(drawn.reshape(sums.shape), expected, rtol=1e-6)
    one = compare_one(snapshots, snapshots.smoke, 3, TAU, sum_colours(snapshots))
    assert one.axes[-1].get_xlabel() == SUM


@pytest.mark.parametrize("lost", ["interval", "hours"])
def test_without_interval_or_hours_the_sum_is_shown_and_said(lost):
    snapshots = make_snapshots(fires=2)
    if lost == "interval":
        del snapshots.smoke.attrs[INTERVAL]
    else:
        snapshots = snapshots.drop_vars("hours")
    assert mean_colours(snapshots).label == SUM
