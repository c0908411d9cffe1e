"""Cross-validation of anything that fits and predicts, by folds of whole groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SMOKE
from plumecast.compute.arrays import Array, to_numpy
from plumecast.data.split import group_rows
from plumecast.data.training import Names, field_names, read_samples, sample_dimension
from plumecast.scores.footprint import (
    smoke_threshold,
)
from plumecast.workflows.held_out.parts import Predicted
from plumecast.workflows.held_out.scoring import tally_parts
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
    labels, label, dim = _groups(dataset, names, by, sample_dim)
    parts = fold_rows(labels, len(group_rows(labels)) if folds is None else folds, label)
    everything = np.arange(labels.size)
    results = []
    for rows in parts:
        rest = np.setdiff1d(everything, rows)
        train, test = (dataset.isel({dim: index}) for index in (rest, rows))
        predicted = _predict(fit(train), test, names, dim)
        results.append(_Fold(predicted, *_scores(predicted, train, test, dim)))
    return _join(dataset, dim, parts, results)


@dataclass(frozen=True, slots=True)
class _Fold:
    """The predictions of one fold and their scores."""

    predicted: dict[str, xr.DataArray]  # sample dimension first
    scores: dict[str, Array]  # of every snapshot
    overall: dict[str, float]


def _groups(
    dataset: xr.Dataset, names: Sequence[str], by: str | Array, sample_dim: str | None
) -> tuple[Array, str, str]:
    """(M,) group labels, the name of the grouping coordinate and that of the sample dimension."""
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
    return samples.snapshots[samples.group_by].values, samples.group_by, dim


def _predict(
    fitted: Any, test: xr.Dataset, names: Sequence[str], dim: str
) -> dict[str, xr.DataArray]:
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
    fields = {}
    for name in names:
        like = test[name].transpose(dim, ...)
        values = prediction[name] if several else prediction
        if isinstance(values, xr.DataArray):
            values = values.transpose(*like.dims)
        array = to_numpy(values)
        if array.shape != like.shape:
            raise PlumecastError(
                f"the prediction of '{name}' has shape {array.shape}, not {like.shape}"
            )
        fields[name] = like.copy(data=array)
    return fields


def _scores(
    predicted: dict[str, xr.DataArray], train: xr.Dataset, test: xr.Dataset, dim: str
) -> tuple[dict[str, Array], dict[str, float]]:
    """Scores of every snapshot of a fold, and of the whole fold."""
    scores: dict[str, Array] = {}
    overall: dict[str, float] = {}
    for name, field in predicted.items():
        suffix = f"_{name}" if len(predicted) > 1 else ""
        observed = test[name].transpose(dim, ...)
        part = Predicted(field.values, field.values, observed.values)
        tau = smoke_threshold(train[name].transpose(dim, ...)) if name == SMOKE else None
        tally = tally_parts([part], tau=tau)
        scores["relative_error" + suffix] = tally.each["relative_error"]
        overall["relative_error" + suffix] = tally.relative_error
        if name == SMOKE:
            scores["iou"], overall["iou"] = tally.each["iou"], tally.median("iou")
    return scores, overall


def _join(
    dataset: xr.Dataset, dim: str, parts: Sequence[Array], results: Sequence[_Fold]
) -> CrossValidation:
    """All folds together, snapshots in the order of the data."""
    order = np.argsort(np.concatenate(parts))
    predicted = {
        name: xr.concat([fold.predicted[name] for fold in results], dim).isel({dim: order})
        for name in results[0].predicted
    }
    scores = {
        name: (dim, np.concatenate([fold.scores[name] for fold in results])[order])
        for name in results[0].scores
    }
    numbers = np.concatenate([np.full(rows.size, i) for i, rows in enumerate(parts)])[order]
    coords = {name: item for name, item in dataset.coords.items() if item.dims == (dim,)}
    names = list(predicted)
    return CrossValidation(
        predicted=predicted[names[0]] if len(names) == 1 else xr.Dataset(predicted),
        scores=xr.Dataset({**scores, "fold": (dim, numbers)}, coords=coords),
        folds=xr.Dataset(
            {
                name: ("fold", [fold.overall[name] for fold in results])
                for name in results[0].overall
            }
        ),
    )
