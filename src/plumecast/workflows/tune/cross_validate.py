"""Cross-validation of anything that fits and predicts, by folds of whole groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SMOKE
from plumecast.compute.arrays import Array, to_numpy
from plumecast.data.split import group_rows
from plumecast.data.training import Names, field_names, read_samples, sample_dimension
from plumecast.scores.footprint import smoke_threshold
from plumecast.scores.tally import Tally, join_tallies, tally_rows
from plumecast.workflows.held_out.scoring import Predicted, PredictedBlock
from plumecast.workflows.tune.candidates import fold_rows

Fit = Callable[[xr.Dataset], Any]
"""From training snapshots to an object with `predict`, or to a function that predicts."""


@dataclass(frozen=True, slots=True, repr=False)
class CrossValidation:
    """Out-of-fold predictions, and their scores by snapshot and by fold."""

    predicted: xr.DataArray | xr.Dataset  # in the order of the data; a Dataset of several outputs
    scores: xr.Dataset  # of every snapshot: relative error, IoU of smoke, number of its fold
    folds: xr.Dataset  # of every fold: relative error over all its snapshots, median IoU

    def __repr__(self) -> str:
        """One line per score: mean and standard deviation over the folds."""
        lines = [f"<plumecast.workflows.CrossValidation: {self.folds.sizes['fold']} folds"]
        for name, score in self.folds.data_vars.items():
            lines.append(f" {name}: {float(score.mean()):.4f} ± {float(score.std()):.4f}")
        return "\n".join(lines) + ">"


def cross_validate(
    dataset: xr.Dataset,
    fit: Fit,
    *,
    by: str | Array = "ignition_id",
    folds: int | None = 5,
    outputs: Names = SMOKE,
    sample_dim: str | None = None,
) -> CrossValidation:
    """Predict every snapshot by a fit that did not see its group, and score the predictions.

    Scores are the relative error of every output and the IoU of smoke. Footprints are above the
    smoke threshold of the fold's training part; the IoU is that at the ROC point nearest (0, 1).

    Parameters
    ----------
    dataset
        Snapshots, or samples of any fields.
    fit
        Gets a part of the Dataset and returns an object with `predict(data)`, such as a surrogate,
        or a function of the data. The prediction of a Dataset is a DataArray, a Dataset of several
        outputs or an array (M, *grid).
    by
        Coordinate, or array of labels, whose groups stay together.
    folds
        Number of folds, to which the groups, sorted by label, are assigned in turn; None leaves out
        one group at a time.
    outputs
        The variables that are predicted.
    sample_dim
        The dimension of the samples, if it is not `snapshot`.
    """
    names = field_names(outputs)
    missing = [name for name in names if name not in dataset]
    if missing:
        present = ", ".join(map(str, dataset.data_vars))
        raise ArgumentError("outputs", missing[0], f"found {present}", problem="is not in the data")
    dim = sample_dimension(dataset, names, sample_dim)
    samples = read_samples(dataset, inputs=(), outputs=names, sample_dim=dim, group_by=by)
    if samples.group_by not in samples.snapshots.variables:
        raise ArgumentError(
            "by",
            samples.group_by,
            f"name one, or '{dim}' to leave out single samples",
            problem="is not a coordinate of the data",
        )
    labels = samples.snapshots[samples.group_by].values
    count = len(group_rows(labels)) if folds is None else folds
    number = np.empty(labels.size, dtype=int)
    fields: dict[str, Array] = {}
    scores: dict[str, Array] = {}
    overall: dict[str, list[float]] = {}
    for fold, rows in enumerate(fold_rows(labels, count, samples.group_by)):
        rest = np.setdiff1d(np.arange(labels.size), rows)
        train, test = (dataset.isel({dim: index}) for index in (rest, rows))
        number[rows] = fold
        for name, values in _predict(fit(train), test, names, dim).items():
            suffix = f"_{name}" if len(names) > 1 else ""
            tau = smoke_threshold(train[name].transpose(dim, ...)) if name == SMOKE else None
            part = Predicted(values, values, test[name].transpose(dim, ...).values)
            tally = join_tallies(part.visit(partial(_tally, tau)))
            of_fold = {"relative_error" + suffix: (tally.relative_error, "relative_error")}
            if name == SMOKE:
                of_fold["iou"] = tally.median("iou"), "iou"
            for score, (value, each) in of_fold.items():
                overall.setdefault(score, []).append(value)
                scores.setdefault(score, np.empty(labels.size))[rows] = tally.each[each]
            shape = (labels.size, *values.shape[1:])
            fields.setdefault(name, np.empty(shape, values.dtype))[rows] = values
    predicted = {
        name: dataset[name].transpose(dim, ...).copy(data=values) for name, values in fields.items()
    }
    coords = {name: item for name, item in dataset.coords.items() if item.dims == (dim,)}
    by_sample = {name: (dim, values) for name, values in (scores | {"fold": number}).items()}
    return CrossValidation(
        predicted=predicted[names[0]] if len(names) == 1 else xr.Dataset(predicted),
        scores=xr.Dataset(by_sample, coords=coords),
        folds=xr.Dataset({name: ("fold", values) for name, values in overall.items()}),
    )


def _tally(tau: float | None, block: PredictedBlock) -> Tally:
    return tally_rows(block.smoke, block.detected, block.observed, tau=tau)


def _predict(fitted: Any, test: xr.Dataset, names: Sequence[str], dim: str) -> dict[str, Array]:
    """The predicted outputs of a test part by name, sample dimension first."""
    predict = getattr(fitted, "predict", fitted)
    if not callable(predict):
        raise PlumecastError(
            f"fit(train) returned a {type(fitted).__name__}; it must return an object with "
            "predict, or a function"
        )
    prediction = predict(test)
    several = isinstance(prediction, xr.Dataset)
    if not several and len(names) > 1:
        raise PlumecastError(
            f"predictions of outputs {', '.join(names)} must be a Dataset, not a "
            f"{type(prediction).__name__}"
        )
    arrays = {}
    for name in names:
        like = test[name].transpose(dim, ...)
        values = prediction[name] if several else prediction
        if isinstance(values, xr.DataArray):
            values = values.transpose(*like.dims)
        arrays[name] = to_numpy(values)
        if arrays[name].shape != like.shape:
            raise PlumecastError(
                f"the prediction of '{name}' has shape {arrays[name].shape}, not {like.shape}"
            )
    return arrays
