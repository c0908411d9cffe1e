"""Figures for a paper: a map with times side by side and layers below each other; a design."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from plumecast.app.maps.colours import FIRE_COLOUR, FIRST, MISSING, Scale, tick_text
from plumecast.app.maps.ground import Ground, Lines, perimeters, relief
from plumecast.app.maps.layers import Content, Layer, Scene
from plumecast.base.files import atomic_write
from plumecast.compute.regrid import Grid
from plumecast.paper.figures import (
    BLUE,
    GRID,
    INK,
    MUTED,
    ORANGE,
    VERMILION,
    WIDTH,
    hours_text,
    plain,
    styled,
)
from plumecast.sources.rasters.georeference import target_grid
from plumecast.workflows.design.design import CHOSEN, HOLD_OUT, MUST_HAVE, Design

_KM = 1e3  # m

MOST_TIMES = 4
_LABEL = 20  # characters of a line of a label beside a map
_LINES = {"county": (MUTED, 0.3), "state": (INK, 0.5), "country": (INK, 0.8)}
_BAR_SHARE = 0.25  # of the width of a map, at most, for the scale bar


def write_png(content: Content, path: Path, *, all_times: bool = False) -> None:
    """Write the figure of the first scene; at most four times unless all are asked for."""
    with styled(), atomic_write(path) as partial:
        draw_figure(content, all_times=all_times).savefig(partial, dpi=200, format="png")


def figure_png(content: Content) -> bytes:
    """The figure of the first scene as a picture in memory."""
    with styled():
        return _png(draw_figure(content), dpi=160)


def _png(figure: Figure, dpi: int) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi, format="png")
    return picture.getvalue()


def draw_figure(content: Content, *, all_times: bool = False) -> Figure:
    """Maps of every layer (rows) and time (columns), with a colour bar for every scale."""
    scene = content.scenes[0]
    times = _times(scene, all_times=all_times)
    rows = len(content.layers)
    grid = content.grid
    wide = (WIDTH - 0.8) / max(len(times), 2)
    tall = wide * grid.ny * grid.dy / (grid.nx * grid.dx)
    figure = Figure(
        figsize=(wide * len(times) + 1.3, rows * (tall + 0.75) + 1.0), layout="constrained"
    )
    axes = figure.subplots(rows, len(times), squeeze=False, sharex=True, sharey=True)
    for line, layer in enumerate(content.layers):
        for column, time in enumerate(times):
            _draw_map(axes[line, column], content, scene, layer, time)
            if line == 0 and scene.hours is not None:
                axes[line, column].set_title(f"{hours_text(scene.hours[time])} since ignition")
        wrapped = "\n".join(textwrap.wrap(plain(layer.title), _LABEL))
        axes[line, 0].set_ylabel(f"{wrapped}\ny (km)")
    for key in dict.fromkeys(layer.scale for layer in content.layers):
        alike = [line for line, layer in enumerate(content.layers) if layer.scale == key]
        bar = figure.colorbar(
            mappable(content.scales[key]), ax=axes[alike].ravel().tolist(), location="bottom",
            shrink=0.7, aspect=40, pad=0.04,
        )  # fmt: skip
        label_bar(bar, content.scales[key], content.layers[alike[0]])
    for ax in axes[-1]:
        ax.set_xlabel("x (km)")
    _scale_bar(axes[0, 0], content.grid)
    name = f": {plain(scene.name)}" if scene.name else ""
    # A suptitle of maps with equal aspect would lie on the titles of the columns.
    top = 1.0 - 0.3 / figure.get_figheight()
    figure.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, top))
    title = f"{plain(content.title)}{name}"
    above = figure.text(0.5, 0.5 * (1.0 + top), title, fontsize=10, ha="center", va="center")
    above.set_in_layout(False)
    return figure


def _times(scene: Scene, *, all_times: bool) -> list[int]:
    """Numbers of the times that are shown: evenly spaced, with the last."""
    count = 1 if scene.hours is None else scene.hours.size
    if all_times or count <= MOST_TIMES:
        return list(range(count))
    return [round(k * count / MOST_TIMES) - 1 for k in range(1, MOST_TIMES + 1)]


def _extent(grid: Grid) -> tuple[float, float, float, float]:
    """West, east, south and north edge in km."""
    return (grid.left / _KM, (grid.left + grid.nx * grid.dx) / _KM,
            grid.bottom / _KM, (grid.bottom + grid.ny * grid.dy) / _KM)  # fmt: skip


def _draw_map(ax: Axes, content: Content, scene: Scene, layer: Layer, time: int) -> None:
    extent = _extent(content.grid)
    if content.heights is not None:
        ax.imshow(relief(*content.heights), extent=extent, interpolation="bilinear")
    scale = content.scales[layer.scale]
    levels = scale.levels(scene.fields[layer.name][time])
    ax.imshow(scale.rgba[levels], extent=extent, origin="lower", interpolation="nearest",
              alpha=1.0 if content.heights is None else 0.85)  # fmt: skip
    _draw_borders(ax, content.borders)
    burned = scene.burned
    if burned is not None:
        for ring in perimeters(burned[time], content.grid):
            x, y = ring.T / _KM
            ax.plot(x, y, color="white", linewidth=1.8)
            ax.plot(x, y, color=FIRE_COLOUR, linewidth=0.9)
    ax.set_xlim(extent[0], extent[1])
    ax.set_ylim(extent[2], extent[3])
    ax.set_aspect("equal")
    _draw_places(ax, content)


def _draw_places(ax: Axes, content: Content) -> None:
    if content.places is not None:
        positions = content.places.positions(content.grid) / _KM
        marks = {n: (x, y) for n, (x, y) in zip(content.places.names, positions, strict=True)}
        name_places(ax, marks)


_NAME_SIZE = 7  # points
_LETTER = 0.55  # width of a letter as a share of its size


def name_places(ax: Axes, marks: Mapping[str, tuple[float, float]]) -> None:
    """Mark places (x, y) of finished maps, with their names beside them where there is most room.

    Names keep to the map and off each other as far as four sides of a mark allow.
    """
    halo = [patheffects.withStroke(linewidth=2, foreground="white")]
    (west, east), (south, north) = ax.get_xlim(), ax.get_ylim()
    box = ax.get_window_extent()
    scale = min(box.width / (east - west), box.height / (north - south)) * 72.0 / ax.figure.dpi
    points = {n: ((x - west) * scale, (y - south) * scale) for n, (x, y) in marks.items()}
    taken = [(x - 3.0, y - 3.0, x + 3.0, y + 3.0) for x, y in points.values()]
    frame = (east - west) * scale, (north - south) * scale
    for name, (x, y) in points.items():
        shown = plain(name)
        wide, tall = _LETTER * _NAME_SIZE * len(shown), 1.1 * _NAME_SIZE
        sides = ((4.0, -2.5, "left"), (-4.0, -2.5, "right"), (0.0, 5.0, "center"),
                 (0.0, -10.0, "center"))  # fmt: skip
        boxes = []
        for right, up, align in sides:
            left = x + right - {"left": 0.0, "center": 0.5, "right": 1.0}[align] * wide
            boxes.append((left, y + up, left + wide, y + up + tall))
        best = min(range(len(sides)), key=lambda k: _crowding(boxes[k], taken, frame))
        taken.append(boxes[best])
        right, up, align = sides[best]
        ax.plot(*marks[name], "o", color=INK, markeredgecolor="white", markersize=4)
        label = ax.annotate(
            shown, marks[name], xytext=(right, up), textcoords="offset points",
            fontsize=_NAME_SIZE, ha=align, color=INK, path_effects=halo,
        )  # fmt: skip
        label.set_in_layout(False)  # or the maps shrink to make room for it


Box = tuple[float, float, float, float]
"""West, south, east and north, in points."""


def _crowding(name: Box, taken: Sequence[Box], frame: tuple[float, float]) -> float:
    """Area of a name that lies on others, or outside of the map."""
    west, south, east, north = name
    inside = max(0.0, min(east, frame[0]) - max(west, 0.0)) * max(
        0.0, min(north, frame[1]) - max(south, 0.0)
    )
    lost = (east - west) * (north - south) - inside
    return 3.0 * lost + sum(
        max(0.0, min(east, other[2]) - max(west, other[0]))
        * max(0.0, min(north, other[3]) - max(south, other[1]))
        for other in taken
    )


def draw_relief(ax: Axes, ground: Ground) -> None:
    """The hillshade below a map, where heights are known."""
    if ground.heights is not None:
        picture = relief(ground.heights, ground.grid.dx, ground.grid.dy)
        ax.imshow(picture, extent=_extent(ground.grid), interpolation="bilinear")


def draw_ground(ax: Axes, ground: Ground) -> None:
    """Borders, meridians and parallels with their degrees instead of kilometres, a scale bar."""
    west, east, south, north = _extent(ground.grid)
    _draw_borders(ax, ground.borders)
    for label, line in ground.graticule.items():
        x, y = line.T / _KM
        ax.plot(x, y, color=MUTED, linewidth=0.4, linestyle=(0, (2, 3)))
        if y[0] > north - 0.06 * (north - south) or x[0] > east - 0.1 * (east - west):
            continue  # no room for the degrees
        text = ax.annotate(
            label, (x[0], y[0]), xytext=(2, 2), textcoords="offset points", fontsize=6, color=MUTED
        )
        text.set_in_layout(False)
    ax.set(xlim=(west, east), ylim=(south, north), xlabel="", ylabel="", xticks=[], yticks=[])
    _scale_bar(ax, ground.grid)


def _draw_borders(ax: Axes, borders: Lines) -> None:
    for kind, lines in borders.items():
        colour, width = _LINES[kind]
        for line in lines:
            ax.plot(line[:, 0] / _KM, line[:, 1] / _KM, color=colour, linewidth=width)


def _scale_bar(ax: Axes, grid: Grid) -> None:
    """A bar of a round length in the lower left corner."""
    west, east, south, north = _extent(grid)
    longest = _BAR_SHARE * (east - west)
    power = 10.0 ** np.floor(np.log10(longest))
    length = power * max(k for k in (1.0, 2.0, 5.0) if k * power <= longest)
    x, y = west + 0.04 * (east - west), south + 0.05 * (north - south)
    ax.plot([x, x + length], [y, y], color=INK, linewidth=2, solid_capstyle="butt")
    ax.annotate(f"{length:g} km", (x + length / 2, y), xytext=(0, 3), textcoords="offset points",
                ha="center", fontsize=7)  # fmt: skip


def mappable(scale: Scale) -> ScalarMappable:
    """The colours of a scale along a bar from 0 to 1."""
    colours = ListedColormap((scale.rgba[FIRST:MISSING] / 255.0).tolist())
    return ScalarMappable(Normalize(0.0, 1.0), colours)


def label_bar(bar: Colorbar, scale: Scale, layer: Layer) -> None:
    """Numbers and meaning of a colour bar."""
    if layer.kind == "set":
        bar.set_ticks([0.5], labels=["yes"])
    else:
        ticks = scale.ticks()
        bar.set_ticks(
            [scale.position(tick) for tick in ticks], labels=[tick_text(tick) for tick in ticks]
        )
    units = f" ({layer.units})" if layer.units else ""
    bar.set_label(f"{plain(layer.meaning, 90)}{units}", fontsize=8)


def legend_png(content: Content, layer: Layer) -> bytes:
    """The legend of a layer as a picture, for programs that draw none."""
    with styled():
        figure = Figure(figsize=(4.6, 0.9), layout="constrained")
        scale = content.scales[layer.scale]
        bar = figure.colorbar(mappable(scale), cax=figure.subplots(), orientation="horizontal")
        label_bar(bar, scale, layer)
        return _png(figure, dpi=110)


LOOKS = {CHOSEN: (VERMILION, "o"), MUST_HAVE: (ORANGE, "D"), HOLD_OUT: (BLUE, "s")}
"""Colour and marker of every role."""

_ARROW = 0.06  # of the width of the map, for the mean wind speed of the design


def write_design_png(design: Design, path: Path) -> None:
    """Write the map of a design."""
    with styled(), atomic_write(path) as partial:
        draw_design(design).savefig(partial, dpi=200, format="png")


def draw_design(design: Design) -> Figure:
    """Points where candidates begin; perimeters, ranks and winds of the fires to run."""
    places = design.places
    grid = target_grid(places).grid
    tall = WIDTH * grid.ny * grid.dy / (grid.nx * grid.dx)
    figure = Figure(figsize=(WIDTH, min(max(tall, 3.0), 9.0) + 0.8), layout="constrained")
    ax = figure.subplots()
    x, y = (places[f"ignition_{axis}"].values / _KM for axis in "xy")
    ax.plot(x, y, ".", color=GRID, markeredgecolor="#9aa5ad", label=f"candidates ({x.size})")
    rising = bool(places["y"].values[-1] > places["y"].values[0])
    for number, run in enumerate(design.runs):
        burned = places["burned"].values[number]
        for ring in perimeters(burned if rising else burned[::-1], grid):
            ax.plot(*ring.T / _KM, color=LOOKS[run.role][0], linewidth=0.8, alpha=0.7)
    _draw_winds(ax, design, grid)
    for role, (colour, marker) in LOOKS.items():
        runs = [run for run in design.runs if run.role == role]
        if runs:
            ax.plot(
                [run.x / _KM for run in runs], [run.y / _KM for run in runs], marker, color=colour,
                markeredgecolor="white", markersize=6, label=f"{role} ({len(runs)})",
            )  # fmt: skip
        for run in runs:
            ax.annotate(
                plain(str(run.rank)), (run.x / _KM, run.y / _KM), xytext=(4, 3),
                textcoords="offset points", fontsize=8, fontweight="bold", color=INK,
            )  # fmt: skip
    west, east, south, north = _extent(grid)
    ax.set(xlim=(west, east), ylim=(south, north), xlabel="x (km)", ylabel="y (km)")
    ax.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=4)
    arrows = "" if design.runs[0].wind_speed is None else "; arrows: mean wind"
    ax.set_title(f"Fires to run, in order ({design.method}); lines: perimeters{arrows}")
    return figure


def _draw_winds(ax: Axes, design: Design, grid: Grid) -> None:
    """Arrows from the ignitions along their mean winds, longer for stronger ones."""
    windy = [run for run in design.runs if run.wind_speed is not None]
    speeds = np.array([run.wind_speed for run in windy], dtype=np.float64)
    if not windy or not speeds.max() > 0.0:
        return
    longest = _ARROW * grid.nx * grid.dx / _KM / speeds.mean()
    for run, speed in zip(windy, speeds, strict=True):
        angle, x, y = np.deg2rad(run.wind_from_direction or 0.0), run.x / _KM, run.y / _KM
        end = x - longest * speed * np.sin(angle), y - longest * speed * np.cos(angle)
        look = {"arrowstyle": "->", "color": INK, "linewidth": 0.9}
        ax.annotate("", end, xytext=(x, y), arrowprops=look)
