"""A headless Chromium for tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
