"""The errors and the warning that users see. A message has the values and says what to do.

An optional dependency that is missing is such an error too: `require` says how to install it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any


class PlumecastError(ValueError):
    """Bad input or a request that cannot be met. The message names the value and the next step."""

    def at(self, place: str) -> PlumecastError:
        """The same error, of one of several things such as a scenario, which the message names."""
        return type(self)(f"{place}: {self}")


class ArgumentError(PlumecastError):
    """A value of an argument that cannot be used.

    The message is "folds=1 leaves nothing out; give at least 2" of a `problem` and an advice, or
    "weather='9': advice" of an advice alone. A surface with other names for its arguments, such as
    the command line with `--weather`, words it with `worded(name)`. The value None means that the
    argument was left out but is needed.
    """

    def __init__(
        self,
        argument: str,
        value: object,
        advice: str = "",
        *,
        problem: str = "",
        place: str = "",
    ) -> None:
        self.argument, self.value, self.advice, self.problem = argument, value, advice, problem
        self.place = place
        super().__init__(self.worded(argument))

    def __reduce__(self) -> Any:
        kind = functools.partial(type(self), problem=self.problem, place=self.place)
        return kind, (self.argument, self.value, self.advice)  # errors of worker processes

    def at(self, place: str) -> ArgumentError:
        """The same error, of one of several things such as a scenario, which the message names."""
        place = f"{place}: {self.place}" if self.place else place
        return type(self)(self.argument, self.value, self.advice, problem=self.problem, place=place)

    def worded(self, name: str) -> str:
        """The message of a surface that calls the argument by `name`."""
        said = f"{self.place}: {name}" if self.place else name
        if self.value is None and not self.problem:
            said += " is missing"
        elif self.value is not True or not name.startswith("-"):  # a switch takes no value
            said += f"={_shown(self.value)}"
        if not self.problem:
            return f"{said}: {self.advice}"
        return f"{said} {self.problem}" + (f"; {self.advice}" if self.advice else "")


_LONGEST = 60  # characters of a value in a message


def _shown(value: object) -> str:
    """A value in a message: text in quotes, a number with the digits that it needs."""
    text = str(value)
    if isinstance(value, float):
        text = f"{value:g}" if float(f"{value:g}") == value else f"{value:.15g}"
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"'{text}'" if isinstance(value, str) else text


class PlumecastWarning(UserWarning):
    """A doubtful input or result; commands print the message as one line on standard error."""


_TITLES = {"torch": "PyTorch", "distributed": "Dask distributed"}


def require(module: str, extra: str, what: str) -> Any:
    """Import `module`, which `what` needs and the extra `extra` installs.

    An error inside an installed module is not caught: installing it again would not help.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        title = _TITLES.get(module, module)
        raise PlumecastError(f"{what} needs {title}; pip install 'plumecast[{extra}]'") from None
