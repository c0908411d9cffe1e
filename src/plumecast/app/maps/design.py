"""Draw a design: all candidate ignitions, and the fires to run with their ranks and winds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumecast.app.drawing.perimeter import outline
from plumecast.base.files import atomic_write
from plumecast.compute.regrid import Grid
from plumecast.sources.rasters.georeference import target_grid
from plumecast.studies.figures.style import BLUE, GRID, INK, ORANGE, VERMILION, WIDTH, plain, styled
from plumecast.workflows.design.design import CHOSEN, HOLD_OUT, MUST_HAVE, Design, Run

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
    x, y = (places[f"ignition_{axis}"].values / 1e3 for axis in "xy")
    ax.plot(x, y, ".", color=GRID, markeredgecolor="#9aa5ad", label=f"candidates ({x.size})")
    rising = bool(places["y"].values[-1] > places["y"].values[0])
    for number, run in enumerate(design.runs):
        burned = places["burned"].values[number]
        _draw_perimeter(ax, burned if rising else burned[::-1], grid, LOOKS[run.role][0])
    _draw_winds(ax, design, grid)
    for role, (colour, marker) in LOOKS.items():
        runs = [run for run in design.runs if run.role == role]
        if runs:
            _draw_points(ax, runs, colour, marker, f"{role} ({len(runs)})")
    ax.set_xlim(grid.left / 1e3, (grid.left + grid.nx * grid.dx) / 1e3)
    ax.set_ylim(grid.bottom / 1e3, (grid.bottom + grid.ny * grid.dy) / 1e3)
    ax.set_aspect("equal")
    ax.set_xlabel("x (km)")
    ax.set_ylabel("y (km)")
    figure.legend(loc="outside lower center", ncols=4)
    arrows = "" if design.runs[0].wind_speed is None else "; arrows: mean wind"
    ax.set_title(f"Fires to run, in order ({design.method}); lines: perimeters{arrows}")
    return figure


def _draw_perimeter(ax: Axes, burned: np.ndarray, grid: Grid, colour: str) -> None:
    for ring in outline(burned):
        corners = np.array([*ring, ring[0]], dtype=np.float64)
        x = (grid.left + corners[:, 0] * grid.dx) / 1e3
        y = (grid.bottom + corners[:, 1] * grid.dy) / 1e3
        ax.plot(x, y, color=colour, linewidth=0.8, alpha=0.7)


def _draw_points(ax: Axes, runs: list[Run], colour: str, marker: str, label: str) -> None:
    x, y = [run.x / 1e3 for run in runs], [run.y / 1e3 for run in runs]
    ax.plot(x, y, marker, color=colour, markeredgecolor="white", markersize=6, label=label)
    for run in runs:
        ax.annotate(
            plain(str(run.rank)), (run.x / 1e3, run.y / 1e3), xytext=(4, 3),
            textcoords="offset points", fontsize=8, fontweight="bold", color=INK,
        )  # fmt: skip


def _draw_winds(ax: Axes, design: Design, grid: Grid) -> None:
    """Arrows from the ignitions along their mean winds, longer for stronger ones."""
    known = [run for run in design.runs if run.wind_speed is not None]
    speeds = np.array([run.wind_speed for run in known], dtype=np.float64)
    if not known or not speeds.max() > 0.0:
        return
    longest = _ARROW * grid.nx * grid.dx / 1e3 / speeds.mean()
    for run, speed in zip(known, speeds, strict=True):
        angle = np.deg2rad(run.wind_from_direction or 0.0)
        ax.annotate(
            "", (run.x / 1e3 - longest * speed * np.sin(angle),
                 run.y / 1e3 - longest * speed * np.cos(angle)),
            xytext=(run.x / 1e3, run.y / 1e3),
            arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 0.9},
        )  # fmt: skip
