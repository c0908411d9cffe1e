"""Places of a client, and the comparison of two fires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from plumecast.app.server.http.answers import as_json, as_octets
from plumecast.app.server.http.requests import (
    RequestError,
    absent,
    json_body,
    only_known,
    path_count,
)
from plumecast.app.server.live.compare import compare_record, difference, last_common
from plumecast.app.server.live.fires import LiveFire
from plumecast.app.server.live.kept import new_id
from plumecast.app.server.routes.common import CLIENT, fire_of, page_of, quantity_of
from plumecast.sources.places import Places, places_of_text

if TYPE_CHECKING:
    from starlette.requests import Request


async def keep(request: Request) -> Response:
    """Keep the places of a client; an empty text forgets them."""
    body = await json_body(request)
    only_known(body, ("csv",))
    text = body.get("csv")
    if not isinstance(text, str):
        raise RequestError('csv must be a text such as "name,x,y\\nCamp,75000,60000"')
    page = page_of(request)
    token = _token(request)
    if not text.strip():
        page.places.remove(token or "")
        return as_json({"places": []})
    places = await run_in_threadpool(places_of_text, text, page.world.grid)
    if len(places) > page.limits.places:
        raise RequestError(f"{len(places)} places are more than {page.limits.places}; give fewer")
    answer = as_json({"places": _listed(places, page.world.grid)})
    token = page.places.add(places, token or new_id())
    answer.set_cookie(CLIENT, token, httponly=True, samesite="strict", max_age=86_400)
    return answer


def _token(request: Request) -> str | None:
    """The token of a client, if the server gave it one."""
    token = request.cookies.get(CLIENT)
    return token if token and page_of(request).places.get(token) is not None else None


def _places(request: Request) -> Places:
    token = _token(request)
    found = None if token is None else page_of(request).places.get(token)
    if found is None:
        raise RequestError("there are no places yet; send them to /api/places", 404)
    return found


def _listed(places: Places, grid: Any) -> list[dict[str, Any]]:
    """Names and the centres of the cells of places."""
    x, y = grid["x"].values, grid["y"].values
    return [
        {"name": name, "x": float(x[column]), "y": float(y[row])}
        for name, row, column in zip(places.names, places.rows, places.columns, strict=True)
    ]


def table(request: Request) -> Response:
    """The time series of a fire at the places of the client."""
    fire, places = fire_of(request), _places(request)
    found = []
    for place in _listed(places, fire.world.grid):
        cell = fire.world.cell_of(place["x"], place["y"])
        found.append(place | fire.series(*cell, quantity_of(request)))
    return as_json({"places": found})


async def compare(request: Request) -> Response:
    """Fire b against fire a in a frame: where the maps of their difference are, and a table."""
    body = await json_body(request)
    only_known(body, ("a", "b", "k"))
    a, b = (_fire(request, body.get(name), name) for name in ("a", "b"))
    k = body.get("k", last_common(a, b))
    if not isinstance(k, int) or isinstance(k, bool):
        raise RequestError("k must be the number of a frame, 0 for the first")
    token = _token(request)
    places = None if token is None else page_of(request).places.get(token)
    found = await run_in_threadpool(
        compare_record, a, b, k, quantity=quantity_of(request), places=places
    )
    return as_json({"difference": f"/api/compare/{body['a']}/{body['b']}/", **found})


def _fire(request: Request, key: Any, name: str) -> LiveFire:
    if not isinstance(key, str):
        raise RequestError(f"{name} must be the id of a fire")
    fire = page_of(request).fires.kept.get(key)
    if fire is None:
        raise absent("fire", key)
    return fire


def compare_frame(request: Request) -> Response:
    """Smoke of fire b minus that of fire a."""
    a, b = _pair(request)
    k = path_count(request, "k", a.world.checkpoints)
    field = difference(a, b, k, quantity_of(request))
    return as_octets(field.values, units=str(field.attrs["units"]), hour=a.world.hours[k])


def _pair(request: Request) -> tuple[LiveFire, LiveFire]:
    return fire_of(request, "a"), fire_of(request, "b")
