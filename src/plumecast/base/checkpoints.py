"""What the size of smoke depends on: the interval between checkpoints, and the column's depth.

Smoke is a sum over checkpoints. A WRF run had 2292 µg m⁻³ with a checkpoint every hour, and 606 at
the same hour with one every six.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

INTERVAL = "checkpoint_interval_hours"
"""Attribute of smoke: hours between the checkpoints that it is a sum over."""

DEPTH = "column_depth_m"
"""Attribute of smoke: height in m of the column that its concentrations are means over."""

FRAME_WEIGHTS = "frame_weights"
"""Attribute of smoke that sums over frames whose intervals differ: the weights of the frames."""

LOCAL_HOUR = "ignition_local_hour"
"""Attribute of fires that all ignite at one hour: that hour, in local solar time."""

DOSE_OF = "dose_coordinate"
"""Attribute of predicted smoke: its coordinate with the predicted dose."""

DOSE_ERROR = "dose_discretisation_error"
"""Attribute of smoke: relative error of its dose that the times of the source's frames leave."""

_TOLERANCE = 0.1  # largest difference of two intervals that count as equal, relative


def typical_interval(gaps: Sequence[float]) -> float | None:
    """The median of intervals (hours), whether they are equal or not; None of none.

    >>> typical_interval([1.0, 1.0, 3.0]), typical_interval([])
    (1.0, None)
    """
    return round(float(median(gaps)), 4) if gaps and median(gaps) > 0.0 else None  # a second: 3e-4


def equal_interval(gaps: Sequence[float]) -> float | None:
    """The length of intervals (hours) that are equal to a tenth; None if they are not.

    >>> equal_interval([6.0, 6.0, 6.001]), equal_interval([1.0, 6.0]), equal_interval([])
    (6.0, None, None)
    """
    if not gaps:
        return None
    middle = median(gaps)
    same = all(abs(gap - middle) <= _TOLERANCE * middle for gap in gaps)
    return typical_interval(gaps) if same else None


MOST_STEPS = 48
"""Largest number of hours between ignition and the last one that a step adds."""


def hour_ladder(hours: Sequence[float], step: float | None) -> list[float]:
    """Ascending hours since ignition and the multiples of a step before the last of them.

    >>> hour_ladder([2.5], 1.0), hour_ladder([6.0, 2.0], None)
    ([1.0, 2.0, 2.5], [2.0, 6.0])
    """
    asked = sorted(hours)
    if step is None:
        return asked
    width = max(step, asked[-1] / MOST_STEPS)
    between = [width * number for number in range(1, math.ceil(asked[-1] / width - 1e-6))]
    return sorted([*asked, *(t for t in between if min(abs(t - own) for own in asked) > 1e-6)])


def recorded_interval(attrs: Mapping[str, Any]) -> float | None:
    """The interval that the attributes of smoke record; None if they do not."""
    value = attrs.get(INTERVAL)
    return None if value is None else float(value)


def recorded_depth(attrs: Mapping[str, Any]) -> float | None:
    """The depth of the column in m that the attributes of smoke record; None if they do not."""
    value = attrs.get(DEPTH)
    return None if value is None else float(value)


def summed_over(interval: float | None) -> str:
    """What smoke is summed over, in words."""
    how = "(interval not recorded)" if interval is None else f"{interval:g} h apart"
    return f"checkpoints {how}"


def smoke_comment(interval: float | None, *, lowest: bool = False) -> str:
    """What smoke is, and what it is not; the `comment` of variables with its unit.

    `lowest` is for the concentration in the lowest model layer, otherwise it is the column mean.
    """
    what = "concentrations in the lowest model layer" if lowest else "column-mean concentrations"
    return (
        f"smoke is the sum of {what} over {summed_over(interval)}, up to the "
        "hour of the snapshot: not the concentration at one time, and not a mean over time"
    )
