"""Fires: light, watch, look at frames and points, download."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from plumecast.app.server.http.answers import as_events, as_file, as_json, as_octets
from plumecast.app.server.http.requests import (
    RequestError,
    absent,
    chosen,
    json_body,
    number,
    only_known,
    path_count,
    points,
    query_number,
)
from plumecast.app.server.live.fires import LAYERS
from plumecast.app.server.live.limits import Limits
from plumecast.app.server.live.pictures import draw_frame, frame_geotiff, frames_netcdf
from plumecast.app.server.live.world import DROUGHTS
from plumecast.app.server.routes.common import fire_of, model_of, page_of, quantity_of
from plumecast.base.values import shown

if TYPE_CHECKING:
    from starlette.requests import Request

_WINDS = ("surface", "aloft", "hour", "drought")


async def light(request: Request) -> Response:
    """Light a fire; its frames are computed while the answer is on its way."""
    body = await json_body(request)
    only_known(body, ("ignite", "weather", "model"))
    page = page_of(request)
    where = points(body.get("ignite"), "ignite", page.limits.points)
    wanted = _weather(body.get("weather"), page.limits)
    key = body.get("model")
    if key is not None and not isinstance(key, str):
        raise RequestError(f"model is {shown(key)}; it must be the id of a model")
    model = model_of(request, key)
    asked = {"ignite": where, "weather": body["weather"], "model": model.id}
    fire_id, fire = await run_in_threadpool(page.fires.light, where, wanted, model, asked)
    cells = page.world.ground.cell
    return as_json(
        {
            "id": fire_id,
            "hours": page.world.hours,
            "model": model.id,
            "ignited": [
                [(column + 0.5) * cells, (row + 0.5) * cells] for row, column in fire.cells
            ],
        },
        201,
    )


def _weather(value: Any, limits: Limits) -> dict[str, Any]:
    """A drought, or two winds with the hour of day."""
    if not isinstance(value, dict):
        raise RequestError("weather must be an object: a drought, or surface and aloft winds")
    only_known(value, _WINDS, "weather")
    if "surface" not in value and "aloft" not in value:
        return {"drought": chosen(value.get("drought"), "drought", DROUGHTS)}
    return {
        "surface": _wind(value.get("surface"), "surface", limits.wind_speed),
        "aloft": _wind(value.get("aloft"), "aloft", 2.0 * limits.wind_speed),
        "hour": number(value.get("hour", 12.0), "hour", 0.0, 24.0),
        "drought": chosen(value.get("drought", "medium"), "drought", DROUGHTS),
    }


def _wind(value: Any, name: str, most: float) -> tuple[float, float]:
    if not isinstance(value, Mapping):
        raise RequestError(f"{name} must be an object with speed (m/s) and from (degrees)")
    only_known(value, ("speed", "from"), name)
    speed = number(value.get("speed"), f"{name}.speed", 0.0, most)
    return speed, number(value.get("from"), f"{name}.from", -360.0, 720.0)


def events(request: Request) -> Response:
    """The frames as they are ready."""
    return as_events(fire_of(request).events, request)


def describe(request: Request) -> Response:
    """What was asked for, and how many frames are ready."""
    fire = fire_of(request)
    return as_json({
        "hours": fire.world.hours,
        "ready": len(fire.frames),
        "finished": fire.events.closed,
        **fire.request,
    })  # fmt: skip


def stop(request: Request) -> Response:
    """Stop and forget a fire."""
    key = str(request.path_params["id"])
    if page_of(request).fires.kept.remove(key) is None:
        raise absent("fire", key)
    return Response(status_code=204)


def _layer(request: Request) -> str:
    return chosen(request.query_params.get("layer", "smoke"), "layer", LAYERS)


def frame(request: Request) -> Response:
    """One layer of a frame as numbers."""
    fire = fire_of(request)
    k = path_count(request, "k", fire.world.checkpoints)
    field = fire.layer(k, _layer(request), quantity_of(request))
    return as_octets(field.values, units=str(field.attrs["units"]), hour=fire.world.hours[k])


def picture(request: Request) -> Response:
    """One layer of a frame as a picture with its legend."""
    fire = fire_of(request)
    k = path_count(request, "k", fire.world.checkpoints)
    layer, quantity = _layer(request), quantity_of(request)
    body = draw_frame(fire, k, layer, quantity, page_of(request).scale)
    name = f"plumecast-{layer}-{fire.world.hours[k]:g}h.png"
    return Response(
        body, media_type="image/png", headers={"Content-Disposition": f'inline; filename="{name}"'}
    )


def perimeter(request: Request) -> Response:
    """Rings around the burned cells of a frame."""
    fire = fire_of(request)
    k = path_count(request, "k", fire.world.checkpoints)
    return as_json({"hour": fire.world.hours[k], "rings": fire.perimeter(k)})


def point(request: Request) -> Response:
    """The time series of the cell with a point."""
    fire = fire_of(request)
    x, y = query_number(request, "x"), query_number(request, "y")
    return as_json(fire.series(*fire.world.cell_of(x, y), quantity_of(request)))


def netcdf(request: Request) -> Response:
    """All frames as CF NetCDF."""
    fire = _finished(request)
    return as_file(frames_netcdf(fire), "plumecast-fire.nc", "application/x-netcdf")


def geotiff(request: Request) -> Response:
    """One layer of a frame as GeoTIFF."""
    fire = fire_of(request)
    k = path_count(request, "k", fire.world.checkpoints)
    layer, quantity = _layer(request), quantity_of(request)
    name = f"plumecast-{layer}-{fire.world.hours[k]:g}h.tif"
    return as_file(frame_geotiff(fire, k, layer, quantity), name, "image/tiff")


def _finished(request: Request) -> Any:
    fire = fire_of(request)
    if not fire.frames:
        raise RequestError("no frame of this fire is ready yet; try again in a moment", 409)
    return fire
