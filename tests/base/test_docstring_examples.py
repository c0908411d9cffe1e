"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import plumecast


def test_examples():
    names = [module.name for module in pkgutil.walk_packages(plumecast.__path__, "plumecast.")]
    modules = map(importlib.import_module, names)
    results = [doctest.testmod(module) for module in modules if "__main__" not in module.__name__]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 40
