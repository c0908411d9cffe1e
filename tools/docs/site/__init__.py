"""The Sphinx extension of the documentation: commands from their help, docstrings, the palette.

Nothing generated is written into `docs/`: a page says `<!-- commands -->`, for example, where the
text belongs, and it is put there when Sphinx reads the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from plumecast.base.names import TABLE
from tools.docs.site.commands import command_text, commands_text
from tools.docs.site.docstrings import docstring_lines, with_values

REPOSITORY = Path(__file__).resolve().parents[3]


def changelog_text() -> str:
    """The changelog without its title, with links as seen from `docs/`."""
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    return changes.partition("\n")[2].replace("](docs/", "](")


def variables_text() -> str:
    """The table of the variables of a store."""
    rows = [
        f"| `{entry.name}` | {', '.join(entry.dims)} | {entry.long_name} | {entry.units or ''} |"
        for entry in TABLE.values()
    ]
    return "\n".join(["| name | dimensions | meaning | unit |", "| --- | --- | --- | --- |", *rows])


TEXTS = {"commands": commands_text, "changelog": changelog_text, "variables": variables_text}
"""What replaces a mark such as `<!-- commands -->` in a page."""

COMMAND = re.compile(r"<!-- command (\w+) -->")
"""The mark of one command, in the page of that command."""


def insert_texts(app: Any, page: str, source: list[str]) -> None:
    """Put the texts that are made from the package in the place of their marks."""
    for name, text in TEXTS.items():
        mark = f"<!-- {name} -->"
        if mark in source[0]:
            source[0] = source[0].replace(mark, text())
    source[0] = COMMAND.sub(lambda mark: command_text(mark[1]), source[0])


def convert_docstring(
    app: Any, kind: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """Rewrite the lines of a docstring in place, as Sphinx asks for."""
    lines[:] = docstring_lines(lines)


def convert_signature(
    app: Any, kind: str, name: str, found: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Show the values of defaults; None leaves a signature as it is."""
    return (with_values(found, signature), returns) if signature else None


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", insert_texts)
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("autodoc-process-signature", convert_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
