"""Means over the hours and days of the clock, of smoke that is known at snapshots. Arrays only.

The dose D(h) = ∫ c dt, in µg m⁻³ h, is 0 at ignition, known at the snapshots and linear between
them. The mean of the hour from h to h + 1 since ignition is D(h + 1) − D(h), in µg m⁻³.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from plumecast.compute.arrays import Array

HOUR = timedelta(hours=1)
NEARLY = 0.02
"""Hours by which a fire may end before a full hour of the clock, whose mean is written all the
same: FARSITE ends seconds before."""


def dose_at(dose: Array, hours: Array, edge: float) -> Array:
    """D (y, x) at one hour since ignition, from (M, y, x) at rising hours (M,).

    >>> dose_at(np.array([[[6.0]], [[18.0]]]), np.array([2.0, 4.0]), 3.0).item()
    12.0
    """
    if edge <= 0.0:
        return np.zeros_like(dose[0])
    after = min(int(np.searchsorted(hours, edge)), hours.size - 1)
    start = hours[after - 1] if after else 0.0
    before = dose[after - 1] if after else np.zeros_like(dose[0])
    share = min(1.0, (edge - start) / (hours[after] - start))
    return np.asarray(before + share * (dose[after] - before))


def hourly_means(dose: Array, hours: Array, ignition: datetime) -> Iterator[tuple[datetime, Array]]:
    """(begin, mean) of every hour of the clock from ignition to the end of the snapshots.

    There is no smoke before ignition. What is left at the end, if it is more than `NEARLY` less
    than an hour, is left out. A predicted dose may fall; no mean is below 0.
    """
    begin = ignition.replace(minute=0, second=0, microsecond=0)
    edge = (begin - ignition) / HOUR
    while edge + 1.0 <= float(hours[-1]) + NEARLY:
        mean = dose_at(dose, hours, edge + 1.0) - dose_at(dose, hours, edge)
        yield begin, np.maximum(mean, 0.0)
        begin, edge = begin + HOUR, edge + 1.0
