"""Draw a map of fires and their smoke: the file that shows what a source has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from plumecast.app.drawing.content import Content, Scene
from plumecast.app.drawing.layers import DIFFERENCE, PREDICTED
from plumecast.app.maps.content import Given, Source, listed, map_content
from plumecast.app.maps.scenes import MOST_FIRES
from plumecast.base.errors import PlumecastError, require
from plumecast.base.names import SMOKE
from plumecast.base.paths import check_output
from plumecast.scores.quantities import DEFAULT
from plumecast.surrogate.surrogate import Surrogate

FORMATS = (".html", ".png", ".kmz")
MAIN = (SMOKE, f"{SMOKE}_mean", PREDICTED, DIFFERENCE)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A map that was written, and what it shows."""

    path: Path
    scenes: tuple[str, ...]  # fires or scenarios
    fires: int  # in the source; 0 for statistics
    layers: tuple[str, ...]  # titles
    notes: tuple[str, ...]  # what a reader should know


def draw_map(
    source: Source | Sequence[Source],
    out: str | Path,
    *,
    model: Surrogate | str | Path | None = None,
    fire: str | Sequence[str] = (),
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    layer: str | Sequence[str] = (),
    hours: Sequence[float] = (),
    points: str | Path | None = None,
    dem: str | Path | None = None,
    title: str | None = None,
    ignition_time: str | None = None,
) -> Drawn:
    """Draw a map as one HTML page, as a PNG figure, or as KMZ for GIS programs.

    `source` is a store, a prediction, ensemble statistics or a comparison; two sources are a store
    and its prediction. With a `model` the smoke of the fires is predicted and shown beside the
    observed. `fire` names the fires; without it a page has the largest ones, up to twelve, and a
    figure or KMZ has the largest. Smoke is shown as a `quantity`, for which the interval between
    checkpoints (hours) is that of the source or `checkpoint_interval`. `layer` and `hours` choose
    fields and times; a figure has four times at most unless they are named. `points` is a table of
    places, `dem` an elevation model. `ignition_time` (ISO 8601, UTC) dates the hours of a KMZ.
    """
    inputs = [
        item for item in (*listed(source), model, points, dem) if isinstance(item, str | Path)
    ]
    where = check_output(out, endings=FORMATS, inputs=inputs)
    fires = [fire] if isinstance(fire, str) else list(fire)
    if where.suffix != ".html" and len(fires) > 1:
        raise PlumecastError(f"{where}: shows one fire; name one, or write .html")
    most = MOST_FIRES if where.suffix == ".html" else 1
    given = Given(model, tuple(fires), most, quantity, checkpoint_interval, points, dem)
    content, total = map_content(source, given)
    content = content if title is None else replace(content, title=title)
    layers = [layer] if isinstance(layer, str) else list(layer)
    if not layers and where.suffix != ".html":
        layers = main_layers(content)
    content = _chosen(content, layers, hours)
    _write(content, where, all_times=bool(len(hours)), ignition_time=ignition_time)
    titles = tuple(item.title for item in content.layers)
    names = tuple(scene.name for scene in content.scenes)
    return Drawn(where, names, total, titles, tuple(content.notes))


def _write(content: Content, where: Path, *, all_times: bool, ignition_time: str | None) -> None:
    """Write a format; its libraries are imported when it is needed."""
    if where.suffix == ".html":
        from plumecast.app.maps.html import write_html

        write_html(content, where)
    elif where.suffix == ".png":
        require("matplotlib", "report", "a figure")
        from plumecast.app.maps.figure import write_png

        write_png(content, where, all_times=all_times)
    else:
        require("matplotlib", "report", "the legend of a KMZ")
        from plumecast.app.maps.kmz import write_kmz

        write_kmz(content, where, ignition_time)


def main_layers(content: Content) -> list[str]:
    """Names of the layers of a figure that names none: smoke, predicted and difference."""
    known = [item.name for item in content.layers if item.name in MAIN]
    return known or [content.layers[0].name]


def _chosen(content: Content, layers: Sequence[str], hours: Sequence[float]) -> Content:
    """The content with some of its layers and times; all if none is named."""
    if layers:
        names = [item.name for item in content.layers]
        unknown = [name for name in layers if name not in names]
        if unknown:
            raise PlumecastError(f"layer={unknown[0]!r} is unknown; choose from {', '.join(names)}")
        content = replace(content, layers=[content.layer(name) for name in dict.fromkeys(layers)])
    if not len(hours):
        return content
    return replace(content, scenes=[_at_hours(scene, hours) for scene in content.scenes])


NEAR = 0.01
"""Hours that a time which is asked for may differ from that of a map, which is shown rounded."""


def _at_hours(scene: Scene, hours: Sequence[float]) -> Scene:
    """A scene at some of its hours; raises for one that it does not have."""
    known = np.array([] if scene.hours is None else scene.hours, dtype=np.float64)
    rows = [int(np.argmin(np.abs(known - hour))) if known.size else 0 for hour in hours]
    for hour, row in zip(hours, rows, strict=True):
        if not known.size or abs(known[row] - hour) > NEAR:
            has = ", ".join(f"{own:g}" for own in known)
            whose = f"fire {scene.name} has {has} h" if has else "the source has no times"
            raise PlumecastError(f"hours={hour:g}: {whose}")
    assert scene.hours is not None
    fields = {name: field[rows] for name, field in scene.fields.items()}
    return Scene(scene.name, scene.hours[rows], fields)
