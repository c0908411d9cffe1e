"""State, landscape, and the document of the interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from plumecast.app.server.http.answers import as_json
from plumecast.app.server.http.openapi import document, document_page
from plumecast.app.server.http.requests import query_number
from plumecast.app.server.routes.common import page_of

if TYPE_CHECKING:
    from starlette.requests import Request


def state(request: Request) -> Response:
    """Grid, hours, models, scales and limits."""
    return as_json(page_of(request).state())


def landscape_picture(request: Request) -> Response:
    """Hillshade and fuels."""
    headers = {"Cache-Control": "max-age=3600"}
    return Response(page_of(request).world.picture, media_type="image/png", headers=headers)


def landscape_point(request: Request) -> Response:
    """Elevation and fuel at a point."""
    x, y = query_number(request, "x"), query_number(request, "y")
    return as_json(page_of(request).world.describe(x, y))


def openapi(request: Request) -> Response:
    """The interface as OpenAPI."""
    return as_json(document())


def openapi_page(request: Request) -> Response:
    """The interface as a plain page."""
    return Response(document_page(), media_type="text/html")
