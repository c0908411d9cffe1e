"""The application: what every request must pass, the addresses, the files of the page, errors.

- The host of a request must be an address, a loopback name or a name the server was told: a page
  of another site whose name is pointed at this machine (DNS rebinding) has another one.
- A request that another site sends carries its origin, and is refused.
- A body is JSON by its type, which a form of another site cannot send, and at most `MOST_BODY`
  bytes, counted as it arrives.
- Files of the page are read once: a request is looked up and never becomes a path.
"""

from __future__ import annotations

import hashlib
import ipaddress
import mimetypes
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request

from plumecast.app.server.kept import RequestError
from plumecast.app.server.requests import as_json, error_answer
from plumecast.app.server.routes import api
from plumecast.base.errors import PlumecastError
from plumecast.base.version import __version__

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from plumecast.app.server.page import LivePage

MOST_BODY = 1_000_000
TOO_LONG = f"the body is longer than {MOST_BODY:,} bytes"

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
ABOUT = (
    "Wildfires and their smoke. x and y are metres of the grid; SI units and µg m⁻³. An error is "
    '{"error": "one sentence"} with a status of 4xx.'
)
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "the error in one sentence", "content": {"application/json": {}}}
}

FOLDER = Path(__file__).parents[1] / "assets"
PAGE = "page"
_TYPES = {".js": "text/javascript", ".json": "application/json", ".html": "text/html",
          ".css": "text/css", ".svg": "image/svg+xml"}  # fmt: skip


def make_application(page: LivePage, *, names: Collection[str] = ()) -> FastAPI:
    """The ASGI application of a page; `names` are host names besides addresses and localhost."""
    errors = (RequestValidationError, PlumecastError, HTTPException, Exception)
    application = FastAPI(
        title="plumecast serve",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        middleware=[Middleware(Guard, names=names)],
        exception_handlers=dict.fromkeys(errors, error_answer),
        responses=ERRORS,
    )
    application.state.page = page
    application.state.assets = read_assets()
    application.include_router(api)
    application.add_route("/{rest:path}", serve_asset, include_in_schema=False)
    return application


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

        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MOST_BODY:
                raise HTTPException(413, TOO_LONG)
            return message

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                extra = [pair for pair in HEADERS if pair[0] not in present]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        problem = self._problem(scope)
        if problem is None:
            await self.app(scope, limited, send_safe)
        else:
            answer = as_json({"error": problem[1]}, problem[0])
            answer.headers["connection"] = "close"
            await answer(scope, receive, send_safe)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_served(host):
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
            return 413, TOO_LONG
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] == "POST" and kind != b"application/json":
            return 415, "the body must be JSON, with Content-Type: application/json"
        return None

    def _is_served(self, host: str) -> bool:
        """Whether a Host header is an address or a known name, with any port."""
        name = host.partition(":")[0]
        if host.startswith("[") and "]" in host:  # an address of IPv6
            name = host[1:].partition("]")[0]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self.names
        return True


class Asset(NamedTuple):
    """A file of the page."""

    body: bytes
    media_type: str
    tag: str


def read_assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """All files by address: /assets/…, and those of the page also at /."""
    assets: dict[str, Asset] = {}
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        body = path.read_bytes()
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
        asset = Asset(body, kind or "application/octet-stream", hashlib.sha256(body).hexdigest())
        name = path.relative_to(folder).as_posix()
        assets[f"/assets/{name}"] = asset
        if name.startswith(f"{PAGE}/"):
            assets[name.removeprefix(PAGE)] = asset
    assets["/"] = assets["/index.html"]
    return assets


def serve_asset(request: Request) -> Response:
    """A file of the page."""
    asset: Asset | None = request.app.state.assets.get(request.url.path)
    if asset is None:
        raise RequestError("there is nothing at this address; see /api", 404)
    headers = {"ETag": f'"{asset.tag}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.media_type, headers=headers)
