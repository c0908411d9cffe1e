"""The measures of the house, on a house small enough to count by hand."""

from __future__ import annotations

import importlib.util

from support.places import REPOSITORY


def measures(root):
    place = importlib.util.spec_from_file_location("s", REPOSITORY / "tools" / "house_size.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module.measures(root)


def test_a_small_house_is_measured_as_by_hand(tmp_path):
    package = tmp_path / "src" / "plumecast"
    (package / "base").mkdir(parents=True)
    many = ", ".join(f"x{i}" for i in range(11))
    files = {
        package / "__init__.py": "from plumecast.base.one import (\n    Thing,\n)\n",
        package / "base" / "__init__.py": "",
        package / "base" / "one.py": f"class Thing: ...\ndef f({many}): ...\n" + "\n" * 70,
        package / "base" / "two.py": "from plumecast.base import one\nclass Thing: ...\n",
        tmp_path / "tests" / "test_one.py": "def test(): ...\n",
    }
    (tmp_path / "tests").mkdir()
    for path, text in files.items():
        path.write_text(text)
    assert measures(tmp_path) == {
        "lines of src": 77,
        "modules of src": 4,
        "… that are short": 1,  # two.py; without the __init__ modules
        "… with one importer": 0,  # nothing imports two.py, two modules import one.py
        "lines of imports": 4,
        "functions": 1,
        "… with more than 10 parameters": 1,
        "class names that occur twice": 1,
        "lines of tests": 1,
    }
