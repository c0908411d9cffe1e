"""The application: addresses, guards, and errors as one sentence."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plumecast.app.server.http.answers import as_error
from plumecast.app.server.http.assets import read_assets, serve_asset
from plumecast.app.server.http.requests import RequestError
from plumecast.app.server.http.safety import Guard
from plumecast.app.server.live.fires import BusyError
from plumecast.app.server.routes import fires, jobs, places, state, store
from plumecast.base.errors import PlumecastError

if TYPE_CHECKING:
    from plumecast.app.server.live.page import LivePage

LOG = logging.getLogger("plumecast.serve")

ROUTES = [
    Route("/api/state", state.state),
    Route("/api/landscape.png", state.landscape_picture),
    Route("/api/landscape", state.landscape_point),
    Route("/api/fires", fires.light, methods=["POST"]),
    Route("/api/fires/{id}.nc", fires.netcdf),
    Route("/api/fires/{id}", fires.describe),
    Route("/api/fires/{id}", fires.stop, methods=["DELETE"]),
    Route("/api/fires/{id}/events", fires.events),
    Route("/api/fires/{id}/frames/{k}.png", fires.picture),
    Route("/api/fires/{id}/frames/{k}", fires.frame),
    Route("/api/fires/{id}/frames/{k}/perimeter", fires.perimeter),
    Route("/api/fires/{id}/point", fires.point),
    Route("/api/fires/{id}/places", places.table),
    Route("/api/fires/{id}/{k}.tif", fires.geotiff),
    Route("/api/places", places.keep, methods=["POST"]),
    Route("/api/compare", places.compare, methods=["POST"]),
    Route("/api/compare/{a}/{b}/{k}", places.compare_frame),
    Route("/api/store/fires", store.listed),
    Route("/api/store/fires/{id}/{k}", store.field),
    Route("/api/store/scores", store.scores),
    Route("/api/jobs", jobs.begin, methods=["POST"]),
    Route("/api/jobs/{id}", jobs.describe),
    Route("/api/jobs/{id}", jobs.cancel, methods=["DELETE"]),
    Route("/api/jobs/{id}/events", jobs.events),
    Route("/api/curve", jobs.curve),
    Route("/openapi.json", state.openapi),
    Route("/api", state.openapi_page),
]


def make_application(page: LivePage, *, names: Collection[str] = ()) -> Starlette:
    """The ASGI application of a page; `names` are host names besides addresses and localhost."""
    application = Starlette(
        routes=[*ROUTES, Route("/{rest:path}", serve_asset)],
        middleware=[Middleware(Guard, names=names)],
        exception_handlers={
            PlumecastError: _refused,
            HTTPException: _http_error,
            Exception: _failed,
        },
    )
    application.state.page = page
    application.state.assets = read_assets()
    return application


async def _refused(request: Request, error: Exception) -> Response:
    """A request that the library cannot answer."""
    status = error.status if isinstance(error, RequestError) else 422
    return as_error(str(error), 429 if isinstance(error, BusyError) else status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return as_error(f"{error.detail}: {request.method} is not possible here", error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    """An error of the server itself."""
    LOG.error("%s %s failed: %s", request.method, request.url.path, error)
    return as_error("the server failed to answer; its log says more", 500)
