"""Fires lit on the page: simulated and predicted in a thread, frame by frame.

Files and pictures are made of their frames, and one fire is compared with another.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.maps.colours import Scale
from plumecast.app.maps.ground import perimeters
from plumecast.app.maps.layers import LAYERS, Content, Scene, describe_layers, with_computed
from plumecast.app.server.kept import EventLog
from plumecast.app.server.models import Model
from plumecast.app.server.world import LiveWorld
from plumecast.base.errors import PlumecastError, require
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.data.assembly import concat_snapshots
from plumecast.data.clock import take_final
from plumecast.impact.compare import Comparing, compare_scenarios
from plumecast.impact.comparison import SCENARIO, Comparison
from plumecast.scores.quantities import QUANTITIES, as_quantity, dose_attributes, factors_at
from plumecast.scores.reading import Reading
from plumecast.simulator.weather import Weather
from plumecast.sources.places import Places
from plumecast.workflows.export import export_fields
from plumecast.workflows.predict import predict_fires

COVERAGE = 0.9
"""Coverage of the error bars on the page."""

FIRST_FRAMES = 1
"""The fire is simulated up to this checkpoint first, so that smoke appears soon."""

LIVE = {layer.live: name for name, layer in LAYERS.items() if layer.live}
"""The fields of a frame by the names of their layers."""

AMOUNTS = [layer for layer, name in LIVE.items() if LAYERS[name].is_sum]


@dataclass
class LiveFire:
    """A fire with the frames that are ready; events tell each."""

    cells: Sequence[tuple[int, int]]
    weather: Weather
    model: Model
    world: LiveWorld
    request: dict[str, Any]
    frames: list[xr.Dataset] = field(default_factory=list)
    events: EventLog = field(default_factory=EventLog)
    stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End the work after the frame that is being made."""
        self.stopped.set()
        self.events.close()

    def run(self) -> None:
        """Simulate and predict; every frame is one event, then `done` or `error`."""
        start = time.perf_counter()
        try:
            for frame in self._make():
                self.frames.append(frame)
                smoke = layer_of(frame, "smoke", "mean", self.world.interval)
                event = {
                    "k": len(self.frames) - 1,
                    "hour": float(frame["hours"].values[0]),
                    "burned_area": float(frame["burned_area"].values[0]),
                    "centre": centre_of_mass(smoke.values, smoke["x"].values, smoke["y"].values),
                    "extrapolates": bool(frame["extrapolates"].values[0]),
                    "seconds": time.perf_counter() - start,
                }
                self.events.add("frame", event)
            if not self.stopped.is_set():
                seconds = time.perf_counter() - start
                self.events.add("done", {"frames": len(self.frames), "seconds": seconds})
        except PlumecastError as error:
            self.events.add("error", {"error": str(error)})
        except MemoryError:
            self.events.add("error", {"error": "the memory of the server is not enough"})
        finally:
            self.events.close()

    def _make(self) -> Iterator[xr.Dataset]:
        """The frames: snapshots with their predicted fields, one at a time."""
        last = self.world.checkpoints
        for upto in sorted({min(FIRST_FRAMES, last), last}):
            burned = self.world.burn(self.cells, self.weather, upto)
            for k in range(len(self.frames), upto):
                if self.stopped.is_set():
                    return
                # The first part of a fire ends before its last frame.
                final = {"is_final": (SNAPSHOT, [k + 1 == last])}
                part = take_final(burned, np.array([k]), history=True)
                yield self.predict(part.assign_coords(final))

    def predict(self, snapshot: xr.Dataset) -> xr.Dataset:
        """A snapshot with its predicted fields."""
        model, coverage = self.model, COVERAGE if self.model.calibrated else None
        made = predict_fires(
            model.surrogate, snapshot, threshold=model.threshold, interval=coverage,
            notify=lambda notice: None,
        )  # fmt: skip
        return made.assign({FIRE: snapshot[FIRE]})

    def frame(self, k: int) -> xr.Dataset:
        """Frame number k; raises if it is not ready."""
        if not 0 <= k < len(self.frames):
            raise PlumecastError(
                f"frame {k} is not ready: {len(self.frames)} of {self.world.checkpoints} frames are"
            )
        return self.frames[k]

    def layer(self, k: int, layer: str, quantity: str) -> xr.DataArray:
        """One layer (y, x) of a frame, from the south; amounts as the quantity asked for."""
        return layer_of(self.frame(k), layer, quantity, self.world.interval)

    def perimeter(self, k: int) -> list[list[tuple[float, float]]]:
        """Rings around the burned cells, x and y in metres."""
        burned = self.layer(k, "fire", "sum").values > 0.0
        return [
            [(float(x), float(y)) for x, y in ring[:-1]]
            for ring in perimeters(burned, self.world.cells)
        ]

    def series(self, row: int, column: int, quantity: str) -> dict[str, Any]:
        """The amounts of one cell in the frames that are ready."""
        frames = list(self.frames)
        series: dict[str, Any] = {"hours": [float(frame["hours"].values[0]) for frame in frames]}
        for layer in AMOUNTS:
            name = "mean" if layer == "smoke" else layer
            if not all(LIVE[layer] in frame for frame in frames):
                series[name] = None
                continue
            fields = [layer_of(frame, layer, quantity, self.world.interval) for frame in frames]
            series[name] = [float(item.values[row, column]) for item in fields]
            series.setdefault("units", fields[0].attrs["units"] if fields else "")
        return series | {"coverage": COVERAGE if self.model.calibrated else None}


