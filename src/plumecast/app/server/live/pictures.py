"""Frames of a fire as files: a picture with its legend, NetCDF, GeoTIFF."""

from __future__ import annotations

import io
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.drawing.palettes import FIRE_COLOUR
from plumecast.app.drawing.scale import MISSING, Scale, even_scale
from plumecast.app.server.live.fires import AMOUNTS, LiveFire
from plumecast.base.extras import require
from plumecast.base.names import SNAPSHOT, shown_units
from plumecast.data.assembly import concat_snapshots
from plumecast.scores.quantities import QUANTITIES, as_quantity, factors_at
from plumecast.workflows.export import export_fields

TITLE = "Smoke of a fire lit on the live page"
HISTORY = "plumecast serve"
ENDS = {"lower": "lower end of the interval of the ", "upper": "upper end of the interval of the "}
"""What the ends of an interval are called, before the name of the quantity."""

_KM = 1.0e-3
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


def draw_frame(fire: LiveFire, k: int, layer: str, quantity: str, scale: Scale) -> bytes:
    """PNG of one layer with axes in km, the perimeter and the legend of its colours."""
    require("matplotlib", "serve", "a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    field = fire.layer(k, layer, quantity)
    if layer == "fire":
        scale = Scale("linear", 0.0, float(fire.world.hours[-1]), "burning")
    elif layer not in AMOUNTS:
        scale = even_scale(0.0, 1.0, "set")
    elif quantity != "mean":
        scale = _times(scale, fire, quantity)
    grid = fire.world.record
    extent = _extent(grid)
    with _drawing:
        figure = Figure(figsize=(8.0, 6.4), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.imshow(scale.rgba[scale.levels(field.values)], origin="lower", extent=extent)
        for ring in fire.perimeter(k):
            x, y = _KM * np.array([*ring, ring[0]]).T
            axes.plot(x, y, color=FIRE_COLOUR, linewidth=1.2)
        axes.set(xlim=extent[:2], ylim=extent[2:], xlabel="x (km)", ylabel="y (km)")
        axes.set_title(f"{_title(layer, quantity)}, {fire.world.hours[k]:g} h after ignition")
        if layer in AMOUNTS or layer == "fire":
            _legend(figure, axes, scale, shown_units(str(field.attrs.get("units", "1"))))
        else:
            patch = Patch(color=scale.rgba[MISSING - 1] / 255.0, label="yes")
            axes.legend(handles=[patch], loc="upper right")
        out = io.BytesIO()
        figure.savefig(out, format="png")
    return out.getvalue()


def _extent(grid: dict[str, Any]) -> tuple[float, float, float, float]:
    """West, east, south and north edge, km."""
    x, y = grid["x0"], grid["y0"]
    width, height = grid["nx"] * grid["dx"], grid["ny"] * grid["dy"]
    return _KM * x, _KM * (x + width), _KM * y, _KM * (y + height)


def _times(scale: Scale, fire: LiveFire, quantity: str) -> Scale:
    """The scale of the time mean in the units of another quantity, at the last hour, as the page.

    It is the same for all times, so that pictures of one fire can be compared.
    """
    hours = np.array([fire.world.hours[-1]])
    mean, other = (factors_at(hours, QUANTITIES[name], fire.world.interval, {})[0]
                   for name in ("mean", quantity))  # fmt: skip
    ratio = float(other / mean)
    return Scale(scale.kind, scale.low * ratio, scale.high * ratio, scale.colours)


def _legend(figure: Any, axes: Any, scale: Scale, label: str) -> None:
    """A colour bar of a scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    norm = (LogNorm if scale.kind == "log" else Normalize)(scale.low, scale.high)
    colours = ListedColormap(scale.rgba[1:MISSING] / 255.0)
    figure.colorbar(
        ScalarMappable(norm, colours),
        ax=axes,
        label=label,
        ticks=scale.ticks(),
        shrink=0.8,
        format="%g",
    )


def _title(layer: str, quantity: str) -> str:
    if layer == "fire":
        return "Time since ignition"
    if layer not in AMOUNTS:
        return {"footprint": "Smoke is present"}.get(layer, f"Smoke is {layer}")
    what = {"mean": "mean smoke", "dose": "smoke dose", "sum": "sum of smoke"}[quantity]
    text = ENDS.get(layer, "") + what
    return text[0].upper() + text[1:]
