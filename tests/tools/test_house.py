"""The map of the package in CONTRIBUTING.md, its measures, and the audit of what it needs."""

from __future__ import annotations

import pytest

from support.places import REPOSITORY

PACKAGE = REPOSITORY / "src" / "plumecast"
MOST_ENTRIES = 16


def test_the_map_is_up_to_date_and_has_every_room(tool):
    house_map = tool("house_map")
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert house_map.page_with_map(page) == page, "run python tools/house_map.py"
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(house_map.ROOMS)


def test_no_folder_outgrows_itself():
    """A folder with more entries has two ideas in it; the rooms themselves are on the map."""
    for folder in (path.parent for path in PACKAGE.glob("*/**/__init__.py")):
        entries = {path.name for path in folder.iterdir()} - {"__pycache__", "__init__.pyi"}
        assert len(entries) <= MOST_ENTRIES, f"{folder} has {sorted(entries)}"


def test_a_small_house_is_measured_as_by_hand(tool, tmp_path):
    package = tmp_path / "src" / "plumecast"
    (package / "base").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    many = ", ".join(f"x{i}" for i in range(11))
    files = {
        package / "__init__.py": "from plumecast.base.one import (\n    Thing,\n)\n",
        package / "base" / "__init__.py": "",
        package / "base" / "one.py": f"class Thing: ...\ndef f({many}): ...\n" + "\n" * 70,
        package / "base" / "two.py": "from plumecast.base import one\nclass Thing: ...\n",
        tmp_path / "tests" / "test_one.py": "def test(): ...\n",
    }
    for path, text in files.items():
        path.write_text(text)
    assert tool("house_size").measures(tmp_path) == {
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


@pytest.fixture
def audit(tool):
    return tool("audit")


def test_the_audit_names_locked_packages_and_their_licences(audit, tmp_path):
    path = tmp_path / "constraints.txt"
    path.write_text("# locked\nnumpy==2.0  # arrays\n\nzarr[remote]>=3; python_version > '3'\n")
    assert audit.locked(path) == ["numpy", "zarr"]
    assert "numpy" in audit.locked(REPOSITORY / "constraints.txt")
    assert "BSD" in audit.licence("numpy")
    assert audit.licence("no-such-package") == "not installed"
    licences = {"a": "MIT", "b": "GPL-3.0-only", "c": audit.UNKNOWN, "d": "LGPL-2.1"}
    assert audit.doubtful(licences) == ["b", "c"]


@pytest.mark.parametrize(("code", "words"), [(2, "NOT looked up"), (1, ""), (0, "")])
def test_no_network_is_said_plainly(audit, tmp_path, monkeypatch, capsys, code, words):
    path = tmp_path / "constraints.txt"
    path.write_text("numpy==2.0\n")
    monkeypatch.setattr(audit, "vulnerabilities", lambda path: code)
    assert audit.main(str(path)) == code
    assert words in capsys.readouterr().err