def layer_of(frame: xr.Dataset, layer: str, quantity: str, interval: float) -> xr.DataArray:
    """One layer of a snapshot with predicted fields, with units; raises if it has none."""
    name = LIVE[layer]
    fields = frame if name in frame else with_computed(frame)
    if name not in fields:
        raise PlumecastError(
            f"layer {layer} is not there: the model has no "
            + ("error bars" if layer != "footprint" else "thresholds")
            + "; train one with a preset"
        )
    field = fields[name].isel({SNAPSHOT: 0}).sortby(["y", "x"])
    if layer in AMOUNTS:
        hours = frame["hours"].isel({SNAPSHOT: 0})
        field = field.assign_coords(hours=hours).assign_attrs(dose_attributes(frame["smoke"].attrs))
        return as_quantity(field, quantity, checkpoint_interval=interval)
    return field


def centre_of_mass(field: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float] | None:
    """Σ g (x, y) / Σ g of a field (ny, nx); None if it is 0 everywhere."""
    total = float(field.sum())
    if total <= 0.0:
        return None
    return float(field.sum(axis=0) @ x) / total, float(field.sum(axis=1) @ y) / total


# -- What is made of frames: files, a picture, and one fire against another

TITLE = "Smoke of a fire lit on the live page"
HISTORY = "plumecast serve"
ENDS = {"lower": "lower end of the interval of the ", "upper": "upper end of the interval of the "}
"""What the ends of an interval are called, before the name of the quantity."""

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
    last = fire.world.hours[-1]
    if layer in AMOUNTS:  # in units of the quantity at the last hour, for all hours, as the page
        mean, other = (
            factors_at(np.array([last]), QUANTITIES[name], fire.world.interval, {})[0]
            for name in ("mean", quantity)
        )
        low, high = (float(end * other / mean) for end in (mean_scale.low, mean_scale.high))
        scales[layers[0].scale] = replace(mean_scale, low=low, high=high)
    elif layer == "fire":
        scales[layers[0].scale] = Scale("linear", 0.0, float(last), "burning")
    content = Content(TITLE, fire.world.cells, None, [scene], layers, scales)
    with _drawing:
        return figure_png(content)


def compare_fires(
    a: LiveFire, b: LiveFire, k: int, *, quantity: str, places: Places | None = None
) -> Comparison:
    """Fire B against fire A in frame k: scenarios with one fire each."""
    # The frame counts as the end of its fire.
    last = {
        n: fire.frame(k).drop_vars("is_final", errors="ignore") for n, fire in (("A", a), ("B", b))
    }
    reading = Reading(quantity, interval=a.world.interval)
    return compare_scenarios(last, reading, Comparing(paired=False), places=places)


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
    areas = {n: float(fire.frame(k)["burned_area"].values[0]) for n, fire in (("a", a), ("b", b))}
    return {
        "hour": a.world.hours[k],
        "quantity": compared.places.attrs["quantity"],
        "units": compared.places.attrs["units"],
        "burned_area": areas,
        "table": [
            {"place": str(name)} | {column: float(table[column].values[n]) for column in COLUMNS}
            for n, name in enumerate(table["place"].values)
        ],
        "notes": list(compared.notes),
    }
