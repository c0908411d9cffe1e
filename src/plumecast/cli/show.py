"""What commands print: progress, tables, errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)


def fail(message: str) -> None:
    """One line on standard error."""
    ERR.print(f"[bold red]error:[/] {_plain(message)}", soft_wrap=True)


def note(message: str) -> None:
    """One line on standard error that is not an error."""
    ERR.print(f"[yellow]note:[/] {_plain(message)}", soft_wrap=True)


def say(message: str) -> None:
    """One line on standard output."""
    OUT.print(_plain(message), soft_wrap=True)


def wrote(path: Path, what: str) -> None:
    """Where a result went."""
    say(f"wrote {what} to {path}")


def _plain(message: str) -> str:
    return message.replace("[", r"\[")


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[str], None]]:
    """A bar with time left; the yielded function names the step that begins and counts it.

    The bar is written to standard error and disappears when it is done.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR, transient=True) as bar:
        task = bar.add_task(title, total=total)
        begun = 0

        def begin(step: str) -> None:
            nonlocal begun
            bar.update(task, completed=begun, description=f"{title}: {_plain(step)}")
            begun += 1

        yield begin


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first column is text and whose others are numbers."""
    shown = Table(
        title=title, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD
    )
    for index, column in enumerate(columns):
        shown.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    OUT.print(shown)


def pairs(title: str, items: Sequence[tuple[str, str]]) -> None:
    """Names and values, one line each."""
    OUT.print(f"[bold]{_plain(title)}[/]")
    width = max(len(name) for name, _ in items)
    for name, value in items:
        OUT.print(f"  {name:<{width}}  {_plain(value)}", soft_wrap=True)
