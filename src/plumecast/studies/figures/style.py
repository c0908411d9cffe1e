"""How every figure looks: sizes, colours that any colour vision tells apart, no frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 7.2  # inches, the text width of a page

INK, MUTED, GRID = "#1f2933", "#6b7680", "#dfe3e6"
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b8a900",
)  # fmt: skip
"""Okabe and Ito's colours, the yellow darkened for white paper."""

METHODS: dict[str, tuple[str, str]] = {
    "paper-linear": (SKY, "o"),
    "paper-quadratic": (BLUE, "s"),
    "recommended": (VERMILION, "D"),
    "mean-field": (MUTED, "v"),
    "nearest-fire": (GREEN, "^"),
    "gp-images": (PURPLE, "P"),
    "gp-codes": (ORANGE, "X"),
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
    """Figures made and saved within look alike; nothing outside changes."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure; sizes in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def look_of(method: str, index: int = 0) -> dict[str, Any]:
    """Colour and marker of a method, as keywords of `plot`."""
    spare = [(YELLOW, "<"), (INK, ">")]
    colour, marker = METHODS.get(method, spare[index % len(spare)])
    return {"color": colour, "marker": marker}


def light_grid(ax: Axes, axis: str = "y") -> None:
    """Thin lines behind the data to read values by."""
    ax.set_axisbelow(True)
    ax.grid(True, axis=axis, color=GRID, linewidth=0.6)  # type: ignore[arg-type]


def show_empty(ax: Axes, why: str) -> None:
    """Say in the place of a chart why it is empty."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, why, ha="center", va="center", color=MUTED, transform=ax.transAxes)


def histogram(
    ax: Axes, values: np.ndarray, label: str, colour: str, paper: float | None = None
) -> None:
    """Distribution of a score within 0 and 1, its median and the paper's."""
    known = values[~np.isnan(values)]
    ax.hist(known, bins=np.linspace(0.0, 1.0, 41).tolist(), color=colour, alpha=0.75)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(label)
    told = []
    if known.size:
        middle = float(np.median(known))
        ax.axvline(middle, color=INK, linewidth=1.2)
        told.append(f"median {middle:.2f}")
    if paper is not None:
        ax.axvline(paper, color=INK, linewidth=1.2, linestyle=":")
        told.append(f"paper {paper:.2f}")
    ax.set_title(", ".join(told), fontweight="normal", fontsize=8.5)
    ax.set_ylabel("snapshots")


def save_all(figure: Figure, folder: Path, name: str, endings: Sequence[str]) -> list[Path]:
    """Write a figure in every form; the same figure gives the same file."""
    paths = []
    for ending in endings:
        path = folder / f"{name}.{ending}"
        fixed = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
        figure.savefig(path, dpi=200, metadata=fixed)
        figure.set_layout_engine("none")  # found by the first; solving it again costs as much
        paths.append(path)
    return paths
