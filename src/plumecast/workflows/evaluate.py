"""Score surrogates and baselines side by side on snapshots they have not seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.compute.device import refuse_device
from plumecast.data.layout import Layout, to_rows
from plumecast.data.lazy_store import check_unchanged
from plumecast.scores.footprint import (
    as_scores,
    ratio,
    row_errors,
    sample_coords,
    score_rows,
    smoke_threshold_over,
)
from plumecast.scores.roc import decision_threshold_over
from plumecast.scores.summary import known_median
from plumecast.surrogate.memory_plan import CLUSTER_MEMORY, prediction_rows
from plumecast.surrogate.surrogate import Surrogate

BLOCK = 256
"""Largest number of snapshots scored at a time."""

SCORE_BYTES = 160.0
"""Bytes per cell while a snapshot is scored: about twenty arrays, most of them for the ROC."""

CAPTURED = 0.95
"""Share of the footprint that the smoke threshold captures: β in the paper."""


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of one surrogate; AUC and IoU are medians over snapshots."""

    name: str
    auc: float
    iou: float  # at the ROC point nearest (0, 1), which needs the observed smoke, as in the paper
    deployable_iou: float  # at one decision threshold chosen on validation
    decision_threshold: float
    relative_error: float  # in the Frobenius norm over all snapshots
    snapshot_error: float  # median over snapshots of the relative ℓ² error
    auc_undefined: int  # number of snapshots without an AUC: no smoke, or smoke in every cell
    predict_ms: float  # per snapshot


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of several surrogates on the same snapshots, and the smoke threshold."""

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
    runner: Runner | None = None,
) -> Thresholds:
    """Choose the thresholds on validation: τ by its rule, α by the largest mean IoU."""
    snapshots = _in_blocks(surrogate, validation, device, memory, runner)
    return _thresholds(surrogate.on_device(device), snapshots, captured)


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
    runner: Runner | None = None,
) -> Evaluation:
    """Choose thresholds on validation and score on test, for every surrogate.

    Raises if a surrogate was trained on an ignition of either part (or on another group, if `by`
    names another grouping coordinate). Predictions and scores are computed on `device`, in blocks
    that keep to `memory` ("2GB") if the fields are in a store. With a `runner` (`pc.cluster`) the
    workers of a cluster read, predict and score the blocks, each within `memory`; only scores and
    counts are sent back. `progress` is called with the name of each surrogate.
    """
    if not surrogates:
        raise PlumecastError("there is no surrogate to evaluate; give at least one")
    scores, details = [], {}
    tau = math.nan
    for name, surrogate in surrogates.items():
        progress(name)
        refuse_leaks(surrogate, by, validation, test)
        parts = [_in_blocks(surrogate, part, device, memory, runner) for part in (validation, test)]
        placed = surrogate.on_device(device)
        thresholds = _thresholds(placed, parts[0], captured)
        tau = thresholds.smoke
        score, details[name] = _score(name, placed, parts[1], thresholds)
        scores.append(score)
    return Evaluation(scores, int(test.sizes[SNAPSHOT]), tau, captured, details)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Snapshots in blocks, which this process or an executor processes in order."""

    snapshots: xr.Dataset
    size: int
    stored: bool  # whether fields are read lazily from files, which may change
    runner: Runner | None

    def visit(self, function: Callable[[xr.Dataset], Any]) -> Iterator[Any]:
        """function(block) of every block, in order."""
        rows = row_blocks(self.snapshots.sizes[SNAPSHOT], self.size)
        shared = (function, self.snapshots, self.stored)
        return map_over(_visit_block, shared, rows, self.runner)


def _visit_block(shared: tuple[Callable[[xr.Dataset], Any], xr.Dataset, bool], rows: slice) -> Any:
    function, snapshots, stored = shared
    if stored:
        check_unchanged(snapshots)
    return function(snapshots.isel({SNAPSHOT: rows}))


def _in_blocks(
    surrogate: Surrogate,
    snapshots: xr.Dataset,
    device: str,
    memory: str | int | None,
    runner: Runner | None,
) -> _Blocks:
    """Blocks of snapshots that keep to the memory limit; sorting for the ROC needs most of it."""
    if runner is not None:
        memory = memory or CLUSTER_MEMORY
        refuse_device(device)
    size = BLOCK
    if memory is not None:
        size = prediction_rows(
            surrogate,
            memory,
            input_bytes=24.0,
            output_bytes=SCORE_BYTES,
            what="scoring",
            most=BLOCK,
        )
    return _Blocks(snapshots, size, memory is not None, runner)


def _thresholds(surrogate: Surrogate, validation: _Blocks, captured: float) -> Thresholds:
    tau = smoke_threshold_over(
        lambda function: validation.visit(partial(_of_smoke, surrogate.outputs, function)),
        captured,
    )
    alpha = decision_threshold_over(
        lambda function: validation.visit(partial(_of_detection, surrogate, tau, function)), [tau]
    )
    return Thresholds(tau, alpha)


