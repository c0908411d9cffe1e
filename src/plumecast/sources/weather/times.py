"""Times of a source → hours since ignition."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array

IgnitionTime: TypeAlias = str | datetime | np.datetime64
"""ISO time such as "2013-05-03T12:00", or month, day and time as in FARSITE, "05 03 1200"."""

_MONTH_DAY = re.compile(r"(\d{1,2})[ /](\d{1,2})[ ,]+(\d{1,2}):?(\d\d)")


class Moment(NamedTuple):
    """A time of day on a date; the year may be left to the file."""

    year: int | None
    month: int
    day: int
    hour: int
    minute: int
    has_zone: bool = False  # the stated time had a zone and was turned into UTC

    def on(self, year: int) -> np.datetime64:
        """The time in a year."""
        return np.datetime64(
            f"{year:04d}-{self.month:02d}-{self.day:02d}T{self.hour:02d}:{self.minute:02d}", "s"
        )


def parse_ignition(ignition: IgnitionTime | None, source: object, what: str) -> Moment:
    """The ignition time that was stated; raises if there is none or it cannot be read."""
    example = 'e.g. ignition="2013-05-03T12:00" or "05 03 1200" (month, day, time)'
    if ignition is None:
        raise PlumecastError(f"{source}: {what}; state the ignition time, {example}")
    text = str(ignition).strip()
    short = _MONTH_DAY.fullmatch(text)
    try:
        if short:
            month, day, hour, minute = (int(part) for part in short.groups())
            datetime(2000, month, day, hour, minute)  # a leap year: raises for other dates
            return Moment(None, month, day, hour, minute)
        time = datetime.fromisoformat(text[:26] if "." in text else text)
    except ValueError:
        raise PlumecastError(f"ignition={text!r} is not a time; give {example}") from None
    zoned = time.tzinfo is not None
    time = time.astimezone(UTC) if zoned else time
    return Moment(time.year, time.month, time.day, time.hour, time.minute, zoned)


def parse_time(text: str, where: str) -> tuple[np.datetime64, bool]:
    """An ISO time, and whether it had a zone; it is then turned into UTC."""
    try:
        time = datetime.fromisoformat(text.strip().replace("/", "-"))
    except ValueError:
        raise PlumecastError(f"{where}{text!r} is not a time such as 2013-05-03T12:00") from None
    zoned = time.tzinfo is not None
    time = time.astimezone(UTC).replace(tzinfo=None) if zoned else time
    return np.datetime64(time, "s"), zoned


def hours_since(times: Array, ignition: Moment, source: object) -> Array:
    """Hours from ignition to `times` (datetime64).

    Without a year, the ignition is in the year in which the times include it.
    """
    stamps = np.asarray(times).astype("datetime64[s]")
    if np.isnat(stamps).any():
        raise PlumecastError(f"{source}: a time is missing (NaT); remove it")
    first, last = stamps.min(), stamps.max()
    if ignition.year is not None:
        start = ignition.on(ignition.year)
    else:
        years = range(_year(first), _year(last) + 1)
        found = [ignition.on(year) for year in years if _exists(ignition, year)]
        inside = [time for time in found if first - np.timedelta64(1, "h") <= time <= last]
        if len(inside) > 1:
            raise PlumecastError(
                f"{source}: the weather has several years; state the year of the ignition, e.g. "
                f'ignition="{str(inside[0])[:16]}"'
            )
        start = inside[0] if inside else (found or [ignition.on(2000)])[0]
    if not first - np.timedelta64(1, "h") <= start <= last:
        raise PlumecastError(
            f"{source}: the weather is of {str(first)[:16]} to {str(last)[:16]}, but the fire "
            f"ignites {str(start)[:16]}; check ignition or give the weather of that time"
        )
    return (stamps - start).astype(np.float64) / 3600.0


def _year(stamp: np.datetime64) -> int:
    return int(str(stamp)[:4])


def _exists(moment: Moment, year: int) -> bool:
    try:
        datetime(year, moment.month, moment.day)
    except ValueError:
        return False
    return True
