"""The reference of the commands: their help as Markdown, one page per command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from plumecast.cli import COMMANDS, load_command

EXAMPLE = re.compile(r"^Example: (.*)", re.MULTILINE | re.DOTALL)
"""The last paragraph of a command's help: what to type, and `or` or `then` what else."""


def commands_text() -> str:
    """The list of all commands, in the order of `plumecast --help`."""
    rows = [f"| [`{name}`]({name}.md) | {cell(line)} |" for name, line in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "| --- | --- |", *rows])


def command_text(name: str) -> str:
    """What the page of a command holds: usage, help, arguments and options, its subcommands."""
    command = load_command(name)
    return "\n\n".join(
        [*parts(f"plumecast {name}", command)]
        + [
            part
            for sub_name, sub in getattr(command, "commands", {}).items()
            for part in [f"## {sub_name}", *parts(f"plumecast {name} {sub_name}", sub)]
        ]
    )


def parts(title: str, command: Any) -> Iterator[str]:
    """Usage, help, and a table of arguments and options."""
    context = typer.Context(command, info_name=title)
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```"
    text = command.help or ""
    example = EXAMPLE.search(text)
    yield text[: example.start()].strip() if example else text
    if example:
        yield f"For example: {' '.join(example[1].split())}."
    records = (item.get_help_record(context) for item in command.params)
    rows = [f"| `{cell(names)}` | {cell(text)} |" for names, text in filter(None, records)]
    if rows:
        yield "\n".join(["| option | meaning |", "| --- | --- |", *rows])


def cell(text: str) -> str:
    """A text in one line; `|` would end the cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
