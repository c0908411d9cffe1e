"""Shared options are declared once; errors name them; the start of the program is light."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import plumecast
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.cli import OptionNamingCommand, new_group
from plumecast.cli.options import options_of, settings_given, with_options
from plumecast.cli.show import next_step
from plumecast.data.split import SplitRecipe

HEAVY = (
    "scipy", "numba", "matplotlib", "torch", "xarray", "zarr", "icechunk", "numpy", "netCDF4",
    "distributed",
)  # fmt: skip


def shared(one: int = 1, two: str = "b") -> None: ...


def test_a_group_is_received_as_a_mapping_and_own_options_replace_those_of_the_group():
    received = {}

    @with_options(group=shared)
    def command(first: int, *, group: dict, two: str = "own", last: int = 0) -> None:
        received.update(first=first, group=group, two=two, last=last)

    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["first", "one", "two", "last"]
    assert parameters["two"].default == "own"
    command(first=5, one=7, two="c", last=9)
    assert received == {"first": 5, "group": {"one": 7, "two": "c"}, "two": "c", "last": 9}


def test_options_of_settings_are_its_fields_and_those_not_given_are_left_out():
    names = inspect.signature(options_of(SplitRecipe)).parameters
    assert list(names) == [item.name for item in dataclasses.fields(SplitRecipe)]
    nothing = dict.fromkeys(names)
    assert settings_given(nothing, SplitRecipe) == {}
    typed = nothing | {"drought": "low,high", "fractions": "0.5,0.25,0.25", "seed": 4}
    expected = {"drought": ["low", "high"], "seed": 4, "fractions": [0.5, 0.25, 0.25]}
    assert settings_given(typed, SplitRecipe) == expected


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ArgumentError("fire_rank", 0, "give one", problem="is too low"),
         "--fire-rank=0 is too low; give one"),
        (ArgumentError("fire_rank", "a", "give a number"), "--fire-rank='a': give a number"),
        (ArgumentError("fire_rank", None, "there is no default"),
         "--fire-rank is missing: there is no default"),
        (ArgumentError("listed", True, "leave it out"), "--list: leave it out"),  # a switch
        (ArgumentError("rank", 2, problem="is odd"), "rank=2 is odd"),  # of no option
        (PlumecastError("fire_rank=2 is text"), "fire_rank=2 is text"),
    ],
)  # fmt: skip
def test_errors_of_the_library_name_the_option(error, message):
    app = new_group()

    @app.command(cls=OptionNamingCommand)
    def command(
        fire_rank: int = typer.Option(3), listed: bool = typer.Option(False, "--list")
    ) -> None:
        raise error

    with pytest.raises(PlumecastError) as raised:
        app([], standalone_mode=False)
    assert str(raised.value) == message


# A light start


def modules_after(*arguments: str) -> set[str]:
    """The top-level modules that a command line imports, in a process of its own."""
    code = (
        "import atexit, json, sys\n"
        "def show():\n"
        "    names = sorted({name.split('.')[0] for name in sys.modules})\n"
        "    print(json.dumps(names), file=sys.stderr)\n"
        "atexit.register(show)\n"
        "from plumecast.cli import main\n"
        f"main({list(arguments)!r})\n"
    )
    done = in_a_process("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return set(json.loads(done.stderr.splitlines()[-1]))


def in_a_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(plumecast.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": source},
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=str)
def test_help_and_version_import_nothing_heavy(arguments):
    loaded = modules_after(*arguments)
    assert "plumecast" in loaded
    assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize("command", ["train", "tune", "evaluate", "predict", "info", "ensemble"])
def test_commands_on_stores_import_no_extra(command):
    extras = {"numba", "matplotlib", "jinja2", "torch", "distributed", "rasterio", "pyproj"}
    assert modules_after(command, "--help") & extras == set()


def test_a_command_to_run_next_is_quoted_for_the_shell(capsys):
    next_step("train", Path("my fires; x/$HOME.zarr"), "--settings", "it's.json")
    line = capsys.readouterr().out.removeprefix("next: ").rstrip("\n")
    words = ["plumecast", "train", "my fires; x/$HOME.zarr", "--settings", "it's.json"]
    assert shlex.split(line) == words
    source = Path(plumecast.__file__).parent / "cli"
    said = [path.name for path in source.rglob("*.py") if "next: " in path.read_text("utf-8")]
    assert said == ["show.py"]  # every command prints it by `next_step`
