"""Weather tables (CSV): one row for every hour and height, of one fire or of several."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.sources.weather.checks import Sounding, place
from plumecast.sources.weather.columns import Column, find_columns
from plumecast.sources.weather.options import Options
from plumecast.sources.weather.series import Origin, Series
from plumecast.sources.weather.times import hours_since, parse_ignition, parse_time
from plumecast.sources.weather.units import LENGTHS, SPEEDS, components, speed_unit

Line: TypeAlias = tuple[int, list[str]]
"""Number of a line in the file, and its cells."""

DIRECTIONS = ("direction", "from", "to", "cf_to")
"""Meanings of a column of directions; a plain one is where the wind comes from unless stated."""

_EXPECTED = "expected hour, height, speed, direction and, optionally, depth and fire"


class Row(NamedTuple):
    """One line of a table in SI units."""

    fire: str | None
    hour: float
    height: float
    u: float
    v: float
    depth: float  # NaN if it is left out


def read_table(path: Path, options: Options) -> tuple[list[Series], Origin]:
    """The soundings of the fires of a table, and what was assumed."""
    headers, lines = _lines(path)
    columns = find_columns(headers, path)
    _check_columns(columns, headers, path, options)
    rows = _Reader(path, columns, options).rows(headers, lines)
    fires: dict[str | None, dict[float, list[Row]]] = {}
    for row in rows:
        _add(fires.setdefault(row.fire, {}), row, path)
    series = [
        Series([_sounding(own, path) for own in hours.values()], fire, options.local_hour)
        for fire, hours in fires.items()
    ]
    notes = {}
    if "cf_to" in columns or ("to" in columns) or options.direction_is == "to":
        notes[""] = "directions that the wind blows to were turned by 180 degrees"
    return series, Origin(path, "table", notes)


def _lines(path: Path) -> tuple[list[str], list[Line]]:
    """Header and numbered lines; the delimiter is a comma, a semicolon or a tab."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PlumecastError(f"{path}: not a readable table ({error})") from error
    content = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(content) < 2:
        raise PlumecastError(f"{path}: the table has no lines; {_EXPECTED}")
    delimiter = max(",;\t", key=content[0][1].count)
    try:
        cells = list(csv.reader([line for _, line in content], delimiter=delimiter))
    except csv.Error as error:
        raise PlumecastError(f"{path}: not a readable table ({error})") from error
    numbered = [(number, row) for (number, _), row in zip(content, cells, strict=False)]
    return cells[0], numbered[1:]


def _check_columns(
    columns: Mapping[str, Column], headers: list[str], path: Path, options: Options
) -> None:
    """Raise unless the table has a time, a height and a wind that can be understood."""
    has = {
        "hour": {"hour", "time"} & set(columns),
        "height": {"height", "altitude"} & set(columns),
    }
    if "u" not in columns or "v" not in columns:
        has["speed"] = {"speed"} & set(columns)
        has["direction"] = set(DIRECTIONS) & set(columns)
    for name, found in has.items():
        if not found:
            shown = ", ".join(header.strip() for header in headers)
            raise PlumecastError(
                f"{path}: the column {name} is missing; {_EXPECTED}, found {shown}"
            )
    if "to" in columns and options.direction_is != "to":
        raise PlumecastError(
            f"{path}: the column '{columns['to'].header}' says where the wind blows to; give the "
            "direction it comes from, or state direction_is='to'"
        )
    if "cf_to" in columns and options.direction_is == "from":
        raise PlumecastError(
            f"{path}: the column '{columns['cf_to'].header}' says where the wind blows to, but "
            "direction_is='from'; leave out direction_is"
        )
    if "from" in columns and options.direction_is == "to":
        raise PlumecastError(
            f"{path}: the column '{columns['from'].header}' says where the wind comes from, but "
            "direction_is='to'; leave out direction_is, or rename the column to direction"
        )
    given = [columns[name].header for name in DIRECTIONS if name in columns]
    if len(given) > 1:
        raise PlumecastError(
            f"{path}: the columns '{given[0]}' and '{given[1]}' are both directions; keep one"
        )
    if "altitude" in columns and "height" not in columns and options.elevation is None:
        raise PlumecastError(
            f"{path}: the column '{columns['altitude'].header}' counts from sea level; state "
            "elevation, the height of the ground in m, or give heights above ground"
        )


