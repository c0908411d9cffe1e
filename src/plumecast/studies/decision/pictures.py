"""The maps of the page: percentiles of smoke on one colour scale, differences, and places."""

from __future__ import annotations

import io

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from plumecast.impact.comparison import SCENARIO
from plumecast.studies.decision.folder import Answer
from plumecast.studies.decision.tables import places_in_order, sampled, units_of
from plumecast.studies.decision.words import number
from plumecast.studies.figures.maps import COLOURS, draw_smoke, smoke_scale
from plumecast.studies.figures.style import INK, MUTED, styled
from plumecast.studies.report.html import Picture, embed

WIDTH = 3.4  # inches of one map
LOWEST = 1e-3  # of the largest smoke; less is white
WIDEST = 0.99  # quantile of the differences at which the colours end
DIFFERENCE_COLOURS = "RdBu_r"
"""Blue is less smoke than in the reference, red is more; distinct with any colour vision."""

FAINT = 0.3  # opacity of differences that are not settled


def smoke_pictures(maps: Answer, places: Answer | None) -> list[Picture]:
    """Maps of the percentiles, or of the mean without them, and the legend as the last picture."""
    fields = _smoke_fields(maps)
    if not fields:
        return []
    unit = units_of(maps)
    top = max(float(field.max()) for field, _ in fields.values())
    lowest = max(LOWEST * top, LOWEST)
    norm = smoke_scale(xr.concat([f for f, _ in fields.values()], "panel"), lowest)
    shown = []
    with styled():
        for title, (field, caption) in fields.items():
            figure, ax = _new_map(field)
            draw_smoke(ax, field.where(field > lowest), norm)
            if not bool((field > lowest).any()):
                text = f"nowhere above\n{number(lowest)} {unit}"
                ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", color=MUTED)
            _mark(ax, places, field)
            shown.append(Picture(_png(figure), f"{title}. {caption}", f"Map of smoke: {title}"))
        label = f"smoke ({unit}); white: less than {number(lowest)}"
        bar = _legend(norm, COLOURS, label, beyond="neither")
    return [*shown, Picture(bar, "", f"Colours of the maps: {label}")]


def _smoke_fields(maps: Answer) -> dict[str, tuple[xr.DataArray, str]]:
    """Title of each map, its field and its meaning."""
    data = maps.fields
    if data is None:
        return {}
    each = sampled(maps)
    if "smoke_quantile" in data:
        shares = [float(share) for share in data["quantile"].values]
        chosen = sorted({shares[0], shares[len(shares) // 2], shares[-1]})
        return {
            f"{ordinal(100 * share)} percentile": (
                data["smoke_quantile"].sel(quantile=share),
                f"In every cell, {100 * share:g} of 100 {each} bring less smoke than this.",
            )
            for share in chosen
        }
    if "mean_smoke" in data:
        return {"Mean": (data["mean_smoke"], f"The mean over the {each}, in every cell.")}
    return {}


def ordinal(value: float) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 97.5th."""
    text = f"{value:g}"
    if not text.isdigit() or text[-2:] in ("11", "12", "13"):
        return f"{text}th"
    return text + {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")


def difference_pictures(maps: Answer, places: Answer | None) -> list[Picture]:
    """A map for every scenario on one scale, and the legend as the last picture."""
    data = maps.fields
    if data is None:
        return []
    unit, reference = units_of(maps), str(maps.attrs["reference"])
    sizes = np.abs(data["difference"].values)
    most = float(np.nanquantile(sizes, WIDEST)) or float(np.nanmax(sizes)) or 1.0
    norm = TwoSlopeNorm(0.0, -most, most)
    level = 100 * float(maps.attrs["coverage"])
    shown = []
    with styled():
        for name in data[SCENARIO].values.tolist():
            one = data.sel({SCENARIO: name})
            figure, ax = _new_map(one["difference"])
            settled = (one["lower"] > 0.0) | (one["upper"] < 0.0)
            _draw_difference(ax, one["difference"], settled, norm)
            _mark(ax, places, one["difference"])
            caption = (
                f"{name} minus {reference}. Blue: less smoke; red: more. Pale: the {level:g} % "
                "interval of the cell contains 0, so that the sign is not settled there."
            )
            shown.append(Picture(_png(figure), caption, f"Map of differences: {name}"))
        label = f"difference of the mean smoke ({unit})"
        bar = _legend(norm, DIFFERENCE_COLOURS, label, beyond="both")
    return [*shown, Picture(bar, "", f"Colours of the maps: {label}")]


def _draw_difference(
    ax: Axes, field: xr.DataArray, settled: xr.DataArray, norm: TwoSlopeNorm
) -> None:
    ax.set_aspect("equal")
    for chosen, opacity in ((settled, 1.0), (~settled, FAINT)):
        ax.pcolormesh(
            field.x / 1e3, field.y / 1e3, field.where(chosen).values, norm=norm,
            cmap=DIFFERENCE_COLOURS, alpha=opacity, rasterized=True, edgecolors="none", linewidth=0,
        )  # fmt: skip


def _new_map(field: xr.DataArray) -> tuple[Figure, Axes]:
    tall, wide = (abs(float(field[axis][-1] - field[axis][0])) for axis in ("y", "x"))
    ratio = min(max(tall / wide, 0.3), 3.0) if wide else 1.0
    figure = Figure(figsize=(WIDTH, (WIDTH - 0.6) * ratio + 0.6), layout="constrained")
    ax = figure.subplots()
    ax.set(xlabel="x (km)", ylabel="y (km)")
    ax.locator_params(nbins=5)
    return figure, ax


def _mark(ax: Axes, places: Answer | None, field: xr.DataArray) -> None:
    """Mark the places with their numbers in the table; names would cover each other."""
    if places is None:
        return
    middle = float(field.x.mean()) / 1e3
    for place, row in enumerate(places_in_order(places), start=1):
        if row.get("cell_x") is None or row.get("cell_y") is None:
            continue
        x, y = float(row["cell_x"]) / 1e3, float(row["cell_y"]) / 1e3
        ax.plot(x, y, "o", ms=4, mfc="white", mec=INK, mew=1.2)
        ax.annotate(
            str(place), (x, y), xytext=(5 if x < middle else -5, 3), textcoords="offset points",
            ha="left" if x < middle else "right", fontsize=8, fontweight="bold", color=INK,
            path_effects=[patheffects.withStroke(linewidth=2, foreground="white")],
        )  # fmt: skip


def _legend(norm: Normalize, colours: str, label: str, *, beyond: str) -> str:
    figure = Figure(figsize=(3.7, 0.66), layout="constrained")
    bar = figure.colorbar(
        ScalarMappable(norm, colours), cax=figure.subplots(), orientation="horizontal",
        extend=beyond, format=FuncFormatter(lambda value, _: f"{value:g}"),
    )  # fmt: skip
    bar.set_label(label)
    return _png(figure)


def _png(figure: Figure) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=180)
    return embed("png", content.getvalue())