def _of_smoke(outputs: Layout, function: Callable[[np.ndarray], Any], block: xr.Dataset) -> Any:
    """A function of the (m, N) observed smoke of a block, in the precision of the store."""
    observed = _observed(outputs, block).transpose(SNAPSHOT, ...)
    return function(np.ascontiguousarray(observed.values).reshape(observed.shape[0], -1))


def _of_detection(
    surrogate: Surrogate,
    tau: float,
    function: Callable[[Array, Array], np.ndarray],
    block: xr.Dataset,
) -> np.ndarray:
    """A function of the detection score (or the smoke) and the observed footprint of a block."""
    _, score = _predict(surrogate, block)
    return function(score, _truth(surrogate, block, score) > tau)


def _predict(surrogate: Surrogate, block: xr.Dataset) -> tuple[Array, Array]:
    """Smoke and detection score as float64 matrices on the operator's device.

    They are rounded to the precision of the input, as in `Surrogate.predict`.
    """
    both = surrogate.predict_both_rows(*surrogate.read_rows(block))
    single = block[surrogate.inputs.fields[0].name].dtype == np.float32

    def rounded(values: Array) -> Array:
        xp = array_namespace(values)
        values = xp.astype(values, xp.float32, copy=False) if single else values
        return xp.astype(values, xp.float64, copy=False)

    smoke = rounded(both[0])
    return smoke, smoke if both[1] is both[0] else rounded(both[1])


class _BlockScores(NamedTuple):
    each: dict[str, np.ndarray]  # by name, one value per snapshot
    wrong: float  # Σ (ĝ − g)²
    size: float  # Σ g²
    seconds: float  # of the prediction


def _score_block(surrogate: Surrogate, thresholds: Thresholds, block: xr.Dataset) -> _BlockScores:
    start = time.perf_counter()
    predicted, detected = _predict(surrogate, block)
    float(predicted[0, 0])  # waits for the device
    seconds = time.perf_counter() - start
    truth = _truth(surrogate, block, predicted)
    each = score_rows(detected, truth, thresholds.smoke, thresholds.decision)
    xp = array_namespace(predicted)
    return _BlockScores(
        each | {"relative_error": row_errors(predicted, truth)},
        float(xp.sum((predicted - truth) ** 2)),
        float(xp.sum(truth**2)),
        seconds,
    )


def _score(
    name: str, surrogate: Surrogate, test: _Blocks, thresholds: Thresholds
) -> tuple[Score, xr.Dataset]:
    """The scores of a surrogate over all snapshots, and those of every snapshot."""
    parts = list(test.visit(partial(_score_block, surrogate, thresholds)))
    coords = sample_coords(_observed(surrogate.outputs, test.snapshots))
    each = as_scores([part.each for part in parts], coords, thresholds.smoke)
    score = Score(
        name=name,
        auc=known_median(each.auc.values),
        iou=known_median(each.iou.values),
        deployable_iou=known_median(each.deployable_iou.values),
        decision_threshold=thresholds.decision,
        relative_error=ratio(sum(part.wrong for part in parts), sum(part.size for part in parts)),
        snapshot_error=known_median(each.relative_error.values),
        auc_undefined=int(np.isnan(each.auc.values).sum()),
        predict_ms=1e3 * sum(part.seconds for part in parts) / each.sizes[SNAPSHOT],
    )
    return score, each


def _truth(surrogate: Surrogate, block: xr.Dataset, other: Array) -> Array:
    """(m, N) observed smoke, on the device of `other`."""
    observed = _observed(surrogate.outputs, block)
    return like(to_rows(observed, surrogate.outputs.fields[0], [SNAPSHOT]), other)


def refuse_leaks(surrogate: Surrogate, by: str, *parts: xr.Dataset) -> None:
    """Raise if the surrogate was trained on a group (an ignition by default) of any part."""
    trained = set(surrogate.training.get(by, ()))
    for part in parts:
        if trained and by not in part.variables:
            raise PlumecastError(
                f"coordinate '{by}' is missing, so that it is unknown whether the surrogate was "
                "trained on these snapshots; add it"
            )
        shared = sorted(trained and trained.intersection(part[by].values.astype(str).tolist()))
        if shared:
            raise PlumecastError(
                f"the surrogate was trained on {len(shared)} {by} of these snapshots, the first "
                f"'{shared[0]}'; score it on other fires"
            )


def _observed(outputs: Layout, part: xr.Dataset) -> xr.DataArray:
    if len(outputs.names) != 1:
        raise PlumecastError(
            f"footprints need one output, this surrogate has {', '.join(outputs.names)}"
        )
    name = outputs.names[0]
    if name not in part:
        raise PlumecastError(
            f"variable '{name}' is missing from these snapshots; a score needs observed {SMOKE}"
        )
    return part[name]
