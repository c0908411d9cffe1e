"""Old arguments become value objects, with a warning."""

from __future__ import annotations

import contextlib
import pickle
import warnings
from dataclasses import dataclass

import pytest

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError


@dataclass(frozen=True)
class Place:
    device: str = "cpu"
    memory: str | None = None


@folded_arguments(place=Place, renamed={"where": "device"})
def fit(data: int, *, place: Place | None = None, **settings: int) -> tuple[object, ...]:
    return data, place, settings


def test_fields_of_a_value_are_taken_as_arguments_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"use place=Place\(device=…, memory=…\)"):
        assert fit(1, where="cuda", memory="2GB", rank=3) == (1, Place("cuda", "2GB"), {"rank": 3})


def test_the_value_itself_and_other_arguments_pass_silently():
    assert fit(1, place=Place("cuda"), rank=3) == (1, Place("cuda"), {"rank": 3})


@pytest.mark.parametrize(
    "old",
    [
        "pc.relative_error",
        "from plumecast import log_smoke",
        "pc.fit_surrogate(None, 'no preset', device='cpu')",
        "pc.fit_surrogate(None, np.ones(3), 'no preset')",
        "pc.evaluate({}, None, None, memory='1GB')",
        "pc.weather.with_winds(None, None)",
    ],
)
def test_the_warning_is_of_the_line_that_the_user_wrote(old):
    """Python shows it only then."""
    code = compile(f"import numpy as np\nimport plumecast as pc\n{old}", "mine.py", "exec")
    with warnings.catch_warnings(record=True) as caught, contextlib.suppress(Exception):
        warnings.simplefilter("always")
        exec(code, {"__name__": "__main__"})
    assert caught
    assert {item.category for item in caught} == {DeprecationWarning}
    assert {(item.filename, item.lineno) for item in caught} == {("mine.py", 3)}


def test_both_ways_at_once_are_refused():
    with pytest.raises(PlumecastError, match="fit got place= and device"):
        fit(1, place=Place(), device="cuda")


def test_an_argument_error_is_worded_by_the_surface_and_survives_another_process():
    error = ArgumentError("wind", "9 furlongs", "furlongs are no unit of speed")
    assert str(error) == "wind='9 furlongs': furlongs are no unit of speed"
    assert error.worded("--wind") == "--wind='9 furlongs': furlongs are no unit of speed"
    again = pickle.loads(pickle.dumps(error))
    assert (again.argument, again.value, str(again)) == ("wind", "9 furlongs", str(error))
