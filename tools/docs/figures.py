"""Draw the figures of docs/explanation/simulator.md into docs/figures/.

python tools/docs/figures.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.figure import Figure

from plumecast.paper.figures import COLOURS, FIRE_COLOUR, save_figure
from plumecast.physics.fuels import FUEL_CODES
from plumecast.simulator.atmosphere import steering
from plumecast.simulator.fire import simulate_fire
from plumecast.simulator.front import arrival_times
from plumecast.simulator.landscape import Landscape, ignition_mask, synthetic_landscape
from plumecast.simulator.weather import SCENARIOS, weather

OUT = Path(__file__).parents[2] / "docs" / "figures"
SEED = 0
HOURS = 60.0
FUEL_GROUPS = {
    "NB": "#bdbdbd", "GR": "#f0e442", "GS": "#e69f00", "SH": "#d55e00", "TU": "#009e73",
    "TL": "#0072b2", "SB": "#56b4e9",
}  # fmt: skip


def kilometres(landscape: Landscape) -> tuple[float, float, float, float]:
    ny, nx = landscape.fuel.shape
    return 0.0, nx * landscape.cell / 1e3, 0.0, ny * landscape.cell / 1e3


def draw_landscape(landscape: Landscape) -> Figure:
    figure = Figure(figsize=(9.0, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    extent = kilometres(landscape)
    # The scale begins far below the valley floor, where this map turns from water to land.
    image = left.imshow(
        landscape.elevation, origin="lower", extent=extent, cmap="gist_earth", vmin=1000.0
    )
    left.contour(ignition_mask(landscape), [0.5], colors="k", linewidths=0.4, extent=extent)
    figure.colorbar(image, ax=left, label="elevation (m)", shrink=0.85)
    left.set_title("terrain; ignitions are drawn within the lines", fontsize=10)
    group = np.zeros(256, dtype=int)
    for name, code in FUEL_CODES.items():
        group[code] = list(FUEL_GROUPS).index(name[:2])
    image = right.imshow(
        group[landscape.fuel], origin="lower", extent=extent, interpolation="nearest",
        cmap=ListedColormap(list(FUEL_GROUPS.values())),
        norm=BoundaryNorm(np.arange(len(FUEL_GROUPS) + 1) - 0.5, len(FUEL_GROUPS)),
    )  # fmt: skip
    bar = figure.colorbar(image, ax=right, shrink=0.85, ticks=range(len(FUEL_GROUPS)))
    bar.ax.set_yticklabels(list(FUEL_GROUPS))
    right.set_title("fuels (Scott & Burgan groups)", fontsize=10)
    left.set_ylabel("y (km)")
    for ax in (left, right):
        ax.set_xlabel("x (km)")
    return figure


def draw_arrival(landscape: Landscape, ignition: tuple[int, int]) -> Figure:
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    axes = figure.subplots(1, len(SCENARIOS), sharey=True)
    local = steering(landscape.elevation, landscape.cell).astype(np.float32)
    for ax, drought in zip(axes, SCENARIOS, strict=True):
        series = weather(drought, seed=SEED, hours=HOURS)
        arrival = arrival_times(
            landscape, series.moisture, series.hours, series.wind_u, series.wind_v,
            steering=local, ignition=ignition, until_hours=HOURS,
        )  # fmt: skip
        shown = np.where(np.isfinite(arrival), arrival, np.nan)
        ax.imshow(
            landscape.elevation,
            origin="lower",
            extent=kilometres(landscape),
            cmap="Greys",
            alpha=0.35,
        )
        image = ax.imshow(
            shown, origin="lower", extent=kilometres(landscape), cmap="viridis", vmin=0, vmax=HOURS
        )
        ax.set_title(f"{drought} drought", fontsize=10)
        ax.set_xlabel("x (km)")
    axes[0].set_ylabel("y (km)")
    figure.colorbar(image, ax=axes, label="arrival (h)", shrink=0.85)
    return figure


def draw_smoke(landscape: Landscape, ignition: tuple[int, int]) -> Figure:
    chosen = (1, 4, 9)
    figure = Figure(figsize=(10.0, 7.4), layout="constrained")
    axes = figure.subplots(len(SCENARIOS), len(chosen), sharex=True, sharey=True)
    for line, drought in enumerate(SCENARIOS):
        fire = simulate_fire(landscape, weather(drought, seed=SEED, hours=HOURS), ignition, 10)
        for column, k in enumerate(chosen):
            ax, snapshot = axes[line, column], fire.isel(snapshot=k)
            image = ax.pcolormesh(
                fire.x / 1e3, fire.y / 1e3, snapshot.smoke.where(snapshot.smoke > 0.1),
                norm=LogNorm(0.1, 1e3), cmap=COLOURS, rasterized=True,
            )  # fmt: skip
            burned = snapshot.time_since_ignition.values > 0.0
            ax.contour(
                fire.x / 1e3, fire.y / 1e3, burned, [0.5], colors=FIRE_COLOUR, linewidths=0.8
            )
            ax.set_aspect("equal")
            acres = float(snapshot.burned_area)
            ax.set_title(f"{drought}, {float(snapshot.hours):g} h, {acres:,.0f} acres", fontsize=9)
        axes[line, 0].set_ylabel("y (km)")
    for ax in axes[-1]:
        ax.set_xlabel("x (km)")
    figure.colorbar(image, ax=axes, label="cumulative column-mean smoke (µg m⁻³)", shrink=0.6)
    return figure


def main() -> None:
    landscape = synthetic_landscape(SEED)
    candidates = np.flatnonzero(ignition_mask(landscape))
    chosen = np.random.default_rng(3).choice(candidates)
    row, column = divmod(int(chosen), landscape.fuel.shape[1])
    save_figure(draw_landscape(landscape), OUT / "landscape.png")
    save_figure(draw_arrival(landscape, (row, column)), OUT / "arrival.png")
    save_figure(draw_smoke(landscape, (row, column)), OUT / "smoke.png")


if __name__ == "__main__":
    main()
