"""The errors and the warning that users see. A message has the values and says what to do.

An optional dependency that is missing is such an error too: `require` says how to install it.
"""

from __future__ import annotations

import importlib
from typing import Any


class PlumecastError(ValueError):
    """Bad input or a request that cannot be met. The message names the value and the next step."""


class ArgumentError(PlumecastError):
    """A value of an argument that cannot be used.

    The message words it for Python: "weather='9': advice". A surface with other names for its
    arguments, such as the command line with `--weather`, words it with `worded(name)`. The value
    None means that the argument was left out but is needed.
    """

    def __init__(self, argument: str, value: object, advice: str) -> None:
        self.argument, self.value, self.advice = argument, value, advice
        said = f"{argument} is missing" if value is None else f"{argument}={value!r}"
        super().__init__(f"{said}: {advice}")

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, object, str]]:
        return type(self), (self.argument, self.value, self.advice)  # errors of worker processes

    def worded(self, name: str) -> str:
        """The message of a surface that calls the argument by `name`."""
        said = f"{name} is missing" if self.value is None else f"{name} {self.value}"
        return f"{said}: {self.advice}"


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
