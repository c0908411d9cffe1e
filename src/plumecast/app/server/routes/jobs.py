"""Trainings, and the learning curve that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from plumecast.app.server.http.answers import as_events, as_json
from plumecast.app.server.http.requests import (
    RequestError,
    absent,
    chosen,
    count,
    json_body,
    only_known,
)
from plumecast.app.server.live.training import FEWEST, Job, Task, new_path
from plumecast.app.server.routes.common import page_of, store_of
from plumecast.operators.settings import FAMILIES, PRESETS
from plumecast.workflows.train import DEFAULT_PRESET

if TYPE_CHECKING:
    from starlette.requests import Request


async def begin(request: Request) -> Response:
    """Queue a training."""
    body = await json_body(request)
    only_known(body, ("kind", "preset", "family", "ignitions"))
    chosen(body.get("kind"), "kind", ("train",))
    store, page = store_of(request), page_of(request)
    known, test = store.split()
    if body.get("preset") is not None and body.get("family") is not None:
        raise RequestError("a preset has its family; give one of preset and family")
    if body.get("family") is not None:
        choices = {"family": chosen(body["family"], "family", FAMILIES)}
    else:
        choices = {"preset": chosen(body.get("preset", DEFAULT_PRESET), "preset", PRESETS)}
    if len(known) < FEWEST:
        raise RequestError(
            f"the store has {len(known)} ignitions to train on; {FEWEST} are needed", 409
        )
    number = count(body.get("ignitions", len(known)), "ignitions", FEWEST, len(known))
    if page.models.full:
        raise RequestError("the server keeps no more models; restart it to forget some", 429)
    assert page.store_path is not None
    (label,) = choices.values()
    task = Task(page.store_path, known[:number], test, choices, str(new_path(page.folder, label)))
    begun = page.jobs.begin(task)
    if begun is None:
        raise RequestError("too many trainings are waiting; try again when one has ended", 429)
    return as_json({"id": begun[0], "ignitions": number}, 202)


def _job(request: Request) -> Job:
    key = str(request.path_params["id"])
    job = page_of(request).jobs.kept.get(key)
    if job is None:
        raise absent("job", key)
    return job


def events(request: Request) -> Response:
    """Progress and result."""
    return as_events(_job(request).events, request)


def describe(request: Request) -> Response:
    """Whether a job waits, runs or has ended."""
    return as_json({"state": _job(request).state})


def cancel(request: Request) -> Response:
    """Stop a training and its process."""
    _job(request).stop()
    return Response(status_code=204)


def curve(request: Request) -> Response:
    """The learning curve: one point per training."""
    return as_json({"points": page_of(request).curve()})
