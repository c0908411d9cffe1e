"""Units and directions as people write them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.base.units import KINDS, parse_direction, parse_number, parse_quantity, unit_named

NUMBERS = st.floats(-1e4, 1e4, allow_nan=False)


@pytest.mark.parametrize(
    ("kind", "texts", "value"),
    [
        ("speed", ["10 m/s", "10 m s-1", "10m s**-1", "10 m·s⁻¹", "36 km/h", "36 kph", "36 km h-1",
                   "22.36936 mph", "22.36936 miles per hour", "19.43844 kn", "19.43844 kt",
                   "19.43844 Knots", "32.8084 ft/s", "1e1 mps"], 10.0),
        ("length", ["3048 m", "3.048 km", "10000 ft", "10000 feet", "3048 metres"], 3048.0),
        ("temperature", ["35 degC", "95 degF", "95 °F", "308.15 K"], 35.0),
        ("time", ["1.5 h", "90 min", "5400 seconds", "0.0625 days"], 1.5),
        ("angle", ["90 deg", "90°", "1.5707963 rad", "90 degrees"], 90.0),
    ],
)  # fmt: skip
def test_spellings_of_one_value_agree(kind, texts, value):
    assert [parse_quantity(text, kind) for text in texts] == pytest.approx([value] * len(texts))


@pytest.mark.parametrize("kind", KINDS)
@given(number=NUMBERS)
def test_every_unit_is_read_back(kind, number):
    """A number in a unit equals the same number with that unit as the unit of numbers alone."""
    for name in KINDS[kind]:
        assert unit_named(name, kind) == name
        assert parse_quantity(f"{number} {name}", kind) == parse_quantity(number, kind, name)
    assert parse_quantity(number, kind, next(iter(KINDS[kind]))) == number


@pytest.mark.parametrize(
    ("text", "names"),
    [("12", "no unit"), ("12 mhp", "'mhp'.*m/s, km/h, knots"), ("fast", "'fast' is no speed"),
     ("12 ft", "'ft'"), ("3,5 m/s", "',5 m/s'"), ("nan m/s", "'nan m/s'")],
)  # fmt: skip
def test_a_speed_that_cannot_be_read_is_named(text, names):
    with pytest.raises(PlumecastError, match=names):
        parse_quantity(text, "speed")


def test_compass_points_are_sixteenths_of_a_turn():
    points = "N,NNE,NE,ENE,E,ESE,SE,SSE,S,SSW,SW,WSW,W,WNW,NW,NNW"
    found = [parse_direction(point) for point in points.split(",")]
    np.testing.assert_array_equal(found, np.arange(16) * 22.5)
    assert {parse_direction(text) for text in ("sw", "south-west", "Southwest", "225", 225.0,
                                               "225°", "southwesterly")} == {225.0}  # fmt: skip


@pytest.mark.parametrize("text", ["361", "-1", "up", "SWN", "", "nan", "10 m/s"])
def test_no_direction_is_refused(text):
    with pytest.raises(PlumecastError, match="no direction"):
        parse_direction(text)


@pytest.mark.parametrize(
    ("text", "value"), [(" 3.5 ", 3.5), ("-1e-3", -1e-3), ("3,5", None), ("inf", None), ("", None)]
)
def test_numbers(text, value):
    assert parse_number(text) == value
