"""Malformed and hostile requests: only 4xx, one sentence, no traceback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import threading
import time

import pytest

from plumecast.app.server import start
from plumecast.app.server.application import FOLDER, MOST_BODY, PAGE
from plumecast.app.server.start import listen, make_server
from plumecast.base.errors import PlumecastError
from support.live_fuzz import malformed_requests
from support.live_page import lit, wind

STATE, FIRE, AS_JSON = "/api/state", json.dumps(wind(0.0)), {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        *((421, {"host": name})
          for name in ("evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost.x")),
        *((200, {"host": name})
          for name in ("localhost:8017", "127.0.0.1", "[::1]:80", "192.168.1.2")),
        *((403, {"origin": name})
          for name in ("http://evil.example", "null", "http://127.0.0.1:1")),
        (200, {"origin": "http://127.0.0.1"}),
    ],
)  # fmt: skip
def test_other_hosts_and_other_origins_are_refused(client, status, headers):
    assert client.get(STATE, headers=headers).status_code == status
    if "origin" in headers:
        answer = client.post("/api/fires", content=FIRE, headers=AS_JSON | headers)
        assert answer.status_code == (201 if status == 200 else status)


def test_bodies_are_short_and_json_by_their_type(client):
    """However long ones come; a form of another site cannot send JSON by its type."""
    long = b" " * (MOST_BODY + 1)
    pieces = (long[:100_000] for _ in range(11))  # without a stated length
    for content in (long, pieces):
        assert client.post("/api/fires", content=content, headers=AS_JSON).status_code == 413
    plain = {"content-type": "text/plain"}
    assert client.post("/api/fires", content=FIRE, headers=plain).status_code == 415


def test_every_answer_has_the_headers(client):
    for address in ("/", STATE, "/api/nothing", "/openapi.json", "/api"):
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


def test_malformed_requests_get_only_4xx(client):
    """Some hundred of them, drawn with a seed; a failure names its request."""
    address, _ = lit(client, wind(0.0))
    for request in malformed_requests(250, seed=0, fire=address.rpartition("/")[2]):
        answer = client.request(**request)
        assert 400 <= answer.status_code < 500, (request, answer.status_code, answer.text[:200])
        assert set(answer.json()) == {"error"}, request
        assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("fires", wind(0.0, ignite=[[1, 2, 3]]), 400, "ignite.0 is [1, 2, 3]; it must have at mo"),
        ("fires", wind(0.0, hours=3), 400, "the body has the unknown key hours"),
        ("fires", {"ignite": [[1, 2]], "weather": {}}, 400, "weather must have a drought, or"),
        ("fires", wind(0.0, weather={"surface": {"speed": 41, "from": 0}}), 400,
         "weather.surface.speed is 41; it must be less than or equal to 40"),
        ("fires", wind(0.0, model="m"), 422, "this model is no longer loaded: reload the page"),
        ("fires", [], 400, "the body is []; it must be a JSON object"),
        ("places", {"csv": 1}, 400, "csv is 1; it must be a text"),
        ("jobs", {"kind": "train", "ignitions": 999}, 400, "ignitions is 999; it must be 3 to 8"),
        ("jobs", {"kind": "train", "preset": "quick", "family": "coded"}, 400, "a preset has its"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_value(client, path, body, status, words):
    answer = client.post(f"/api/{path}", json=body)
    assert (answer.status_code, answer.json()["error"][: len(words)]) == (status, words)


def test_the_document_has_every_request_of_the_page_and_is_shown_without_a_script(client):
    """The addresses in the scripts of the page, with their parts in braces."""
    paths = client.get("/openapi.json").json()["paths"]
    described = [re.sub(r"\\{\w+\\}", r"[^/?]+", re.escape(path.lstrip("/"))) for path in paths]
    scripts = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / PAGE).rglob("*.js"))
    asked = {
        re.sub(r"\$\{[^}]*\}", "x", address)
        for address in re.findall(r"[`\"](api/[^`\"?]*)[`\"?]", scripts)
    }
    assert len(asked) > 8
    for address in asked:
        assert any(re.fullmatch(pattern, address) for pattern in described), address
    shown = client.get("/api").text
    assert "<script" not in shown
    assert shown.count("<h2>") == sum(map(len, paths.values()))


@pytest.fixture
def listening(page, monkeypatch):
    """A function that opens a connection to the page, which waits 1 s for a request."""
    monkeypatch.setattr(start, "ARRIVAL", 1.0)
    ready = threading.Event()
    bound, server = listen("127.0.0.1", 0), make_server(page, ready=ready.set)
    monkeypatch.setattr(server, "end", lambda: setattr(server, "should_exit", True))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])))
    thread.start()
    assert ready.wait(20)
    with contextlib.ExitStack() as opened:

        def connect(content: bytes) -> socket.socket:
            made = socket.create_connection(bound.getsockname(), timeout=20)
            opened.enter_context(made).sendall(content)
            return made

        yield connect
    server.end()
    thread.join(20)
    bound.close()


STATE_REQUEST = b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def test_half_sent_requests_do_not_keep_others_out(listening):
    """The oldest of one address give way at once, without any time-out."""
    half = [listening(STATE_REQUEST) for _ in range(420)]
    assert listening(STATE_REQUEST + b"\r\n").recv(12) == b"HTTP/1.1 200"
    with contextlib.suppress(ConnectionError):  # closed in one way or the other
        assert half[0].recv(1) == b""


@pytest.mark.parametrize("content", [
    b"", STATE_REQUEST,
    b"POST /api/fires HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 99\r\n\r\n{",
])  # fmt: skip
def test_a_request_that_does_not_arrive_is_closed(listening, content):
    made = listening(content)
    begin = time.monotonic()
    with contextlib.suppress(ConnectionError):
        assert made.recv(1) == b""
    assert 0.5 < time.monotonic() - begin < 10.0


def test_a_port_that_cannot_exist_is_refused_and_answers_are_sent_without_delay():
    """asyncio turns Nagle's algorithm off only for sockets that name their protocol."""
    for port in (-1, 65_536):
        with pytest.raises(PlumecastError, match=f"port={port} .*ports are 0 to 65535"):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
