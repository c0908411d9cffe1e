"""Shared options are declared once; errors name them; the start of the program is light."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import plumecast
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.cli import OptionNamingCommand, new_group
from plumecast.cli.fire_options import STEERING_STRENGTH
from plumecast.cli.options import with_options
from plumecast.data.split import SplitRecipe
from plumecast.simulator.atmosphere import STEERING_STRENGTH as DEFAULT_STRENGTH
from support.raster_files import fire, write_ascii

HEAVY = (
    "scipy", "numba", "matplotlib", "torch", "xarray", "zarr", "icechunk", "numpy", "netCDF4",
    "distributed",
)  # fmt: skip


def shared(one: int = 1, two: str = "b") -> None: ...


def test_groups_are_received_as_a_mapping_or_an_instance_and_own_options_replace_theirs():
    received = {}

    @with_options(group=shared, recipe=SplitRecipe)
    def command(first: int, *, group: dict, two: str = "own", recipe: SplitRecipe) -> None:
        received.update(first=first, group=group, two=two, recipe=recipe)

    parameters = inspect.signature(command).parameters
    fields = [item.name for item in dataclasses.fields(SplitRecipe)]
    assert list(parameters) == ["first", "one", "two", *fields]
    assert parameters["two"].default == "own"
    typed = dict.fromkeys(fields) | {"drought": "low,high", "fractions": "0.5,0.25,0.25", "seed": 4}
    command(first=5, one=7, two="c", **typed)
    assert received == {
        "first": 5,
        "group": {"one": 7, "two": "c"},
        "two": "c",
        "recipe": SplitRecipe(drought=["low", "high"], seed=4, fractions=[0.5, 0.25, 0.25]),
    }


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


def test_the_default_steering_of_the_help_is_that_of_the_simulator():
    assert STEERING_STRENGTH == DEFAULT_STRENGTH


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


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=str)
def test_help_and_version_import_nothing_heavy(arguments):
    loaded = modules_after(*arguments)
    assert "plumecast" in loaded
    assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "ensemble"])
def test_commands_on_stores_import_no_extra(command):
    extras = {"numba", "matplotlib", "jinja2", "torch", "distributed", "rasterio", "pyproj"}
    assert modules_after(command, "--help") & extras == set()


@pytest.mark.parametrize("command", ["ensemble", "predict"])
def test_rasters_that_all_fail_say_why(run, trained, tmp_path, command):
    bad = [write_ascii(tmp_path / f"{name}.asc", fire(), CELLSIZE=-30) for name in "ab"]
    result = run(command, trained, *bad, "--unit", "min", "-o", tmp_path / "out.nc")
    assert result.code == 2
    assert "a.asc: cell size -30 along x" in result.err
    assert "at least one store or raster" not in result.err
