"""A live server with a small ensemble, and a browser that can reach nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager

import pytest

REFUSED = "Failed to load resource"
"""What Chromium says of an answer that is an error."""


@pytest.fixture(scope="session")
def live_address(live_files, tmp_path_factory):
    """Address of `plumecast serve` whose fires have a weather each: turning the wind matters."""
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    store, model = live_files
    command = [sys.executable, "-m", "plumecast", "serve", model, "--data", store, "--folder",
               tmp_path_factory.mktemp("models"), "--port", "0", "--no-browser"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        said = ""
        while "is ready" not in said:
            line = server.stdout.readline()
            assert line, f"the server ended: {said}"
            said += line
        yield re.search(r"http://\S+/", said)[0]
        server.terminate()
        server.stdout.read()


@pytest.fixture
def open_page(browser, live_address):
    """`open_page(fragment, width=…)`: a page; at the end, nothing was complained about."""
    with watched(browser, live_address) as opened:
        yield opened


@pytest.fixture(scope="module")
def open_shared_page(browser, live_address):
    """The same for a page that several tests look at."""
    with watched(browser, live_address) as opened:
        yield opened


@contextmanager
def watched(browser, address):
    """Open pages that can reach the server alone, and collect what they complain about.

    Chromium reports every answer that is an error. `refused` is the number of those that a test
    provokes in its page; no other is allowed.
    """
    contexts, complaints, foreign, pages = [], [], [], []

    def opened(fragment="", *, width=1280, refused=0, state=None):
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)

        def only_the_server(route):
            if route.request.url.startswith((address, "data:", "blob:")):
                route.continue_()
            else:
                foreign.append(route.request.url)
                route.abort()

        context.route("**/*", only_the_server)
        if state is not None:  # another server, as far as the page knows
            context.route("**/api/state", lambda route: route.fulfill(json=state))
        page = context.new_page()
        failed = []
        pages.append((failed, refused))

        def told(message):
            if message.type == "error":
                (failed if REFUSED in message.text else complaints).append(message.text)

        page.on("console", told)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}#{fragment}")
        page.locator("[role=tab][aria-selected=true]").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert foreign == []
    for failed, refused in pages:
        assert len(failed) == refused, failed
