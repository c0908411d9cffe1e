"""The history of an output: the command that wrote it, the version, the surrogate used."""

from __future__ import annotations

import shlex
import sys
from contextvars import ContextVar
from pathlib import Path

from plumecast.base.version import __version__

ARGUMENTS: ContextVar[list[str] | None] = ContextVar("arguments", default=None)
"""The arguments that `main` was called with; None: those of the process."""


def command_line() -> str:
    """The command as the user typed it."""
    given = ARGUMENTS.get()
    return shlex.join(["plumecast", *(sys.argv[1:] if given is None else given)])


def history(model: Path) -> str:
    """One line: the command line, the version of the package, the checksum of the surrogate."""
    # Imported here, because every command imports this module.
    from plumecast.surrogate.file import read_header

    checksum = read_header(model)["checksum"]
    return f"{command_line()} (plumecast {__version__}, {model.name} checksum {checksum})"
