"""Winds that the user states: one for all fires, or a table with the wind of every fire."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT, TABLE
from plumecast.base.paths import check_regular
from plumecast.compute.arrays import Array
from plumecast.data.conditions.covariates import WIND
from plumecast.data.conditions.weather import without_weather
from plumecast.data.split import group_rows

COLUMNS = ("fire_id", *WIND, "hours")
"""Columns of a table of winds; `hours` may be left out."""

_HOURS_TOLERANCE = 1e-6  # h; hours in a table are rounded decimals


class FireWind(NamedTuple):
    """Mean wind of one fire since ignition."""

    speed: Array  # (n,) m s⁻¹
    direction: Array  # (n,) degrees it comes from
    hours: Array | None = None  # (n,) increasing; None: the same at all hours


@dataclass(frozen=True, slots=True)
class Winds:
    """The winds of fires by `fire_id`, or one wind for all fires."""

    source: str  # the table, for messages
    fires: Mapping[str, FireWind]
    every_fire: FireWind | None = None

    def check_fires(self, names: Collection[str]) -> None:
        """Raise if the table has no wind for one of these fires."""
        missing = sorted(name for name in set(names) if name not in self.fires)
        if self.every_fire is not None or not missing:
            return
        known = sorted(self.fires)
        shown = ", ".join(known[:3]) + (", …" if len(known) > 3 else "")
        if len(missing) == len(set(names)):
            raise PlumecastError(
                f"{self.source}: the table is for other fires; it has {shown}, but the first of "
                f"these fires is '{missing[0]}'; use these names in the column fire_id"
            )
        raise PlumecastError(
            f"{self.source}: no line for fire '{missing[0]}' ({len(missing)} of "
            f"{len(set(names))} fires are missing; it has {shown}); add a line for every fire"
        )

    def at(self, name: str, hours: Array | None) -> tuple[Array | float, Array | float]:
        """Speed and direction of one fire at its snapshots.

        Between the hours of a table, the speed and the unit vector of the direction are
        interpolated linearly. Before the first hour the first line is used; after the last hour it
        raises.
        """
        wind = self.every_fire or self.fires[name]
        if wind.hours is None:
            return float(wind.speed[0]), float(wind.direction[0])
        if hours is None:
            raise PlumecastError(
                f"{self.source} has hours, but fire '{name}' has none; leave out the column hours"
            )
        if hours.max() > wind.hours[-1] + _HOURS_TOLERANCE:
            raise PlumecastError(
                f"{self.source}: the winds of fire '{name}' end at {wind.hours[-1]:g} h, but it "
                f"has a snapshot at {hours.max():g} h; add a line for that hour"
            )
        angle = np.deg2rad(wind.direction)
        east, north = (
            np.interp(hours, wind.hours, part) for part in (np.sin(angle), np.cos(angle))
        )
        direction = np.rad2deg(np.arctan2(east, north)) % 360.0
        return np.interp(hours, wind.hours, wind.speed), direction


WindsGiven: TypeAlias = Winds | str | Path | tuple[float, float]
"""Winds, the path of a table for `read_winds`, or (speed, direction) of all fires."""


def with_winds(snapshots: xr.Dataset, winds: WindsGiven) -> xr.Dataset:
    """Snapshots with the coordinates `wind_speed` and `wind_from_direction`.

    `winds` is one wind for all fires, (speed in m s⁻¹, direction it comes from in degrees), or the
    path of a CSV table with the columns fire_id, wind_speed, wind_from_direction and, optionally,
    hours. Each is the mean since ignition. Winds that the snapshots already have are replaced, and
    their hourly weather, which would contradict them, is left out.
    """
    given = as_winds(winds)
    count = snapshots.sizes[SNAPSHOT]
    values = np.empty((2, count))
    if given.every_fire is not None:
        values[:] = np.reshape(given.at("", None), (2, 1))
    else:
        names = snapshots.fire_id.values.astype(str)
        given.check_fires(names.tolist())
        hours = snapshots.hours.values if "hours" in snapshots.variables else None
        for rows in group_rows(names):
            own = None if hours is None else hours[rows]
            values[0, rows], values[1, rows] = given.at(str(names[rows][0]), own)
    return without_weather(snapshots).assign_coords(
        {name: (SNAPSHOT, row, TABLE[name].attrs) for name, row in zip(WIND, values, strict=True)}
    )


def as_winds(winds: WindsGiven) -> Winds:
    """Check the winds that were given, or read their table."""
    if isinstance(winds, Winds):
        return winds
    if isinstance(winds, str | Path):
        return read_winds(winds)
    speed, direction = map(float, winds)
    return Winds("", {}, FireWind(*_checked("", f"wind_speed={speed:g}", speed,
                                            f"wind_from={direction:g}", direction)))  # fmt: skip


def read_winds(path: str | Path) -> Winds:
    """Read a CSV table with the columns fire_id, wind_speed, wind_from_direction and hours.

    Without the column hours there is one line for each fire. With it, a fire has a line for each
    hour since ignition, with the mean wind up to that hour.
    """
    rows = read_table(path)
    missing = [name for name in COLUMNS[:3] if name not in rows[0]]
    if missing:
        raise PlumecastError(
            f"{path}: the column {missing[0]} is missing; expected {', '.join(COLUMNS[:3])} and, "
            "optionally, hours"
        )
    lines: dict[str, list[tuple[float, float, float | None]]] = {}
    for number, row in enumerate(rows, start=2):
        name = row["fire_id"]
        if not name:
            raise PlumecastError(f"{path}: line {number} has no fire_id; name the fire")
        wind = wind_of_row(row, path, number)
        if wind is None:
            raise PlumecastError(
                f"{path}: line {number} gives fire '{name}' no wind; fill in {' and '.join(WIND)}"
            )
        hour = _number(row, "hours", path, number) if row.get("hours") else None
        lines.setdefault(name, []).append((*wind, hour))
    return Winds(str(path), {name: _fire_wind(name, own, path) for name, own in lines.items()})


def read_table(path: str | Path) -> list[dict[str, str]]:
    """Rows of a CSV table with one line for every fire, by the names of its columns."""
    check_regular(path)
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [
                {(key or "").strip(): str(value or "").strip() for key, value in row.items()}
                for row in csv.DictReader(file)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PlumecastError(f"{path}: not a readable table ({error})") from error
    if not rows:
        raise PlumecastError(f"{path}: the table is empty; add a line for every fire")
    return rows


def wind_of_row(
    row: Mapping[str, str], path: str | Path, number: int
) -> tuple[float, float] | None:
    """Speed and direction in one line of a table; None if both are left out."""
    if not any(row.get(name) for name in WIND):
        return None
    where = f"{path}: line {number}, fire '{row['fire_id']}': "
    for name in WIND:
        if not row.get(name):
            raise PlumecastError(f"{where}{name} is empty; give both {' and '.join(WIND)}")
    speed, direction = (_number(row, name, path, number) for name in WIND)
    _checked(where, f"{WIND[0]} {speed:g}", speed, f"{WIND[1]} {direction:g}", direction)
    return speed, direction


def _number(row: Mapping[str, str], name: str, path: str | Path, number: int) -> float:
    try:
        value = float(row[name])
        if np.isfinite(value):
            return value
    except ValueError:
        pass
    raise PlumecastError(
        f"{path}: line {number}, fire '{row['fire_id']}': {name} {row[name]!r} is not a number"
    )


def _checked(
    where: str, stated_speed: str, speed: float, stated_direction: str, direction: float
) -> tuple[Array, Array]:
    """Raise unless the speed is ≥ 0 and the direction within 0 … 360; a NaN is neither."""
    if not 0.0 <= speed < np.inf:
        raise PlumecastError(f"{where}{stated_speed}: give a speed of 0 or more, in m/s")
    if not 0.0 <= direction <= 360.0:
        raise PlumecastError(
            f"{where}{stated_direction}: give the direction that the wind comes from, 0 to 360 "
            "degrees (270 is a west wind)"
        )
    return np.array([speed]), np.array([direction])


def _fire_wind(
    name: str, lines: list[tuple[float, float, float | None]], path: str | Path
) -> FireWind:
    """The lines of one fire: one without an hour, or several with different hours."""
    hours = [hour for _, _, hour in lines if hour is not None]
    if len(lines) > 1 and (len(hours) < len(lines) or len(set(hours)) < len(hours)):
        raise PlumecastError(
            f"{path}: fire '{name}' has {len(lines)} lines; keep one, or give each its own hours"
        )
    order = np.argsort(hours) if hours else np.array([0])
    speed, direction = (np.array([line[i] for line in lines])[order] for i in (0, 1))
    return FireWind(speed, direction, np.array(hours)[order] if hours else None)
