"""A headless Chromium for tests of pages, and what every page must fulfil in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


@contextmanager
def open_chromium() -> Iterator[Any]:
    """A started browser; the test is skipped if there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    if binary is None:
        pytest.skip(f"no Chromium found: none of {', '.join(BROWSERS)} is installed")
    as_root = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=binary, args=[*QUIET, *as_root])
        yield opened
        opened.close()


@contextmanager
def shown_alone(browser: Any, path: Path, width: int, scheme: str = "light") -> Iterator[Any]:
    """A page from its file: it fits the window, asks for nothing else and does not complain."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    inside, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert inside <= window
    assert complaints == []
    assert [url for url in asked if not url.startswith(("data:", "blob:", page.url))] == []
    page.close()
