"""The addresses of the interface: one table for the server and for its OpenAPI document."""

from __future__ import annotations

import threading
import warnings
from typing import Annotated, Any

from fastapi import APIRouter, Cookie, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from plumecast.app.server import fires
from plumecast.app.server.fires import LIVE, LiveFire
from plumecast.app.server.kept import PLACES, Kept, RequestError, Thing, new_id
from plumecast.app.server.models import FEWEST, Job, Model, Task, new_path
from plumecast.app.server.page import STORE_LAYERS, LivePage, Store
from plumecast.app.server.requests import (
    ALL,
    LAST,
    Events,
    GeoTiff,
    NetCdf,
    NewFire,
    NewJob,
    NewPlaces,
    Octets,
    OneOf,
    Pair,
    Picture,
    absent,
    as_events,
    as_json,
    document_page,
)
from plumecast.base.errors import PlumecastWarning
from plumecast.base.values import shown
from plumecast.scores.quantities import DEFAULT, QUANTITIES
from plumecast.sources.places import Places, places_of_text
from plumecast.workflows.train import DEFAULT_PRESET

CLIENT = "plumecast_client"
"""Cookie with the token of a client, whose places are kept under it."""

OCTETS = (
    "float32, little-endian, ny·nx values from the south-west corner row by row; the headers "
    "X-Shape, X-Units and X-Hour describe them"
)

api = APIRouter(prefix="/api")
_reading = threading.Lock()  # warnings are collected for the whole process


async def page_of(request: Request) -> LivePage:
    """What the server keeps."""
    page: LivePage = request.app.state.page
    return page


Page = Annotated[LivePage, Depends(page_of)]
Number = Annotated[float, Query(allow_inf_nan=False)]
Quantity = Annotated[str, OneOf(QUANTITIES)]
LayerName = Annotated[str, OneOf(LIVE)]


def _kept(kept: Kept[Thing], what: str, key: str) -> Thing:
    thing = kept.get(key)
    if thing is None:
        raise absent(what, key)
    return thing


Id = Annotated[str, Path(alias="id")]


async def fire_of(page: Page, key: Id) -> LiveFire:
    """The fire of an address."""
    return _kept(page.fires.kept, "fire", key)


async def job_of(page: Page, key: Id) -> Job:
    """The job of an address."""
    return _kept(page.jobs.kept, "job", key)


Fire = Annotated[LiveFire, Depends(fire_of)]
JobOf = Annotated[Job, Depends(job_of)]


def _below(k: int, size: int) -> int:
    if k >= size:
        raise RequestError(f"k is {shown(k)}; it must be 0 to {size - 1}", 404)
    return k


async def frame_of(fire: Fire, k: Annotated[int, Path(ge=0)]) -> int:
    """The number of a frame of that fire."""
    return _below(k, fire.world.checkpoints)


Frame = Annotated[int, Depends(frame_of)]


async def store_of(page: Page) -> Store:
    """The store; raises if the server has none."""
    if page.store is None:
        raise RequestError("this server has no store of fires; start it with --data STORE", 404)
    return page.store


StoreOf = Annotated[Store, Depends(store_of)]


async def model_of(page: Page, model: str | None = None) -> Model:
    """A model by its id, or the latest."""
    return page.models.get(model)


ModelOf = Annotated[Model, Depends(model_of)]


async def places_of(
    page: Page, token: Annotated[str | None, Cookie(alias=CLIENT)] = None
) -> tuple[str, Places] | None:
    """The token that the server gave to a client, and its places."""
    places = None if token is None else page.places.get(token)
    return None if token is None or places is None else (token, places)


PlacesOf = Annotated[tuple[str, Places] | None, Depends(places_of)]


@api.get("/state")
def state(page: Page) -> Response:
    """Grid, hours, models, presets, colour scale, store and limits."""
    return as_json(page.state())


@api.get("/landscape.png", response_class=Picture)
def landscape_picture(page: Page) -> Response:
    """Hillshade and fuels, north up."""
    return Picture(page.world.picture, headers={"Cache-Control": "max-age=3600"})


@api.get("/landscape")
def landscape_point(page: Page, x: Number, y: Number) -> Response:
    """Elevation (m) and fuel at a point."""
    return as_json(page.world.describe(x, y))


@api.post("/fires", status_code=201)
def light(page: Page, body: NewFire) -> Response:
    """Light a fire at a point, or along a line of points, in a drought's weather or in two winds.

    Its frames are computed while the answer is on its way.
    """
    model = page.models.get(body.model)
    where = [(x, y) for x, y in body.ignite]
    stated = body.weather.model_dump(by_alias=True, exclude_unset=True)
    asked = {"ignite": where, "weather": stated, "model": model.id}
    cells, weather = page.world.ignited(where), page.world.weather(body.weather.wanted())
    fire = LiveFire(cells, weather, model, page.world, asked)
    key = page.fires.begin(fire, "the server is busy with other fires; try again in a moment")
    cell = page.world.ground.cell
    ignited = [[(column + 0.5) * cell, (row + 0.5) * cell] for row, column in fire.cells]
    made = {"id": key, "hours": page.world.hours, "model": model.id, "ignited": ignited}
    return as_json(made, 201)


