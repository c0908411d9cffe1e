"""The documents belong together: links lead somewhere, and commands are run by tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.how_to import BLOCK
from support.places import REPOSITORY

LINK = re.compile(r"\]\(([^)\s]+)\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
MOST_WORDS = 1500
DECISIONS = REPOSITORY / "docs" / "decisions"

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

pytestmark = pytest.mark.skipif(
    not (REPOSITORY / "CONTRIBUTING.md").exists(), reason="not all documents are here"
)


def documents() -> list[Path]:
    """All Markdown documents of the repository, without those that a build has written."""
    pages = [p for p in (REPOSITORY / "docs").rglob("*.md") if "_build" not in p.parts]
    return sorted([*REPOSITORY.glob("*.md"), *pages])


def anchors(path: Path) -> set[str]:
    """What links to the headings of a document are called."""
    kept = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(path.read_text()))
    return {title.replace(" ", "-") for title in kept}


def links(path: Path) -> list[tuple[Path, str]]:
    """The documents and files that a document links to, with the heading or an empty text."""
    found = [link for link in LINK.findall(path.read_text()) if "://" not in link]
    parts = [link.partition("#") for link in found]
    return [((path.parent / to).resolve() if to else path, heading) for to, _, heading in parts]


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_links_lead_to_files_and_headings_that_exist(path):
    for target, heading in links(path):
        assert target.exists(), target
        assert not heading or heading in anchors(target), f"{target}#{heading}"


def test_pages_are_short():
    """The reference lists; every other page has at most MOST_WORDS words, tables included."""
    pages = [path for path in (REPOSITORY / "docs").rglob("*.md") if "_build" not in path.parts]
    told = [path for path in pages if "reference" not in path.parts]
    words = {str(path): len(path.read_text(encoding="utf-8").split()) for path in told}
    assert {name: count for name, count in words.items() if count > MOST_WORDS} == {}


def listed(path: Path) -> list[Path]:
    """The pages that the tables of contents of a page list: one per line, perhaps as a glob."""
    entries = [line for body in TOCTREE.findall(path.read_text()) for line in body.splitlines()]
    names = [entry for entry in entries if entry and not entry.startswith(":")]
    return [page.resolve() for name in names for page in path.parent.glob(f"{name}.md")]


def test_every_page_can_be_reached_from_the_readme():
    reached: set[Path] = set()
    ahead = [REPOSITORY / "README.md"]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        found = [*listed(page), *(to for to, _ in links(page))]
        ahead += [to for to in found if to.suffix == ".md" and to not in reached]
    assert set(documents()) <= reached


def test_decisions_are_counted_without_gaps_and_listed_with_their_titles():
    listed = (DECISIONS / "README.md").read_text()
    for number, path in enumerate(sorted(DECISIONS.glob("0*.md")), start=1):
        title = path.read_text().splitlines()[0].removeprefix(f"# {number}. ")
        assert path.name.startswith(f"{number:04d}-")
        assert f"{number}. [{title}]({path.name})" in listed


def unrun(pages: dict[str, str], followed: set[str]) -> list[str]:
    """The pages with something to type that nothing runs; `pages` are texts by name."""
    return [
        name
        for name, text in pages.items()
        if any(language in TYPED for language, _ in BLOCK.findall(text))
        and name not in {*followed, *ELSEWHERE}
        and EXECUTED not in text
    ]


def test_every_page_with_commands_is_run_by_a_test():
    docs, here = REPOSITORY / "docs", Path(__file__)
    paths = [path for path in documents() if path.is_relative_to(docs)]
    pages = {str(path.relative_to(docs)): path.read_text(encoding="utf-8") for path in paths}
    pages["../README.md"] = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    tests = [path for path in (REPOSITORY / "tests").rglob("test_*.py") if path != here]
    names = {name for path in tests for name in FOLLOWED.findall(path.read_text(encoding="utf-8"))}
    followed = {name.removeprefix("../") if "/" in name else f"how-to/{name}" for name in names}
    assert unrun(pages, followed) == []
    for page, reason in ELSEWHERE.items():
        assert (docs / page).exists()
        assert (REPOSITORY / re.match(r"[\w/]+\.py", reason)[0]).exists()


def test_a_page_that_nothing_runs_is_noticed():
    pages = {
        "how-to/new.md": "```\nplumecast info a.zarr\n```\n",
        "how-to/followed.md": "```python\nimport plumecast\n```\n",
        "tutorials/cells.md": "```{code-cell} python\n1\n```\n```\nplumecast info a.zarr\n```\n",
        "explanation/prose.md": "```text\nmake demo\n```\n",
    }
    assert unrun(pages, {"how-to/followed.md"}) == ["how-to/new.md"]
