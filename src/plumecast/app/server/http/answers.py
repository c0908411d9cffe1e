"""Answers: JSON without NaN, fields as little-endian float32, files to download, events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import Response, StreamingResponse

from plumecast.app.server.http.events import EventLog
from plumecast.base.files import finite

if TYPE_CHECKING:
    from starlette.requests import Request


def as_json(value: Any, status: int = 200) -> Response:
    """A JSON answer; NaN and infinity become null."""
    text = json.dumps(finite(value), allow_nan=False, ensure_ascii=False)
    # A lone surrogate, which JSON can hold and UTF-8 cannot, is escaped.
    body = text.encode("utf-8", errors="backslashreplace")
    return Response(body, status, media_type="application/json")


def as_error(message: str, status: int) -> Response:
    """An error in one sentence."""
    return as_json({"error": " ".join(message.split())}, status)


def as_octets(field: np.ndarray, *, units: str, hour: float) -> Response:
    """A field (ny, nx), south row first, as float32 little-endian."""
    headers = {
        "X-Shape": ",".join(map(str, field.shape)),
        "X-Units": units,
        "X-Hour": f"{hour:g}",
    }
    body = np.ascontiguousarray(field, dtype="<f4").tobytes()
    return Response(body, media_type="application/octet-stream", headers=headers)


def as_file(body: bytes, name: str, media_type: str) -> Response:
    """A file that the browser saves under a name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=media_type, headers=headers)


def as_events(log: EventLog, request: Request) -> Response:
    """The events of a log; a client that has seen all is told not to come back (204)."""
    seen = request.headers.get("last-event-id", "")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else -1
    if after >= 0 and log.is_read(after):
        return Response(status_code=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(log.stream(after), media_type="text/event-stream", headers=headers)
