"""Print progress, tables and errors.

Parts of rich are imported when they are used, to keep `plumecast --version` fast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from plumecast.base import files


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
    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {_one_line(message)}", err=True)


def note(message: str) -> None:
    """One line on standard error for information."""
    typer.echo(f"{typer.style('note:', fg='yellow')} {_one_line(message)}", err=True)


def stopped_line(kept: str) -> None:
    """One line on standard error after Ctrl-C, which says what is kept."""
    typer.echo(f"{typer.style('stopped:', fg='yellow', bold=True)} {_one_line(kept)}", err=True)


def warn(message: str) -> None:
    """One line on standard error for a doubtful input or result."""
    typer.echo(f"{typer.style('warning:', fg='yellow', bold=True)} {_one_line(message)}", err=True)


def say(message: str) -> None:
    """One line on standard output."""
    typer.echo(message)


def wrote(path: Path, what: str) -> None:
    """Say where a result was written."""
    say(f"wrote {what} to {path}")


def _one_line(message: str) -> str:
    return " ".join(message.split("\n"))


@contextlib.contextmanager
def _bar(title: str, total: int | None) -> Iterator[Callable[[int, int | None, str], None]]:
    """A progress bar on standard error with the time left; hidden unless that is a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(title, total=total)

        def update(done: int, total: int | None, step: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(f"{title}: {step}"))

        yield update


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[..., None]]:
    """A progress bar for named steps. Call the yielded function as each step begins; with
    `within=True` it renames the current step instead of advancing."""
    with _bar(title, total) as update:
        begun = 0

        def begin(step: str, *, within: bool = False) -> None:
            nonlocal begun
            begun += not within
            update(begun - 1, total, step)

        yield begin


@contextlib.contextmanager
def counted(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar for counted work; the yielded function takes (finished, total, what)."""
    with _bar(title, None) as update:
        yield update


def write_json(path: Path, content: Any, what: str) -> None:
    """Write a result as JSON, creating its folder if needed, and say so."""
    files.write_json(path, content)
    wrote(path, what)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first column is text and whose others are numbers."""
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
    Console(highlight=False, emoji=False).print(shown)


def pairs(title: str, items: Sequence[tuple[str, str]]) -> None:
    """Names and values, one line each."""
    say(typer.style(title, bold=True))
    width = max(len(name) for name, _ in items)
    for name, value in items:
        say(f"  {name:<{width}}  {value}")
