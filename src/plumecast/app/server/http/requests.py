"""Checked values of requests: every error is one sentence that names the value."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from plumecast.base.errors import PlumecastError
from plumecast.base.values import shown

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_DIGITS = 9  # of a number in an address


class RequestError(PlumecastError):
    """A request that cannot be answered, with the code of its answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def absent(what: str, key: str) -> RequestError:
    """The answer to an id that the server does not know."""
    return RequestError(f"there is no {what} {shown(key)}; it may have been dropped", 404)


async def json_body(request: Request) -> Mapping[str, Any]:
    """The JSON object of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError("the body must be JSON, with Content-Type: application/json", 415)
    body = await request.body()
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(value, dict):
        raise RequestError(f"the body must be a JSON object, not {type(value).__name__}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def only_known(body: Mapping[str, Any], known: Collection[str], what: str = "the body") -> None:
    """Raise if an object has a key that nothing reads."""
    unknown = [key for key in body if key not in known]
    if unknown:
        raise RequestError(
            f"{what} has the unknown key {shown(unknown[0])}; known are {', '.join(known)}"
        )


def number(value: Any, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number within its range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RequestError(f"{name} is {shown(value)}; it must be a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or not low <= found <= high:
        bounds = f"from {low:g} to {high:g}" if math.isfinite(low + high) else "that is finite"
        raise RequestError(f"{name} is {shown(value)}; it must be a number {bounds}")
    return found


def count(value: Any, name: str, low: int, high: int) -> int:
    """A whole number within its range."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise RequestError(f"{name} is {shown(value)}; it must be a whole number, {low} to {high}")
    return value


def chosen(value: Any, name: str, known: Collection[str]) -> str:
    """One of the known names."""
    if not isinstance(value, str) or value not in known:
        raise RequestError(f"{name} is {shown(value)}; choose from {', '.join(known)}")
    return value


def points(value: Any, name: str, most: int) -> list[tuple[float, float]]:
    """A list of pairs of numbers."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise RequestError(f"{name} must be a list of 1 to {most} points [x, y]")
    found = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise RequestError(f"{name} has {shown(pair)}; a point is [x, y] in metres")
        found.append((number(pair[0], "x"), number(pair[1], "y")))
    return found


def query_number(request: Request, name: str, default: float | None = None) -> float:
    """A finite number of the query."""
    text = request.query_params.get(name)
    if text is None:
        if default is None:
            raise RequestError(f"the query lacks {name}, a number")
        return default
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"{name} is {shown(text)}; it must be a number") from None
    return number(value, name)


def path_count(request: Request, name: str, size: int) -> int:
    """A whole number of the path, below `size`."""
    text = str(request.path_params[name])
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) < size):
        raise RequestError(f"{name} is {shown(text)}; it must be 0 to {size - 1}", 404)
    return int(text)
