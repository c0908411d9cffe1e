"""Figures: their common style, and maps of observed beside predicted smoke.

Colours are distinct with any colour vision.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import AbstractPathEffect, withStroke

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.scores.quantities import DEFAULT, quantity_factors

LONGEST = 40  # characters of a label from the data
WIDTH = 7.2  # inches, the text width of a page

INK, MUTED, GRID = "#1f2933", "#6b7680", "#dfe3e6"
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b8a900",
)  # fmt: skip
"""The colours of Okabe and Ito, with a darker yellow for white paper."""

METHODS: dict[str, tuple[str, str]] = {
    "paper-linear": (SKY, "o"),
    "paper-quadratic": (BLUE, "s"),
    "recommended": (VERMILION, "D"),
    "mean-field": (MUTED, "v"),
    "nearest-fire": (GREEN, "^"),
    "gp-images": (PURPLE, "P"),
    "gp-codes": (ORANGE, "X"),
    "spectral-no-physics": (BLUE, "s"),
    "spectral-on-map": (SKY, "o"),
    "physics-alone": (ORANGE, "X"),
    "unet": (PURPLE, "P"),
}
"""Colour and marker of each method, the same in every figure."""

SHARE_COLOURS = "cividis"
"""Perceptually uniform and readable with any colour vision."""

_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "svg.hashsalt": "plumecast",
    "pdf.fonttype": 42,
}


@contextmanager
def styled() -> Iterator[None]:
    """Context in which figures have the common style; global settings are restored at its end."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        with warnings.catch_warnings():
            # A name may have letters that the font lacks; they are drawn as boxes.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            yield


