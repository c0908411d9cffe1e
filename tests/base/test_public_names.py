"""The public names: exactly those, each from its home, and nothing heavy until one is used."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import plumecast
from support.places import REPOSITORY

EXTRAS = {"PlumecastError", "__version__"}
HEAVY = ("xarray", "scipy", "matplotlib", "numpy", "zarr", "icechunk", "typer", "rich")

EVERY_SUBMODULE_FIRST = """
import importlib, json, pkgutil
import plumecast

for module in pkgutil.walk_packages(plumecast.__path__, "plumecast."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
homes = {
    name: getattr(importlib.import_module(f"plumecast.{home}"), name)
    for name, home in plumecast._HOME.items()
}
print(json.dumps([name for name in homes if getattr(plumecast, name) is not homes[name]]))
"""


def python(code: str, folder: Path = REPOSITORY) -> str:
    """What a fresh interpreter prints; it must print no error and no warning."""
    source = str(Path(plumecast.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": source},
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_all_is_exactly_the_table_of_homes_and_two_more():
    assert plumecast.__all__ == sorted({*plumecast._HOME, *EXTRAS})
    assert dir(plumecast) == plumecast.__all__


@pytest.mark.parametrize("name", sorted(plumecast._HOME))
def test_name_is_the_object_of_its_home(name):
    home = importlib.import_module(f"plumecast.{plumecast._HOME[name]}")
    assert getattr(plumecast, name) is getattr(home, name)
    assert callable(getattr(plumecast, name))


def test_every_name_is_importable_by_star():
    code = "from plumecast import *\nprint(fit_surrogate.__module__, __version__)"
    assert python(code) == f"plumecast.surrogate.fit {plumecast.__version__}\n"


def test_names_are_their_homes_objects_whatever_was_imported_before():
    assert json.loads(python(EVERY_SUBMODULE_FIRST)) == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'plumecast' has no attribute 'forecast'"):
        plumecast.forecast  # noqa: B018


def test_import_is_light():
    code = (
        "import json, sys\nimport plumecast\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    loaded = json.loads(python(code))
    assert "plumecast" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_import_prints_and_writes_nothing(tmp_path):
    assert python("import plumecast", tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
