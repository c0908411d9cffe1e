"""The reference of the commands: their help as Markdown, one section per command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from plumecast.cli import COMMANDS, load_command


def commands_text() -> str:
    """The sections of all commands, in the order of `plumecast --help`."""
    return "\n\n".join(section for name in COMMANDS for section in sections(name))


def sections(name: str) -> Iterator[str]:
    """The section of a command, then those of its subcommands."""
    command = load_command(name)
    yield section(f"plumecast {name}", command, "##")
    for sub_name, sub in getattr(command, "commands", {}).items():
        yield section(f"plumecast {name} {sub_name}", sub, "###")


def section(title: str, command: Any, level: str) -> str:
    """Heading, usage, help, and a table of arguments and options."""
    context = typer.Context(command, info_name=title)
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    parts = [f"{level} {title}", f"```text\n{usage}\n```", command.help or ""]
    records = (item.get_help_record(context) for item in command.params)
    rows = [f"| `{cell(names)}` | {cell(text)} |" for names, text in filter(None, records)]
    if rows:
        parts.append("\n".join(["| option | meaning |", "| --- | --- |", *rows]))
    return "\n\n".join(part for part in parts if part)


def cell(text: str) -> str:
    """A text in one line; `|` would end the cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
