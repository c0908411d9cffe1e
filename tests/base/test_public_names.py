"""The public names: few, each from its home, and nothing heavy until one is used."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import plumecast
from support.places import REPOSITORY

PACKAGE = Path(plumecast.__file__).parent
MOST_NAMES, MOST_PARAMETERS = 40, 10
HEAVY = ("xarray", "scipy", "matplotlib", "numpy", "zarr", "icechunk", "typer", "rich")


def homes_in(folder: Path) -> dict[str, str]:
    """The public names of a package and their homes below it, from its stub."""
    stub = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    found = [item for item in stub.body if isinstance(item, ast.ImportFrom)]
    return {alias.name: item.module or "" for item in found for alias in item.names}


HOMES = homes_in(PACKAGE)
GROUPS = sorted(name for name, home in HOMES.items() if not home)
NAMES = {f"plumecast.{name}": f"plumecast.{home}" for name, home in HOMES.items() if home} | {
    f"plumecast.{group}.{name}": f"plumecast.{group}.{home}"
    for group in GROUPS
    for name, home in homes_in(PACKAGE / group).items()
}

EVERY_SUBMODULE_FIRST = """
import importlib, json, pkgutil, sys
import plumecast

for module in pkgutil.walk_packages(plumecast.__path__, "plumecast."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps([
    name
    for name, home in json.loads(sys.argv[1]).items()
    if eval(name) is not getattr(importlib.import_module(home), name.rpartition(".")[2])
]))
"""


def python(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints; it must print no error and no warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_all_is_exactly_the_stub_and_the_version():
    assert plumecast.__all__ == [*sorted(HOMES), "__version__"]
    assert dir(plumecast) == plumecast.__all__[:-1]
    assert len(plumecast.__all__) <= MOST_NAMES


FUNCTIONS = {name: value for name in HOMES if inspect.isfunction(value := getattr(plumecast, name))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_documented(name):
    _, _, section = (inspect.getdoc(FUNCTIONS[name]) or "").partition("Parameters\n----------\n")
    heads = [line.partition(":")[0] for line in section.splitlines() if not line.startswith(" ")]
    documented = {part.strip(" *") for head in heads for part in head.split(",")}
    assert set(inspect.signature(FUNCTIONS[name]).parameters) <= documented
    assert len(inspect.signature(FUNCTIONS[name]).parameters) <= MOST_PARAMETERS


def test_names_are_their_homes_objects_whatever_was_imported_before():
    assert json.loads(python(EVERY_SUBMODULE_FIRST, json.dumps(NAMES))) == []


@pytest.mark.parametrize("group", sorted(plumecast._GROUPED))
def test_names_of_the_version_before_are_those_of_their_group(group):
    for name in plumecast._GROUPED[group]:
        with pytest.warns(DeprecationWarning, match=f"use plumecast.{group}.{name}"):
            before = getattr(plumecast, name)
        assert before is getattr(getattr(plumecast, group), name)


@pytest.mark.parametrize("package", ["plumecast", *(f"plumecast.{group}" for group in GROUPS)])
def test_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="forecast"):
        importlib.import_module(package).forecast  # noqa: B018


def test_import_is_light():
    code = (
        "import json, sys\nimport plumecast\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    loaded = json.loads(python(code))
    assert "plumecast" in loaded
    assert [name for name in HEAVY if name in loaded] == []
