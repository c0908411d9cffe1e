"""The document of the interface (OpenAPI 3.1), and a plain page of it.

`ROUTES` describes every address once; a test keeps it equal to the addresses that are served.
"""

from __future__ import annotations

import html
import re
from typing import Any, NamedTuple

from plumecast.base.version import __version__


class Described(NamedTuple):
    """One method of an address: what it does, what it takes and what it gives."""

    method: str
    path: str
    summary: str
    query: tuple[str, ...] = ()  # names of the query
    body: str = ""  # JSON of the request, by example
    answer: str = "JSON"
    status: int = 200


_OCTETS = (
    "float32, little-endian, ny·nx values from the south-west corner row by row; the headers "
    "X-Shape, X-Units and X-Hour describe them"
)
_EVENTS = "server-sent events"
_FIRE = '{"ignite": [[75000, 60000]], "weather": {"surface": {"speed": 8, "from": 270}, \
"aloft": {"speed": 15, "from": 270}, "hour": 12, "drought": "medium"}, "model": "id"}'

ROUTES = (
    Described("get", "/api/state", "Grid, hours, models, presets, colour scale, store and limits"),
    Described("get", "/api/landscape.png", "Hillshade and fuels, north up", answer="PNG"),
    Described("get", "/api/landscape", "Elevation (m) and fuel at a point", ("x", "y")),
    Described(
        "post", "/api/fires",
        "Light a fire at a point, or along a line of points, in a drought's weather or in two "
        "stated winds; the latest model without model", body=_FIRE, status=201,
    ),
    Described("get", "/api/fires/{id}", "What was asked for, and how many frames are ready"),
    Described("delete", "/api/fires/{id}", "Stop and forget a fire", answer="nothing", status=204),
    Described(
        "get", "/api/fires/{id}/events",
        "frame {k, hour, burned_area (acres), centre [x, y] of the smoke, extrapolates, seconds} "
        "as each is ready; then done, or error", answer=_EVENTS,
    ),
    Described(
        "get", "/api/fires/{id}/frames/{k}",
        "A layer of a frame: smoke, lower, upper, footprint, certain, possible or fire",
        ("layer", "quantity"), answer=_OCTETS,
    ),
    Described(
        "get", "/api/fires/{id}/frames/{k}.png", "The same as a picture with its legend",
        ("layer", "quantity"), answer="PNG",
    ),
    Described(
        "get", "/api/fires/{id}/frames/{k}/perimeter", "Rings around the burned cells, in metres"
    ),
    Described(
        "get", "/api/fires/{id}/point",
        "Series of the cell with a point: hours, mean, lower, upper, units, coverage",
        ("x", "y", "quantity"),
    ),
    Described(
        "get", "/api/fires/{id}/places", "The same for every place of the client", ("quantity",)
    ),
    Described("get", "/api/fires/{id}.nc", "All frames that are ready", answer="NetCDF"),
    Described(
        "get", "/api/fires/{id}/{k}.tif", "A layer of a frame", ("layer", "quantity"),
        answer="GeoTIFF",
    ),
    Described("post", "/api/places", "Keep places of this client (by a cookie)",
              body='{"csv": "name,x,y\\nCamp,75000,60000"}'),
    Described("post", "/api/compare", "Fire b against fire a in frame k (the last without k), as "
              "plumecast compare: a table, and where the maps of the difference are",
              ("quantity",), body='{"a": "id", "b": "id", "k": 2}'),
    Described("get", "/api/compare/{a}/{b}/{k}", "Smoke of b minus that of a in a frame",
              ("quantity",), answer=_OCTETS),
    Described("get", "/api/store/fires", "The fires of the store"),
    Described("get", "/api/store/fires/{id}/{k}", "Smoke of a snapshot: observed, predicted, or "
              "their difference", ("layer", "quantity", "model"), answer=_OCTETS),
    Described("get", "/api/store/scores", "IoU, hit rate, false alarm ratio and ROC of smoke "
              "above a threshold, in fires that the model has not seen",
              ("threshold", "model", "quantity")),
    Described("post", "/api/jobs", "Train a model with a preset or a family",
              body='{"kind": "train", "preset": "recommended", "ignitions": 12}', status=202),
    Described("get", "/api/jobs/{id}", "Whether a job waits, runs or has ended"),
    Described("get", "/api/jobs/{id}/events", "progress {step, seconds}; then result {model, "
              "seconds, scores, baselines}, or error", answer=_EVENTS),
    Described("delete", "/api/jobs/{id}", "Cancel a job", answer="nothing", status=204),
    Described("get", "/api/curve", "The learning curve: ignitions, IoU and relative error of "
              "every training"),
    Described("get", "/openapi.json", "This document"),
    Described("get", "/api", "This document as a page", answer="HTML"),
)  # fmt: skip

_TYPES = {"PNG": "image/png", "NetCDF": "application/x-netcdf", "GeoTIFF": "image/tiff",
          "HTML": "text/html", "JSON": "application/json", _EVENTS: "text/event-stream",
          _OCTETS: "application/octet-stream"}  # fmt: skip


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "plumecast serve",
            "version": __version__,
            "description": "Wildfires and their smoke. x and y are metres of the grid; SI units "
            'and µg m⁻³. An error is {"error": "one sentence"} with a status of 4xx.',
        },
        "paths": paths,
    }


def _operation(route: Described) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", route.path)
    parameters = [_parameter(name, "path") for name in names]
    parameters += [_parameter(name, "query") for name in route.query]
    answer: dict[str, Any] = {"description": route.answer}
    if route.answer in _TYPES:
        answer["content"] = {_TYPES[route.answer]: {}}
    made: dict[str, Any] = {
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            str(route.status): answer,
            "4XX": {
                "description": "the error in one sentence",
                "content": {"application/json": {}},
            },
        },
    }
    if route.body:
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}},
            "description": f"for example {route.body}",
        }
    return made


def _parameter(name: str, where: str) -> dict[str, Any]:
    kind = "number" if name in ("x", "y", "threshold") else "integer" if name == "k" else "string"
    needed = where == "path" or kind == "number"
    return {"name": name, "in": where, "required": needed, "schema": {"type": kind}}


def document_page() -> str:
    """The document as plain HTML without a script."""
    rows = []
    for route in ROUTES:
        takes = [f"query: {', '.join(route.query)}"] * bool(route.query)
        takes += [f"body: <code>{html.escape(route.body)}</code>"] * bool(route.body)
        rows.append(
            f"<h2><code>{route.method.upper()} {html.escape(route.path)}</code></h2>"
            f"<p>{html.escape(route.summary)}.</p>"
            + "".join(f"<p>{text}</p>" for text in takes)
            + f"<p>Answer: {html.escape(route.answer)}.</p>"
        )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>plumecast: interface</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="/assets/page/api.css">'
        '<p><a href="/">Back to the page</a></p>'
        "<h1>The interface of plumecast serve</h1><p>x and y are metres of the grid. An error is "
        '<code>{"error": "one sentence"}</code>. The same as <a href="/openapi.json">OpenAPI</a>.'
        f"</p>{''.join(rows)}</html>"
    )
