"""What a user says about a weather file, and its times → hours since ignition."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.units import KINDS, unit_named, units_of
from plumecast.base.values import setting
from plumecast.compute.arrays import Array
from plumecast.physics.air import NIGHT_DEPTH
from plumecast.weather.profile import DAY_DEPTH, VEER

IgnitionTime: TypeAlias = str | datetime | np.datetime64
"""ISO time such as "2013-05-03T12:00", or month, day and time as in FARSITE, "05 03 1200"."""

TRUE, GRID = NORTHS = ("true", "grid")
"""What directions count from: true north, as people state winds, or the y axis of the fires."""

_LEAP_YEAR = 2000  # has every date
_MONTH_DAY = re.compile(r"(\d{1,2})[ /](\d{1,2})[ ,]+(\d{1,2}):?(\d\d)")
_EXAMPLE = 'e.g. "2013-05-03T12:00" or "05 03 1200" (month, day, time)'


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a gridded file, and the height of its ground."""

    latitude: float | None = setting(
        None,
        "With --weather: the place in a gridded file; with --longitude.",
        default_text="the mean of the file",
    )
    longitude: float | None = setting(None, "With --weather: see --latitude.")
    elevation: float | None = setting(
        None, "With --weather: height of the ground (m), where heights are above sea level."
    )

    def __post_init__(self) -> None:
        _check_range("latitude", self.latitude, -90.0, 90.0)
        _check_range("longitude", self.longitude, -180.0, 360.0)
        _check_range("elevation", self.elevation, -500.0, 9000.0)
        for name, other in (("latitude", "longitude"), ("longitude", "latitude")):
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise ArgumentError(name, getattr(self, name), f"give {other} too")


@dataclass(frozen=True, slots=True)
class DefaultProfile:
    """The wind profile and the boundary layer that complete what a source does not say."""

    local_hour: float | None = setting(
        None,
        "With --weather: local solar time at ignition, where the file has no boundary layer.",
        default_text="of the file, or 12",
    )
    veer: float = VEER  # clockwise turning across the boundary layer, degree
    day_depth: float = DAY_DEPTH  # deepest boundary layer of the day, m

    def __post_init__(self) -> None:
        _check_range("local_hour", self.local_hour, 0.0, 24.0)
        _check_range("veer", self.veer, -90.0, 90.0)
        _check_range("day_depth", self.day_depth, NIGHT_DEPTH, 10_000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `read_weather`, which explains them."""

    ignition: IgnitionTime | None = setting(
        None,
        "With --weather: time of ignition, where the file has dates, e.g. 2013-05-03T12:00 "
        "(NetCDF: in UTC) or, as in FARSITE, '05 03 1200'.",
        option="ignition_time",
    )
    speed_unit: str | None = setting(
        None, "With --weather: m/s, km/h, knots or mph, where the file does not state the unit."
    )
    direction_is: str | None = setting(
        None, "With --weather: 'to' if its directions say where the wind blows to."
    )
    north: str = setting(
        TRUE, "What directions count from: true, or grid for the y axis of the fires."
    )
    site: Site = field(default_factory=Site)
    profile: DefaultProfile = field(default_factory=DefaultProfile)

    def __post_init__(self) -> None:
        if self.speed_unit is not None:
            object.__setattr__(self, "speed_unit", checked_speed_unit(self.speed_unit))
        if self.direction_is not in (None, "from", "to"):
            raise ArgumentError("direction_is", self.direction_is, "give 'from' or 'to'")
        check_north(self.north)

    def speed_unit_of(self, source: object, unit: str | None, what: str) -> str:
        """The unit of speeds: `unit` of the file, or as the user says; both must agree."""
        if unit is None and self.speed_unit is None:
            raise ArgumentError(
                "speed_unit", None, f"{source}: the unit of {what} is not stated; give "
                f"{units_of('speed')}"
            )  # fmt: skip
        if unit is not None and self.speed_unit not in (None, unit):
            raise ArgumentError(
                "speed_unit", self.speed_unit, f"{source}: {what} is in {unit}; leave it out"
            )
        return str(unit or self.speed_unit)


def check_north(north: str) -> None:
    """Raise unless directions count from true north or from that of the grid."""
    if north not in NORTHS:
        raise ArgumentError(
            "north", north, "give 'true', or 'grid' for directions from the y axis of the fires"
        )


def checked_speed_unit(unit: str) -> str:
    """The name of a unit of speed; raises if it is none."""
    name = unit if unit in KINDS["speed"] else unit_named(unit, "speed")
    if name is None:
        raise ArgumentError("speed_unit", unit, f"not a unit of speed; give {units_of('speed')}")
    return name


def _check_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= float(value) <= high:
        raise ArgumentError(name, value, f"give a number from {low:g} to {high:g}")


class Moment(NamedTuple):
    """A time of day on a date; the year may be left to the file."""

    year: int | None
    month: int
    day: int
    hour: int
    minute: int
    has_zone: bool = False  # the stated time had a zone and was turned into UTC

    def on(self, year: int) -> np.datetime64 | None:
        """The time in a year; None if the year has no such day."""
        try:
            return np.datetime64(datetime(year, *self[1:5]), "s")
        except ValueError:
            return None


def parse_ignition(ignition: IgnitionTime | None, source: object, what: str) -> Moment:
    """The time of ignition; raises if there is none or it cannot be read."""
    if ignition is None:
        raise ArgumentError("ignition", None, f"{source}: {what}; give the time, {_EXAMPLE}")
    text = str(ignition).strip()
    short = _MONTH_DAY.fullmatch(text)
    try:
        if short:
            month, day, hour, minute = (int(part) for part in short.groups())
            datetime(_LEAP_YEAR, month, day, hour, minute)  # raises where there is no such date
            return Moment(None, month, day, hour, minute)
        time = datetime.fromisoformat(text[:26] if "." in text else text)
    except ValueError:
        raise ArgumentError("ignition", text, f"not a time; give {_EXAMPLE}") from None
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
    hour = np.timedelta64(1, "h")
    years = [ignition.year] if ignition.year is not None else range(_year(first), _year(last) + 1)
    starts = [start for start in map(ignition.on, years) if start is not None]
    inside = [start for start in starts if first - hour <= start <= last]
    if len(inside) > 1:
        raise ArgumentError(
            "ignition", f"{ignition.month:02d} {ignition.day:02d}", f"{source}: the weather has "
            f"several years; give the year too, e.g. {str(inside[0])[:16]!r}"
        )  # fmt: skip
    start: Any = next(iter([*inside, *starts]), ignition.on(_LEAP_YEAR))
    if not inside:
        raise ArgumentError(
            "ignition", str(start)[:16], f"{source}: the weather is of {str(first)[:16]} to "
            f"{str(last)[:16]}; check the time, or give the weather of that time"
        )  # fmt: skip
    return (stamps - start).astype(np.float64) / 3600.0


def _year(stamp: np.datetime64) -> int:
    return int(str(stamp)[:4])
