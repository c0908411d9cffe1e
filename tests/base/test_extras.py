"""A missing extra is one line that says how to install it; the core works without any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import plumecast
from plumecast.base.errors import PlumecastError, require

EXTRAS = ("numba", "matplotlib", "jinja2", "torch", "distributed", "rasterio", "pyproj", "pvlib")


def test_a_missing_module_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(PlumecastError) as raised:
        require("numba", "simulator", "the simulator")
    assert str(raised.value) == "the simulator needs numba; pip install 'plumecast[simulator]'"


def test_an_error_inside_an_installed_module_is_not_hidden(monkeypatch, tmp_path):
    (tmp_path / "broken_extra.py").write_text("import surely_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        require("broken_extra", "all", "a test")


def without_extras(code: str, *also: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter in which no extra, nor what is named beside, can be imported."""
    hidden = {*EXTRAS, *also}
    hide = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {hidden}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    source = str(Path(plumecast.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", hide + code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": source},
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["simulate", "-o", "e.zarr"], "the simulator needs numba; pip install 'plumecast[sim"),
        (["report", "results"], "a report needs jinja2; pip install 'plumecast[report]'"),
    ],
)
def test_a_command_without_its_extra_is_one_line(arguments, line):
    done = without_extras(f"from plumecast.cli import main\nmain({arguments!r})")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {line}")
    assert done.stderr.count("\n") == 1
