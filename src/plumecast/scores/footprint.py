"""The smoke footprint: its threshold, and the scores of predicted footprints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, to_numpy
from plumecast.compute.blocks import add_up, field_blocks, row_blocks
from plumecast.scores.roc import decision_threshold_over, iou_at, roc_scores

_BLOCK = 256  # snapshots scored at once: limits the memory of sorting
_DIGIT = 16  # bits of the threshold found per pass over the data

_ATTRS = {
    "auc": "area under the receiver operating characteristic",
    "iou": "intersection over union at the ROC point nearest (0, 1)",
    "decision_threshold": "prediction above which a cell is called smoke at that point",
    "extent": "share of cells with observed smoke above the smoke threshold",
    "relative_error": "relative ℓ² error of the prediction",
    "mass_ratio": "total predicted over total observed smoke",
    "smoke_iou": "intersection over union of predicted and observed smoke above the threshold",
    "deployable_iou": "intersection over union at one decision threshold chosen on validation",
}


def smoke_threshold(smoke: xr.DataArray | Array, captured: float = 0.95) -> float:
    """Smoke threshold τ, in the unit of the smoke, that keeps a fraction of the footprint.

    τ is the largest observed value such that the mean over snapshots of #(g > τ) / #(g > 0) stays
    above `captured` (β in the paper). Every value up to the next observed one gives the same
    footprints. Snapshots without smoke are left out of the mean.

    >>> smoke_threshold(np.array([[0.0, 1.0, 2.0, 3.0, 4.0]]), captured=0.5)
    1.0
    """
    fields = _snapshots_first(smoke)

    def visit(function: Callable[[np.ndarray], Any]) -> Iterator[Any]:
        for rows in field_blocks(fields):  # lazy fields are read block by block
            values = np.ascontiguousarray(fields[rows])
            yield function(values.reshape(values.shape[0], -1))

    return smoke_threshold_over(visit, captured)


Fields: TypeAlias = xr.Dataset | xr.DataArray | Array
"""Labelled fields of one or several outputs, or an array whose first axis is the snapshots."""

Visit: TypeAlias = Callable[[Callable[[np.ndarray], Any]], Iterable[Any]]
"""A pass over the data: applies a function to each (m, N) block of smoke; results in order."""


def smoke_threshold_over(visit: Visit, captured: float) -> float:
    """`smoke_threshold` of data in blocks; `visit` makes one pass over them."""
    if not 0.0 < captured < 1.0:
        raise ArgumentError(
            "captured", captured, "the paper takes 0.95", problem="is not within (0, 1)"
        )
    counts = list(visit(_count_present))
    present = sum(count for count, _ in counts)
    if present == 0:
        raise PlumecastError("no snapshot holds smoke: no threshold can be chosen")
    passed = _value_at(visit, present, counts[0][1], 1.0 - captured - 1e-12)
    return float(max(visit(partial(_largest_below, passed))))


def _count_present(rows: np.ndarray) -> tuple[int, np.dtype[Any]]:
    """The number of snapshots with smoke, and the data type."""
    return int(np.count_nonzero((rows > 0.0).any(axis=1))), rows.dtype


def _largest_below(limit: np.floating, rows: np.ndarray) -> float:
    return float(np.max(rows, where=(rows > 0.0) & (rows < limit), initial=0.0))


def _value_at(visit: Visit, present: int, dtype: np.dtype[Any], share: float) -> np.floating:
    """Weighted quantile: the smallest positive value with a cumulative weight ≥ `share`.

    All positive values of a snapshot have the same weight, together 1 / `present`. Positive
    floating-point numbers have the same order as their bits read as integers. So a radix search
    finds the value exactly, sixteen bits per pass; the weights are sums, so any blocks will do.
    """
    prefix, settled, below = 0, 0, 0.0
    while settled < 8 * dtype.itemsize:
        sums = add_up(visit(partial(_weigh_digits, prefix, settled))) / present
        total = below + np.cumsum(sums)
        occurring = np.flatnonzero((sums > 0.0) & (total >= share))
        digit = int(occurring[0]) if occurring.size else int(np.flatnonzero(sums)[-1])
        below = float(total[digit] - sums[digit])
        prefix, settled = (prefix << _DIGIT) | digit, settled + _DIGIT
    kind = np.dtype(f"u{dtype.itemsize}")
    value: np.floating = np.array([prefix], dtype=kind).view(dtype)[0]
    return value


def _weigh_digits(prefix: int, settled: int, rows: np.ndarray) -> np.ndarray:
    """Weights of the values whose first `settled` bits are `prefix`, per next sixteen bits."""
    size = rows.dtype.itemsize
    shift = 8 * size - settled - _DIGIT
    weights = 1.0 / np.maximum(np.count_nonzero(rows > 0.0, axis=1), 1)
    row, column = np.nonzero(rows > 0.0)
    bits = rows[row, column].view(f"u{size}")
    same = (bits >> (shift + _DIGIT)) == prefix if settled else np.ones(bits.size, bool)
    digits = (bits[same] >> shift) & ((1 << _DIGIT) - 1)
    # For an empty array, NumPy returns integers.
    sums = np.bincount(digits.astype(np.intp), weights[row[same]], minlength=1 << _DIGIT)
    return sums.astype(np.float64, copy=False)


def score_footprints(
    predicted: xr.DataArray | Array,
    observed: xr.DataArray | Array,
    threshold: float,
    decision_threshold: float | None = None,
) -> xr.Dataset:
    """Scores of every snapshot: AUC, IoU with its decision threshold, footprint extent.

    `threshold` is τ, which defines the observed footprint. The decision threshold of the prediction
    is swept. As in the paper, the IoU is taken at the ROC point nearest (0, 1), which needs the
    observations. `deployable_iou` does not: it is the IoU at a `decision_threshold` chosen on other
    data (`choose_decision_threshold`). AUC is NaN if no cell, or every cell, has smoke. IoU is 1 if
    there is neither observed nor predicted smoke.
    """
    parts = [
        score_rows(guess, truth, threshold, decision_threshold)
        for guess, truth in _blocks(predicted, observed)
    ]
    return as_scores(parts, sample_coords(observed), threshold)


def score_rows(
    guess: Array, truth: Array, threshold: float, decision_threshold: float | None
) -> dict[str, np.ndarray]:
    """`score_footprints` of (M, N) matrices on any device: name → (M,) scores on the host."""
    xp = array_namespace(guess, truth)
    footprint = truth > threshold
    scores = roc_scores(guess, footprint)
    columns = {
        "auc": scores.auc,
        "iou": scores.iou,
        "decision_threshold": scores.decision_threshold,
        "extent": xp.mean(xp.astype(footprint, xp.float64), axis=1),
    }
    if decision_threshold is not None:
        columns["deployable_iou"] = iou_at(guess, footprint, decision_threshold)
    return {name: to_numpy(values) for name, values in columns.items()}


def as_scores(
    parts: Sequence[Mapping[str, np.ndarray]], coords: Mapping[str, xr.DataArray], threshold: float
) -> xr.Dataset:
    """Join the scores of consecutive blocks of snapshots into one labelled data set."""
    if not parts:
        raise PlumecastError("there are no snapshots to score")
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    data = {name: (SNAPSHOT, own, {"long_name": _ATTRS[name]}) for name, own in joined.items()}
    return xr.Dataset(data, coords=dict(coords), attrs={"smoke_threshold": threshold})


def choose_decision_threshold(
    predicted: xr.DataArray | Array, observed: xr.DataArray | Array, threshold: float
) -> float:
    """One decision threshold α for all snapshots: the one with the largest mean IoU.

    Choose it on validation snapshots and use it on others. Candidates are 0, τ and quantiles of the
    positive predictions, which are exact to 2 %.
    """

    def visit(function: Callable[[Array, Array], np.ndarray]) -> Iterator[np.ndarray]:
        return (function(guess, truth > threshold) for guess, truth in _blocks(predicted, observed))

    return decision_threshold_over(visit, [threshold])


def ratio(wrong: float, size: float) -> float:
    """√(wrong / size); 0 if both are zero, NaN if only `size` is zero."""
    if size == 0.0:
        return 0.0 if wrong == 0.0 else float("nan")
    return float(np.sqrt(wrong / size))


def relative_error(predicted: Fields, observed: Fields) -> Any:
    """‖ĝ − g‖ / ‖g‖ over all snapshots and cells (Frobenius).

    For a Dataset of several predicted outputs, one error per output, by name: their units may
    differ. Observed variables that were not predicted are ignored.
    """

    def error(pairs: Iterator[tuple[Array, Array]]) -> float:
        wrong = size = 0.0
        for guess, truth in pairs:
            wrong += float(np.sum((guess - truth) ** 2))
            size += float(np.sum(truth**2))
        return ratio(wrong, size)

    return _of_each(error, predicted, observed)


def snapshot_relative_errors(predicted: Fields, observed: Fields) -> Any:
    """‖ĝ − g‖ / ‖g‖ of every snapshot, (M,); where g = 0: 0 if ĝ = 0, else NaN.

    For a Dataset of several predicted outputs, such errors of each output, by name.
    """

    def errors(pairs: Iterator[tuple[Array, Array]]) -> np.ndarray:
        return np.concatenate([row_errors(*pair) for pair in pairs])

    return _of_each(errors, predicted, observed)


def _of_each(score: Callable[[Iterator[Any]], Any], predicted: Fields, observed: Fields) -> Any:
    """A score of the blocks of a prediction, or one of each variable of a Dataset, by name."""
    if isinstance(predicted, xr.Dataset):
        variables = predicted.data_vars.items()
        return {str(name): _of_each(score, field, observed) for name, field in variables}
    if isinstance(observed, xr.Dataset):
        name = predicted.name if isinstance(predicted, xr.DataArray) else None
        if name not in observed:
            raise PlumecastError(
                f"prediction '{name}' is not among the observed {', '.join(map(str, observed))}; "
                "pass the observed field itself"
            )
        observed = observed[name]
    return score(_blocks(predicted, observed))


def row_errors(guess: Array, truth: Array) -> np.ndarray:
    """`snapshot_relative_errors` of (M, N) matrices on any device."""
    xp = array_namespace(guess, truth)
    wrong = xp.sqrt(xp.sum((guess - truth) ** 2, axis=1))
    size = xp.sqrt(xp.sum(truth**2, axis=1))
    empty = xp.where(wrong == 0.0, xp.zeros_like(wrong), xp.nan)
    return to_numpy(xp.where(size > 0.0, wrong / xp.where(size > 0.0, size, 1.0), empty))


def _snapshots_first(fields: xr.DataArray | Array) -> xr.DataArray | Array:
    if isinstance(fields, xr.DataArray) and SNAPSHOT in fields.dims:
        return fields.transpose(SNAPSHOT, ...)
    return fields


def _blocks(
    predicted: xr.DataArray | Array, observed: xr.DataArray | Array
) -> Iterator[tuple[Array, Array]]:
    predicted, observed = _snapshots_first(predicted), _snapshots_first(observed)
    if isinstance(predicted, xr.DataArray) and isinstance(observed, xr.DataArray):
        predicted = predicted.transpose(*observed.dims)
    if predicted.shape != observed.shape:
        raise PlumecastError(
            f"prediction {predicted.shape} and observation {observed.shape} differ in shape"
        )
    if predicted.shape[0] == 0:
        raise PlumecastError("there are no snapshots to score")
    for rows in row_blocks(predicted.shape[0], _BLOCK):
        guess, truth = (np.asarray(fields[rows]) for fields in (predicted, observed))
        count = guess.shape[0]
        yield guess.reshape(count, -1).astype(float), truth.reshape(count, -1).astype(float)


def sample_coords(observed: xr.DataArray | Array) -> dict[str, xr.DataArray]:
    """The coordinates along the snapshots of a field; none for an array."""
    if not isinstance(observed, xr.DataArray):
        return {}
    return {str(k): v for k, v in observed.coords.items() if v.dims == (SNAPSHOT,)}
