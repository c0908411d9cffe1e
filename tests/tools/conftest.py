"""Modules of the tools and benchmarks, which are no packages of their own."""

from __future__ import annotations

import importlib
import sys

import pytest

from support.places import REPOSITORY


@pytest.fixture
def tool(monkeypatch):
    """A module of `tools` by its name, not one of the tests of the tools."""
    monkeypatch.syspath_prepend(str(REPOSITORY))
    for name in [name for name in sys.modules if name.split(".")[0] == "tools"]:
        monkeypatch.delitem(sys.modules, name)
    return lambda name: importlib.import_module(f"tools.{name}")
