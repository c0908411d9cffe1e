"""Draw a map of fires and their smoke: the file that shows what a source has."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.app.maps.ground import GROUND_HEIGHT, Lines, borders, resample
from plumecast.app.maps.layers import LAYERS, PREDICTED, Content, Scene, describe_layers
from plumecast.app.maps.sources import (
    MOST_FIRES,
    as_read,
    beside,
    choose_fires,
    fire_rows,
    fire_scenes,
    open_source,
    statistic_scenes,
    unlabelled,
)
from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError, require
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.base.paths import check_output
from plumecast.compute.regrid import Grid, grid_from_centres
from plumecast.data.crs import crs_of
from plumecast.scores.predicted_dose import dose_coords
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.sources.places import read_places
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.predict import predict_store

Source = xr.Dataset | str | Path

COVERAGE = 0.9
"""Coverage of the error bars of predicted smoke, where the surrogate is calibrated."""

FORMATS = (".html", ".png", ".kmz")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A map that was written, and what it shows."""

    path: Path
    scenes: tuple[str, ...]  # fires or scenarios
    fires: int  # in the source; 0 for statistics
    layers: tuple[str, ...]  # titles
    notes: tuple[str, ...]  # what a reader should know


@folded_arguments(reading=Reading, renamed={"checkpoint_interval": "interval"})
def draw_map(
    source: Source | Sequence[Source],
    out: str | Path,
    *,
    model: Surrogate | str | Path | None = None,
    fire: str | Sequence[str] = (),
    reading: Reading = AS_STORED,
    layer: str | Sequence[str] = (),
    points: str | Path | None = None,
    dem: str | Path | None = None,
    title: str | None = None,
    ignition_time: str | None = None,
) -> Drawn:
    """Draw a map as one HTML page, as a PNG figure, or as KMZ for GIS programs.

    Parameters
    ----------
    source
        A store, a prediction, ensemble statistics or a comparison; or a store and its prediction.
    out
        The map to write; its ending says which: .html, .png or .kmz.
    model
        A surrogate that predicts the smoke of the fires, shown beside the observed.
    fire
        Names of the fires. Without any, a page has the largest ones, up to twelve, and a figure
        or KMZ has the largest.
    reading
        Smoke is shown as its `quantity`, the time mean by default. Its `hours` choose times; a
        figure has four times at most unless they are named. Its `interval` is that between the
        checkpoints of a source that does not record it.
    layer
        Names of the fields to show. Without any, a page has all, and a figure or KMZ has smoke.
    points
        Table (CSV) of places.
    dem
        Elevation model for a hillshade.
    title
        Title of the map.
    ignition_time
        ISO 8601, UTC; dates the hours of a KMZ.
    """
    inputs = [
        item for item in (*as_sources(source), model, points, dem) if isinstance(item, str | Path)
    ]
    where = check_output(out, endings=FORMATS, inputs=inputs)
    is_page = where.suffix == ".html"
    fires = [fire] if isinstance(fire, str) else list(fire)
    if not is_page and len(fires) > 1:
        raise PlumecastError(f"{where}: shows one fire; name one, or write .html")
    content, total = map_content(
        source, model=model, fires=fires, most=MOST_FIRES if is_page else 1, reading=reading,
        points=points, dem=dem,
    )  # fmt: skip
    content = content if title is None else replace(content, title=title)
    layers = [layer] if isinstance(layer, str) else list(layer)
    if not layers and not is_page:  # smoke, predicted and difference
        names = [item.name for item in content.layers]
        layers = [name for name in names if name in LAYERS and LAYERS[name].in_figures]
        layers = layers or names[:1]
    content = _chosen(content, layers, tuple(reading.hours))
    # The libraries of a format are imported when it is needed.
    if is_page:
        from plumecast.app.maps.html import write_html

        write_html(content, where)
    elif where.suffix == ".png":
        require("matplotlib", "report", "a figure")
        from plumecast.app.maps.figure import write_png

        write_png(content, where, all_times=bool(reading.hours))
    else:
        require("matplotlib", "report", "the legend of a KMZ")
        from plumecast.app.maps.kmz import write_kmz

        write_kmz(content, where, ignition_time)
    titles = tuple(item.title for item in content.layers)
    shown = tuple(scene.name for scene in content.scenes)
    return Drawn(where, shown, total, titles, tuple(content.notes))


def _chosen(content: Content, layers: Sequence[str], hours: Sequence[float]) -> Content:
    """The content with some of its layers and times; all if none is named."""
    if layers:
        names = [item.name for item in content.layers]
        unknown = [name for name in layers if name not in names]
        if unknown:
            choices = f"choose from {', '.join(names)}"
            raise ArgumentError("layer", unknown[0], choices, problem="is unknown")
        content = replace(content, layers=[content.layer(name) for name in dict.fromkeys(layers)])
    if not hours:
        return content
    return replace(content, scenes=[_at_hours(scene, hours) for scene in content.scenes])


NEAR = 0.01
"""Hours that a time which is asked for may differ from that of a map, which is shown rounded."""


