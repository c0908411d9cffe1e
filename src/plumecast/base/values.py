"""Checks of values that a user gives: options, settings, and records that can be edited."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import types
import typing
from collections.abc import Sequence
from typing import Any

from plumecast.base.errors import ArgumentError


def check_number(
    name: str, value: Any, *, least: float | None = None, above: float | None = None
) -> None:
    """Raise unless a value is a finite number within its range."""
    if not _is_number(value):
        raise ArgumentError(name, value, "give one", problem="is not a finite number")
    if least is not None and not value >= least:
        raise ArgumentError(name, value, problem=f"must be ≥ {least:g}")
    if above is not None and not value > above:
        raise ArgumentError(name, value, problem=f"must be above {above:g}")


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> None:
    """Raise unless a value is a whole number, at least `least` and at most `most`."""
    if not _is_count(value):
        raise ArgumentError(name, value, "give one", problem="is not a whole number")
    if value < least:
        raise ArgumentError(name, value, problem=f"must be at least {least}")
    if most is not None and value > most:
        raise ArgumentError(name, value, problem=f"must be at most {most}")


def check_fields(value: Any) -> None:
    """Raise unless every field of a dataclass has a value of its declared type; floats are finite.

    Values come from options, from Python and from files that can be edited, so that annotations
    alone do not ensure their types.
    """
    kind: Any = type(value)
    for name, hint in _hints(kind).items():
        field = getattr(value, name)
        if not any(_fits(field, kind) for kind in hint):
            what = " or ".join(_name(kind) for kind in hint if kind is not types.NoneType)
            raise ArgumentError(name, field, "give one", problem=f"is not {what}")


def setting(
    default: Any, help: str, *, option: str | None = None, default_text: str | None = None
) -> Any:
    """A field of a settings class of which commands make an option, with this help text.

    `option` is the name of the option if it is not that of the field. `default_text` says what
    happens without the option where the default value does not.
    """
    metadata = {"help": help, "option": option, "default_text": default_text}
    return dataclasses.field(default=default, metadata=metadata)


def shown(value: Any) -> str:
    """A value in an error message; a long one is shortened."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


_PLAIN = (str, int, float, list, dict, tuple, types.NoneType)

_KINDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text"}


def _name(kind: Any) -> str:
    inner = typing.get_args(kind)
    if inner:
        return f"a list of {_name(inner[0]).split(' ', 1)[1]}s"
    return _KINDS.get(kind, f"a {getattr(kind, '__name__', kind)}")


@functools.cache
def _hints(kind: Any) -> dict[str, tuple[Any, ...]]:
    """The declared types of the fields of a dataclass; a union has several."""
    hints = typing.get_type_hints(kind)
    unions = (types.UnionType, typing.Union)
    return {
        item.name: typing.get_args(hint) if typing.get_origin(hint) in unions else (hint,)
        for item in dataclasses.fields(kind)
        for hint in [hints[item.name]]
    }


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind is float:
        return _is_number(value)
    if kind is int:
        return _is_count(value)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    if origin is not None:  # such as tuple[str, ...]
        if not isinstance(value, Sequence) or isinstance(value, str):
            return False
        whole = origin is not tuple or inner[-1] is Ellipsis or len(inner) == len(value)
        return whole and all(_fits(item, inner[0]) for item in value)
    if getattr(kind, "_is_protocol", False):
        return not isinstance(value, _PLAIN)
    return isinstance(value, kind)


def _is_number(value: Any) -> bool:
    known = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return known and (isinstance(value, numbers.Integral) or math.isfinite(value))


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
