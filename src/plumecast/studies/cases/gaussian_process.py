"""The paper's alternative: Gaussian processes of images and of PCA codes, on 100 snapshots."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from plumecast.operators.baselines import GP_SAMPLES, GaussianProcess
from plumecast.operators.coded.operator import CodedOperator
from plumecast.studies.cases import footprint
from plumecast.studies.context import Context
from plumecast.studies.methods.methods import fitted, title_of
from plumecast.studies.study import Study
from plumecast.surrogate.surrogate import Surrogate

METHODS = ("gp-images", "gp-codes")


def run(context: Context) -> xr.Dataset:
    """Per-snapshot scores of both Gaussian processes."""
    found = footprint.finding(context, METHODS)
    scales = {
        f"{name} length_scale": length_scale(fitted(context, name).surrogate) for name in METHODS
    }
    return found.assign_attrs(samples=GP_SAMPLES, **scales)


def length_scale(surrogate: Surrogate) -> float:
    """Length scale of a fitted Gaussian process, which maximises its likelihood."""
    process = process_of(surrogate)
    assert process is not None
    return process.length_scale


def process_of(surrogate: Surrogate) -> GaussianProcess | None:
    """The Gaussian process of a surrogate, of images or of codes; None if it has none."""
    operator = surrogate.operator
    process = operator.code_map if isinstance(operator, CodedOperator) else operator
    return process if isinstance(process, GaussianProcess) else None


CAPTIONS = {"classification": footprint.CAPTIONS["classification"]}


def figures(found: xr.Dataset) -> dict[str, Figure]:
    """ROC curves and distributions: images in the first row, codes in the second."""
    return {"classification": footprint.classification(found)}


def remarks(found: xr.Dataset) -> list[str]:
    """Median scores of both processes, and their length scales."""
    scales = " and ".join(
        f"{found.attrs[f'{name} length_scale']:.3g} for {title_of(name)}" for name in METHODS
    )
    return [
        *footprint.remarks(found)[: len(METHODS)],
        f"Both were trained on {found.attrs['samples']} snapshots; the length scale l is {scales}.",
    ]


STUDY = Study(
    name="gaussian-process", title="Gaussian processes",
    question="Is a Gaussian process trained on 100 snapshots as good?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, limits=("curves",),
)  # fmt: skip
