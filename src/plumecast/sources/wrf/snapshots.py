"""A fire that was read → snapshots in the contract, with their place on Earth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT, TABLE
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.sources.regrid import Grid
from plumecast.sources.wrf.frame import Layout
from plumecast.sources.wrf.map_plane import map_plane
from plumecast.sources.wrf.run import Fire


class Labels(NamedTuple):
    """What a fire is called."""

    fire_id: str
    ignition_id: str
    drought: str


def to_dataset(fire: Fire, labels: Labels) -> xr.Dataset:
    """The snapshots of a fire; `hours` counts from the earliest arrival of any burned cell."""
    run, rows, findings = fire
    ignition = min(row.earliest for row in rows)
    seconds = np.array([row.summary.seconds for row in rows])
    cells = np.array([row.summary.burned_cells for row in rows])
    columns = {
        **{name: np.full(len(rows), label) for name, label in labels._asdict().items()},
        "hours": np.maximum(seconds - ignition, 0.0) / 3600.0,
        "burned_area": cells * run.layout.fire_cell_acres,
        "is_final": np.arange(len(rows)) == len(rows) - 1,
    }
    place = georeference(run.layout, run.attributes, run.latlon)
    mapping = {"grid_mapping": "crs"} if "crs" in place else {}
    fields = {FIRE: [row.age for row in rows], SMOKE: [row.smoke for row in rows]}
    return xr.Dataset(
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
            "quality": " | ".join(map(str, findings)) or "passed",
        },
    )


def georeference(
    layout: Layout, attributes: Mapping[str, Any], latlon: tuple[Array, Array] | None
) -> dict[str, Any]:
    """Coordinates x, y (cell centres, m) and, for real domains, lat, lon and the grid mapping.

    Idealised domains, and projections without a plane in metres, have their corner at x = y = 0.
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