class _Reader:
    """Turns lines of a table with known columns into rows."""

    def __init__(self, path: Path, columns: Mapping[str, Column], options: Options) -> None:
        self.path, self.columns, self.options = path, columns, options
        names = ("u", "v") if "u" in columns and "v" in columns else ("speed",)
        units = {
            speed_unit(path, columns[name].unit, options.speed_unit,
                       f"the column '{columns[name].header}'")
            for name in names
        }  # fmt: skip
        if len(units) > 1:
            raise PlumecastError(f"{path}: u and v have other units; use one")
        self.speed = SPEEDS[units.pop()]
        self.is_vector = len(names) == 2

    def rows(self, headers: Sequence[str], lines: Sequence[Line]) -> Iterator[Row]:
        """The lines in SI units."""
        order = {header: n for n, header in enumerate(headers)}
        cells = [
            {
                meaning: row[order[column.header]].strip()
                if order[column.header] < len(row)
                else ""
                for meaning, column in self.columns.items()
            }
            for _, row in lines
        ]
        numbers = [number for number, _ in lines]
        hours = self._hours(cells, numbers)
        for number, row, hour in zip(numbers, cells, hours, strict=True):
            yield self.row(row, number, hour)

    def _hours(self, rows: Sequence[Mapping[str, str]], numbers: Sequence[int]) -> Sequence[float]:
        where = [self._where(row, number) for row, number in zip(rows, numbers, strict=True)]
        if "hour" in self.columns:
            return [self._number(row, "hour", at) for row, at in zip(rows, where, strict=True)]
        ignition = parse_ignition(self.options.ignition, self.path, "the table has times")
        times = [parse_time(row["time"], at) for row, at in zip(rows, where, strict=True)]
        zones = {zoned for _, zoned in times} | {ignition.has_zone}
        if len(zones) > 1:
            raise PlumecastError(
                f"{self.path}: give ignition and all times with a zone (such as Z), or none of them"
            )
        stamps = np.array([time for time, _ in times], dtype="datetime64[s]")
        return [float(hour) for hour in hours_since(stamps, ignition, self.path)]

    def _where(self, cells: Mapping[str, str], number: int) -> str:
        fire = cells.get("fire")
        return f"{self.path}: line {number}" + (f", fire '{fire}': " if fire else ": ")

    def row(self, cells: Mapping[str, str], number: int, hour: float) -> Row:
        """One line in SI units."""
        fire = cells.get("fire")
        if fire == "":
            raise PlumecastError(f"{self.path}: line {number} has no fire; name the fire")
        where = self._where(cells, number)
        u, v = self._wind(cells, where)
        depth = self._number(cells, "depth", where) if cells.get("depth") else np.nan
        return Row(fire, hour, self._height(cells, where), u, v, depth * self._length("depth"))

    def _height(self, cells: Mapping[str, str], where: str) -> float:
        name = "height" if "height" in self.columns else "altitude"
        value = self._number(cells, name, where) * self._length(name)
        ground = float(self.options.elevation or 0.0) if name == "altitude" else 0.0
        if value - ground < 0.0:
            raise PlumecastError(
                f"{where}{self.columns[name].header} {cells[name]} is below the ground; give "
                "heights above ground"
            )
        return value - ground

    def _wind(self, cells: Mapping[str, str], where: str) -> tuple[float, float]:
        if self.is_vector:
            u, v = (self._number(cells, name, where) * self.speed for name in ("u", "v"))
            return u, v
        speed = self._number(cells, "speed", where)
        if speed < 0.0:
            raise PlumecastError(f"{where}speed {speed:g}; give a speed of 0 or more")
        name = next(key for key in DIRECTIONS if key in self.columns)
        direction = self._number(cells, name, where)
        if not 0.0 <= direction <= 360.0:
            raise PlumecastError(
                f"{where}direction {direction:g}; give degrees from 0 to 360 (270 is a west wind)"
            )
        towards = name in ("to", "cf_to") or self.options.direction_is == "to"
        u, v = components(speed * self.speed, direction + (180.0 if towards else 0.0))
        return float(u), float(v)

    def _length(self, name: str) -> float:
        column = self.columns.get(name)
        return LENGTHS[column.unit or "m"] if column else 1.0

    def _number(self, cells: Mapping[str, str], name: str, where: str) -> float:
        text = cells[name]
        try:
            value = float(text)
            if np.isfinite(value):
                return value
        except ValueError:
            pass
        raise PlumecastError(f"{where}{self.columns[name].header.strip()} {text!r} is not a number")


def _add(hours: dict[float, list[Row]], row: Row, path: Path) -> None:
    """Append a row; the rows of an hour must stand together, in the order of the hours."""
    if row.hour not in hours and hours and row.hour < next(reversed(hours)):
        raise PlumecastError(
            f"{place(path, row.fire)}hours must increase, but {row.hour:g} h follows "
            f"{next(reversed(hours)):g} h; sort the table by hour and height"
        )
    if row.hour in hours and row.hour != next(reversed(hours)):
        raise PlumecastError(f"{place(path, row.fire)}hour {row.hour:g} is given twice; keep one")
    hours.setdefault(row.hour, []).append(row)


def _sounding(rows: list[Row], path: Path) -> Sounding:
    first = rows[0]
    depths = {row.depth for row in rows if np.isfinite(row.depth)}
    if len(depths) > 1:
        raise PlumecastError(
            f"{place(path, first.fire, first.hour)}several depths of the boundary layer "
            f"({', '.join(f'{depth:g}' for depth in sorted(depths))}); give one for an hour"
        )
    height, u, v = (np.array([row[i] for row in rows]) for i in (2, 3, 4))
    return Sounding(first.hour, height, u, v, depths.pop() if depths else np.nan)
