"""The files of the page, read once: a request is looked up and never becomes a path."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

from plumecast.app.server.http.requests import RequestError

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER = Path(__file__).parents[2] / "assets"
PAGE = "page"
_TYPES = {".js": "text/javascript", ".json": "application/json", ".html": "text/html",
          ".css": "text/css", ".svg": "image/svg+xml"}  # fmt: skip
_NO_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">'
    "<title>plumecast</title>"
    '<h1>plumecast serve</h1><p>The <a href="/api">interface</a> of this server.</p></html>'
)


class Asset(NamedTuple):
    """A file of the page."""

    body: bytes
    media_type: str
    tag: str


def read_assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """All files by address: /assets/…, and those of the page also at /."""
    found: dict[str, Asset] = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if not path.is_file():
            continue
        body = path.read_bytes()
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
        asset = Asset(body, kind or "application/octet-stream", hashlib.sha256(body).hexdigest())
        name = path.relative_to(folder).as_posix()
        found[f"/assets/{name}"] = asset
        if name.startswith(f"{PAGE}/"):
            found[name.removeprefix(PAGE)] = asset
    home = found.get("/index.html")
    found["/"] = home or Asset(_NO_PAGE.encode(), "text/html", "none")
    return found


def serve_asset(request: Request) -> Response:
    """A file of the page."""
    found: Asset | None = request.app.state.assets.get(request.url.path)
    if found is None:
        raise RequestError("there is nothing at this address; see /api", 404)
    headers = {"ETag": f'"{found.tag}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)
