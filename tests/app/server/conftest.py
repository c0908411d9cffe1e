"""The live page of a small world behind a test client."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("numba")

from starlette.testclient import TestClient

from plumecast.app.server.application import make_application
from plumecast.app.server.kept import Limits
from plumecast.app.server.start import prepare


@pytest.fixture(scope="module")
def page(live_files, tmp_path_factory):
    """The page of the surrogate and the store, with small limits."""
    store, model = live_files
    folder = tmp_path_factory.mktemp("trained")
    made = prepare([model], store, folder, limits=Limits(fires=4, jobs_waiting=1))
    yield made
    made.close()


@pytest.fixture(scope="module")
def application(page):
    return make_application(page)


@pytest.fixture
def client(application):
    """A new client of the page on this machine."""
    return TestClient(application, base_url="http://127.0.0.1", raise_server_exceptions=True)
