"""The studies by name: each module has the table, the figures, the captions and the remarks of one.

A new study is one module here and one line in `_ALL`.
"""

from __future__ import annotations

from plumecast.base.errors import PlumecastError
from plumecast.paper import (
    footprint,
    learning_curve,
    optical_depth,
    sensitivity,
    shift,
    summary,
    weather,
)
from plumecast.paper.context import Study

_ALL = (
    optical_depth.STUDY,
    footprint.LINEAR,
    footprint.QUADRATIC,
    footprint.RECOMMENDED,
    sensitivity.STUDY,
    shift.STUDY,
    weather.STUDY,
    footprint.PROCESSES,
    summary.STUDY,
    learning_curve.STUDY,
)

STUDIES: dict[str, Study] = {study.name: study for study in _ALL}


def find_studies(names: list[str]) -> list[Study]:
    """The named studies, or all of them for `all`, in the order of the registry."""
    unknown = [name for name in names if name not in STUDIES and name != "all"]
    if unknown:
        raise PlumecastError(
            f"study '{unknown[0]}' does not exist; choose from {', '.join(STUDIES)} or all"
        )
    if not names:
        raise PlumecastError(f"no study is named; choose from {', '.join(STUDIES)} or all")
    return [study for study in _ALL if "all" in names or study.name in names]
