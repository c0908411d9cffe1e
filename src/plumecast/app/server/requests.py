"""Requests as checked values, answers as bytes, and every error as one sentence."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
import xarray as xr
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, core_schema
from starlette.exceptions import HTTPException

from plumecast.app.server.kept import POINTS, WIND_SPEED, EventLog, RequestError
from plumecast.app.server.models import FEWEST
from plumecast.app.server.world import DROUGHTS
from plumecast.base.errors import PlumecastError
from plumecast.base.files import finite
from plumecast.base.values import shown
from plumecast.operators.settings import FAMILIES, PRESETS

LOG = logging.getLogger("plumecast.serve")

_KINDS = {"float": "a number", "int": "a whole number", "string": "a text", "list": "a list",
          "model": "a JSON object"}  # fmt: skip
"""What a value of the wrong kind must be, by the first word of its error in pydantic."""

LAST, ALL = -1, 0
"""A frame and a number of ignitions where a request names none; both are refused as values."""


def absent(what: str, key: str) -> RequestError:
    """The answer to an id that the server does not know."""
    return RequestError(f"there is no {what} {shown(key)}; it may have been dropped", 404)


async def error_answer(request: Request, error: Exception) -> Response:
    """The answer to a request that failed: one sentence, and a code that says whose fault it is."""
    if isinstance(error, RequestValidationError):
        status, text = _first_problem(error)
    elif isinstance(error, PlumecastError):
        status = error.status if isinstance(error, RequestError) else 422
        text = str(error)
    elif isinstance(error, HTTPException):
        status, text = (
            error.status_code,
            f"{error.detail}: {request.method} {shown(request.url.path)}",
        )
    else:
        LOG.error("%s %s failed: %s", request.method, request.url.path, error)
        status, text = 500, "the server failed to answer; its log says more"
    return as_json({"error": " ".join(text.split())}, status)


def _first_problem(error: RequestValidationError) -> tuple[int, str]:
    """Code and sentence for the first of the values that are not as the interface has them."""
    problem: dict[str, Any] = error.errors()[0]
    where, *names = map(str, problem["loc"])
    name, message = ".".join(names), str(problem["msg"])
    match problem["type"]:
        case "missing":
            text = f"the {where} lacks {name}" if name else "the body must be a JSON object"
        case "extra_forbidden":
            text = f"the {where} has the unknown key {shown(name)}"
        case "json_invalid":
            text = f"the body is not JSON: {problem['ctx']['error']}"
        case "value_error":
            text = str(problem["ctx"]["error"])
        case kind:
            word = _KINDS.get(kind.partition("_")[0])
            advice = f"be {word}" if word else message.partition(" should ")[2]
            text = f"{name or 'the body'} is {shown(problem['input'])}; it must {advice or message}"
    return 404 if where == "path" else 400, text


class OneOf:
    """Annotation of a text that is one of some names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)

    def __get_pydantic_core_schema__(self, kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Schema of pydantic, and so of OpenAPI."""
        return core_schema.literal_schema(self.names)


class Body(BaseModel):
    """A JSON object: numbers are numbers and finite, and a key that nothing reads is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _example(value: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [value]})


class Wind(Body):
    """Speed (m/s) and the direction that the wind comes from (degrees)."""

    speed: float = Field(ge=0.0, le=2.0 * WIND_SPEED)
    direction: float = Field(alias="from", ge=-360.0, le=720.0)


class SurfaceWind(Wind):
    """The same at 10 m, where it is weaker."""

    speed: float = Field(ge=0.0, le=WIND_SPEED)


class Weather(Body):
    """The weather of a drought, or two winds with the local hour of ignition."""

    drought: Annotated[str, OneOf(DROUGHTS)] = "medium"
    surface: SurfaceWind | None = None
    aloft: Wind | None = None
    hour: float = Field(12.0, ge=0.0, le=24.0)

    @model_validator(mode="after")
    def _is_whole(self) -> Weather:
        if (self.surface is None) != (self.aloft is None):
            raise ValueError("weather has one wind; give both, surface and aloft")
        if self.surface is None and "drought" not in self.model_fields_set:
            raise ValueError("weather must have a drought, or surface and aloft winds")
        return self

    def wanted(self) -> dict[str, Any]:
        """What `LiveWorld.weather` takes."""
        if self.surface is None or self.aloft is None:
            return {"drought": self.drought}
        winds = {"surface": self.surface, "aloft": self.aloft}
        pairs = {name: (wind.speed, wind.direction) for name, wind in winds.items()}
        return {**pairs, "hour": self.hour, "drought": self.drought}


