"""The documentation site: commands and docstrings as pages, and the check of a built site."""

from __future__ import annotations

import inspect
import re

import pytest

import plumecast
from plumecast.base.names import TABLE
from plumecast.cli import COMMANDS
from support.places import REPOSITORY

API = REPOSITORY / "docs" / "reference" / "api"
NAMED = re.compile(r"^\.\. auto\w+:: plumecast\.([\w.]+)$", re.MULTILINE)


@pytest.fixture
def site(tool):
    return lambda name="": tool(f"docs.site{name}")


def test_every_public_name_is_in_the_reference_once():
    found = [name for path in API.glob("*.md") for name in NAMED.findall(path.read_text())]
    groups = {name for name in plumecast.__all__ if inspect.ismodule(getattr(plumecast, name))}
    grouped = {f"{group}.{name}" for group in groups for name in getattr(plumecast, group).__all__}
    assert sorted(found) == sorted({*plumecast.__all__} - groups - {"__version__"} | grouped)


def test_every_command_has_a_page_with_its_options(site):
    pages = {path.stem: path.read_text() for path in (API.parent / "commands").glob("*.md")}
    listed = pages.pop("index")
    assert sorted(pages) == sorted(COMMANDS)
    for name, text in pages.items():
        assert f"<!-- command {name} -->" in text
        assert f"\n{name}\n" in listed.partition("{toctree}")[2]
    source = [pages["train"]]
    site().insert_texts(None, "reference/commands/train", source)
    assert (
        "| `-o, --out <path>` | File to save the surrogate in. [default: smoke.plume] |"
        in source[0]
    )
    assert "## wrf\n" in site(".commands").command_text("ingest")
    assert site(".commands").cell("a |\n  b") == "a \\| b"


def test_marks_of_pages_are_replaced(site):
    source = ["before <!-- variables --> after"]
    site().insert_texts(None, "reference/files", source)
    assert [name for name in TABLE if f"| `{name}` |" not in source[0]] == []
    assert source[0].startswith("before | name |")
    assert "](docs/" not in site().changelog_text()


def test_docstrings_keep_their_symbols_and_link_public_names(site):
    lines = ["`fit_basis` of `x`s: ‖a_‖ and |b|", ">>> 2 * 3 | 1", "7"]
    assert site(".docstrings").docstring_lines(lines) == [
        r":py:obj:`~plumecast.operators.fit_basis`\  of ``x``\ s: ‖a\_‖ and \|b\|",
        ">>> 2 * 3 | 1",
        "7",
    ]


def test_signatures_show_values_of_constants(site):
    def fit(data: str, quantity: str = "mean", *, seed: int = 3, split: object = None) -> None: ...

    shown = site(".docstrings").with_values(
        fit, "(data: str, quantity: str = DEFAULT, *, seed: int = SEED, split: object = SPLIT)"
    )
    assert shown == ("(data: str, quantity: str = 'mean', *, seed: int = 3, split: object = SPLIT)")


def test_problems_of_a_site_are_found(site, tmp_path):
    assert "has no pages" in next(site(".check").problems(tmp_path))
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="#away"></a><a href="other.html#part"></a>'
        '<a href="gone.html"></a><a href="https://example.org"></a>'
        '<script src="https://example.org/a.js"></script>'
    )
    (tmp_path / "other.html").write_text('<p id="part"></p><img src="none.png">')
    (tmp_path / "a.css").write_text("p { background: url(https://example.org/a.png), url(b.png) }")
    assert list(site(".check").problems(tmp_path)) == [
        "index.html loads https://example.org/a.js from the network",
        "index.html: #away leads nowhere",
        "index.html: gone.html leads nowhere",
        "other.html: none.png leads nowhere",
        "a.css loads https://example.org/a.png from the network",
    ]
