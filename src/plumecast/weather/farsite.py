"""FARSITE and FlamMap weather: .wxs streams, .wnd winds, and the RAWS block of an inputs file.

A stream has the lines year, month, day, time, temperature, humidity, precipitation, wind speed,
wind direction, cloud cover; a .wnd file month, day, time, speed, direction, cloud cover. English
units are miles per hour at 20 ft, metric ones kilometres per hour at 10 m (FlamMap 6.2 help, Wind
File). Times are local, and directions count from true north.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.units import factor
from plumecast.weather.checks import Sounding
from plumecast.weather.options import Options, hours_since, parse_ignition
from plumecast.weather.profile import SURFACE, components, log_law_ratio
from plumecast.weather.series import Origin, Series

TWENTY_FEET = 20 * 0.3048
"""Height of the wind in English units, m."""

_UNITS = {"english": ("mph", TWENTY_FEET), "metric": ("km/h", SURFACE)}
_HEADER = re.compile(r"\s*([A-Za-z_]+)\s*:\s*(.*?)\s*$")
_STREAM, _WIND_FILE, _WEATHER_FILE = 10, 6, (10, 12)
_LEAP_YEAR = 2000  # for files without a year


class _Line(NamedTuple):
    number: int
    values: list[float]


class _Stream(NamedTuple):
    """The lines of a file, its unit system and the start time of an inputs file."""

    units: str | None
    start: str | None
    lines: list[_Line]


def is_farsite(text: str) -> bool:
    """Whether a text begins like a FARSITE file: a RAWS header, its units, or bare numbers."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
    if not lines:
        return False
    if any(re.match(r"RAWS(_\w+)?\s*:|FARSITE_\w+\s*:", line, re.IGNORECASE) for line in lines):
        return True
    if lines[0].lower() in _UNITS:
        return True
    return _numbers(lines[0]) is not None and len(lines[0].split()) in (_STREAM, _WIND_FILE)


def read_farsite(path: Path, options: Options) -> tuple[list[Series], Origin]:
    """The soundings of a stream: one wind for each of its times, at 10 m."""
    try:
        stream = _parse(path.read_text(encoding="utf-8-sig", errors="replace"), path)
    except OSError as error:
        raise PlumecastError(f"{path}: not readable ({error})") from error
    start = options.ignition if options.ignition is not None else stream.start
    ignition = parse_ignition(start, path, "the stream has dates")
    if ignition.has_zone:
        raise ArgumentError(
            "ignition", str(start), f"{path}: a FARSITE stream is in local time; give the local "
            "time, without a zone"
        )  # fmt: skip
    unit, height = _unit(stream, options, path)
    width = len(stream.lines[0].values)
    times = np.array([_time(line, width, path) for line in stream.lines])
    if width == _WIND_FILE:
        ignition = ignition._replace(year=None)
    hours = hours_since(times, ignition, path)
    to_surface = log_law_ratio(height) if height != SURFACE else 1.0
    column = 7 if width == _STREAM else 3
    soundings = []
    for line, hour in zip(stream.lines, hours, strict=True):
        speed, direction = line.values[column : column + 2]
        _check_wind(line, speed, direction, path)
        u, v = components(
            np.array([speed * factor(unit, "speed") * to_surface]), np.array([direction])
        )
        soundings.append(Sounding(float(hour), np.array([SURFACE]), u, v))
    note = f"wind at {height:g} m in {unit}"
    if to_surface != 1.0:
        note += f", brought to 10 m by the log law (times {to_surface:.3f})"
    local = options.profile.local_hour
    local = ignition.hour + ignition.minute / 60.0 if local is None else local
    kept = _near_ignition(soundings)
    dated = None
    if width == _STREAM:
        dated = str(times[0] - np.timedelta64(round(3600.0 * hours[0]), "s"))[:16]
    return [Series(kept, None, local)], Origin(path, "farsite", {"": note}, dated, options.north)


def _parse(text: str, path: Path) -> _Stream:
    units = count = start = None
    lines: list[_Line] = []
    is_block = False  # within the numbers of a RAWS block
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        header = _HEADER.fullmatch(line)
        if header and _numbers(line) is None:
            name, value = header[1].upper(), header[2]
            is_block = name == "RAWS"
            if name == "RAWS_UNITS":
                units = value.lower()
            elif name == "RAWS" and value.isdigit():
                count = int(value)
            elif name == "FARSITE_START_TIME":
                start = value
        elif line.lower() in _UNITS:
            units = line.lower()
        elif line and line[0] != "#":
            values = _numbers(line)
            wanted = is_block or not _is_inputs_file(text)
            if values is None and wanted and lines:
                raise PlumecastError(
                    f"{path}: line {number} {line!r} has a value that is not a number"
                )
            if values is not None and wanted:
                lines.append(_Line(number, values))
    _check_lines(lines, count, path)
    return _Stream(units, start, lines)