class NewFire(Body):
    """A point, or a line of points, to ignite; the latest model without one."""

    model_config = _example(
        {
            "ignite": [[75000, 60000]],
            "weather": {"surface": {"speed": 8, "from": 270}, "aloft": {"speed": 15, "from": 270}},
        }
    )
    ignite: list[Annotated[list[float], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, max_length=POINTS
    )
    weather: Weather
    model: str | None = None


class NewPlaces(Body):
    """A table of places; an empty one forgets them."""

    model_config = _example({"csv": "name,x,y\nCamp,75000,60000"})
    csv: str


class Pair(Body):
    """Two fires, and the number of a frame: the last that both have without one."""

    model_config = _example({"a": "id", "b": "id", "k": 2})
    a: str
    b: str
    k: int = Field(default_factory=lambda: LAST, ge=0)


class NewJob(Body):
    """What to train: a preset or a family, on a number of ignitions."""

    model_config = _example({"kind": "train", "preset": "recommended", "ignitions": 12})
    kind: Annotated[str, OneOf(["train"])]
    preset: Annotated[str, OneOf(PRESETS)] | None = None
    family: Annotated[str, OneOf(FAMILIES)] | None = None
    ignitions: int = Field(default_factory=lambda: ALL, ge=FEWEST)

    @model_validator(mode="after")
    def _is_one(self) -> NewJob:
        if self.preset is not None and self.family is not None:
            raise ValueError("a preset has its family; give one of preset and family")
        return self


def as_json(value: Any, status: int = 200) -> Response:
    """A JSON answer; NaN and infinity become null."""
    text = json.dumps(finite(value), allow_nan=False, ensure_ascii=False)
    # A lone surrogate, which JSON can hold and UTF-8 cannot, is escaped.
    body = text.encode("utf-8", errors="backslashreplace")
    return Response(body, status, media_type="application/json")


class Octets(Response):
    """A field (ny, nx), south row first, as float32 little-endian."""

    media_type = "application/octet-stream"

    @classmethod
    def of(cls, field: xr.DataArray, hour: float) -> Octets:
        """The values of a field with units."""
        headers = {
            "X-Shape": ",".join(map(str, field.shape)),
            "X-Units": str(field.attrs.get("units", "")),
            "X-Hour": f"{hour:g}",
        }
        return cls(np.ascontiguousarray(field.values, dtype="<f4").tobytes(), headers=headers)


class Picture(Response):
    """A picture."""

    media_type = "image/png"


class NetCdf(Response):
    """A NetCDF file."""

    media_type = "application/x-netcdf"


class GeoTiff(Response):
    """A GeoTIFF file."""

    media_type = "image/tiff"


class Events(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


def as_events(log: EventLog, request: Request) -> Response:
    """The events of a log; a client that has seen all is told not to come back (204)."""
    seen = request.headers.get("last-event-id", "")
    after = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else -1
    if after >= 0 and log.is_read(after):
        return Response(status_code=204)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Events(log.stream(after), headers=headers)


def document_page(document: dict[str, Any]) -> str:
    """An OpenAPI document as plain HTML without a script."""
    rows = [
        _described(f"{method.upper()} {path}", operation, document["components"]["schemas"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>plumecast: interface</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="/assets/page/api.css">'
        '<p><a href="/">Back to the page</a></p>'
        "<h1>The interface of plumecast serve</h1><p>x and y are metres of the grid. An error is "
        '<code>{"error": "one sentence"}</code>. The same as <a href="/openapi.json">OpenAPI</a>.'
        f"</p>{''.join(rows)}</html>"
    )


def _described(name: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """One method of an address: what it does, what it takes and what it gives."""
    lines = [operation["description"].replace("\n\n", " ")]
    query = [item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"]
    if query:
        lines.append(f"query: {', '.join(query)}")
    if "requestBody" in operation:
        kind = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        schema = schemas[kind.rpartition("/")[2]]
        lines.append(f"body: {', '.join(schema['properties'])}. {schema['description']}")
        lines += [f"for example {json.dumps(item)}" for item in schema.get("examples", ())]
    status, answer = next(iter(operation["responses"].items()))
    about = "" if answer["description"] == "Successful Response" else f", {answer['description']}"
    lines.append(f"Answer: {status} {', '.join(answer.get('content', ()))}{about}")
    return f"<h2><code>{html.escape(name)}</code></h2>" + "".join(
        f"<p>{html.escape(line)}</p>" for line in lines
    )
