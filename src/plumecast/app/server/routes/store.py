"""The fires of the store: observed beside predicted, and scores of those held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from plumecast.app.server.http.answers import as_json, as_octets
from plumecast.app.server.http.requests import (
    RequestError,
    absent,
    chosen,
    path_count,
    query_number,
)
from plumecast.app.server.live.scores import LAYERS
from plumecast.app.server.routes.common import model_of, quantity_of, store_of

if TYPE_CHECKING:
    from starlette.requests import Request


def listed(request: Request) -> Response:
    """All fires of the store."""
    return as_json({"fires": store_of(request).listed()})


def field(request: Request) -> Response:
    """Observed or predicted smoke of a snapshot, or their difference."""
    store = store_of(request)
    fire = str(request.path_params["id"])
    if fire not in store.rows:
        raise absent("fire of the store", fire)
    rows = store.rows[fire]
    k = path_count(request, "k", rows.size)
    layer = chosen(request.query_params.get("layer", "observed"), "layer", LAYERS)
    model = None if layer == "observed" else model_of(request, request.query_params.get("model"))
    found = store.layer(fire, k, layer, quantity_of(request), model)
    hour = float(store.snapshots["hours"].values[rows[k]])
    return as_octets(found.values, units=str(found.attrs["units"]), hour=hour)


def scores(request: Request) -> Response:
    """IoU, hit rate, false alarms and ROC at a threshold."""
    store = store_of(request)
    model = model_of(request, request.query_params.get("model"))
    threshold = query_number(request, "threshold")
    if threshold < 0.0:
        raise RequestError(f"threshold is {threshold:g}; it must be at least 0")
    return as_json(store.scores(model, threshold, quantity_of(request)))