def plain(label: str, most: int = LONGEST) -> str:
    """A label from the data, such as a fire's name, as one short line that is drawn as it is.

    Matplotlib would read text between two dollar signs as mathematics.
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in str(label))
    if len(shown) > most:
        shown = f"{shown[: most // 2]}…{shown[-(most - 1 - most // 2) :]}"
    return shown.replace("$", r"\$")


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure; sizes in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def look_of(method: str, index: int = 0) -> dict[str, Any]:
    """Colour and marker of a method, as keywords of `plot`."""
    spare = [(YELLOW, "<"), (INK, ">")]
    colour, marker = METHODS.get(method, spare[index % len(spare)])
    return {"color": colour, "marker": marker}


def light_grid(ax: Axes, axis: str = "y") -> None:
    """Draw thin grid lines behind the data."""
    ax.set_axisbelow(True)
    ax.grid(True, axis=axis, color=GRID, linewidth=0.6)  # type: ignore[arg-type]


def save_all(figure: Figure, folder: Path, name: str, endings: Sequence[str]) -> list[Path]:
    """Write a figure in every format; the same figure always gives the same bytes."""
    paths = []
    for ending in endings:
        path = folder / f"{name}.{ending}"
        fixed = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
        figure.savefig(path, dpi=200, metadata=fixed)
        figure.set_layout_engine("none")  # solved by the first savefig; solving again is slow
        paths.append(path)
    return paths


# -- Maps of smoke: observed beside predicted, with the fire that made it

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
    fields = {"observed": snapshots[SMOKE], **predictions}
    wide = 2.6 * len(rows) + 0.8 if width is None else width
    tall = (wide - 0.8) / len(rows) * 0.88 * len(fields) + (0.5 if width is None else 1.0)
    figure = Figure(figsize=(wide, tall), layout="constrained")
    axes = figure.subplots(len(fields), len(rows), squeeze=False, sharex=True, sharey=True)
    colours = sum_colours(snapshots) if colours is None else colours
    shown = _at(rows, {**fields, FIRE: snapshots[FIRE]})
    _draw_maps(axes, shown, titles, threshold, Colours(colours.factors[list(rows)], colours.label))
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
    fields = {"observed": snapshots[SMOKE], "predicted": predicted, FIRE: snapshots[FIRE]}
    one = Colours(colours.factors[[row]], colours.label)
    _draw_maps(axes[:, np.newaxis], _at([row], fields), [""], threshold, one)
    for ax, name in zip(axes, fields, strict=False):
        ax.set(title=name, xlabel="x (km)", ylabel="y (km)" if name == "observed" else "")
        ax.locator_params(nbins=4)
    return figure


def _at(rows: Sequence[int], fields: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    return {name: field.isel({SNAPSHOT: list(rows)}) for name, field in fields.items()}


def _draw_maps(
    axes: np.ndarray,
    fields: dict[str, xr.DataArray],
    titles: Sequence[str],
    threshold: float,
    colours: Colours,
    outline: dict[str, Any] | None = None,
) -> None:
    """Draw fields (lines) of snapshots (columns) on one colour scale, with one bar for all.

    `fields` has the time since ignition besides the smoke, of which the first is observed. Smoke
    below `threshold` times the factor of its snapshot is white; `outline` is how fires are drawn.
    """
    fires, smoke = fields[FIRE], {name: field for name, field in fields.items() if name != FIRE}
    dim = str(fires.dims[0])
    lowest = threshold * float(colours.factors.min())
    observed = next(iter(smoke.values())) * xr.DataArray(colours.factors, dims=dim)
    norm = smoke_scale(observed, lowest)
    for column, title in enumerate(titles):
        for line, (name, field) in enumerate(smoke.items()):
            ax, shown = axes[line, column], field.isel({dim: column})
            seen = shown.where(shown > threshold) * colours.factors[column]
            image = draw_smoke(ax, seen, norm)
            _draw_outline(ax, fires.isel({dim: column}), **(outline or {}))
            if column == 0:
                ax.set_ylabel(f"{name}\ny (km)")
        axes[0, column].set_title(title, fontsize=8, fontweight="normal")
        axes[-1, column].set_xlabel("x (km)")
    beyond = "both" if float(image.get_clim()[0]) > lowest else "max"  # smoke beyond the colours
    bar = axes[0, 0].figure.colorbar(
        image, ax=axes, location="bottom", shrink=0.6, aspect=40, extend=beyond
    )
    bar.set_label(colours.label, fontsize=8)


def smoke_scale(observed: xr.DataArray, threshold: float) -> LogNorm:
    """Logarithmic colours up to the largest observed smoke, over at most DECADES."""
    top = max(float(observed.max()), 10.0 * threshold)
    return LogNorm(max(threshold, top * 10.0**-DECADES), top)


def draw_smoke(ax: Axes, field: xr.DataArray, norm: LogNorm) -> QuadMesh:
    """Draw one field of smoke on axes in km."""
    ax.set_aspect("equal")
    return ax.pcolormesh(
        field.x / 1e3, field.y / 1e3, field.values, norm=norm, cmap=COLOURS, rasterized=True
    )


def _draw_outline(
    ax: Axes,
    fire: xr.DataArray,
    colour: str = FIRE_COLOUR,
    effects: Sequence[AbstractPathEffect] = (),
) -> None:
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


# -- Plumes that bend with the wind: observed, predicted and carried smoke of a few fires

ROWS = {
    "observed": "observed",
    "recommended": "recommended",
    "physics-alone": "physics alone",
}
"""Fields of a row of maps, from top to bottom, and their titles."""

HALO = [withStroke(linewidth=2.4, foreground="white")]
"""A white border, so that lines are seen on any colour of the smoke."""


def draw_bending(finding: xr.Dataset) -> Figure:
    """One column per fire; `finding` has map_* fields (shown, y, x) and shown_* labels."""
    fields = {
        title: finding[f"map_{name}"] for name, title in ROWS.items() if f"map_{name}" in finding
    }
    columns, ratio = finding.sizes["shown"], finding.sizes["y"] / finding.sizes["x"]
    wide = (WIDTH - 0.6) / columns
    figure = new_figure(len(fields) * (wide * ratio + 0.12) + 1.3)
    axes = figure.subplots(len(fields), columns, squeeze=False, sharex=True, sharey=True)
    fires = [finding.isel(shown=column) for column in range(columns)]
    shown, sums = {**fields, FIRE: finding[f"map_{FIRE}"]}, Colours(np.ones(columns), SUM)
    threshold = float(finding.attrs["smoke_threshold"])
    outline = {"colour": INK, "effects": HALO}
    _draw_maps(axes, shown, [_label(fire) for fire in fires], threshold, sums, outline)
    for line in axes:
        for ax, fire in zip(line, fires, strict=True):
            _arrow(ax, fire)
            ax.locator_params(nbins=4)
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
    centre = np.array([0.12, 0.86])
    step = -0.07 * np.array([np.sin(angle), np.cos(angle) * one.sizes["x"] / one.sizes["y"]])
    look = {"arrowstyle": "-|>", "color": BLUE, "linewidth": 1.4, "path_effects": HALO}
    ax.annotate(
        "", xy=tuple(centre + step), xytext=tuple(centre - step), xycoords="axes fraction",
        textcoords="axes fraction", arrowprops=look,
    )  # fmt: skip


# -- Scores against the number of training ignitions


def size_curves(
    finding: xr.Dataset,
    methods: dict[str, str],
    panels: dict[str, str],
    *,
    height: float,
    draws: bool = False,
) -> Figure:
    """A panel for every score, a line for every method; `draws` shades the range of the draws.

    `methods` and `panels` map names of methods and of columns to their titles.
    """
    figure = new_figure(height)
    axes = figure.subplots(1, len(panels))
    sizes = np.unique(finding.ignitions.values)
    for ax, (column, label) in zip(axes, panels.items(), strict=True):
        for index, (method, title) in enumerate(methods.items()):
            part, look = finding.isel(row=finding.method.values == method), look_of(method, index)
            scores = [part[column].values[part.ignitions.values == size] for size in sizes]
            measured = [size for size, of_size in zip(sizes, scores, strict=True) if of_size.size]
            scores = [of_size for of_size in scores if of_size.size]
            ax.plot(measured, [np.mean(of_size) for of_size in scores], label=title, **look)
            if draws:
                low, high = ([end(of_size) for of_size in scores] for end in (np.min, np.max))
                ax.fill_between(measured, low, high, color=look["color"], alpha=0.2, linewidth=0)
        ax.set(xscale="log", xlabel="training ignitions", title=label)
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        light_grid(ax)
    legend_below(figure, axes[0], 3)
    return figure


def legend_below(figure: Figure, ax: Axes, columns: int) -> None:
    """One legend below all panels, of the lines of one of them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
