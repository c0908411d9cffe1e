"""Requests to the live page, and what is read from its answers."""

from __future__ import annotations

import json

MIDDLE = [60_000.0, 48_000.0]
"""The middle of the small landscape, x and y in metres."""


def wind(direction: float, **more):
    """A request for a fire in the middle, in a wind from a direction."""
    winds = {"surface": {"speed": 8, "from": direction}, "aloft": {"speed": 14, "from": direction}}
    return {"ignite": [MIDDLE], "weather": {**winds, "hour": 12, "drought": "high"}, **more}


def events(client, address):
    """All events of a stream as (name, value) pairs."""
    found, name = [], ""
    for line in client.get(address).text.splitlines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((name, json.loads(line.removeprefix("data: "))))
    return found


def lit(client, request):
    """A fire that has all its frames: its address and its events."""
    answer = client.post("/api/fires", json=request)
    assert answer.status_code == 201, answer.text
    address = f"/api/fires/{answer.json()['id']}"
    return address, events(client, f"{address}/events")
