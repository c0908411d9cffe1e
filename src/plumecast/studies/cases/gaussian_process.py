"""The paper's alternative: Gaussian processes on 100 snapshots, of images and of PCA codes."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from plumecast.operators.baselines import GP_SAMPLES, GaussianProcess
from plumecast.operators.coded.operator import CodedOperator
from plumecast.studies.cases import footprint
from plumecast.studies.context import Context
from plumecast.studies.methods.methods import fitted
from plumecast.surrogate.surrogate import Surrogate

METHODS = ("gp-images", "gp-codes")


def run(context: Context) -> xr.Dataset:
    """Per-snapshot scores of both processes."""
    found = footprint.finding(context, METHODS)
    scales = {
        f"{name} length_scale": length_scale(fitted(context, name).surrogate) for name in METHODS
    }
    return found.assign_attrs(samples=GP_SAMPLES, **scales)


def length_scale(surrogate: Surrogate) -> float:
    """The length scale a Gaussian process was given by its likelihood."""
    operator = surrogate.operator
    process = operator.code_map if isinstance(operator, CodedOperator) else operator
    assert isinstance(process, GaussianProcess)
    return process.length_scale


def figures(found: xr.Dataset) -> dict[str, Figure]:
    """ROC curves and distributions, images above codes."""
    return {"classification": footprint.classification(found)}
