"""Maps of smoke: observed beside predicted, with the fire that made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import AbstractPathEffect

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.scores.quantities import DEFAULT, quantity_factors

COLOURS = "magma_r"
"""Perceptually uniform and readable with any colour vision; nearly white where smoke is thin."""

FIRE_COLOUR = "#d7301f"
DECADES = 4  # span of the colour scale below its largest value
SUM, MEAN = "smoke, sum over checkpoints (µg m⁻³)", "time-mean smoke since ignition (µg m⁻³)"


@dataclass(frozen=True, slots=True)
class Colours:
    """What colours mean: a multiple of the sums for every snapshot, and its label."""

    factors: np.ndarray  # (M,)
    label: str

    @property
    def is_mean(self) -> bool:
        """Whether colours are the time mean."""
        return self.label == MEAN


def sum_colours(snapshots: xr.Dataset) -> Colours:
    """Colours of the sum over checkpoints, as in the paper."""
    return Colours(np.ones(snapshots.sizes[SNAPSHOT]), SUM)


def mean_colours(snapshots: xr.Dataset) -> Colours:
    """Colours of the time mean; of the sum if interval or hours are not recorded."""
    smoke = snapshots[SMOKE]
    if recorded_interval(smoke.attrs) is None or "hours" not in snapshots.coords:
        return sum_colours(snapshots)
    return Colours(quantity_factors(snapshots, smoke, DEFAULT), MEAN)


def percentile_rows(scores: xr.DataArray, percentiles: Sequence[int]) -> dict[int, int]:
    """For each percentile, the row at that rank of the scores. No row is named twice.

    Undefined scores are left out unless all are undefined. With fewer rows than percentiles the
    percentiles that would repeat a row are left out.
    """
    order = np.argsort(scores.values, kind="stable")  # NaN last
    known = int(np.sum(~np.isnan(scores.values))) or order.size
    rows: dict[int, int] = {}
    for percentile in percentiles:
        row = int(order[round(percentile / 100.0 * (known - 1))])
        if row not in rows.values():
            rows[percentile] = row
    return rows


def hours_text(hours: float) -> str:
    """Hours rounded for a label: 0.8399989 → "0.84 h"."""
    return f"{round(float(hours), 2):g} h"


def compare_maps(
    snapshots: xr.Dataset,
    predictions: dict[str, xr.DataArray],
    rows: Sequence[int],
    titles: Sequence[str],
    threshold: float,
    width: float | None = None,
    colours: Colours | None = None,
) -> Figure:
    """One column per chosen snapshot: observed on top, each prediction below.

    All maps have one colour scale, so that amounts can be compared between columns too. Smoke below
    `threshold`, a value of the sum, is white; the outline is the burned area. `width` is in inches;
    `colours` are of the sum unless given.
    """
    colours = sum_colours(snapshots) if colours is None else colours
    fields = {"observed": snapshots[SMOKE], **predictions}
    wide = 2.6 * len(rows) + 0.8 if width is None else width
    tall = (wide - 0.8) / len(rows) * 0.88 * len(fields) + (0.5 if width is None else 1.0)
    figure = Figure(figsize=(wide, tall), layout="constrained")
    axes = figure.subplots(len(fields), len(rows), squeeze=False, sharex=True, sharey=True)
    factors = xr.DataArray(colours.factors[list(rows)], dims=SNAPSHOT)
    lowest = threshold * float(factors.min())
    norm = smoke_scale(snapshots[SMOKE].isel({SNAPSHOT: list(rows)}) * factors, lowest)
    for column, (row, title) in enumerate(zip(rows, titles, strict=True)):
        for line, (name, field) in enumerate(fields.items()):
            shown = field.isel({SNAPSHOT: row})
            ax = axes[line, column]
            seen = shown.where(shown > threshold) * colours.factors[row]
            image = draw_smoke(ax, seen, norm)
            draw_outline(ax, snapshots[FIRE].isel({SNAPSHOT: row}))
            if column == 0:
                ax.set_ylabel(f"{name}\ny (km)")
        axes[0, column].set_title(title, fontsize=8, fontweight="normal")
        axes[-1, column].set_xlabel("x (km)")
    colour_bar(figure, image, axes, lowest, colours.label)
    return figure


def compare_one(
    snapshots: xr.Dataset, predicted: xr.DataArray, row: int, threshold: float, colours: Colours
) -> Figure:
    """Observed and predicted smoke of one snapshot side by side, large enough for a phone.

    Smoke below `threshold`, a value of the sum, is white.
    """
    ratio = snapshots.sizes["y"] / snapshots.sizes["x"]
    # A panel is about 2.2 inches wide; titles, labels and the colour bar need the rest.
    figure = Figure(figsize=(5.2, 2.2 * ratio + 1.6), layout=ConstrainedLayoutEngine(h_pad=0.1))
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    factor = float(colours.factors[row])
    norm = smoke_scale(snapshots[SMOKE].isel({SNAPSHOT: [row]}) * factor, threshold * factor)
    fields = {"observed": snapshots[SMOKE], "predicted": predicted}
    for ax, (name, field) in zip(axes, fields.items(), strict=True):
        shown = field.isel({SNAPSHOT: row})
        image = draw_smoke(ax, shown.where(shown > threshold) * factor, norm)
        draw_outline(ax, snapshots[FIRE].isel({SNAPSHOT: row}))
        ax.set(title=name, xlabel="x (km)")
        ax.locator_params(nbins=4)
    axes[0].set_ylabel("y (km)")
    colour_bar(figure, image, axes, threshold * factor, colours.label)
    return figure


def smoke_scale(observed: xr.DataArray, threshold: float) -> LogNorm:
    """Logarithmic colours up to the largest observed smoke, over at most DECADES."""
    top = max(float(observed.max()), 10.0 * threshold)
    return LogNorm(max(threshold, top * 10.0**-DECADES), top)


def colour_bar(
    figure: Figure, image: QuadMesh, axes: np.ndarray, threshold: float, label: str = SUM
) -> None:
    """One bar for all maps; pointed where smoke may lie beyond the colours."""
    beyond = "both" if float(image.get_clim()[0]) > threshold else "max"
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.6, aspect=40, extend=beyond)
    bar.set_label(label, fontsize=8)


def draw_smoke(ax: Axes, field: xr.DataArray, norm: LogNorm) -> QuadMesh:
    """Draw one field of smoke on axes in km."""
    ax.set_aspect("equal")
    return ax.pcolormesh(
        field.x / 1e3, field.y / 1e3, field.values, norm=norm, cmap=COLOURS, rasterized=True
    )


def draw_outline(
    ax: Axes,
    fire: xr.DataArray,
    colour: str = FIRE_COLOUR,
    effects: Sequence[AbstractPathEffect] = (),
) -> None:
    """Draw the outline of the burned area."""
    burned = fire.values > 0.0
    if burned.any() and not burned.all():
        lines = ax.contour(
            fire.x / 1e3, fire.y / 1e3, burned, levels=[0.5], colors=colour, linewidths=0.9
        )
        lines.set(path_effects=list(effects))


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG (150 dots per inch), PDF or SVG, chosen by the file ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
