"""The studies by name: what each asks, how it is run and drawn, and what to see in its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import xarray as xr
from matplotlib.figure import Figure

from plumecast.errors import PlumecastError
from plumecast.study import footprint, optical_depth
from plumecast.study.context import Context


@dataclass(frozen=True, slots=True)
class Study:
    """One table of the paper's case with its figures."""

    name: str
    title: str
    question: str
    run: Callable[[Context], xr.Dataset]
    figures: Callable[[xr.Dataset], dict[str, Figure]]
    captions: dict[str, str] = field(default_factory=dict)  # by figure
    bitmap: tuple[str, ...] = ()  # figures shown as PNG: maps, whose vectors are large
    version: int = 1  # raised when the study would give another table


_FOOTPRINT_CAPTIONS = {
    "classification": (
        "Receiver operating characteristic of single test snapshots (thin, a random subset) and "
        "their pointwise median (black); distributions of AUC and IoU over all test snapshots, "
        "with their median and, dotted, the paper's. A good detector hugs the upper left corner."
    ),
    "maps": (
        "Smoke of five test snapshots, from poor to good IoU: observed above, predicted below, one "
        "colour scale per column, white below the smoke threshold τ; the red line is the burned "
        "area. Look for spurious plumes and for plumes in the wrong direction."
    ),
    "extent": (
        "IoU against the size of the footprint, one point per test snapshot, and its median in "
        "tenths of the snapshots. Small footprints are the hard ones if the line rises."
    ),
}


def _footprint(name: str, method: str, title: str) -> Study:
    return Study(
        name=name,
        title=title,
        question="Where is smoke, and how often does the operator say so?",
        run=footprint.study(method),
        figures=footprint.figures,
        captions=_FOOTPRINT_CAPTIONS,
        bitmap=("maps",),
    )


_ALL = (
    Study(
        name="optical-depth",
        title="Mean optical depth from few samples",
        question="How many high-fidelity samples does the mean of ln(g + 1) need?",
        run=optical_depth.run,
        figures=optical_depth.figures,
        captions={
            "errors": (
                "Relative error of the mean optical-depth proxy over the final test snapshots "
                "against the number of high-fidelity samples: median and 25–75 % band over random "
                "draws. The dotted line is the standard error that the corrected estimator gives "
                "for itself; it should lie on its solid line."
            )
        },
    ),
    _footprint("footprint-linear", "paper-linear", "Smoke footprint, linear operator"),
    _footprint("footprint-quadratic", "paper-quadratic", "Smoke footprint, quadratic operator"),
    _footprint("footprint-recommended", "recommended", "Smoke footprint, recommended operator"),
)

STUDIES: dict[str, Study] = {study.name: study for study in _ALL}


def find_studies(names: list[str]) -> list[Study]:
    """The studies of some names, or every one for `all`, in the order of the registry."""
    unknown = [name for name in names if name not in STUDIES and name != "all"]
    if unknown:
        raise PlumecastError(
            f"study '{unknown[0]}' does not exist; choose from {', '.join(STUDIES)} or all"
        )
    if not names:
        raise PlumecastError(f"name a study: {', '.join(STUDIES)} or all")
    return [study for study in _ALL if "all" in names or study.name in names]
