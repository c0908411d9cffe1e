"""Every command line in the documents and the help can be typed: its words and options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from plumecast.cli import COMMANDS, app, load_command
from support.places import REPOSITORY

FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"^\s*(?:\$ )?((?:python -m )?plumecast(?: .*)?)$")
INLINE = re.compile(r"`(plumecast [^`]+)`")

GROUP = typer.main.get_command(app)


def documents() -> list[Path]:
    """The documents that exist."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def commands_in(text: str) -> list[str]:
    """The plumecast command lines of the code blocks of a Markdown text."""
    lines = []
    for block in FENCE.findall(text):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            for part in re.split(r"&&|;|\|", line):
                found = PROMPT.match(part)
                if found:
                    lines.append(found.group(1).removeprefix("python -m ").strip())
    return lines


def problem(line: str) -> str | None:
    """What keeps a command line from being typed; None when nothing does."""
    words = shlex.split(line, comments=True)[1:]
    context = typer.Context(GROUP)
    known = {name for option in GROUP.get_params(context) for name in option.opts}
    while words and words[0].startswith("-"):
        if words[0] not in known:
            return f"plumecast has no option {words[0]}"
        words = words[1:]
    if not words:
        return None
    named = [words[0]]
    command = load_command(words[0]) if words[0] in COMMANDS else None
    while hasattr(command, "get_command"):  # a group of commands, such as `plumecast ingest`
        named.append(words[len(named)] if len(words) > len(named) else "")
        command = command.get_command(context, named[-1])
    if command is None:
        return f"there is no command {' '.join(named)}"
    words = words[len(named) :]
    options = {
        name
        for option in command.get_params(typer.Context(command))
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("-")
    }
    for word in words:
        name = word.split("=", 1)[0]
        if re.match(r"--?[a-z]", name) and name not in options:
            return f"plumecast {' '.join(named)} has no option {name}"
    return None


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_commands_of_a_document_exist(path):
    problems = {line: problem(line) for line in commands_in(path.read_text(encoding="utf-8"))}
    assert {line: found for line, found in problems.items() if found} == {}


def every_command() -> dict[str, Any]:
    """All commands by the words that call them."""
    found = {}
    for name in COMMANDS:
        command = load_command(name)
        if hasattr(command, "commands"):
            found |= {f"{name} {inner}": item for inner, item in command.commands.items()}
        else:
            found[name] = command
    return found


@pytest.mark.parametrize("words", every_command())
def test_examples_of_the_help_exist(words):
    lines = INLINE.findall(every_command()[words].callback.__doc__)
    enough = 2 if words == "demo" else 3  # `plumecast demo` is complete
    assert [line for line in lines if len(line.split()) >= enough], "the help has no example"
    assert [found for line in lines if (found := problem(line))] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_list_of_commands_shows_the_first_paragraph_of_their_help(name):
    command = load_command(name)
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("plumecast train ensemble.zarr -o smoke.plume --no-center", None),
        ("plumecast train ensemble.zarr --speed=9", "plumecast train has no option --speed"),
        ("plumecast forecast ensemble.zarr", "there is no command forecast"),
        (
            "plumecast ingest wrf runs/* -o e.zarr --fast",
            "plumecast ingest wrf has no option --fast",
        ),
    ],
)
def test_a_command_that_cannot_be_typed_is_noticed(line, named):
    assert problem(line) == named