def _at_hours(scene: Scene, hours: Sequence[float]) -> Scene:
    """A scene at some of its hours; raises for one that it does not have."""
    if scene.hours is None:
        raise ArgumentError("hours", hours[0], "the source has no times")
    rows = [int(np.argmin(np.abs(scene.hours - hour))) for hour in hours]
    for hour, row in zip(hours, rows, strict=True):
        if abs(scene.hours[row] - hour) > NEAR:
            has = ", ".join(f"{time:g}" for time in scene.hours)
            raise ArgumentError("hours", hour, f"fire {scene.name} has {has} h")
    fields = {name: field[rows] for name, field in scene.fields.items()}
    return replace(scene, hours=scene.hours[rows], fields=fields)


def as_sources(source: Source | Sequence[Source]) -> list[Source]:
    """One or two sources; raises for another number."""
    sources = [source] if isinstance(source, xr.Dataset | str | Path) else list(source)
    if not 1 <= len(sources) <= 2:
        raise PlumecastError(
            f"{len(sources)} sources; give one, or a store and the prediction of its fires"
        )
    return sources


def map_content(
    source: Source | Sequence[Source],
    *,
    model: Surrogate | str | Path | None = None,
    fires: Sequence[str] = (),
    most: int = MOST_FIRES,
    reading: Reading = AS_STORED,
    points: str | Path | None = None,
    dem: str | Path | None = None,
) -> tuple[Content, int]:
    """What a map of sources shows, and the number of fires in them; `draw_map` says of what.

    Without `fires` these are the largest ones, at most `most`.
    """
    sources = as_sources(source)
    data, *second = [open_source(item) for item in sources]
    if second:  # the one with the fires is the store
        swapped = FIRE not in data and FIRE in second[0]
        data = beside(second[0], data) if swapped else beside(data, second[0])
    name = "the fires" if isinstance(sources[0], xr.Dataset) else Path(sources[0]).name
    notes: list[str] = []
    total = 0
    if SNAPSHOT in data.dims:
        title, total = f"Smoke of {name}", len(set(data["fire_id"].values.tolist()))
        if total == 0:
            raise PlumecastError(f"{name}: no fire to draw; give a source with fires")
        data = fire_rows(data, choose_fires(data, fires, most=most))
        if model is not None:
            data, notes = _with_prediction(data, model)
        elif SMOKE not in data and FIRE in data:
            notes = ["The source has fires without smoke; a model would predict it."]
            title = f"Fires of {name}"
        scenes, attrs = fire_scenes(as_read(data, reading))
    else:
        if fires:
            advice = "the source has no fires, only statistics of them"
            raise ArgumentError("fire", fires[0], advice)
        if model is not None:
            raise PlumecastError("a model needs fires, and the source has only statistics of them")
        title = str(data.attrs.get("title") or f"Smoke of {name}")
        scenes, attrs = statistic_scenes(data)
    layers, scales = describe_layers(scenes, attrs)
    grid, crs = grid_from_centres(data["x"].values, data["y"].values, name), crs_of(data)
    lines: Lines = {}
    if crs is not None and importlib.util.find_spec("pyproj") is None:
        notes = [*notes, "Borders need pyproj; pip install 'plumecast[raster]'."]
    elif crs is not None:
        lines = borders(grid, crs)
    return Content(
        title=title,
        grid=grid,
        crs=crs,
        scenes=scenes,
        layers=layers,
        scales=scales,
        scene_word="Fire" if SNAPSHOT in data.dims else "Scenario",
        places=None if points is None else read_places(points, data),
        heights=_heights(data, grid, dem),
        borders=lines,
        notes=notes,
    ), total  # fmt: skip


def _with_prediction(
    data: xr.Dataset, model: Surrogate | str | Path
) -> tuple[xr.Dataset, list[str]]:
    """Snapshots with their predicted smoke and footprint, and what the surrogate warns of."""
    surrogate = model if isinstance(model, Surrogate) else load_surrogate(model)
    chosen = surrogate.record.thresholds
    notes: list[str] = []
    blocks = predict_store(
        surrogate,
        data,
        threshold=None if chosen is None else chosen.decision,
        interval=None if surrogate.error_bars is None else COVERAGE,
        notify=lambda notice: notes.append(notice.text),
    )
    made = xr.concat(list(blocks), SNAPSHOT)
    if SMOKE in data:
        return beside(data, made), notes
    fields = unlabelled(made)
    if surrogate.outputs.names[0] == SMOKE:
        fields[PREDICTED] = fields.pop(SMOKE)
    return data.assign(fields).assign_coords(dose_coords(made)), notes


def _heights(
    data: xr.Dataset, grid: Grid, dem: str | Path | None
) -> tuple[np.ndarray, float, float] | None:
    """Heights of the ground: of an elevation model, or those that the source has."""
    if dem is not None:
        return resample(dem, grid, crs_of(data))
    if GROUND_HEIGHT not in data or set(data[GROUND_HEIGHT].dims) != {"y", "x"}:
        return None
    heights = data[GROUND_HEIGHT].transpose("y", "x").values.astype(np.float64)
    return heights, grid.dx, grid.dy
