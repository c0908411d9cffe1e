"""The smoke footprint: where smoke is present, and how well a prediction finds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from plumecast._array import Array
from plumecast.errors import PlumecastError
from plumecast.names import SNAPSHOT
from plumecast.roc import best_decision_threshold, iou_at, roc_scores

_BLOCK = 256  # snapshots scored together: bounds the memory of sorting

_ATTRS = {
    "auc": "area under the receiver operating characteristic",
    "iou": "intersection over union at the ROC point nearest (0, 1)",
    "decision_threshold": "prediction above which a cell is called smoke at that point",
    "extent": "share of cells with observed smoke above the smoke threshold",
    "deployable_iou": "intersection over union at one decision threshold chosen on validation",
}


def smoke_threshold(smoke: xr.DataArray | Array, captured: float = 0.95) -> float:
    """Smoke threshold τ from the share of the footprint it captures, in the unit of the smoke.

    The largest observed value τ such that the mean over snapshots of #(g > τ) / #(g > 0) stays
    above `captured` (β in the paper); every value up to the next observed one gives the same
    footprints. Snapshots without smoke have no share and are left out.

    >>> smoke_threshold(np.array([[0.0, 1.0, 2.0, 3.0, 4.0]]), captured=0.5)
    1.0
    """
    if not 0.0 < captured < 1.0:
        raise PlumecastError(f"captured={captured} is not within (0, 1)")
    rows = _rows(smoke)
    counts = np.count_nonzero(rows > 0.0, axis=1)
    present = np.flatnonzero(counts)
    if present.size == 0:
        raise PlumecastError("no snapshot holds smoke: no threshold can be chosen")
    weights = np.repeat(1.0 / (counts[present] * present.size), counts[present])
    values = rows[present][rows[present] > 0.0]
    order = np.argsort(values, kind="stable")
    values, share = values[order], 1.0 - np.cumsum(weights[order])
    # The share left above a value is known at the last of its equals.
    last = np.append(values[1:] > values[:-1], True)
    kept = values[last][share[last] > captured + 1e-12]
    return float(kept[-1]) if kept.size else 0.0


def score_footprints(
    predicted: xr.DataArray | Array,
    observed: xr.DataArray | Array,
    threshold: float,
    decision_threshold: float | None = None,
) -> xr.Dataset:
    """Scores of every snapshot: AUC, IoU with its decision threshold, footprint extent.

    `threshold` is τ, in the data; the decision threshold in the prediction is swept, and the IoU
    taken at the ROC point nearest (0, 1), as in the paper: it peeks at the answer. With a
    `decision_threshold` chosen on other data (`choose_decision_threshold`), `deployable_iou` is
    what a user can have. AUC is NaN where a snapshot has no smoke or nothing else; without smoke,
    observed or predicted, IoU is 1.
    """
    parts = []
    for guess, truth in _blocks(predicted, observed):
        footprint = truth > threshold
        scores = roc_scores(guess, footprint)
        part = {
            "auc": scores.auc,
            "iou": scores.iou,
            "decision_threshold": scores.decision_threshold,
            "extent": footprint.mean(axis=1),
        }
        if decision_threshold is not None:
            part["deployable_iou"] = iou_at(guess, footprint, decision_threshold)
        parts.append(part)
    data = {
        name: (
            SNAPSHOT,
            np.concatenate([part[name] for part in parts]),
            {"long_name": _ATTRS[name]},
        )
        for name in parts[0]
    }
    coords = _sample_coords(observed)
    return xr.Dataset(data, coords=coords, attrs={"smoke_threshold": threshold})


def choose_decision_threshold(
    predicted: xr.DataArray | Array, observed: xr.DataArray | Array, threshold: float
) -> float:
    """One decision threshold α for all snapshots: the one with the largest mean IoU here.

    To be chosen on validation snapshots and used elsewhere. Candidates are τ itself and quantiles
    of the positive predictions.
    """
    observed = _snapshots_first(observed)
    if isinstance(predicted, xr.DataArray) and isinstance(observed, xr.DataArray):
        predicted = predicted.transpose(*observed.dims)
    guess, truth = _rows(predicted), _rows(observed)
    if not (guess > 0.0).any():
        return threshold
    return best_decision_threshold(guess, truth > threshold, np.array([threshold]))


def relative_error(predicted: xr.DataArray | Array, observed: xr.DataArray | Array) -> float:
    """‖ĝ − g‖ / ‖g‖ over all snapshots and cells (Frobenius)."""
    wrong = size = 0.0
    for guess, truth in _blocks(predicted, observed):
        wrong += float(np.sum((guess - truth) ** 2))
        size += float(np.sum(truth**2))
    if size == 0.0:
        return 0.0 if wrong == 0.0 else float("nan")
    return float(np.sqrt(wrong / size))


def snapshot_relative_errors(
    predicted: xr.DataArray | Array, observed: xr.DataArray | Array
) -> Array:
    """‖ĝ − g‖ / ‖g‖ of every snapshot, (M,); without smoke 0 if none is predicted, else NaN."""
    parts = []
    for guess, truth in _blocks(predicted, observed):
        wrong = np.sqrt(np.sum((guess - truth) ** 2, axis=1))
        size = np.sqrt(np.sum(truth**2, axis=1))
        empty = np.where(wrong == 0.0, 0.0, np.nan)
        parts.append(np.where(size > 0.0, wrong / np.where(size > 0.0, size, 1.0), empty))
    return np.concatenate(parts)


def _rows(fields: xr.DataArray | Array) -> Array:
    values = np.asarray(_snapshots_first(fields))
    return values.reshape(values.shape[0], -1)


def _snapshots_first(fields: xr.DataArray | Array) -> xr.DataArray | Array:
    if isinstance(fields, xr.DataArray) and SNAPSHOT in fields.dims:
        return fields.transpose(SNAPSHOT, ...)
    return fields


def _blocks(
    predicted: xr.DataArray | Array, observed: xr.DataArray | Array
) -> Iterator[tuple[Array, Array]]:
    observed = _snapshots_first(observed)
    if isinstance(predicted, xr.DataArray) and isinstance(observed, xr.DataArray):
        predicted = predicted.transpose(*observed.dims)
    if predicted.shape != observed.shape:
        raise PlumecastError(
            f"prediction {predicted.shape} and observation {observed.shape} differ"
        )
    if predicted.shape[0] == 0:
        raise PlumecastError("there are no snapshots to score")
    for start in range(0, predicted.shape[0], _BLOCK):
        block = slice(start, start + _BLOCK)
        yield _rows(predicted[block]).astype(np.float64), _rows(observed[block]).astype(np.float64)


def _sample_coords(observed: xr.DataArray | Array) -> dict[str, xr.DataArray]:
    if not isinstance(observed, xr.DataArray):
        return {}
    return {str(k): v for k, v in observed.coords.items() if v.dims == (SNAPSHOT,)}
