"""The command line: parse, call, print.

A command's module, and the libraries it needs, are imported when that command is called. The help
and the version need none of them.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from plumecast.__main__ import INTERRUPTED
from plumecast.base.errors import ArgumentError, PlumecastError, PlumecastWarning
from plumecast.base.files import FULL
from plumecast.base.version import __version__
from plumecast.cli.show import ARGUMENTS, OutputClosed, Stopped, fail, stopped_line, warn

COMMANDS = {
    "demo": "Simulate fires, train every preset, score them beside the baselines, write a report.",
    "simulate": "Simulate an ensemble of large fires and their smoke.",
    "train": "Fit a fire-to-smoke surrogate and save it.",
    "update": "Take the new fires of a store into a surrogate, without a new fit.",
    "tune": "Choose the settings of a surrogate by cross-validation within the training part.",
    "evaluate": "Score a surrogate beside the baselines on the test part of its split.",
    "predict": "Predict the smoke of every snapshot in a store, or of arrival-time rasters.",
    "ensemble": "Compute the mean, exceedance probabilities and quantiles of the smoke of many "
    "fires.",
    "compare": "Compare the smoke of scenarios at places and in every cell, with intervals.",
    "impact": "Compute the energy that solar plants lose to the smoke of fires.",
    "design": "Choose the fires that are worth an expensive run, before any of them is run.",
    "map": "Draw fires and their smoke: a page to explore, a figure, or KMZ for GIS programs.",
    "study": "Reproduce tables and figures of the paper; finished ones are reused.",
    "report": "Write one self-contained HTML page: tables, figures, settings, credibility.",
    "serve": "Open a live page: light a fire, turn the wind, see its smoke; train and compare.",
    "info": "Describe a snapshot store or a saved surrogate.",
    "ingest": "Read the fires of other models into a store.",
    "tidy": "Remove what killed commands left, and files of a store that no version needs.",
}
"""The first line of the help of each command, as in its module in `plumecast.cli.commands`."""

_MODULES = {"report": "map", "tidy": "info", "tune": "train"}
"""The module of each command that has none of its own; its function has the command's name."""

_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "markdown",
}

_CLOSED = 141  # the shell's code for a program that wrote to a closed pipe

# Newer versions of typer contain their own copy of click. This finds the base class of its errors.
_UsageError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class OptionNamingCommand(TyperCommand):
    """A command whose errors name the option (`--fire-rank=0`), not the library's argument."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error about an argument names its option."""
        from plumecast.cli.options import check_number  # imports more than a help needs

        try:
            for item in self.params:
                check_number(str(item.name), item.opts[-1], ctx.params.get(item.name))
            return super().invoke(ctx)
        except OSError as error:
            if error.errno not in FULL or error.filename is not None or not ctx.params.get("out"):
                raise
            # Libraries do not say which file they could not finish.
            raise OSError(error.errno, error.strerror, str(ctx.params["out"])) from error
        except ArgumentError as error:
            flags = [(item.name, item.opts[-1]) for item in self.params if item.opts[-1][0] == "-"]
            options = {flag[2:].replace("-", "_"): flag for _, flag in flags} | dict(flags)
            name = options.get(error.argument, error.argument)
            raise PlumecastError(error.worded(name)) from error


def new_group(**settings: Any) -> typer.Typer:
    """A group of commands, or one command, that looks as all others do."""
    return typer.Typer(**(_SETTINGS | settings))


def command_module(name: str) -> ModuleType:
    """Import the module of a command."""
    return importlib.import_module(f"plumecast.cli.commands.{_MODULES.get(name, name)}")


def load_command(name: str) -> Any:
    """Import the module of a command and build the command.

    A module has a function `command` or, for a group of commands, `app`.
    """
    module = command_module(name)
    group = None if name in _MODULES else getattr(module, "app", None)
    if group is None:
        function = getattr(module, name if name in _MODULES else "command")
        group = new_group()
        group.command(name, cls=OptionNamingCommand)(function)
    return typer.main.get_command(group)


class _LazyGroup(TyperGroup):
    """Lists commands from the table above and imports only the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        command = listed if name is None else load_command(name)
        if ctx.obj is not None:  # the function `loaded` of `main`
            ctx.obj()
        return name, command, rest


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
def _printable_output() -> Iterator[None]:
    """Print characters that the terminal's encoding lacks as escapes, such as \\xb5 for µ."""
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    before = [stream.errors for stream in streams]
    for stream in streams:
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream, errors in zip(streams, before, strict=True):
            with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
                stream.reconfigure(errors=errors)


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
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        step = "; free space or choose another output path" if error.errno in FULL else ""
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}{step if where else ''}"
    if isinstance(error, MemoryError):
        why = f" ({error})" if str(error) else ""
        return f"the memory is not enough{why}; give fewer or smaller fires, or --memory"
    if isinstance(error, RecursionError):
        return f"a file is nested too deeply to be read ({error}); write it again"
    if isinstance(error, UnicodeEncodeError):
        name = error.object[max(0, error.start - 20) : error.end + 20]
        return (
            f"'{name}' has a character that is not UTF-8, which files of this kind cannot take; "
            "rename the folder or the file"
        )
    return str(error) or type(error).__name__


def _ignore_interrupts(arguments: list[str] | None) -> None:
    """Let Ctrl-C not cut off the last words of a program that has ended, nor change its code."""
    if arguments is None:  # not if a caller's process goes on
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_interrupted(arguments: list[str] | None, kept: str) -> NoReturn:
    """Say what is kept, and end with the code of Ctrl-C.

    A process of our own ends at once: threads of libraries that were stopped in the middle can
    print or raise while Python shuts down.
    """
    _ignore_interrupts(arguments)
    stopped_line(kept)
    if arguments is not None:
        sys.exit(INTERRUPTED)
    for process in multiprocessing.active_children():
        process.terminate()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit(INTERRUPTED)


def main(arguments: list[str] | None = None, *, loaded: Callable[[], object] | None = None) -> None:
    """Run a command; an error is one line with the next step, and exit code 2.

    `loaded` is called when the libraries are imported and the command begins.
    """
    words = sys.argv[1:] if arguments is None else arguments
    ARGUMENTS.set(words)
    with _printable_output():
        try:
            _run(words, arguments, loaded)
        except OutputClosed:
            # Let Python, which flushes the standard streams at its end, not complain about them.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    os.dup2(nowhere, stream.fileno())
            sys.exit(_CLOSED)


def _flush_output() -> None:
    if sys.stdout is None:  # closed by the shell (>&-): there is nothing to flush
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def _run(
    words: list[str], arguments: list[str] | None, loaded: Callable[[], object] | None
) -> None:
    try:
        with _warnings_in_one_line():
            code = app(words, standalone_mode=False, obj=loaded)
            _flush_output()
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except _UsageError as error:
        _ignore_interrupts(arguments)
        fail(f"{error.format_message()} (see plumecast --help)")  # type: ignore[attr-defined]
        sys.exit(2)
    except Stopped as stopped:
        _end_interrupted(arguments, stopped.kept())
    except (
        PlumecastError, OSError, MemoryError, RecursionError, UnicodeEncodeError,
    ) as error:  # fmt: skip
        if "--debug" in words:
            raise
        _ignore_interrupts(arguments)
        fail(_words(error))
        sys.exit(2)
    if code == INTERRUPTED:
        _end_interrupted(arguments, "nothing was written")
    _ignore_interrupts(arguments)
    sys.exit(code if isinstance(code, int) else 0)
