"""What is made of the frames of fires: files, a picture, and one fire against another."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.maps.colours import Scale
from plumecast.app.maps.layers import Content, Scene, describe_layers
from plumecast.app.server.fires import AMOUNTS, LIVE, LiveFire
from plumecast.base.errors import require
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.data.assembly import concat_snapshots
from plumecast.impact.compare import Comparing, compare_scenarios
from plumecast.impact.comparison import SCENARIO, Comparison
from plumecast.scores.quantities import QUANTITIES, as_quantity, factors_at
from plumecast.scores.reading import Reading
from plumecast.sources.places import Places
from plumecast.workflows.export import export_fields

TITLE = "Smoke of a fire lit on the live page"
HISTORY = "plumecast serve"
ENDS = {"lower": "lower end of the interval of the ", "upper": "upper end of the interval of the "}
"""What the ends of an interval are called, before the name of the quantity."""

NAMES = ("A", "B")
"""The scenarios of the page; each is one fire."""

COLUMNS = ("reference_mean", "scenario_mean", "difference")
"""Columns of the table. One fire has no sampling interval, so that the others are unknown."""


_drawing = threading.Lock()  # matplotlib's text is not safe in several threads


def frames_netcdf(fire: LiveFire) -> bytes:
    """All frames that are ready as CF NetCDF; smoke as the paper's sum and as the time mean."""
    frames = concat_snapshots(list(fire.frames))
    alone = frames["smoke"].drop_vars("fire_id")  # each frame by itself, as the page shows it
    mean = as_quantity(alone, "mean", checkpoint_interval=fire.world.interval)
    return _exported(frames.assign(smoke_mean=mean.variable), ".nc")


def frame_geotiff(fire: LiveFire, k: int, layer: str, quantity: str) -> bytes:
    """One layer of a frame as GeoTIFF; in its coordinate system, if it has one."""
    field = fire.layer(k, layer, quantity).expand_dims(SNAPSHOT)
    if layer in ENDS:
        field = field.assign_attrs(long_name=f"{ENDS[layer]}{field.attrs.get('long_name', layer)}")
    labels = {name: fire.frame(k)[name] for name in ("fire_id", "hours")}
    # 'smoke' alone is the name of the sum over checkpoints.
    name = f"{layer}_{quantity}" if layer in AMOUNTS and quantity != "sum" else layer
    return _exported(xr.Dataset({name: field}).assign_coords(labels), ".tif")


def _exported(fields: xr.Dataset, ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fire{ending}"
        export_fields([fields], path, title=TITLE, history=HISTORY)
        return path.read_bytes()


def draw_frame(fire: LiveFire, k: int, layer: str, quantity: str, mean_scale: Scale) -> bytes:
    """PNG of one layer, as `plumecast map` draws it; `mean_scale` has the colours of the time mean.

    Amounts and the time since ignition have the same colours in all frames of a fire.
    """
    require("matplotlib", "serve", "a picture")
    from plumecast.app.maps.figure import figure_png

    field = fire.layer(k, layer, quantity)
    shown = {LIVE[layer]: field, FIRE: fire.layer(k, "fire", "sum")}
    values = {name: item.values[np.newaxis] for name, item in shown.items()}
    scene = Scene("", np.array([fire.world.hours[k]]), values)
    layers, scales = describe_layers([scene], {LIVE[layer]: field.attrs})
    if layer in AMOUNTS:
        scales[layers[0].scale] = _times(mean_scale, fire, quantity)
    elif layer == "fire":
        scales[layers[0].scale] = Scale("linear", 0.0, float(fire.world.hours[-1]), "burning")
    content = Content(TITLE, fire.world.cells, None, [scene], layers, scales)
    with _drawing:
        return figure_png(content)


def _times(scale: Scale, fire: LiveFire, quantity: str) -> Scale:
    """The scale of the time mean in the units of another quantity, at the last hour, as the page.

    It is the same for all times, so that pictures of one fire can be compared.
    """
    hours = np.array([fire.world.hours[-1]])
    mean, other = (factors_at(hours, QUANTITIES[name], fire.world.interval, {})[0]
                   for name in ("mean", quantity))  # fmt: skip
    ratio = float(other / mean)
    return Scale(scale.kind, scale.low * ratio, scale.high * ratio, scale.colours)


def compare_fires(
    a: LiveFire, b: LiveFire, k: int, *, quantity: str, places: Places | None = None
) -> Comparison:
    """Fire B against fire A in frame k: scenarios with one fire each."""
    frames = {  # the frame counts as the end of its fire
        name: fire.frame(k).drop_vars("is_final", errors="ignore")
        for name, fire in zip(NAMES, (a, b), strict=True)
    }
    return compare_scenarios(
        frames,
        Reading(quantity, interval=a.world.interval),
        Comparing(paired=False),
        places=places,
    )


def last_common(a: LiveFire, b: LiveFire) -> int:
    """The last frame that both fires have; −1 if there is none."""
    return min(len(a.frames), len(b.frames)) - 1


def difference(a: LiveFire, b: LiveFire, k: int, quantity: str) -> xr.DataArray:
    """Smoke of fire b minus that of fire a in frame k, from the south-west."""
    maps = compare_fires(a, b, k, quantity=quantity).maps
    assert maps is not None
    return maps["difference"].isel({SCENARIO: 0}).sortby(["y", "x"])


def compare_record(
    a: LiveFire, b: LiveFire, k: int, *, quantity: str, places: Places | None = None
) -> dict[str, Any]:
    """The table of the places and of the grid in frame k, with what its numbers are."""
    compared = compare_fires(a, b, k, quantity=quantity, places=places)
    table = compared.places.isel({SCENARIO: 0})
    rows = [
        {"place": str(name)} | {column: float(table[column].values[n]) for column in COLUMNS}
        for n, name in enumerate(table["place"].values)
    ]
    return {
        "hour": a.world.hours[k],
        "quantity": compared.places.attrs["quantity"],
        "units": compared.places.attrs["units"],
        "burned_area": {
            name: float(fire.frame(k)["burned_area"].values[0])
            for name, fire in (("a", a), ("b", b))
        },
        "table": rows,
        "notes": list(compared.notes),
    }
