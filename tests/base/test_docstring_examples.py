"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import plumecast

MODULES = [
    module.name
    for module in pkgutil.walk_packages(plumecast.__path__, "plumecast.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_some_modules_have_examples():
    assert any(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES)
