"""Print progress, tables and errors; the history of an output: the command that wrote it.

Parts of rich are imported when they are used, to keep `plumecast --version` fast.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer

from plumecast.base.version import __version__

_WIDEST = 10_000  # characters; no table is wider
_MOST_PROBLEMS = 20


class OutputClosed(Exception):
    """Nobody reads standard output or standard error any more, as after `| head`."""


class Stopped(Exception):
    """Ctrl-C; `kept` says what is kept."""

    def __init__(self, kept: Callable[[], str]) -> None:
        self.kept = kept


@contextlib.contextmanager
def when_stopped(kept: Callable[[], str]) -> Iterator[None]:
    """Work that keeps its finished parts; after Ctrl-C, `kept` says what these are."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(kept) from None


def count(number: int, one: str, several: str | None = None) -> str:
    """A number of things, such as "1 fire" or "3 fires"."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def fail(message: str) -> None:
    """One line on standard error."""
    _line("error:", message, fg="red", bold=True)


def note(message: str) -> None:
    """One line on standard error for information."""
    _line("note:", message, fg="yellow")


def stopped_line(kept: str) -> None:
    """One line on standard error after Ctrl-C, which says what is kept."""
    _line("stopped:", kept, fg="yellow", bold=True)


def warn(message: str) -> None:
    """One line on standard error for a doubtful input or result."""
    _line("warning:", message, fg="yellow", bold=True)


def show_problems(problems: Sequence[str]) -> None:
    """Print the first errors, one line each."""
    for problem in problems[:_MOST_PROBLEMS]:
        fail(problem)
    if len(problems) > _MOST_PROBLEMS:
        fail(f"{len(problems) - _MOST_PROBLEMS} more failed")


def exit_code(*, failed: int, done: int) -> None:
    """Exit with 1 if some failed and with 2 if all failed; return if none did."""
    if failed:
        raise typer.Exit(1 if done else 2)


def fires_kept(store: Path) -> str:
    """What is kept of a store whose command was stopped."""
    from plumecast.data.store import stored_fires  # here, because every command imports this module

    fires = len(stored_fires(store))
    if not fires:
        return f"no fire was finished, {store} holds none"
    saved = f"{count(fires, 'fire is', 'fires are')} saved in {store}"
    return f"{saved}; run the same command again to continue"


def next_step(*words: str | Path) -> None:
    """A command to run next, quoted for the shell."""
    say(f"next: {shlex.join(['plumecast', *map(str, words)])}")


def say(message: str) -> None:
    """One line on standard output."""
    _echo(message, err=False)


def wrote(path: Path, what: str) -> None:
    """Say where a result was written."""
    say(f"wrote {what} to {path}")


def _line(word: str, message: str, **style: Any) -> None:
    _echo(f"{_styled(word, **style)} {' '.join(message.splitlines())}", err=True)


def _styled(text: str, **style: Any) -> str:
    """Text with colours, unless the user asks for none (NO_COLOR) or the terminal has none."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else typer.style(text, **style)


def _echo(text: str, *, err: bool) -> None:
    try:
        typer.echo(text, err=err)
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:  # a full disk, say
        stream = "standard error" if err else "standard output"
        raise OSError(error.errno, error.strerror, stream) from error


@contextlib.contextmanager
def counted(
    title: str, total: int | None = None
) -> Iterator[Callable[[int, int | None, str], None]]:
    """A progress bar on standard error with the time left; hidden unless that is a terminal.

    The yielded function takes (finished, total, what).
    """
    from rich import progress as bars
    from rich.console import Console
    from rich.markup import escape

    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("[bold]{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    hidden = not console.is_terminal or console.is_dumb_terminal
    with bars.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(title, total=total)

        def update(done: int, total: int | None, step: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(f"{title}: {step}"))

        yield update


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[..., None]]:
    """A progress bar for named steps. Call the yielded function as each step begins; with
    `within=True` it renames the current step instead of advancing."""
    with counted(title, total) as update:
        begun = 0

        def begin(step: str, *, within: bool = False) -> None:
            nonlocal begun
            begun += not within
            update(begun - 1, total, step)

        yield begin


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first column is text and whose others are numbers.

    If it is wider than the terminal, or than COLUMNS, every row becomes a block of lines: a cell is
    never cut. A table that goes to a file or a pipe is as wide as it needs.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for index, column in enumerate(columns):
        shown.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*(escape(cell) for cell in row))
    stated = os.environ.get("COLUMNS", "")  # rich does not ask a dumb terminal
    width = int(stated) if stated.isdigit() and int(stated) else None
    console = Console(highlight=False, emoji=False, width=width, height=25)
    needed = console.measure(shown, options=console.options.update(width=_WIDEST)).maximum
    if not console.is_terminal and width is None:
        console.width = needed
    if needed > console.width:
        _blocks(title, columns, rows)
        return
    with console.capture() as text:
        console.print(shown)
    say(text.get().rstrip("\n"))


def _blocks(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as blocks: the first cell of a row, then a line for each of the others."""
    say(_styled(title, bold=True))
    wide = max(len(column) for column in columns[1:])
    for row in rows:
        say(f"{columns[0]}: {row[0]}" if columns[0] else row[0])
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                say(f"  {column:<{wide}}  {cell}")


def pairs(title: str, items: Sequence[tuple[str, str]]) -> None:
    """Names and values, one line each."""
    say(_styled(title, bold=True))
    width = max(len(name) for name, _ in items)
    for name, value in items:
        say(f"  {name:<{width}}  {value}")


ARGUMENTS: ContextVar[list[str] | None] = ContextVar("arguments", default=None)
"""The arguments that `main` was called with; None: those of the process."""


def command_line() -> str:
    """The command as the user typed it."""
    given = ARGUMENTS.get()
    return shlex.join(["plumecast", *(sys.argv[1:] if given is None else given)])


def history(model: Path) -> str:
    """One line: the command line, the version of the package, the checksum of the surrogate."""
    from plumecast.surrogate.file import read_header  # here, as every command imports this module

    checksum = read_header(model)["checksum"]
    return f"{command_line()} (plumecast {__version__}, {model.name} checksum {checksum})"
