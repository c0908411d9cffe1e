"""Run a tutorial: its code cells, as they stand and in order, in the current folder."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

from support.how_to import run_shell
from support.places import REPOSITORY

FOLDER = REPOSITORY / "docs" / "tutorials"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = re.compile(r"\A(?:---\n.*?^---\n|(?::[\w-]+:[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
SHELL = "%%bash\n"
"""First line of a cell of commands; other cells are Python and share their names."""


def tutorials() -> list[str]:
    """The names of the tutorials, without the page that lists them."""
    return sorted(path.name for path in FOLDER.glob("*.md") if path.name != "index.md")


def cells(text: str) -> list[str]:
    """The code cells of a page, without their options."""
    return [OPTIONS.sub("", cell).lstrip("\n") for cell in CELL.findall(text)]


def run_tutorial(name: str, run: Callable[..., Any]) -> str:
    """Run the cells of a tutorial; returns what they printed.

    `run` is the fixture that runs one command of plumecast.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    for cell in cells((FOLDER / name).read_text(encoding="utf-8")):
        if cell.startswith(SHELL):
            printed.write(run_shell(cell.removeprefix(SHELL), run))
        else:
            with contextlib.redirect_stdout(printed):
                exec(compile(cell, name, "exec"), names)
    return printed.getvalue()
