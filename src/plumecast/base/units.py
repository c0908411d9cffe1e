"""Units of numbers that people write: "12 mph", "30 km/h", "10 kn", "20 ft", "95 degF", "SW".

One table for every file, option and argument. A unit that the table lacks is refused by name; a
number without a unit is refused too, unless the caller has a unit for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from plumecast.base.errors import PlumecastError


class Unit(NamedTuple):
    """A unit of some kind: value in the first unit of that kind = factor · (value + offset)."""

    factor: float
    spellings: str = ""  # further ones, in the form of `_plain`, separated by spaces
    offset: float = 0.0


_KMH, _KNOT, _MPH, _FOOT = 1.0 / 3.6, 1852.0 / 3600.0, 1609.344 / 3600.0, 0.3048

KINDS: Mapping[str, Mapping[str, Unit]] = {
    "speed": {
        "m/s": Unit(1.0, "mps ms ms-1 m.s-1 msec-1 m/sec meter/second meter/s"),
        "km/h": Unit(_KMH, "kmh kph kmh-1 km.h-1 km/hr kilometer/hour kilometer/h"),
        "knots": Unit(_KNOT, "knot kn kt kts nmi/h nmih-1"),
        "mph": Unit(_MPH, "mi/h mih-1 mi.h-1 mi/hr mile/hour mile/h"),
        "ft/s": Unit(_FOOT, "fps fts-1 ft.s-1 ft/sec foot/second foot/s"),
        "cm/s": Unit(0.01, "cms-1 cm.s-1 cm/sec centimeter/second"),
    },
    "length": {
        "m": Unit(1.0, "meter magl masl mamsl gpm"),
        "km": Unit(1000.0, "kilometer"),
        "ft": Unit(_FOOT, "foot feet ftagl ftasl"),
        "mi": Unit(1609.344, "mile"),
    },
    "angle": {
        "degree": Unit(1.0, "deg ° degt degtrue degreetrue degfromn degreenorth degreeeast"),
        "rad": Unit(57.29577951308232, "radian"),
    },
    "time": {
        "h": Unit(1.0, "hr hour"),
        "min": Unit(1.0 / 60.0, "minute"),
        "s": Unit(1.0 / 3600.0, "sec second"),
        "d": Unit(24.0, "day"),
    },
    "temperature": {
        "degC": Unit(1.0, "c °c celsius degreecelsius"),
        "degF": Unit(5.0 / 9.0, "f °f fahrenheit degreefahrenheit", -32.0),
        "K": Unit(1.0, "kelvin", -273.15),
    },
    "pressure": {
        "Pa": Unit(1.0, "pascal"),
        "hPa": Unit(100.0, "hectopascal mb mbar millibar"),
        "kPa": Unit(1000.0, "kilopascal"),
    },
    "geopotential": {"m2/s2": Unit(1.0, "m2s-2 m2.s-2 j/kg jkg-1")},
    "load": {"kg/m2": Unit(1.0, "kgm-2 kg.m-2")},
    "power": {
        "MW": Unit(1.0, "megawatt"),
        "kW": Unit(1e-3, "kilowatt"),
        "GW": Unit(1e3, "gigawatt"),
    },
}
"""Units by kind and name. The first of a kind is the one that numbers are converted into."""

_POINTS = ("N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW",
           "NW", "NNW")  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)


def _plain(label: str) -> str:
    """A label without case, spaces, plurals of words, signs of powers and products.

    >>> _plain("m s**-1"), _plain("m s⁻¹"), _plain("Miles per hour"), _plain("met(re)s")
    ('ms-1', 'ms-1', 'mile/hour', 'met(re)s')
    """
    text = label.strip().lower().replace("⁻", "-").replace("¹", "1").replace("²", "2")
    text = text.replace("·", "")
    text = re.sub(r"(?<=[a-z])[ _]?per[ _]?(?=[a-z])", "/", text)
    text = re.sub(r"metre", "meter", text)
    text = re.sub(r"(meter|kilometer|mile|second|hour|minute|degree|radian|day|watt)s\b", r"\1",
                  text.replace("_", " "))  # fmt: skip
    return re.sub(r"\s|\*|\^", "", text)


_NAMES = {
    kind: {
        _plain(spelling): name
        for name, unit in units.items()
        for spelling in (name, *unit.spellings.split())
    }
    for kind, units in KINDS.items()
}


def unit_named(label: str, kind: str) -> str | None:
    """The unit of a kind that a label such as "m s-1" or "kts" means; None if it means none.

    >>> unit_named("m s-1", "speed"), unit_named("feet", "length"), unit_named("feet", "speed")
    ('m/s', 'ft', None)
    """
    return _NAMES[kind].get(_plain(label))


def units_of(kind: str) -> str:
    """The units of a kind, for messages: "m/s, km/h, knots, mph, ft/s or cm/s"."""
    *first, last = KINDS[kind]
    return f"{', '.join(first)} or {last}"


def factor(unit: str, kind: str) -> float:
    """What a number in a unit is multiplied by to be in the first unit of its kind."""
    return KINDS[kind][unit].factor


def parse_number(text: str) -> float | None:
    """A finite number; None for anything else. A decimal comma is no number."""
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) and abs(float(text)) < float("inf") else None


def parse_quantity(value: float | str, kind: str, unit: str | None = None) -> float:
    """A number with its unit, in the first unit of a kind; `unit` is that of a number alone.

    >>> parse_quantity("36 km/h", "speed"), parse_quantity(5, "speed", "m/s")
    (10.0, 5.0)
    """
    text = str(value).strip()
    number = _NUMBER.match(text)
    if number is None:
        raise PlumecastError(f"{text!r} is no {kind}; write e.g. {_EXAMPLES[kind]!r}")
    label = text[number.end() :].strip()
    name = unit_named(label, kind) if label else unit
    if name is None and label:
        raise PlumecastError(f"{label!r} in {text!r} is no unit of {kind}; give {units_of(kind)}")
    if name is None:
        raise PlumecastError(f"{text!r} has no unit; write e.g. {_EXAMPLES[kind]!r}")
    known_unit = KINDS[kind][name]
    return known_unit.factor * (float(number[0]) + known_unit.offset)


_EXAMPLES = {"speed": "12 mph", "length": "20 ft", "angle": "225 deg", "time": "6 h",
             "temperature": "95 degF", "pressure": "850 hPa", "geopotential": "980 m2 s-2",
             "load": "1.2 kg m-2", "power": "3 MW"}  # fmt: skip


def parse_direction(value: float | str) -> float:
    """A direction in degrees clockwise from north, 0 to 360, from a number or a compass point.

    >>> parse_direction("SW"), parse_direction("north-west"), parse_direction("225 deg")
    (225.0, 315.0, 225.0)
    """
    text = str(value).strip()
    letters = re.sub(r"[\s_-]", "", text).upper()
    for word in ("NORTH", "SOUTH", "EAST", "WEST"):
        letters = letters.replace(word + "ERLY", word[0]).replace(word, word[0])
    if letters in _POINTS:
        return 360.0 / len(_POINTS) * _POINTS.index(letters)
    try:
        degrees = parse_quantity(text, "angle", "degree")
    except PlumecastError:
        degrees = -1.0
    if 0.0 <= degrees <= 360.0:
        return degrees
    raise PlumecastError(
        f"{text!r} is no direction; give degrees from 0 to 360 (270 is a west wind), or a compass "
        "point such as SW"
    )