@api.get("/fires/{id}.nc", response_class=NetCdf)
def netcdf(fire: Fire) -> Response:
    """All frames that are ready as CF NetCDF."""
    if not fire.frames:
        raise RequestError("no frame of this fire is ready yet; try again in a moment", 409)
    return NetCdf(fires.frames_netcdf(fire), headers=_named("plumecast-fire.nc"))


def _named(name: str, how: str = "attachment") -> dict[str, str]:
    """The header with the name under which the browser saves a file."""
    return {"Content-Disposition": f'{how}; filename="{name}"'}


@api.get("/fires/{id}")
def describe(fire: Fire) -> Response:
    """What was asked for, and how many frames are ready."""
    ready = {"ready": len(fire.frames), "finished": fire.events.closed}
    return as_json({"hours": fire.world.hours, **ready, **fire.request})


@api.delete("/fires/{id}", status_code=204, response_class=Response)
def stop(page: Page, key: Id) -> Response:
    """Stop and forget a fire."""
    if page.fires.kept.remove(key) is None:
        raise absent("fire", key)
    return Response(status_code=204)


@api.get("/fires/{id}/events", response_class=Events)
def fire_events(fire: Fire, request: Request) -> Response:
    """Frame {k, hour, burned_area (acres), centre [x, y] of the smoke, extrapolates, seconds}.

    One as each is ready; then done, or error.
    """
    return as_events(fire.events, request)


@api.get("/fires/{id}/frames/{k}.png", response_class=Picture)
def picture(
    page: Page, fire: Fire, k: Frame, layer: LayerName = "smoke", quantity: Quantity = DEFAULT
) -> Response:
    """A layer of a frame as a picture with its legend."""
    name = f"plumecast-{layer}-{fire.world.hours[k]:g}h.png"
    return Picture(
        fires.draw_frame(fire, k, layer, quantity, page.scale), headers=_named(name, "inline")
    )


@api.get("/fires/{id}/frames/{k}", response_class=Octets, response_description=OCTETS)
def frame(
    fire: Fire, k: Frame, layer: LayerName = "smoke", quantity: Quantity = DEFAULT
) -> Response:
    """A layer of a frame: an amount, where smoke is, or the fire."""
    return Octets.of(fire.layer(k, layer, quantity), fire.world.hours[k])


@api.get("/fires/{id}/frames/{k}/perimeter")
def perimeter(fire: Fire, k: Frame) -> Response:
    """Rings around the burned cells, in metres."""
    return as_json({"hour": fire.world.hours[k], "rings": fire.perimeter(k)})


@api.get("/fires/{id}/point")
def point(fire: Fire, x: Number, y: Number, quantity: Quantity = DEFAULT) -> Response:
    """Series of the cell with a point: hours, mean, lower, upper, units, coverage."""
    return as_json(fire.series(*fire.world.cell_of(x, y), quantity))


@api.get("/fires/{id}/places")
def places_table(fire: Fire, client: PlacesOf, quantity: Quantity = DEFAULT) -> Response:
    """The same for every place of the client."""
    if client is None:
        raise RequestError("there are no places yet; send them to /api/places", 404)
    rows = [
        place | fire.series(*fire.world.cell_of(place["x"], place["y"]), quantity)
        for place in _listed(client[1], fire.world.grid)
    ]
    return as_json({"places": rows})


@api.get("/fires/{id}/{k}.tif", response_class=GeoTiff)
def geotiff(
    fire: Fire, k: Frame, layer: LayerName = "smoke", quantity: Quantity = DEFAULT
) -> Response:
    """A layer of a frame as GeoTIFF."""
    name = f"plumecast-{layer}-{fire.world.hours[k]:g}h.tif"
    return GeoTiff(fires.frame_geotiff(fire, k, layer, quantity), headers=_named(name))


@api.post("/places")
def keep_places(page: Page, client: PlacesOf, body: NewPlaces) -> Response:
    """Keep places of this client (by a cookie); an empty table forgets them.

    The notes say which columns were not read.
    """
    if not body.csv.strip():
        page.places.remove(client[0] if client else "")
        return as_json({"places": [], "notes": []})
    with _reading, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlumecastWarning)
        places = places_of_text(body.csv, page.world.grid)
    if len(places) > PLACES:
        raise RequestError(f"{len(places)} places are more than {PLACES}; give fewer")
    notes = [str(warning.message) for warning in caught]
    answer = as_json({"places": _listed(places, page.world.grid), "notes": notes})
    token = page.places.add(places, client[0] if client else new_id())
    answer.set_cookie(CLIENT, token, httponly=True, samesite="strict", max_age=86_400)
    return answer


