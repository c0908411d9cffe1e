"""What every request must pass, and the headers of every answer.

- The host of a request must be an address, a loopback name or a name the server was told: a page
  of another site whose name is pointed at this machine (DNS rebinding) has another one.
- A request that another site sends carries its origin, and is refused.
- A body is at most `MOST_BODY` bytes, counted as it arrives.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY = 1_000_000

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class _TooLong(Exception):
    """The body has more bytes than allowed."""


class Guard:
    """ASGI middleware that refuses foreign hosts, foreign origins and long bodies."""

    def __init__(self, app: ASGIApp, *, names: Collection[str] = ()) -> None:
        self.app = app
        self.names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with 4xx."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_safe(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}
                extra = [pair for pair in HEADERS if pair[0] not in own]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        problem = self._problem(scope)
        if problem is not None:
            await _refuse(send_safe, *problem)
            return
        try:
            await self.app(scope, _counted(receive), send_safe)
        except _TooLong:
            if not started:
                await _refuse(send_safe, 413, f"the body is longer than {MOST_BODY:,} bytes")

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_own(host):
            return 421, "this host name is not served here; use 127.0.0.1, or give --allow NAME"
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and origin not in (f"http://{host}", f"https://{host}"):
            return 403, "requests of other sites are refused"
        if headers.get(b"sec-fetch-site") == b"cross-site" and scope["method"] != "GET":
            return 403, "requests of other sites are refused"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18:
            return 400, "the length of the body is not a number"
        if int(length) > MOST_BODY:
            return 413, f"the body is longer than {MOST_BODY:,} bytes"
        return None

    def _is_own(self, host: str) -> bool:
        """Whether a Host header is an address or a known name, with any port."""
        name = host.partition(":")[0]
        if host.startswith("[") and "]" in host:  # an address of IPv6
            name = host[1:].partition("]")[0]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self.names
        return True


def _counted(receive: Receive) -> Receive:
    """`receive` that raises when the body is too long."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BODY:
            raise _TooLong
        return message

    return limited


async def _refuse(send: Any, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
