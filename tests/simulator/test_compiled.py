"""Compiled functions work where their machine code cannot be stored: a read-only install."""

from __future__ import annotations

from pathlib import Path

import numba.core.caching
import pytest

import plumecast.simulator
from plumecast.simulator import compiled


def add_one(number: float) -> float:
    return number + 1.0


@pytest.fixture
def nowhere_to_store(monkeypatch):
    """As if neither the package, NUMBA_CACHE_DIR nor the home folder could be written."""
    caching = numba.core.caching
    kind = getattr(caching, "CacheImpl", None) or caching._CacheImpl
    monkeypatch.setattr(kind, "_locator_classes", [])


def test_without_a_place_for_the_machine_code_a_function_is_compiled_again(nowhere_to_store):
    with pytest.raises(RuntimeError, match="no locator"):
        numba.njit(cache=True)(add_one)
    assert compiled()(add_one)(1.0) == 2.0


def test_the_machine_code_is_stored_where_possible(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    function = compiled(error_model="numpy")(add_one)
    assert function(1.0) == 2.0
    assert list(tmp_path.rglob("*add_one*.nbi"))


def test_no_module_of_the_simulator_asks_numba_itself():
    """`njit(cache=True)` raises at import in a read-only install."""
    folder = Path(plumecast.simulator.__file__).parent
    asking = [p.name for p in folder.rglob("*.py") if "njit" in p.read_text("utf-8")]
    assert asking == ["__init__.py"]