def _listed(places: Places, grid: Any) -> list[dict[str, Any]]:
    """Names and the centres of the cells of places."""
    x, y = grid["x"].values, grid["y"].values
    return [
        {"name": name, "x": float(x[column]), "y": float(y[row])}
        for name, row, column in zip(places.names, places.rows, places.columns, strict=True)
    ]


@api.post("/compare")
def compare(page: Page, client: PlacesOf, body: Pair, quantity: Quantity = DEFAULT) -> Response:
    """Fire b against fire a in frame k (the last without k), as plumecast compare.

    A table, and where the maps of the difference are.
    """
    a, b = (_kept(page.fires.kept, "fire", key) for key in (body.a, body.b))
    k = min(len(a.frames), len(b.frames)) - 1 if body.k == LAST else body.k
    record = fires.compare_record(a, b, k, quantity=quantity, places=client[1] if client else None)
    return as_json({"difference": f"/api/compare/{body.a}/{body.b}/", **record})


@api.get("/compare/{a}/{b}/{k}", response_class=Octets, response_description=OCTETS)
def compare_frame(
    page: Page, a: str, b: str, k: Annotated[int, Path(ge=0)], quantity: Quantity = DEFAULT
) -> Response:
    """Smoke of b minus that of a in a frame."""
    first, second = (_kept(page.fires.kept, "fire", key) for key in (a, b))
    k = _below(k, first.world.checkpoints)
    return Octets.of(fires.difference(first, second, k, quantity), first.world.hours[k])


@api.get("/store/fires")
def stored_fires(store: StoreOf) -> Response:
    """The fires of the store."""
    return as_json({"fires": store.listed()})


@api.get("/store/fires/{id}/{k}", response_class=Octets, response_description=OCTETS)
def stored_field(
    store: StoreOf,
    model: ModelOf,
    fire: Id,
    k: Annotated[int, Path(ge=0)],
    layer: Annotated[str, OneOf(STORE_LAYERS)] = "observed",
    quantity: Quantity = DEFAULT,
) -> Response:
    """Smoke of a snapshot: observed, predicted, or their difference."""
    if fire not in store.rows:
        raise absent("fire of the store", fire)
    k = _below(k, store.rows[fire].size)
    hour = float(store.snapshots["hours"].values[store.rows[fire][k]])
    return Octets.of(store.layer(fire, k, layer, quantity, model), hour)


@api.get("/store/scores")
def scores(
    store: StoreOf,
    model: ModelOf,
    threshold: Annotated[float, Query(ge=0.0, allow_inf_nan=False)],
    quantity: Quantity = DEFAULT,
) -> Response:
    """IoU, hit rate, false alarm ratio and ROC of smoke above a threshold.

    They are of fires that the model has not seen.
    """
    return as_json(store.scores(model, threshold, quantity))


@api.post("/jobs", status_code=202)
def begin(page: Page, store: StoreOf, body: NewJob) -> Response:
    """Train a model with a preset or a family."""
    trainable, test = store.split()
    if len(trainable) < FEWEST:
        raise RequestError(
            f"the store has {len(trainable)} ignitions to train on; {FEWEST} are needed", 409
        )
    number = len(trainable) if body.ignitions == ALL else body.ignitions
    if number > len(trainable):
        raise RequestError(f"ignitions is {number}; it must be {FEWEST} to {len(trainable)}")
    if page.models.full:
        raise RequestError("the server keeps no more models; restart it to forget some", 429)
    assert page.store_path is not None
    preset = body.preset or DEFAULT_PRESET
    choices = {"preset": preset} if body.family is None else {"family": body.family}
    path = new_path(page.folder, body.family or preset)
    task = Task(page.store_path, trainable[:number], test, choices, str(path))
    busy = "too many trainings are waiting; try again when one has ended"
    key = page.jobs.begin(Job(task, page.models.add), busy)
    return as_json({"id": key, "ignitions": number}, 202)


@api.get("/jobs/{id}")
def describe_job(job: JobOf) -> Response:
    """Whether a job waits, runs or has ended."""
    return as_json({"state": job.state})


@api.get("/jobs/{id}/events", response_class=Events)
def job_events(job: JobOf, request: Request) -> Response:
    """Progress {step, seconds}; then result {model, seconds, scores, baselines}, or error."""
    return as_events(job.events, request)


@api.delete("/jobs/{id}", status_code=204, response_class=Response)
def cancel(job: JobOf) -> Response:
    """Cancel a training and end its process."""
    job.stop()
    return Response(status_code=204)


@api.get("/curve")
def curve(page: Page) -> Response:
    """The learning curve: ignitions, IoU and relative error of every training."""
    return as_json({"points": page.curve()})


@api.get("", response_class=HTMLResponse)
def document(request: Request) -> Response:
    """The interface as a page."""
    return HTMLResponse(document_page(request.app.openapi()))
