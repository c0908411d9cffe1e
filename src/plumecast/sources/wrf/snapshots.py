"""Label the snapshots of a fire: coordinates, units and geographic reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DEPTH, DOSE_ERROR, FRAME_WEIGHTS, INTERVAL
from plumecast.base.integrity import write_findings
from plumecast.base.names import (
    DOSE_SCALE,
    FIRE,
    GROUND,
    HEIGHT,
    IGNITION_TIME,
    LEVEL,
    LEVELS,
    SMOKE,
    SNAPSHOT,
    SURFACE_SMOKE,
    TABLE,
    WEATHER,
    WEATHER_HOUR,
)
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.compute.dose import dose_error, running_dose, stored_dose
from plumecast.compute.regrid import Grid
from plumecast.data.assembly import PER_SNAPSHOT, block_parts, burned_shares, with_burned_shares
from plumecast.sources.wrf.checks import SMOKE_SCHEME, smoke_scheme
from plumecast.sources.wrf.frame import Layout, map_plane, mean_winds
from plumecast.sources.wrf.run import WrfFire
from plumecast.weather.profile import SURFACE, mean_wind


class FireLabels(NamedTuple):
    """Names of a fire, its ignition and its drought."""

    fire_id: str
    ignition_id: str
    drought: str


def to_dataset(fire: WrfFire, labels: FireLabels) -> xr.Dataset:
    """The snapshots of a fire; `hours` counts from the earliest arrival of any burned cell.

    The mean wind is that of U10 and V10 over the burning frames so far; without them, that of the
    hourly weather. Runs without any wind have neither.
    """
    run, frames, weather = fire.run, fire.frames, fire.weather
    seconds = np.array([frame.summary.seconds for frame in frames])
    hours = np.maximum(seconds - fire.ignition, 0.0) / 3600.0
    cells = np.array([frame.summary.burned_cells for frame in frames])
    columns = {
        **{name: np.full(len(frames), label) for name, label in labels._asdict().items()},
        "hours": hours,
        "burned_area": cells * run.layout.fire_cell_acres,
        "is_final": np.arange(len(frames)) == len(frames) - 1,
        IGNITION_TIME: np.full(len(frames), _ignition_time(fire)),
    }
    columns[DOSE_SCALE], error = _dose(fire, hours)
    wind = mean_winds([frame.wind for frame in frames])
    if wind is None and weather is not None:
        u, v = (weather[name].sel({HEIGHT: SURFACE}).values for name in ("wind_u", "wind_v"))
        wind = mean_wind(weather[WEATHER_HOUR].values, u, v, hours)
    if wind is not None:
        columns["wind_speed"], columns["wind_from_direction"] = wind
    place = georeference(run.layout, run.attributes, run.latlon)
    mapping = {"grid_mapping": "crs"} if "crs" in place else {}
    outputs = [SMOKE, *frames[0].further]
    fields = {FIRE: [frame.age for frame in frames], SMOKE: [frame.smoke for frame in frames]}
    fields |= {name: [frame.further[name] for frame in frames] for name in outputs[1:]}
    made = xr.Dataset(
        {
            name: ((SNAPSHOT, "y", "x"), np.stack(values), {**_attributes(name), **mapping})
            for name, values in fields.items()
        },
        coords={
            **{name: (SNAPSHOT, values, TABLE[name].attrs) for name, values in columns.items()},
            **place,
        },
        attrs={
            "Conventions": "CF-1.11",
            "source": str(run.attributes.get("TITLE", "WRF")).strip(),
            "plumecast_version": __version__,
            "settings": json.dumps(
                {**asdict(run.options), "smoke_unit": run.units[run.options.smoke]}
            ),
            "smoke_floor": run.options.floor,
            "quality": write_findings(fire.findings),
        },
    )
    if run.interval is not None:
        for name in outputs:
            made[name].attrs[INTERVAL] = run.interval
            if not run.is_even:
                made[name].attrs[FRAME_WEIGHTS] = "hours since the frame before / interval"
    made[SMOKE].attrs[DOSE_ERROR] = error
    made[SMOKE].attrs[DEPTH] = round(float(np.mean([frame.summary.depth for frame in frames])), 1)
    if run.fuel is not None:
        entry = GROUND[0]
        made[entry.name] = (entry.dims, run.fuel, {**entry.attrs, **mapping})
    scheme = smoke_scheme(run.attributes)
    made = made if scheme is None else made.assign_attrs({SMOKE_SCHEME: scheme})
    arrival = np.maximum(fire.last.arrival.astype(np.float64) - fire.ignition, 0.0) / 3600.0
    parts = block_parts(fire.last.burned, run.layout.refine_y, run.layout.refine_x)
    shares = burned_shares(
        arrival, parts, hours, most=PER_SNAPSHOT, aggregate=run.options.aggregate
    )
    made = with_burned_shares(made, shares)
    return made if weather is None else _with_weather(made, weather)


def _dose(fire: WrfFire, at: Array) -> tuple[Array, float]:
    """`dose_scale` of the snapshots at these hours, and the relative error of the last dose.

    The scale is the dose over all frames relative to that which the sums of the snapshots give.
    """
    burning = [(seconds, total) for seconds, total in fire.totals if seconds > fire.ignition]
    hours = [(seconds - fire.ignition) / 3600.0 for seconds, _ in burning]
    totals = [total for _, total in burning]
    exact = dict(zip(hours, running_dose(hours, totals), strict=True))
    error = round(dose_error(hours, totals), 4)
    if fire.run.interval is None:
        return np.ones(at.size), error
    sums = np.array([frame.smoke.sum(dtype=np.float64) for frame in fire.frames])[:, None]
    by_sums = stored_dose(sums, np.zeros(at.size), at, fire.run.interval)[:, 0]
    scale = [
        exact[hour] / dose if dose > 0.0 and hour in exact else 1.0
        for hour, dose in zip(at.tolist(), by_sums.tolist(), strict=True)
    ]
    return np.array(scale), error


def _ignition_time(fire: WrfFire) -> str:
    """Time of ignition as ISO 8601 in UTC; empty for runs without a date."""
    start = np.datetime64(fire.run.start.replace("_", "T"), "s")
    if start < np.datetime64("1900-01-01"):
        return ""
    return f"{start + np.timedelta64(round(fire.ignition), 's')}Z"


def _attributes(name: str) -> dict[str, str]:
    """The attributes of a field; those of further outputs say where the concentration is."""
    if name in (FIRE, SMOKE):
        return TABLE[name].attrs
    lowest = name.startswith(SURFACE_SMOKE)
    tracer = name.removeprefix(SURFACE_SMOKE if lowest else SMOKE).removeprefix("_")
    level = LEVELS[lowest]
    where = f"in the {level}" if lowest else f"({level})"
    return {
        "units": str(TABLE[SMOKE].units),
        "long_name": f"cumulative {tracer or 'smoke'} concentration {where}",
        LEVEL: level,
        "comment": f"sum over the checkpoints up to the hour of the snapshot, as {SMOKE}: not the "
        "concentration at one time, and not a mean over time",
    }


def _with_weather(fire: xr.Dataset, weather: xr.Dataset) -> xr.Dataset:
    """Snapshots with the weather of their fire, the same for each."""
    count = fire.sizes[SNAPSHOT]
    variables = {
        entry.name: (
            entry.dims,
            np.broadcast_to(
                weather[entry.name].values.astype(np.float32), (count, *weather[entry.name].shape)
            ),
            weather[entry.name].attrs,
        )
        for entry in WEATHER
    }
    axes = {name: weather[name].variable for name in (WEATHER_HOUR, HEIGHT)}
    kept = {key: weather.attrs[key] for key in ("weather_kind", "weather_comment")}
    return fire.assign_coords(axes).assign(variables).assign_attrs(kept)


def georeference(
    layout: Layout, attributes: Mapping[str, Any], latlon: tuple[Array, Array] | None
) -> dict[str, Any]:
    """Coordinates x, y (cell centres, m) and, for real domains, lat, lon and the grid mapping.

    For idealised domains, and projections without a plane in metres, the corner is x = y = 0.
    """
    out: dict[str, Any] = {}
    left = bottom = 0.0
    if latlon is not None:
        lat, lon = latlon
        mapping, (x, y) = map_plane(attributes, float(lat[0, 0]), float(lon[0, 0]))
        out = {"lat": (("y", "x"), lat, TABLE["lat"].attrs)}
        out["lon"] = (("y", "x"), lon, TABLE["lon"].attrs)
        if mapping:
            left, bottom = x - layout.dx / 2, y - layout.dy / 2
            out["crs"] = ((), 0, mapping)
    grid = Grid(left, bottom, layout.dx, layout.dy, layout.nx, layout.ny)
    out["y"] = ("y", grid.y, TABLE["y"].attrs)
    out["x"] = ("x", grid.x, TABLE["x"].attrs)
    return out
