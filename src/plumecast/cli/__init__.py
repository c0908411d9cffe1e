"""The command line: parse, call, print.

A command's module, and the libraries it needs, are imported when that command is called. The help
and the version need none of them.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.version import __version__
from plumecast.cli.history import ARGUMENTS
from plumecast.cli.show import Stopped, fail, stopped_line, warn

COMMANDS = {
    "demo": "Simulate fires, train every preset, score them beside the baselines, write a report.",
    "simulate": "Simulate an ensemble of large fires and their smoke.",
    "train": "Fit a fire-to-smoke surrogate and save it.",
    "tune": "Choose the settings of a surrogate by cross-validation within the training part.",
    "evaluate": "Score a surrogate beside the baselines on the test part of its split.",
    "predict": "Predict the smoke of every snapshot in a store, or of arrival-time rasters.",
    "ensemble": "Compute the mean, exceedance probabilities and quantiles of the smoke of many "
    "fires.",
    "study": "Reproduce tables and figures of the paper; finished ones are reused.",
    "report": "Write one self-contained HTML page: tables, figures, settings, credibility.",
    "info": "Describe a snapshot store or a saved surrogate.",
    "ingest": "Read the fires of other models into a store.",
}
"""The module of each command in `plumecast.cli.commands`, and the first line of its help.
A test keeps the lines equal to those in the modules."""

_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "markdown",
}

_INTERRUPTED = 130  # the shell's code for a program stopped by Ctrl-C; typer returns it too

# Newer versions of typer contain their own copy of click. This finds the base class of its errors.
_UsageError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class OptionNamingCommand(TyperCommand):
    """A command whose errors name the option (`--fire-rank=0`), not the library's argument."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; `name=value` in an error becomes `--name=value`."""
        try:
            return super().invoke(ctx)
        except PlumecastError as error:
            options = {item.name: item.opts[-1] for item in self.params if item.opts[-1][0] == "-"}
            text = re.sub(
                r"(?<![\w-])(\w+)=(?=\S)",
                lambda found: f"{options.get(found[1]) or found[1]}=",
                str(error),
            )
            raise type(error)(text) from error


def new_group(**settings: Any) -> typer.Typer:
    """A group of commands, or one command, that looks as all others do."""
    return typer.Typer(**(_SETTINGS | settings))


def load_command(name: str) -> Any:
    """Import the module of a command and build the command.

    A module has either a function `command` or, for a group of commands, `app`.
    """
    module = importlib.import_module(f"plumecast.cli.commands.{name}")
    group = getattr(module, "app", None)
    if group is None:
        group = new_group()
        group.command(name, cls=OptionNamingCommand)(module.command)
    return typer.main.get_command(group)


class _LazyGroup(TyperGroup):
    """Lists commands from the table above and imports only the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed if name is None else load_command(name), rest


app = new_group(
    name="plumecast",
    cls=_LazyGroup,
    help="Learn the map from a wildfire to its smoke in seconds; predict it in milliseconds.",
    invoke_without_command=True,
    add_completion=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plumecast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of every command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _listed() -> None:
    """Stands for a command in the list of commands."""


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_listed)


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print each PlumecastWarning once, as one line; other warnings stay as they are."""
    with warnings.catch_warnings():
        shown, show = set(), warnings.showwarning

        def print_line(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, PlumecastWarning):
                show(message, category, *place, **more)
            elif str(message) not in shown:
                shown.add(str(message))
                warn(str(message))

        warnings.simplefilter("always", PlumecastWarning)
        warnings.showwarning = print_line
        yield


def _words(error: Exception) -> str:
    """The message of an error; that of the operating system without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def _ignore_interrupts(arguments: list[str] | None) -> None:
    """Let a second Ctrl-C not cut off the last words of the program."""
    if arguments is None:  # not if a caller's process goes on
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; an error is one line with the next step, and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    ARGUMENTS.set(given)
    try:
        with _warnings_in_one_line():
            code = app(given, standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except _UsageError as error:
        fail(f"{error.format_message()} (see plumecast --help)")  # type: ignore[attr-defined]
        sys.exit(2)
    except Stopped as stopped:
        _ignore_interrupts(arguments)
        stopped_line(stopped.kept())
        sys.exit(_INTERRUPTED)
    except (PlumecastError, OSError) as error:
        if "--debug" in given:
            raise
        fail(_words(error))
        sys.exit(2)
    if code == _INTERRUPTED:
        _ignore_interrupts(arguments)
        stopped_line("nothing was written")
    sys.exit(code if isinstance(code, int) else 0)
