"""Maps of plumes that bend with the wind: observed, predicted and carried smoke of a few fires."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from plumecast.studies.figures import style
from plumecast.studies.figures.maps import (
    colour_bar,
    draw_outline,
    draw_smoke,
    hours_text,
    smoke_scale,
)

ROWS = {
    "observed": "observed",
    "recommended": "recommended",
    "physics-alone": "physics alone",
}
"""Fields of a row of maps, from top to bottom, and their titles."""

HALO = [withStroke(linewidth=2.4, foreground="white")]
"""A white border, so that lines are seen on any colour of the smoke."""


def draw_bending(found: xr.Dataset) -> Figure:
    """One column per fire; `found` has map_* fields (shown, y, x) and shown_* labels."""
    fields = {title: found[f"map_{name}"] for name, title in ROWS.items() if f"map_{name}" in found}
    columns, threshold = found.sizes["shown"], float(found.attrs["smoke_threshold"])
    ratio = found.sizes["y"] / found.sizes["x"]
    wide = (style.WIDTH - 0.6) / columns
    figure = style.new_figure(len(fields) * (wide * ratio + 0.12) + 1.3)
    axes = figure.subplots(len(fields), columns, squeeze=False, sharex=True, sharey=True)
    norm = smoke_scale(found["map_observed"], threshold)
    for column in range(columns):
        one = found.isel(shown=column)
        for line, (title, field) in enumerate(fields.items()):
            ax, shown = axes[line, column], field.isel(shown=column)
            image = draw_smoke(ax, shown.where(shown > threshold), norm)
            draw_outline(ax, one["map_time_since_ignition"], style.INK, HALO)
            _arrow(ax, one)
            ax.locator_params(nbins=4)
            if column == 0:
                ax.set_ylabel(f"{title}\ny (km)")
        axes[0, column].set_title(_label(one), fontsize=8, fontweight="normal")
        axes[-1, column].set_xlabel("x (km)")
    colour_bar(figure, image, axes, threshold)
    return figure


def _label(one: xr.Dataset) -> str:
    parts = [hours_text(one.shown_hours)] if "shown_hours" in one.coords else []
    if "shown_wind_speed" in one.coords:
        parts.append(f"wind {float(one.shown_wind_speed):.0f} m s⁻¹")
    return ", ".join(parts)


def _arrow(ax: Axes, one: xr.Dataset) -> None:
    """An arrow in a corner that points to where the mean wind blows."""
    if "shown_wind_from_direction" not in one.coords:
        return
    angle = np.deg2rad(float(one.shown_wind_from_direction))
    ahead = -0.07 * np.array([np.sin(angle), np.cos(angle)])
    centre = np.array([0.12, 0.86])
    ratio = one.sizes["x"] / one.sizes["y"]
    step = ahead * np.array([1.0, ratio])
    look = {"arrowstyle": "-|>", "color": style.BLUE, "linewidth": 1.4, "path_effects": HALO}
    ax.annotate(
        "",
        xy=tuple(centre + step),
        xytext=tuple(centre - step),
        xycoords="axes fraction",
        textcoords="axes fraction",
        arrowprops=look,
    )
