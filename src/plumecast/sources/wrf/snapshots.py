"""Label the snapshots of a fire: coordinates, units and geographic reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, equal_interval
from plumecast.base.findings import write_findings
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT, TABLE
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.sources.regrid import Grid
from plumecast.sources.wrf.frame import Layout, mean_winds
from plumecast.sources.wrf.map_plane import map_plane
from plumecast.sources.wrf.run import WrfFire


class Labels(NamedTuple):
    """Names of a fire, its ignition and its drought."""

    fire_id: str
    ignition_id: str
    drought: str


def to_dataset(fire: WrfFire, labels: Labels) -> xr.Dataset:
    """The snapshots of a fire; `hours` counts from the earliest arrival of any burned cell.

    The wind is the mean over the burning frames so far; runs without U10 and V10 have none.
    """
    run, frames, findings = fire
    ignition = min(frame.earliest for frame in frames)
    seconds = np.array([frame.summary.seconds for frame in frames])
    cells = np.array([frame.summary.burned_cells for frame in frames])
    columns = {
        **{name: np.full(len(frames), label) for name, label in labels._asdict().items()},
        "hours": np.maximum(seconds - ignition, 0.0) / 3600.0,
        "burned_area": cells * run.layout.fire_cell_acres,
        "is_final": np.arange(len(frames)) == len(frames) - 1,
    }
    wind = mean_winds([frame.wind for frame in frames])
    if wind is not None:
        columns["wind_speed"], columns["wind_from_direction"] = wind
    place = georeference(run.layout, run.attributes, run.latlon)
    mapping = {"grid_mapping": "crs"} if "crs" in place else {}
    fields = {FIRE: [frame.age for frame in frames], SMOKE: [frame.smoke for frame in frames]}
    interval = equal_interval((np.diff([kept.seconds for kept in run.kept]) / 3600.0).tolist())
    made = xr.Dataset(
        {
            name: ((SNAPSHOT, "y", "x"), np.stack(values), {**TABLE[name].attrs, **mapping})
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
            "settings": json.dumps({**asdict(run.options), "smoke_unit": run.unit}),
            "smoke_floor": run.options.floor,
            "quality": write_findings(findings),
        },
    )
    if interval is not None:
        made[SMOKE].attrs[INTERVAL] = interval
    return made


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
