"""Every page with commands or Python is run by a test, or says which test runs its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.how_to import BLOCK
from support.places import REPOSITORY

TYPED = ("", "sh", "bash", "console", "python")  # languages of what a reader types
FOLLOWED = re.compile(r"follow_page\(\s*\"([\w./-]+\.md)\"")
EXECUTED = "```{code-cell}"  # run when the site is built

ELSEWHERE = {
    "how-to/live-page.md": "tests/e2e/test_serve.py starts the server, a process that does not end",
    "how-to/add-an-operator.md": "tests/e2e/test_add_an_operator.py writes its files first",
    "explanation/wrf.md": "tests/e2e/test_how_to.py runs `design --wrf` for which-fire-next.md",
    "explanation/simulator.md": "tests/workflows/test_simulate.py, with smaller ensembles",
    "results/paper.md": "tests/e2e/test_how_to.py runs the same studies on a small store",
}
"""Pages that no test follows from top to bottom: the test that runs their commands, and why."""


def typed_blocks(text: str) -> list[str]:
    """What a reader of a page is to type."""
    return [block for language, block in BLOCK.findall(text) if language in TYPED]


def uncovered(pages: dict[str, str], followed: set[str]) -> list[str]:
    """The pages with something to type that nothing runs; `pages` are texts by name."""
    return [
        name
        for name, text in pages.items()
        if typed_blocks(text)
        and name not in followed
        and name not in ELSEWHERE
        and EXECUTED not in text
    ]


def site_pages() -> dict[str, str]:
    """The texts of the README and of all pages, by their path seen from `docs/`."""
    docs = REPOSITORY / "docs"
    paths = [path for path in sorted(docs.rglob("*.md")) if "_build" not in path.parts]
    named = {str(path.relative_to(docs)): path for path in paths}
    named["../README.md"] = REPOSITORY / "README.md"
    return {name: path.read_text(encoding="utf-8") for name, path in named.items()}


def followed_pages() -> set[str]:
    """The pages that tests follow from top to bottom, by their path seen from `docs/`."""
    here = Path(__file__)
    tests = [path for path in (REPOSITORY / "tests").rglob("test_*.py") if path != here]
    names = {name for path in tests for name in FOLLOWED.findall(path.read_text(encoding="utf-8"))}
    return {name.removeprefix("../") if "/" in name else f"how-to/{name}" for name in names}


def test_every_page_with_commands_is_run_by_a_test():
    if not (REPOSITORY / "README.md").exists():
        pytest.skip("not all documents are here")
    assert uncovered(site_pages(), followed_pages()) == []


def test_a_page_that_nothing_runs_is_noticed():
    pages = {
        "how-to/new.md": "```\nplumecast info a.zarr\n```\n",
        "how-to/followed.md": "```python\nimport plumecast\n```\n",
        "tutorials/cells.md": "```{code-cell} python\n1\n```\n```\nplumecast info a.zarr\n```\n",
        "explanation/prose.md": "```text\nmake demo\n```\n",
    }
    assert uncovered(pages, {"how-to/followed.md"}) == ["how-to/new.md"]


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_named_test_and_its_page_exist(page):
    assert (REPOSITORY / "docs" / page).exists()
    assert (REPOSITORY / re.match(r"[\w/]+\.py", ELSEWHERE[page])[0]).exists()
