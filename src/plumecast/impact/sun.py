"""Position of the sun above plants during fires, from the time of ignition."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError, require

EXAMPLE = "2020-09-08T14:00-07:00"


@dataclass(frozen=True, slots=True)
class Ignition:
    """When the fires ignite: in UTC, or in the local solar time of every plant."""

    time: datetime  # without a time zone
    is_utc: bool

    @property
    def day(self) -> int:
        """Day of the year."""
        return self.time.timetuple().tm_yday


SAME_SUN = 10
"""Days within which fires share a distance to the sun: it changes the irradiance by < .6 %."""


def read_ignition_times(
    text: str | None, recorded: np.ndarray, local_hour: float | None = None
) -> list[tuple[Ignition, np.ndarray, np.ndarray]]:
    """Groups of snapshots: when the group ignites, its rows, and hours by which each is later.

    A stated time is that of all fires. Otherwise `recorded` (M,) has the time of every snapshot's
    fire, empty where it is unknown; fires within `SAME_SUN` days of each other are one group.
    """
    if text is not None or not (recorded != "").any():
        everything = np.arange(recorded.size)
        return [(read_ignition_time(text, local_hour), everything, np.zeros(recorded.size))]
    if (recorded == "").any():
        raise ArgumentError(
            "ignition_time",
            None,
            f"{int((recorded == '').sum())} of {recorded.size} snapshots record no time of "
            f"ignition, and others do; state one for all, such as {EXAMPLE}",
        )
    times = {text: read_ignition_time(text) for text in np.unique(recorded).tolist()}
    members: dict[tuple[bool, int, int], list[int]] = {}
    for row, text in enumerate(recorded.tolist()):
        time = times[text]
        key = time.is_utc, time.time.year, time.day // SAME_SUN
        members.setdefault(key, []).append(row)
    groups = []
    for _, rows in sorted(members.items()):
        fire_times = [times[recorded[row]] for row in rows]
        first = min(fire_times, key=lambda time: time.time)
        later = [(time.time - first.time) / timedelta(hours=1) for time in fire_times]
        groups.append((first, np.array(rows), np.array(later)))
    return groups


def read_ignition_time(text: str | None, local_hour: float | None = None) -> Ignition:
    """The time of ignition from ISO 8601 text.

    With an offset from UTC it is a time of the clock; without one, local solar time (the sun is
    highest at 12:00). A date alone takes the hour `local_hour` that the fires record.

    >>> read_ignition_time("2020-09-08T14:00-07:00").time.hour
    21
    """
    if text is None:
        raise ArgumentError(
            "ignition_time",
            None,
            f"the sun needs the time of ignition; state {EXAMPLE}, or without the offset in local "
            "solar time",
        )
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(
            "ignition_time", text, f"write it as {EXAMPLE}", problem="is not a date and time"
        ) from None
    if len(text.strip()) <= len("2020-09-08"):
        if local_hour is None:
            raise ArgumentError(
                "ignition_time",
                text,
                f"write it as {EXAMPLE}, or without the offset in local solar time",
                problem="has no hour, and the fires record none",
            )
        return Ignition(time + timedelta(hours=local_hour), is_utc=False)
    if time.tzinfo is None:
        return Ignition(time, is_utc=False)
    return Ignition(time.astimezone(UTC).replace(tzinfo=None), is_utc=True)


def sun_position(
    ignition: Ignition, hours: np.ndarray, latitude: np.ndarray, longitude: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Zenith angle and azimuth (from north over east) in degrees, (T, P), at hours since ignition.

    cos z = sin φ sin δ + cos φ cos δ cos ω, with the declination δ and the equation of time E of
    Spencer (1971), from pvlib, and the hour angle ω = 15° (t − 12) of the solar time
    t = UTC + λ / 15° + E. Refraction, below 0.1° for a sun higher than 10°, is left out. The
    azimuth is not pvlib's, which is south at noon also where the sun is in the north.
    """
    sun = require("pvlib.solarposition", "power", "solar power")
    midnight = datetime(ignition.time.year, ignition.time.month, ignition.time.day)
    clock = (ignition.time - midnight).total_seconds() / 3600.0 + hours
    day = ignition.day + clock / 24.0
    tilt = sun.declination_spencer71(day)[:, np.newaxis]
    solar = clock[:, np.newaxis] + np.zeros(latitude.size)
    if ignition.is_utc:
        if longitude is None:
            raise PlumecastError(
                f"the time of ignition, {ignition.time.isoformat(timespec='minutes')}Z, is in UTC "
                "and needs the longitude of the plants; give lat and lon in the table, or state "
                "ignition_time in local solar time, without an offset"
            )
        solar = solar + longitude / 15.0 + sun.equation_of_time_spencer71(day)[:, np.newaxis] / 60.0
    turn = np.radians(15.0 * (solar - 12.0))
    north = np.radians(latitude)
    up = np.sin(north) * np.sin(tilt) + np.cos(north) * np.cos(tilt) * np.cos(turn)
    east = -np.cos(tilt) * np.sin(turn)
    ahead = np.cos(north) * np.sin(tilt) - np.sin(north) * np.cos(tilt) * np.cos(turn)
    zenith = np.degrees(np.arccos(np.clip(up, -1.0, 1.0)))
    return zenith, np.degrees(np.arctan2(east, ahead)) % 360.0
