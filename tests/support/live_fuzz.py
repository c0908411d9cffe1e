"""Malformed requests to the live page, drawn with a seed; every one must be refused with 4xx."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

_ODD: list[Any] = [
    True, "", "x", "NaN", -1, 1e308, 10**400, [], [[]], {}, {"a": 1}, "\ud800", "\x00", "é" * 99,
    [1, 2, 3], [None, None], "../../etc/passwd", "'; drop table", 0.5,
]  # fmt: skip
_TEXTS = [
    b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"{\"a\":NaN}", b"[" * 100_000,
    b'{"a":' * 5_000, b"{\"ignite\": [[1e999, 0]]}", b"9" * 5_000, b'{"a": 1} x', b"\x00" * 50,
]  # fmt: skip
_WORDS = ["-1", "x", "1e999", "nan", "inf", "%00", "1.5", "٣", "-0", "0x1", "9" * 400]
_PATHS = [
    "fires/{word}", "fires/{word}/events", "fires/{fire}/frames/a{word}",
    "fires/{fire}/frames/9{word}", "fires/{fire}/9{word}.tif", "jobs/{word}",
    "store/fires/{word}/0", "compare/{fire}/{word}/0", "{word}", "fires/{word}.nc",
    "jobs/{word}/events", "store/fires/s0-i0000-w0/5{word}", "landscape?x=a{word}&y=1",
    "fires/{fire}/point?x=1e300&y={word}", "landscape", "fires/{fire}/frames/0?layer=no{word}",
    "fires/{fire}/frames/0?quantity=q{word}", "fires/{fire}/frames/0.png?layer=z",
    "store/scores?threshold=t{word}", "store/scores?threshold=-1",
    "store/scores?threshold=1&model=m{word}",
]  # fmt: skip
_TABLES = [
    "name,x\nA,1", "x,y\n1,2", "name,x,y\nA,1e99,0", "name,x,y\nA,1,2\nA,1,2", "name,x,y",
    "name,x,y\n" + "A" * 200_000 + ",1,2", "name,x,y\n\x00,1", 'name,x,y\n"A,1,2',
    "name,lat,lon\nA,1,2", "name,x,y\n,1,2",
]  # fmt: skip
_JSON = {"content-type": "application/json"}


def malformed_requests(count: int, seed: int, fire: str) -> Iterator[dict[str, Any]]:
    """Arguments of `client.request`; `fire` is the id of a fire that has its frames."""
    draw = random.Random(seed)
    for _ in range(count):
        kind = draw.choice(["text", "fires", "jobs", "places", "path", "path", "method"])
        if kind == "path":
            path = draw.choice(_PATHS).format(fire=fire, word=draw.choice(_WORDS))
            yield {"method": "GET", "url": f"/api/{path}"}
        elif kind == "method":
            method = draw.choice(["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
            address = draw.choice(["/api/state", "/api/fires", "/", "/api/curve"])
            yield {"method": method, "url": address}
        else:
            bodies = {"fires": _fire, "jobs": _job, "places": _places}
            path = draw.choice(["fires", "jobs", "places", "compare"]) if kind == "text" else kind
            content = draw.choice(_TEXTS) if kind == "text" else json.dumps(bodies[kind](draw))
            yield {"method": "POST", "url": f"/api/{path}", "content": content, "headers": _JSON}


def _fire(draw: random.Random) -> dict[str, Any]:
    """A good request with one wrong value."""
    odd = draw.choice(_ODD)
    surface, aloft = {"speed": 8, "from": 270}, {"speed": 9, "from": 9}
    weather: dict[str, Any] = {"surface": surface, "aloft": aloft}
    body: dict[str, Any] = {"ignite": [[60_000.0, 48_000.0]], "weather": weather}
    where = [odd, [odd], [[str(odd), 1.0]], [[1e9, 0.0]], [[0, 0]] * 1_000]
    wind = {"speed": draw.choice([-1, 1e9, "9", None, True]), "from": 0}
    wrong: list[dict[str, Any]] = [
        {"ignite": draw.choice(where)},
        {"weather": odd},
        {"weather": weather | {"surface": odd}},
        {"weather": weather | {"aloft": wind}},
        {"weather": weather | {"hour": draw.choice([-1, 25, "12", [], True])}},
        {"model": draw.choice(["nothing", 5, [], {}, "../x"])},
    ]
    return body | draw.choice(wrong)


def _job(draw: random.Random) -> dict[str, Any]:
    wrong: list[dict[str, Any]] = [
        {"kind": "x"}, {"kind": "train", "preset": draw.choice(_ODD)},
        {"kind": "train", "family": draw.choice(_ODD)},
        {"kind": "train", "ignitions": draw.choice([0, -3, 10**9, 2.5, "3", None, True])},
        {"kind": "train", "preset": "quick", "family": "coded"}, {"path": "/tmp/x"},
    ]  # fmt: skip
    return draw.choice(wrong)


def _places(draw: random.Random) -> dict[str, Any]:
    return {"csv": draw.choice([*_TABLES, None, *(value for value in _ODD if value != "")])}
