"""FARSITE and FlamMap weather: .wxs streams, .wnd winds, and the RAWS block of an inputs file.

A stream has the lines year, month, day, time, temperature, humidity, precipitation, wind speed,
wind direction, cloud cover; a .wnd file month, day, time, speed, direction, cloud cover. English
units are miles per hour at 20 ft, metric ones kilometres per hour at 10 m (FlamMap 6.2 help, Wind
File). Times are local, and directions count from true north.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.units import factor
from plumecast.weather.options import Options, hours_since, parse_ignition
from plumecast.weather.profile import SURFACE, components, log_law_ratio
from plumecast.weather.series import Origin, Series, Sounding, check_direction, from_ignition

_UNITS_LINE = "RAWS_UNITS"
_UNITS = {"english": ("mph", 20 * 0.3048), "metric": ("km/h", SURFACE)}  # heights in m
_HEADER = re.compile(r"\s*([A-Za-z_]+)\s*:\s*(.*?)\s*$")
_STREAM, _WIND_FILE, _WEATHER_FILE = 10, 6, (10, 12)  # numbers in a line
_LEAP_YEAR = 2000  # for files without a year


def is_farsite(text: str) -> bool:
    """Whether a text begins like a FARSITE file: a RAWS header, its units, or bare numbers."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
    if not lines:
        return False
    if any(re.match(r"RAWS(_\w+)?\s*:|FARSITE_\w+\s*:", line, re.IGNORECASE) for line in lines):
        return True
    is_wind = _numbers(lines[0]) is not None and len(lines[0].split()) in (_STREAM, _WIND_FILE)
    return is_wind or lines[0].lower() in _UNITS


def read_farsite(path: Path, options: Options) -> tuple[list[Series], Origin]:
    """The soundings of a stream: one wind for each of its times, at 10 m."""
    header, lines = _parse(path.read_text(encoding="utf-8-sig", errors="replace"), path)
    start = options.ignition if options.ignition is not None else header.get("FARSITE_START_TIME")
    ignition = parse_ignition(start, path, "the stream has dates")
    if ignition.has_zone:
        raise ArgumentError(
            "ignition", str(start), f"{path}: a FARSITE stream is in local time; give the local "
            "time, without a zone"
        )  # fmt: skip
    unit, height = _unit(header.get(_UNITS_LINE), options, path)
    has_year = len(next(iter(lines.values()))) == _STREAM
    times = np.array([_time(values, has_year, _at(path, n)) for n, values in lines.items()])
    _check_order(times, lines, path)
    hours = hours_since(times, ignition if has_year else ignition._replace(year=None), path)
    to_surface = log_law_ratio(height) if height != SURFACE else 1.0
    soundings = []
    for (number, values), hour in zip(lines.items(), hours, strict=True):
        speed, direction = values[7:9] if has_year else values[3:5]
        _check_wind(speed, direction, _at(path, number))
        metres = speed * factor(unit, "speed") * to_surface
        wind = components(np.array([metres]), np.array([direction]))
        soundings.append(Sounding(float(hour), np.array([SURFACE]), *wind))
    note = f"wind at {height:g} m in {unit}"
    if to_surface != 1.0:
        note += f", brought to 10 m by the log law (times {to_surface:.3f})"
    local = options.profile.local_hour
    local = ignition.hour + ignition.minute / 60.0 if local is None else local
    dated = None
    if has_year:
        dated = str(times[0] - np.timedelta64(round(3600.0 * hours[0]), "s"))[:16]
    series = Series(from_ignition(soundings), None, local)
    return [series], Origin(path, "farsite", {"": note}, dated, options.north)


def _at(path: Path, line: int) -> str:
    return f"{path}: line {line}"


def _numbers(line: str) -> list[float] | None:
    try:
        return [float(part) for part in line.replace(",", " ").split()]
    except ValueError:
        return None


def _parse(text: str, path: Path) -> tuple[dict[str, str], dict[int, list[float]]]:
    """The headers of a file by their names, and the values of its lines by their numbers."""
    header: dict[str, str] = {}
    lines: dict[int, list[float]] = {}
    is_inputs_file = "FARSITE_START_TIME" in text or "FUEL_MOISTURES" in text
    is_block = not is_inputs_file  # within the numbers of a RAWS block
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        values = _numbers(line)
        title = _HEADER.fullmatch(line)
        if title and values is None:
            if title[1].upper() == _UNITS_LINE:
                _check_same_units(header, title[2], _at(path, number))
            header[title[1].upper()] = title[2]
            is_block = not is_inputs_file or title[1].upper() == "RAWS"
        elif line.lower() in _UNITS:
            _check_same_units(header, line, _at(path, number))
            header[_UNITS_LINE] = line
        elif line and line[0] != "#" and is_block:
            if values is not None:
                lines[number] = values
            elif lines:
                raise PlumecastError(f"{_at(path, number)} {line!r} has a value that is no number")
    if not lines:
        raise PlumecastError(f"{path}: no lines of weather; is it a .wxs stream?")
    _check_lines(lines, header.get("RAWS", ""), path)
    return header, lines


