"""Units of speeds and heights: stated in the file or by the user, never guessed."""

from __future__ import annotations

import re

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array

SPEEDS = {"m/s": 1.0, "km/h": 1.0 / 3.6, "knots": 1852.0 / 3600.0, "mph": 1609.344 / 3600.0}
"""Speed units in m s⁻¹."""

LENGTHS = {"m": 1.0, "km": 1000.0, "ft": 0.3048}
"""Length units in m."""

_SPEED_LABELS = {
    "m/s": r"m/s|mps|ms|ms-?1|m\.?s-1|m s\^?-1|m s\*\*-1|met(er|re)s?( |/|_)?(per)?( |_)?s(econd)?",
    "km/h": r"km/h(r)?|kmh|kph|km ?h\^?-1|km ?h\*\*-1|kilomet(er|re)s?( |/|_)?(per)?( |_)?hour",
    "knots": r"kn|kt|kts|knots?|nmi/h",
    "mph": r"mph|mi/h(r)?|mi h-1|miles?( |/|_)?(per)?( |_)?hour",
}
_LENGTH_LABELS = {
    "m": r"m|met(er|re)s?|m ?agl|m ?asl|m ?amsl|gpm",
    "km": r"km|kilomet(er|re)s?",
    "ft": r"ft|feet|foot",
}


def speed_label(label: str) -> str | None:
    """Key of `SPEEDS` for a label such as "m s-1" or "kts"; None if it is no unit of speed."""
    return _find(label, _SPEED_LABELS)


def length_label(label: str) -> str | None:
    """Key of `LENGTHS` for a label such as "feet"; None if it is no unit of length."""
    return _find(label, _LENGTH_LABELS)


def speed_unit(source: object, found: str | None, stated: str | None, name: str) -> str:
    """The unit of speeds: `found` in the file, or `stated` by the user; both must agree."""
    if stated is not None and stated not in SPEEDS:
        raise PlumecastError(f"speed_unit={stated!r} is not known; give {', '.join(SPEEDS)}")
    if found is None and stated is None:
        raise PlumecastError(
            f"{source}: the unit of {name} is not stated; state speed_unit, one of "
            f"{', '.join(SPEEDS)}"
        )
    if found is not None and stated is not None and found != stated:
        raise PlumecastError(
            f"{source}: {name} is in {found}, but speed_unit={stated!r}; leave out speed_unit"
        )
    unit = found or stated
    assert unit is not None
    return unit


def components(speed: Array, direction_from: Array) -> tuple[Array, Array]:
    """(u, v) of winds that come from `direction_from`, in degrees clockwise from north."""
    angle = np.deg2rad(direction_from)
    return -speed * np.sin(angle), -speed * np.cos(angle)


def _find(label: str, table: dict[str, str]) -> str | None:
    text = label.strip().lower()
    return next((unit for unit, labels in table.items() if re.fullmatch(labels, text)), None)
