"""What a map of a source shows: its fires or statistics with everything drawn around them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.drawing.borders import Lines, borders
from plumecast.app.drawing.content import Content, describe_layers
from plumecast.app.drawing.hillshade import resample
from plumecast.app.drawing.layers import PREDICTED
from plumecast.app.maps.scenes import (
    MOST_FIRES,
    choose_fires,
    fire_rows,
    fire_scenes,
    statistic_scenes,
)
from plumecast.app.maps.sources import as_read, beside, open_source
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.regrid import Grid, grid_from_centres
from plumecast.data.crs import crs_of
from plumecast.scores.predicted_dose import dose_coords
from plumecast.scores.quantities import DEFAULT
from plumecast.sources.places import read_places
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.predict import predict_store

Source = xr.Dataset | str | Path

COVERAGE = 0.9
"""Coverage of the error bars of predicted smoke, where the surrogate is calibrated."""

GROUND_HEIGHT = "surface_altitude"
"""Field of a store with the height of the ground in m, for the hillshade."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is asked for besides the source; as for `draw_map`."""

    model: Surrogate | str | Path | None = None
    fires: tuple[str, ...] = ()
    most: int = MOST_FIRES  # fires, if none is named
    quantity: str = DEFAULT
    interval: float | None = None
    points: str | Path | None = None
    dem: str | Path | None = None


def listed(source: Source | Sequence[Source]) -> list[Source]:
    """One or two sources; raises for another number."""
    sources = [source] if isinstance(source, xr.Dataset | str | Path) else list(source)
    if not 1 <= len(sources) <= 2:
        raise PlumecastError(
            f"{len(sources)} sources; give one, or a store and the prediction of its fires"
        )
    return sources


def map_content(source: Source | Sequence[Source], given: Given) -> tuple[Content, int]:
    """What a map of sources shows, and the number of fires in them."""
    sources = listed(source)
    data = _joined([open_source(item) for item in sources])
    name = "the fires" if isinstance(sources[0], xr.Dataset) else Path(sources[0]).name
    notes: list[str] = []
    total = 0
    if SNAPSHOT in data.dims:
        title, total = f"Smoke of {name}", len(set(data["fire_id"].values.tolist()))
        if total == 0:
            raise PlumecastError(f"{name}: no fire to draw; give a source with fires")
        data = fire_rows(data, choose_fires(data, given.fires, most=given.most))
        if given.model is not None:
            data, notes = _with_prediction(data, given.model)
        elif SMOKE not in data and FIRE in data:
            notes = ["The source has fires without smoke; a model would predict it."]
            title = f"Fires of {name}"
        scenes, attrs = fire_scenes(as_read(data, given.quantity, given.interval))
    else:
        _refuse_for_statistics(given)
        title = str(data.attrs.get("title") or f"Smoke of {name}")
        scenes, attrs = statistic_scenes(data)
    layers, scales = describe_layers(scenes, attrs)
    grid = grid_from_centres(data["x"].values, data["y"].values, name)
    lines, missing = _borders(grid, crs_of(data))
    return Content(
        title=title,
        grid=grid,
        crs=crs_of(data),
        scenes=scenes,
        layers=layers,
        scales=scales,
        scene_word="Fire" if SNAPSHOT in data.dims else "Scenario",
        places=None if given.points is None else read_places(given.points, data),
        heights=_heights(data, grid, given.dem),
        borders=lines,
        notes=(*notes, *missing),
    ), total  # fmt: skip


def _joined(opened: list[xr.Dataset]) -> xr.Dataset:
    """One source, or a store with its prediction; the one with the fires is the store."""
    if len(opened) == 1:
        return opened[0]
    first, second = opened if FIRE in opened[0] or FIRE not in opened[1] else opened[::-1]
    return beside(first, second)


def _refuse_for_statistics(given: Given) -> None:
    if given.fires:
        raise PlumecastError(
            f"fire={given.fires[0]!r}: the source has no fires, only statistics of them"
        )
    if given.model is not None:
        raise PlumecastError("a model needs fires, and the source has only statistics of them")


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
    fields = {
        str(name): (item.dims, item.data, item.attrs) for name, item in made.data_vars.items()
    }
    first = surrogate.outputs.names[0]
    if first == SMOKE:
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


def _borders(grid: Grid, crs: Any) -> tuple[Lines, list[str]]:
    """Borders where the grid has a projection; a note if they cannot be projected."""
    if crs is None:
        return {}, []
    if importlib.util.find_spec("pyproj") is None:
        return {}, ["Borders need pyproj; pip install 'plumecast[raster]'."]
    return borders(grid, crs), []
