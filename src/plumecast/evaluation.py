"""Score surrogates and baselines side by side on snapshots they have not seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast._array import Array, array_namespace, bytes_in, like
from plumecast.blocks import row_blocks
from plumecast.errors import PlumecastError
from plumecast.matrix import to_rows
from plumecast.memory import parse_memory, rows_within
from plumecast.names import SMOKE, SNAPSHOT
from plumecast.quantity.footprint import (
    as_scores,
    ratio,
    row_errors,
    sample_coords,
    score_rows,
    smoke_threshold,
)
from plumecast.roc import decision_threshold_over
from plumecast.surrogate import Surrogate

BLOCK = 256
"""Snapshots scored together."""

SCORE_BYTES = 160.0
"""Bytes per cell while a snapshot is scored: about twenty arrays, most of them of the ROC."""

CAPTURED = 0.95
"""The share of the footprint that the smoke threshold captures: β in the paper."""


@dataclass(frozen=True, slots=True)
class Score:
    """How one surrogate did: medians over the scored snapshots."""

    name: str
    auc: float
    iou: float  # at the ROC point nearest (0, 1): peeks at the answer, as in the paper
    deployable_iou: float  # at one decision threshold chosen on validation
    decision_threshold: float
    relative_error: float  # Frobenius, all snapshots together
    snapshot_error: float  # median over snapshots of the relative ℓ² error
    auc_undefined: int  # snapshots left out of the AUC: no smoke, or nothing but smoke
    predict_ms: float  # per snapshot


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of several surrogates on the same snapshots, and what they were scored against."""

    scores: list[Score]
    snapshots: int
    smoke_threshold: float
    captured: float
    details: dict[str, xr.Dataset]  # per-snapshot scores by name


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Smoke threshold τ in the data and decision threshold α in the predictions."""

    smoke: float
    decision: float


def fit_thresholds(
    surrogate: Surrogate,
    validation: xr.Dataset,
    captured: float = CAPTURED,
    *,
    device: str = "cpu",
    memory: str | int | None = None,
) -> Thresholds:
    """τ by its rule and the one α of largest mean IoU, both on validation snapshots."""
    placed = surrogate.on_device(device)
    tau = smoke_threshold(_observed(surrogate, validation), captured)
    size = _block_size(surrogate, memory)

    def pairs() -> Iterator[tuple[Array, Array]]:
        blocks = _detections(placed, validation, size)
        return ((found, truth > tau) for found, truth in blocks)

    alpha = decision_threshold_over(pairs, [tau])
    return Thresholds(tau, alpha)


def evaluate(
    surrogates: Mapping[str, Surrogate],
    validation: xr.Dataset,
    test: xr.Dataset,
    *,
    captured: float = CAPTURED,
    by: str = "ignition_id",
    progress: Callable[[str], None] = lambda name: None,
    device: str = "cpu",
    memory: str | int | None = None,
) -> Evaluation:
    """Thresholds on validation, scores on test, for every surrogate. `progress` hears each name.

    A surrogate that was trained on an ignition (or what `by` names) of either part is refused.
    Predictions and scores are made on `device`, block by block: fields that stay in their store
    are read so that `memory` ("2GB") is kept.
    """
    if not surrogates:
        raise PlumecastError("there is no surrogate to evaluate")
    scores, details = [], {}
    tau = math.nan
    for name, surrogate in surrogates.items():
        progress(name)
        refuse_leaks(surrogate, by, validation, test)
        thresholds = fit_thresholds(surrogate, validation, captured, device=device, memory=memory)
        tau = thresholds.smoke
        size = _block_size(surrogate, memory)
        score, details[name] = _score(name, surrogate.on_device(device), test, size, thresholds)
        scores.append(score)
    return Evaluation(scores, int(test.sizes[SNAPSHOT]), tau, captured, details)


def _score(
    name: str, surrogate: Surrogate, test: xr.Dataset, block_size: int, thresholds: Thresholds
) -> tuple[Score, xr.Dataset]:
    """The scores of a surrogate over blocks of snapshots: means of sums, and per snapshot."""
    parts: list[dict[str, np.ndarray]] = []
    seconds = wrong = size = 0.0
    for block in _blocks(test, block_size):
        start = time.perf_counter()
        predicted = surrogate.predict_dataset_rows(block)
        float(predicted[0, 0])  # waits for the device
        seconds += time.perf_counter() - start
        truth = _truth(surrogate, block, predicted)
        detected = (
            surrogate.detector.predict_dataset_rows(block) if surrogate.detects else predicted
        )
        part = score_rows(detected, truth, thresholds.smoke, thresholds.decision)
        parts.append(part | {"relative_error": row_errors(predicted, truth)})
        xp = array_namespace(predicted)
        wrong += float(xp.sum((predicted - truth) ** 2))
        size += float(xp.sum(truth**2))
    each = as_scores(parts, sample_coords(_observed(surrogate, test)), thresholds.smoke)
    score = Score(
        name=name,
        auc=_median(each.auc),
        iou=_median(each.iou),
        deployable_iou=_median(each.deployable_iou),
        decision_threshold=thresholds.decision,
        relative_error=ratio(wrong, size),
        snapshot_error=_median(each.relative_error),
        auc_undefined=int(np.isnan(each.auc.values).sum()),
        predict_ms=1e3 * seconds / each.sizes[SNAPSHOT],
    )
    return score, each


def _block_size(surrogate: Surrogate, memory: str | int | None) -> int:
    """Snapshots scored together: few enough for the memory, whose bulk is the sorting."""
    if memory is None:
        return BLOCK
    return rows_within(
        parse_memory(memory),
        fixed=float(bytes_in(surrogate.operator)),
        per_row=24.0 * surrogate.inputs.size + SCORE_BYTES * surrogate.outputs.size,
        what="scoring",
        most=BLOCK,
    )


def _blocks(part: xr.Dataset, size: int) -> Iterator[xr.Dataset]:
    for rows in row_blocks(part.sizes[SNAPSHOT], size):
        yield part.isel({SNAPSHOT: rows})


def _detections(surrogate: Surrogate, part: xr.Dataset, size: int) -> Iterator[tuple[Array, Array]]:
    """What the footprint is read from, and the observed smoke, block by block."""
    source = surrogate.detector if surrogate.detects else surrogate
    for block in _blocks(part, size):
        found = source.predict_dataset_rows(block)
        yield found, _truth(surrogate, block, found)


def _truth(surrogate: Surrogate, block: xr.Dataset, near: Array) -> Array:
    rows = to_rows(_observed(surrogate, block), surrogate.outputs.fields[0], [SNAPSHOT])
    return like(rows, near)


def refuse_leaks(surrogate: Surrogate, by: str, *parts: xr.Dataset) -> None:
    """Raise when a part holds an ignition (or what `by` names) the surrogate was trained on."""
    trained = set(surrogate.training.get(by, ()))
    for part in parts:
        if trained and by not in part.variables:
            raise PlumecastError(
                f"coordinate '{by}' is missing: nothing shows that the surrogate was not trained "
                "on these snapshots"
            )
        shared = sorted(trained and trained.intersection(part[by].values.astype(str).tolist()))
        if shared:
            raise PlumecastError(
                f"the surrogate was trained on {len(shared)} {by} of these snapshots, the first "
                f"'{shared[0]}'; score it on others"
            )


def _observed(surrogate: Surrogate, part: xr.Dataset) -> xr.DataArray:
    if len(surrogate.outputs.names) != 1:
        raise PlumecastError(
            f"footprints need one output, this surrogate has {', '.join(surrogate.outputs.names)}"
        )
    name = surrogate.outputs.names[0]
    if name not in part:
        raise PlumecastError(f"variable '{name}' is missing; is this a store of {SMOKE}?")
    return part[name]


def _median(values: xr.DataArray) -> float:
    known = values.values[~np.isnan(values.values)]
    return float(np.median(known)) if known.size else math.nan
