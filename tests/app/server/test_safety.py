"""Malformed and hostile requests: only 4xx, one sentence, no traceback."""

from __future__ import annotations

import json
import re

import pytest

from plumecast.app.server.application import ROUTES
from plumecast.app.server.http import openapi
from plumecast.app.server.http.assets import read_assets
from plumecast.app.server.http.safety import MOST_BODY
from plumecast.app.server.start import listen
from plumecast.base.errors import PlumecastError
from support.live_fuzz import malformed_requests
from support.live_page import lit, wind


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost.x"]
)
def test_other_host_names_are_refused(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8017", "127.0.0.1", "[::1]:80", "192.168.1.2"])
def test_addresses_are_served(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_other_origins_are_refused(client, origin):
    answer = client.post("/api/fires", json=wind(0.0), headers={"origin": origin})
    assert answer.status_code == 403
    own = client.post("/api/fires", json=wind(0.0), headers={"origin": "http://127.0.0.1"})
    assert own.status_code == 201


def test_long_bodies_are_refused_however_they_come(client):
    long = b" " * (MOST_BODY + 1)
    json_type = {"content-type": "application/json"}
    assert client.post("/api/fires", content=long, headers=json_type).status_code == 413
    pieces = (long[:100_000] for _ in range(11))  # without a stated length
    assert client.post("/api/fires", content=pieces, headers=json_type).status_code == 413


def test_bodies_must_be_json_by_their_type(client):
    """A form of another site cannot send JSON by its type."""
    text = json.dumps(wind(0.0))
    plain = client.post("/api/fires", content=text, headers={"content-type": "text/plain"})
    assert plain.status_code == 415


def test_every_answer_has_the_headers(client):
    for address in ("/", "/api/state", "/api/nothing", "/openapi.json", "/api"):
        answer = client.get(address)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/assets/../../cli/__init__.py", "/assets/%2e%2e/%2e%2e/app.py",
             "/assets//etc/passwd", "/%00", "/assets/page"],
)  # fmt: skip
def test_no_path_reaches_the_file_system(client, path):
    assert client.get(path).status_code == 404


def test_assets_are_those_of_the_folder(tmp_path):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<p>page</p>")
    found = read_assets(tmp_path)
    assert found["/"].body == found["/assets/page/index.html"].body == b"<p>page</p>"


def test_malformed_requests_get_only_4xx(client):
    """Some hundred of them, drawn with a seed; a failure names its request."""
    address, _ = lit(client, wind(0.0))
    for request in malformed_requests(400, seed=0, fire=address.rpartition("/")[2]):
        answer = client.request(**request)
        assert 400 <= answer.status_code < 500, (request, answer.status_code, answer.text[:200])
        assert set(answer.json()) == {"error"}, request
        assert "Traceback" not in answer.text


def test_the_document_describes_every_address():
    served = {
        (method.lower(), re.sub(r":\w+", "", route.path))
        for route in ROUTES
        for method in route.methods - {"HEAD"}
    }
    assert {(item.method, item.path) for item in openapi.ROUTES} == served


def test_the_document_page_escapes_its_text(client):
    page = client.get("/api").text
    assert "<script" not in page
    assert page.count("<h2>") == len(openapi.ROUTES)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_cannot_exist_is_refused(port):
    with pytest.raises(PlumecastError, match=f"port={port} .*ports are 0 to 65535"):
        listen("127.0.0.1", port)
