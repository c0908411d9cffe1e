"""Docstrings and signatures as Sphinx wants them.

The docstrings of plumecast are plain text with `names` in single backticks, formulas in Unicode and
doctests. Sphinx reads reStructuredText, where `*`, `|` and a trailing `_` are markup. Defaults in
signatures are often constants, whose names tell a reader nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import plumecast

GROUPS = [name for name in plumecast.__all__ if inspect.ismodule(getattr(plumecast, name))]
PUBLIC = {name: name for name in plumecast.__all__ if name not in (*GROUPS, "__version__")} | {
    name: f"{group}.{name}" for group in GROUPS for name in getattr(plumecast, group).__all__
}
"""The public names as docstrings call them, and below `plumecast`."""

CODE = re.compile(r"`([^`]+)`")
MARKUP = re.compile(r"([*|\\]|(?<=\w)_(?!\w))")


def docstring_lines(lines: list[str]) -> list[str]:
    """The lines as reStructuredText; doctests stay as they are."""
    converted, within_example = [], False
    for line in lines:
        within_example = line.lstrip().startswith(">>>") or (within_example and bool(line.strip()))
        converted.append(line if within_example else convert_line(line))
    return converted


def convert_line(line: str) -> str:
    """One line of text.

    >>> convert_line("`fit_basis` of `x` gives |z|")
    ':py:obj:`~plumecast.operators.fit_basis`\\\\  of ``x``\\\\  gives \\\\|z\\\\|'
    """
    parts = CODE.split(line)  # text, code, text, code, …
    for place, part in enumerate(parts):
        parts[place] = code(part) if place % 2 else MARKUP.sub(r"\\\1", part)
    return "".join(parts)


def code(name: str) -> str:
    """A link to a public name, and code otherwise; a letter may follow, as in `fire_id`s."""
    if name in PUBLIC:
        return f":py:obj:`~plumecast.{PUBLIC[name]}`\\ "
    return f"``{name}``\\ "


def with_values(found: Callable[..., Any], signature: str) -> str:
    """A signature with plain values in the place of the names of constants.

    >>> LIMIT = 3
    >>> def f(x: int = 3) -> None: ...
    >>> with_values(f, "(x: int = LIMIT)")
    '(x: int = 3)'
    """
    for name, value in defaults(found).items():
        if isinstance(value, str | int | float):
            constant = rf"(\b{name}(?:: [^=]*)? ?= ?)[A-Z][A-Z_]+\b"
            signature = re.sub(constant, lambda before, own=value: before[1] + repr(own), signature)
    return signature


def defaults(found: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of a function by name, not those of the signature that Sphinx has replaced."""
    if not inspect.isfunction(found):
        return {}
    names = found.__code__.co_varnames[: found.__code__.co_argcount]
    positional = found.__defaults__ or ()
    late = zip(names[len(names) - len(positional) :], positional, strict=True)
    return dict(late) | (found.__kwdefaults__ or {})