def _is_inputs_file(text: str) -> bool:
    return "FARSITE_START_TIME" in text or "FUEL_MOISTURES" in text


def _check_lines(lines: Sequence[_Line], count: int | None, path: Path) -> None:
    if not lines:
        raise PlumecastError(f"{path}: no lines of weather; is it a .wxs stream?")
    width = len(lines[0].values)
    if width not in (_STREAM, _WIND_FILE):
        if width in _WEATHER_FILE:
            raise PlumecastError(
                f"{path}: daily temperatures (.wtr) have no wind; give the .wxs or the .wnd file"
            )
        raise PlumecastError(
            f"{path}: line {lines[0].number} has {width} numbers; a .wxs stream has {_STREAM}, a "
            f".wnd file {_WIND_FILE}"
        )
    for line in lines:
        if len(line.values) != width:
            raise PlumecastError(
                f"{path}: line {line.number} has {len(line.values)} numbers, others have {width}; "
                "is the file complete?"
            )
        if not np.isfinite(line.values).all():
            raise PlumecastError(f"{path}: line {line.number} has a NaN; fill it in")
    if count is not None and count != len(lines):
        raise PlumecastError(
            f"{path}: the header states RAWS: {count}, but there are {len(lines)} lines; is the "
            "file complete?"
        )


def _unit(stream: _Stream, options: Options, path: Path) -> tuple[str, float]:
    """Unit of the speeds and their height."""
    by_unit = dict(_UNITS.values())
    if stream.units is None:
        if options.speed_unit not in by_unit:
            raise ArgumentError(
                "speed_unit", options.speed_unit, f"{path}: no line RAWS_UNITS; give mph (English, "
                "at 20 ft) or km/h (metric, at 10 m)"
            )  # fmt: skip
        return options.speed_unit, by_unit[options.speed_unit]
    if stream.units not in _UNITS:
        raise PlumecastError(f"{path}: RAWS_UNITS is {stream.units!r}; use English or Metric")
    unit, height = _UNITS[stream.units]
    if options.speed_unit not in (None, unit):
        raise ArgumentError(
            "speed_unit", options.speed_unit, f"{path}: {stream.units.title()} units are {unit}; "
            "leave it out"
        )  # fmt: skip
    return unit, height


def _time(line: _Line, width: int, path: Path) -> np.datetime64:
    date = line.values[:4] if width == _STREAM else [_LEAP_YEAR, *line.values[:3]]
    year, month, day, clock = (int(value) for value in date)
    hour, minute = divmod(clock, 100)
    try:
        if not (0 <= hour <= 24 and 0 <= minute < 60):
            raise ValueError
        time = datetime(year, month, day) + timedelta(hours=hour, minutes=minute)
    except (ValueError, OverflowError):
        shown = " ".join(f"{value:g}" for value in date)
        raise PlumecastError(
            f"{path}: line {line.number}: {shown} is not a date and time"
        ) from None
    return np.datetime64(time, "s")


def _check_wind(line: _Line, speed: float, direction: float, path: Path) -> None:
    where = f"{path}: line {line.number}: "
    if speed < 0.0:
        raise PlumecastError(f"{where}wind speed {speed:g}; give a speed of 0 or more")
    if direction in (-1.0, -2.0):
        raise PlumecastError(
            f"{where}wind direction {direction:g} means up or down the slopes, which is not one "
            "wind; give degrees from 0 to 360"
        )
    if not 0.0 <= direction <= 360.0:
        raise PlumecastError(
            f"{where}wind direction {direction:g}; give degrees from 0 to 360 (270 is a west wind)"
        )


def _near_ignition(soundings: list[Sounding]) -> list[Sounding]:
    """From the last line at or before ignition on; days of conditioning before it are not used."""
    before = [n for n, sounding in enumerate(soundings) if sounding.hour <= 0.0]
    return soundings[before[-1] :] if before else soundings


def _numbers(line: str) -> list[float] | None:
    try:
        return [float(part) for part in line.replace(",", " ").split()]
    except ValueError:
        return None
