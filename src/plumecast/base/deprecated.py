"""Old arguments and names, kept with a warning for one version."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from plumecast.base.errors import PlumecastError

P = ParamSpec("P")
Result = TypeVar("Result")
_PACKAGE, _IMPORT = f"{Path(__file__).parents[1]}{os.sep}", "<frozen importlib"


def deprecate(old: str, new: str) -> None:
    """Warn that `old` will go with the next version; `new` is what to write.

    The warning is of the line that called the package, however many wrappers lie between: Python
    shows deprecations of a user's own script alone.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, _IMPORT)):
        level += not frame.f_code.co_filename.startswith(_IMPORT)  # `warn` does not count these
        frame = frame.f_back
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=level)


def folded_arguments(
    *,
    renamed: Mapping[str, str] | None = None,
    adapted: Mapping[str, Callable[[Any], Any]] | None = None,
    **values: type[Any],
) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Accept the fields of value objects as keyword arguments too, with a deprecation warning.

    With `resources=Resources`, `f(device="cuda")` becomes `f(resources=Resources(device="cuda"))`.
    `renamed` maps old names of fields to new ones: `{"checkpoint_interval": "interval"}`; `adapted`
    maps names to functions of old values: `{"progress": hears_names}`. A field whose name is also a
    parameter of the function is left to the function.
    """
    names, changes = dict(renamed or {}), dict(adapted or {})
    home = {
        field.name: (argument, kind) for argument, kind in values.items() for field in fields(kind)
    }
    home |= {old: home[new] for old, new in names.items() if new in home}

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        parameters = {*values, *inspect.signature(function).parameters}

        @functools.wraps(function)
        def call(*positional: P.args, **keywords: P.kwargs) -> Result:
            given: dict[str, Any] = dict(keywords)
            loose: dict[str, dict[str, Any]] = {}
            for name in [name for name in given if name in home and name not in parameters]:
                value = changes.get(name, lambda value: value)(given.pop(name))
                loose.setdefault(home[name][0], {})[names.get(name, name)] = value
            for argument, parts in loose.items():
                kind = values[argument]
                if given.get(argument) is not None:
                    raise PlumecastError(
                        f"{function.__name__} got {argument}= and {', '.join(parts)}; put all into "
                        f"{argument}={kind.__name__}(…)"
                    )
                listed = ", ".join(f"{name}=…" for name in parts)
                deprecate(f"{function.__name__}({listed})", f"{argument}={kind.__name__}({listed})")
                given[argument] = kind(**parts)
            return function(*positional, **given)

        return call

    return decorate
