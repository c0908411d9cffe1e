"""The studies by name: what each asks, how it is run and drawn, and what to see in its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.studies.cases import (
    footprint,
    gaussian_process,
    learning_curve,
    optical_depth,
    sensitivity,
    shift,
    summary,
)
from plumecast.studies.context import Context


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
    limits: tuple[str, ...] = ()  # those of the context's limits that change the table
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
        limits=("curves",),
    )


_ALL = (
    Study(
        name="optical-depth",
        title="Mean optical depth from few samples",
        question="How many high-fidelity samples does the mean of ln(g + 1) need?",
        run=optical_depth.run,
        figures=optical_depth.figures,
        limits=("repeats",),
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
    Study(
        name="sensitivity",
        title="Sensitivity to the choices",
        question="How much do β, the truncation and the penalty matter?",
        run=sensitivity.run,
        figures=sensitivity.figures,
        captions={
            "scores": (
                "Median (line) and 25–75 % band of AUC and IoU over validation snapshots, against "
                "the captured share β and the std fraction of the linear operator, and the penalty "
                "of the quadratic one. Dashed: the values used elsewhere. Flat lines mean that the "
                "choice does not matter."
            )
        },
    ),
    Study(
        name="shift",
        title="Distributional shift between droughts",
        question="What remains when a surrogate meets a drought it was not trained on?",
        run=shift.run,
        figures=shift.figures,
        limits=("shift_train", "scored"),
        captions={
            "pairs": (
                "Median IoU of surrogates trained on one drought (rows) or on all but the tested "
                "one (last row) and tested on another (columns). The diagonal is no shift; how far "
                "the rest falls below it is the price of the shift."
            ),
            "medium": (
                "The paper's case: AUC and IoU of the linear operator trained on medium drought. "
                "In the paper both other droughts come down to an IoU of about 0.3."
            ),
        },
    ),
    Study(
        name="gaussian-process",
        title="Gaussian processes",
        question="Does a Gaussian process on 100 snapshots do as well?",
        run=gaussian_process.run,
        figures=gaussian_process.figures,
        limits=("curves",),
        captions={"classification": _FOOTPRINT_CAPTIONS["classification"]},
    ),
    Study(
        name="summary",
        title="Summary",
        question="What does each method cost, and how well does it do?",
        run=summary.run,
        figures=summary.figures,
        limits=("literal", "neural"),
        captions={
            "scores": (
                "Median scores over the test snapshots; open circles are the paper's, on its own "
                "data. A surrogate is worth something only to the right of the mean field and the "
                "nearest fire. Deployable IoU uses one threshold from validation, as a user must; "
                "IoU lets every snapshot have its own."
            )
        },
    ),
    Study(
        name="learning-curve",
        title="Learning curve",
        question="How many fires does each method need?",
        run=learning_curve.run,
        figures=learning_curve.figures,
        limits=("curve_train", "scored"),
        captions={
            "curves": (
                "Median scores on the same test snapshots against the number of training "
                "ignitions, nested subsets. High-fidelity fires are the dominant cost: what counts "
                "is how far to the left a curve is already good."
            )
        },
    ),
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