def _check_same_units(header: dict[str, str], units: str, where: str) -> None:
    before = header.get(_UNITS_LINE, units)
    if before.lower() != units.lower():
        raise PlumecastError(
            f"{where}: the units are {units}, but {before} in a line before; keep one of them"
        )


def _check_order(times: np.ndarray, lines: dict[int, list[float]], path: Path) -> None:
    """Raise for the first line whose time is not after that of the line before."""
    numbers = list(lines)
    for row in np.flatnonzero(np.diff(times) <= np.timedelta64(0, "s")):
        before, time = (str(times[n])[:16].replace("T", " ") for n in (row, row + 1))
        advice = "sort the lines by their times, and keep one of each"
        if len(lines[numbers[0]]) == _WIND_FILE:
            before, time = before[5:], time[5:]
            advice += "; over New Year give a .wxs stream, which has years"
        raise PlumecastError(
            f"{_at(path, numbers[row + 1])}: {time} is not after {before} of line {numbers[row]}; "
            f"{advice}"
        )


def _check_lines(lines: dict[int, list[float]], count: str, path: Path) -> None:
    """Raise unless all lines are of one known width, and as many as the header says."""
    first, width = next((number, len(values)) for number, values in lines.items())
    if width not in (_STREAM, _WIND_FILE):
        if width in _WEATHER_FILE:
            raise PlumecastError(
                f"{path}: daily temperatures (.wtr) have no wind; give the .wxs or the .wnd file"
            )
        raise PlumecastError(
            f"{_at(path, first)} has {width} numbers; a .wxs stream has {_STREAM}, a .wnd file "
            f"{_WIND_FILE}"
        )
    for number, values in lines.items():
        if len(values) != width:
            raise PlumecastError(
                f"{_at(path, number)} has {len(values)} numbers, others have {width}; is the file "
                "complete?"
            )
        if not np.isfinite(values).all():
            raise PlumecastError(f"{_at(path, number)} has a NaN; fill it in")
    if count.isdigit() and int(count) != len(lines):
        raise PlumecastError(
            f"{path}: the header states RAWS: {count}, but there are {len(lines)} lines; is the "
            "file complete?"
        )


def _unit(units: str | None, options: Options, path: Path) -> tuple[str, float]:
    """Unit of the speeds and their height."""
    by_unit = dict(_UNITS.values())
    if units is None:
        if options.speed_unit not in by_unit:
            raise ArgumentError(
                "speed_unit", options.speed_unit, f"{path}: no line RAWS_UNITS; give mph (English, "
                "at 20 ft) or km/h (metric, at 10 m)"
            )  # fmt: skip
        return options.speed_unit, by_unit[options.speed_unit]
    if units.lower() not in _UNITS:
        raise PlumecastError(f"{path}: RAWS_UNITS is {units.lower()!r}; use English or Metric")
    unit, height = _UNITS[units.lower()]
    if options.speed_unit not in (None, unit):
        raise ArgumentError(
            "speed_unit", options.speed_unit, f"{path}: {units.title()} units are {unit}; leave it "
            "out"
        )  # fmt: skip
    return unit, height


def _time(values: list[float], has_year: bool, where: str) -> np.datetime64:
    date = values[:4] if has_year else [_LEAP_YEAR, *values[:3]]
    year, month, day, clock = (int(value) for value in date)
    hour, minute = divmod(clock, 100)
    try:
        if not (0 <= hour <= 24 and 0 <= minute < 60):
            raise ValueError
        time = datetime(year, month, day) + timedelta(hours=hour, minutes=minute)
    except (ValueError, OverflowError):
        shown = " ".join(f"{value:g}" for value in date)
        raise PlumecastError(f"{where}: {shown} is not a date and time") from None
    return np.datetime64(time, "s")


def _check_wind(speed: float, direction: float, where: str) -> None:
    if speed < 0.0:
        raise PlumecastError(f"{where}: wind speed {speed:g}; give a speed of 0 or more")
    if direction in (-1.0, -2.0):
        raise PlumecastError(
            f"{where}: wind direction {direction:g} means up or down the slopes, which is not one "
            "wind; give degrees from 0 to 360"
        )
    check_direction(f"{where}: ", direction)
