"""Malformed requests to the live page, drawn with a seed; every one must be refused with 4xx."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

_ODD: list[Any] = [
    None, True, "", "x", "NaN", -1, 1e308, 10**400, [], [[]], {}, {"a": 1}, "\ud800", "\x00",
    "é" * 99, [1, 2, 3], [None, None], "../../etc/passwd", "'; drop table", 0.5,
]  # fmt: skip
_TEXTS = [
    b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"{\"a\":NaN}", b"[" * 100_000,
    b'{"a":' * 5_000, b"{\"ignite\": [[1e999, 0]]}", b"9" * 5_000, b'{"a": 1} x', b"\x00" * 50,
]  # fmt: skip
_WORDS = ["-1", "x", "1e999", "nan", "inf", "", "%00", "9" * 400, "..", "%2e%2e", "1.5", "٣", "-0",
          "0x1"]  # fmt: skip
_JSON = {"content-type": "application/json"}


def malformed_requests(count: int, seed: int, fire: str) -> Iterator[dict[str, Any]]:
    """Arguments of `client.request`; `fire` is the id of a fire that has its frames."""
    draw = random.Random(seed)
    kinds = [_body, _fire, _job, _query, _path, _method, _places]
    for _ in range(count):
        yield draw.choice(kinds)(draw, fire)


def _post(address: str, body: Any) -> dict[str, Any]:
    return {"method": "POST", "url": address, "content": json.dumps(body), "headers": _JSON}


def _body(draw: random.Random, fire: str) -> dict[str, Any]:
    address = draw.choice(["/api/fires", "/api/jobs", "/api/places", "/api/compare"])
    return {
        "method": "POST", "url": address, "content": draw.choice(_TEXTS), "headers": _JSON,
    }  # fmt: skip


def _fire(draw: random.Random, fire: str) -> dict[str, Any]:
    """A good request with one wrong value."""
    body: dict[str, Any] = {
        "ignite": [[60_000.0, 48_000.0]],
        "weather": {"surface": {"speed": 8, "from": 270}, "aloft": {"speed": 9, "from": 9}},
    }
    odd = draw.choice([value for value in _ODD if value is not None])
    place = draw.randrange(6)
    if place == 0:
        body["ignite"] = draw.choice(
            [odd, [odd], [[str(odd), 1.0]], [[1e9, 0.0]], [[0, 0]] * 1_000]
        )
    elif place == 1:
        body["weather"] = odd
    elif place == 2:
        body["weather"]["surface"] = odd
    elif place == 3:
        body["weather"]["aloft"] = {"speed": draw.choice([-1, 1e9, "9", None, True]), "from": 0}
    elif place == 4:
        body["weather"]["hour"] = draw.choice([-1, 25, "12", [], True])
    else:
        body["model"] = draw.choice(["nothing", 5, [], {}, "../x"])
    return _post("/api/fires", body)


def _job(draw: random.Random, fire: str) -> dict[str, Any]:
    wrong = [{"kind": "x"}, {"kind": "train", "preset": draw.choice(_ODD[1:])},
             {"kind": "train", "family": draw.choice(_ODD[1:])},
             {"kind": "train", "ignitions": draw.choice([0, -3, 10**9, 2.5, "3", None, True])},
             {"kind": "train", "preset": "quick", "family": "coded"},
             {"path": "/tmp/x"}]  # fmt: skip
    return _post("/api/jobs", draw.choice(wrong))


def _query(draw: random.Random, fire: str) -> dict[str, Any]:
    word = draw.choice(_WORDS)
    address = draw.choice([
        f"/api/landscape?x=a{word}&y=1", f"/api/fires/{fire}/point?x=1e300&y={word}",
        f"/api/fires/{fire}/frames/0?layer=no{word}",
        f"/api/fires/{fire}/frames/0?quantity=q{word}",
        f"/api/store/scores?threshold=t{word}", "/api/store/scores?threshold=-1", "/api/landscape",
        f"/api/store/scores?threshold=1&model=m{word}", f"/api/fires/{fire}/frames/0.png?layer=z",
    ])  # fmt: skip
    return {"method": "GET", "url": address}


def _path(draw: random.Random, fire: str) -> dict[str, Any]:
    word = draw.choice([word for word in _WORDS if word not in ("..", "%2e%2e", "")])
    address = draw.choice([
        f"/api/fires/{word}", f"/api/fires/{word}/events", f"/api/fires/{fire}/frames/a{word}",
        f"/api/fires/{fire}/frames/9{word}", f"/api/fires/{fire}/9{word}.tif", f"/api/jobs/{word}",
        f"/api/store/fires/{word}/0", f"/api/compare/{fire}/{word}/0", f"/api/{word}", f"/{word}",
        f"/api/fires/{word}.nc", f"/api/jobs/{word}/events",
        f"/api/store/fires/s0-i0000-w0/5{word}",
    ])  # fmt: skip
    return {"method": "GET", "url": address}


def _method(draw: random.Random, fire: str) -> dict[str, Any]:
    method = draw.choice(["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
    return {"method": method, "url": draw.choice(["/api/state", "/api/fires", "/", "/api/curve"])}


def _places(draw: random.Random, fire: str) -> dict[str, Any]:
    tables = ["name,x\nA,1", "x,y\n1,2", "name,x,y\nA,1e99,0", "name,x,y\nA,1,2\nA,1,2", "name,x,y",
              "name,x,y\n" + "A" * 200_000 + ",1,2", "name,x,y\n\x00,1", 'name,x,y\n"A,1,2',
              "name,lat,lon\nA,1,2", "name,x,y\n,1,2"]  # fmt: skip
    csv = draw.choice([*tables, *(value for value in _ODD if value != "")])
    return _post("/api/places", {"csv": csv})
