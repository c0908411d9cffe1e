"""The interval between checkpoints, on which the size of smoke depends.

Smoke is a sum over checkpoints. A WRF run had 2292 µg m⁻³ with a checkpoint every hour, and 606 at
the same hour with one every six.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

INTERVAL = "checkpoint_interval_hours"
"""Attribute of smoke: hours between the checkpoints that it is a sum over."""

_TOLERANCE = 0.1  # largest difference of two intervals that count as equal, relative
_DIGITS = 4  # of the interval in hours; a second is 0.0003 h


def equal_interval(gaps: Sequence[float]) -> float | None:
    """The length of intervals (hours) that are equal to a tenth; None if they are not.

    >>> equal_interval([6.0, 6.0, 6.001]), equal_interval([1.0, 6.0]), equal_interval([])
    (6.0, None, None)
    """
    if not gaps:
        return None
    middle = median(gaps)
    same = all(abs(gap - middle) <= _TOLERANCE * middle for gap in gaps)
    return round(float(middle), _DIGITS) if same and middle > 0.0 else None


def recorded_interval(attrs: Mapping[str, Any]) -> float | None:
    """The interval that the attributes of smoke record; None if they do not."""
    value = attrs.get(INTERVAL)
    return None if value is None else float(value)


def summed_over(interval: float | None) -> str:
    """What smoke is summed over, in words."""
    if interval is None:
        return "checkpoints (interval not recorded)"
    return f"checkpoints {interval:g} h apart"


def smoke_comment(interval: float | None) -> str:
    """What smoke is, and what it is not; the `comment` of variables with its unit."""
    return (
        f"smoke is the sum of column-mean concentrations over {summed_over(interval)}, up to the "
        "hour of the snapshot: not the concentration at one time, and not a mean over time"
    )
