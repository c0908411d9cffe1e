"""Maps of smoke: observed beside predicted, with the fire that made it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT

COLOURS = "magma_r"
"""Perceptually uniform and readable with any colour vision; nearly white where smoke is thin."""

FIRE_COLOUR = "#d7301f"
DECADES = 4  # span of the colour scale below its largest value


def percentile_rows(scores: xr.DataArray, percentiles: Sequence[float]) -> list[int]:
    """For each percentile, the row whose score is nearest to it."""
    values = np.where(np.isnan(scores.values), np.inf, scores.values)
    wanted = np.nanpercentile(scores.values, percentiles)
    return [int(np.argmin(np.abs(values - target))) for target in wanted]


def compare_maps(
    snapshots: xr.Dataset,
    predictions: dict[str, xr.DataArray],
    rows: Sequence[int],
    titles: Sequence[str],
    threshold: float,
    width: float | None = None,
) -> Figure:
    """One column per chosen snapshot: observed on top, each prediction below, one colour scale.

    Smoke below `threshold` is white; the outline is the burned area. `width` is in inches.
    """
    fields = {"observed": snapshots[SMOKE], **predictions}
    wide = 2.6 * len(rows) + 0.8 if width is None else width
    tall = (wide - 0.8) / len(rows) * 0.88 * len(fields) + (0.5 if width is None else 1.0)
    figure = Figure(figsize=(wide, tall), layout="constrained")
    axes = figure.subplots(len(fields), len(rows), squeeze=False, sharex=True, sharey=True)
    for column, (row, title) in enumerate(zip(rows, titles, strict=True)):
        top = float(snapshots[SMOKE].isel({SNAPSHOT: row}).max())
        norm = LogNorm(max(threshold, top * 10.0**-DECADES), max(top, 10.0 * threshold))
        for line, (name, field) in enumerate(fields.items()):
            shown = field.isel({SNAPSHOT: row})
            ax = axes[line, column]
            image = _smoke(ax, shown.where(shown > threshold), norm)
            _outline(ax, snapshots[FIRE].isel({SNAPSHOT: row}))
            if column == 0:
                ax.set_ylabel(f"{name}\ny (km)")
        axes[0, column].set_title(title, fontsize=8, fontweight="normal")
        axes[-1, column].set_xlabel("x (km)")
        bar = figure.colorbar(image, ax=axes[:, column], location="bottom", shrink=0.9, aspect=30)
        bar.set_label("smoke (µg m⁻³)", fontsize=8)
    return figure


def _smoke(ax: Axes, field: xr.DataArray, norm: LogNorm) -> QuadMesh:
    ax.set_aspect("equal")
    return ax.pcolormesh(
        field.x / 1e3, field.y / 1e3, field.values, norm=norm, cmap=COLOURS, rasterized=True
    )


def _outline(ax: Axes, fire: xr.DataArray) -> None:
    burned = fire.values > 0.0
    if burned.any() and not burned.all():
        ax.contour(
            fire.x / 1e3, fire.y / 1e3, burned, levels=[0.5], colors=FIRE_COLOUR, linewidths=0.9
        )


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG (150 dots per inch), PDF or SVG, chosen by the file ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
