"""The history of an output file: the command that wrote it, the version, the surrogate used."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from plumecast.base.version import __version__
from plumecast.surrogate.file import read_header


def history(context: typer.Context, model: Path) -> str:
    """One line: the command line, the version of the package, the checksum of the surrogate."""
    given = context.obj if isinstance(context.obj, list) else [context.command.name]
    command = shlex.join(["plumecast", *map(str, given)])
    checksum = read_header(model)["checksum"]
    return f"{command} (plumecast {__version__}, {model.name} checksum {checksum})"
