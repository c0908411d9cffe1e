"""Common style of the figures: sizes, and colours that are distinct with any colour vision."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumecast.scores.tally import known_median, known_values

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


def histogram(
    ax: Axes, values: np.ndarray, label: str, colour: str, paper: float | None = None
) -> None:
    """Histogram of a score between 0 and 1, with its median and the paper's value."""
    known = known_values(values)
    ax.hist(known, bins=np.linspace(0.0, 1.0, 41).tolist(), color=colour, alpha=0.75)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel(label)
    labels = []
    if known.size:
        middle = known_median(known)
        ax.axvline(middle, color=INK, linewidth=1.2)
        labels.append(f"median {middle:.2f}")
    if paper is not None:
        ax.axvline(paper, color=INK, linewidth=1.2, linestyle=":")
        labels.append(f"paper {paper:.2f}")
    ax.set_title(", ".join(labels), fontweight="normal", fontsize=8.5)
    ax.set_ylabel("snapshots")


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
