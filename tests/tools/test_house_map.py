"""The map in CONTRIBUTING.md is that of the package, and the folders keep to their size."""

from __future__ import annotations

import importlib.util

from support.places import REPOSITORY

PACKAGE = REPOSITORY / "src" / "plumecast"
MOST_ENTRIES = 16


def house_map():
    place = importlib.util.spec_from_file_location("m", REPOSITORY / "tools" / "house_map.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def test_the_map_is_up_to_date():
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert house_map().page_with_map(page) == page, "run python tools/house_map.py"


def test_every_room_is_on_the_map():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(house_map().ROOMS)


def test_no_folder_outgrows_itself():
    """A folder with more entries has two ideas in it; the rooms themselves are on the map."""
    for folder in (path.parent for path in PACKAGE.glob("*/**/__init__.py")):
        entries = {path.name for path in folder.iterdir()} - {"__pycache__", "__init__.pyi"}
        assert len(entries) <= MOST_ENTRIES, f"{folder} has {sorted(entries)}"
