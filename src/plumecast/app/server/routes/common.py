"""What several addresses read from a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumecast.app.server.http.requests import RequestError, absent, chosen
from plumecast.app.server.live.fires import LiveFire
from plumecast.app.server.live.models import Model
from plumecast.app.server.live.page import LivePage
from plumecast.app.server.live.scores import Store
from plumecast.scores.quantities import DEFAULT, QUANTITIES

if TYPE_CHECKING:
    from starlette.requests import Request

CLIENT = "plumecast_client"
"""Cookie with the token of a client, whose places are kept under it."""


def page_of(request: Request) -> LivePage:
    """What the server keeps."""
    page: LivePage = request.app.state.page
    return page


def fire_of(request: Request, name: str = "id") -> LiveFire:
    """The fire of an address."""
    key = str(request.path_params[name])
    fire = page_of(request).fires.kept.get(key)
    if fire is None:
        raise absent("fire", key)
    return fire


def store_of(request: Request) -> Store:
    """The store; raises if the server has none."""
    store = page_of(request).store
    if store is None:
        raise RequestError("this server has no store of fires; start it with --data STORE", 404)
    return store


def model_of(request: Request, key: str | None) -> Model:
    """A model by its id, or the latest."""
    return page_of(request).models.get(key)


def quantity_of(request: Request) -> str:
    """The quantity that the query asks for."""
    return chosen(request.query_params.get("quantity", DEFAULT), "quantity", QUANTITIES)
