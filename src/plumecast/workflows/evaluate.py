"""Score surrogates and baselines side by side on snapshots they have not seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
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

    def record(self) -> dict[str, Any]:
        """The scores as plain values, without the time of predictions, which is never the same."""
        scores = [asdict(score) for score in self.scores]
        for score in scores:
            del score["predict_ms"]
        return {
            "snapshots": self.snapshots,
            "smoke_threshold": self.smoke_threshold,
            "captured": self.captured,
            "scores": scores,
        }


def recorded_evaluation(record: Mapping[str, Any]) -> Evaluation:
    """The evaluation that `Evaluation.record` wrote; times of predictions are NaN."""
    scores = [Score(**score, predict_ms=math.nan) for score in record["scores"]]
    return Evaluation(
        scores, record["snapshots"], record["smoke_threshold"], record["captured"], details={}
    )


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
    return _thresholds([_in_blocks(surrogate, validation, device, memory, runner)], captured)


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
        thresholds = _thresholds(parts[:1], captured)
        tau = thresholds.smoke
        score, details[name] = _score(name, parts[1:], thresholds)
        scores.append(score)
    return Evaluation(scores, int(test.sizes[SNAPSHOT]), tau, captured, details)


def evaluate_folds(
    folds: Mapping[str, Sequence[tuple[Surrogate, xr.Dataset]]],
    *,
    captured: float = CAPTURED,
    by: str = "ignition_id",
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
) -> Evaluation:
    """Choose thresholds and score on out-of-fold predictions.

    `folds` has pairs by name: a surrogate, and the snapshots that were left out of its fit. The
    thresholds of a name are the same for all its folds and are chosen on the predictions that are
    scored, so its deployable IoU is slightly too good: by the choice of one number.
    """
    scores, details, count, tau = [], {}, 0, math.nan
    for name, pairs in folds.items():
        for surrogate, part in pairs:
            refuse_leaks(surrogate, by, part)
        parts = [_in_blocks(*pair, device, memory, runner) for pair in pairs]
        thresholds = _thresholds(parts, captured)
        tau, count = thresholds.smoke, sum(part.sizes[SNAPSHOT] for _, part in pairs)
        score, details[name] = _score(name, parts, thresholds)
        scores.append(score)
    return Evaluation(scores, count, tau, captured, details)


def evaluate_at(
    surrogates: Mapping[str, tuple[Surrogate, Thresholds]],
    test: xr.Dataset,
    *,
    captured: float = CAPTURED,
    progress: Callable[[str], None] = lambda name: None,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
) -> Evaluation:
    """Score surrogates on all of `test`, with thresholds that were chosen on other snapshots."""
    scores, details, tau = [], {}, math.nan
    for name, (surrogate, thresholds) in surrogates.items():
        progress(name)
        part = _in_blocks(surrogate, test, device, memory, runner)
        score, details[name] = _score(name, [part], thresholds)
        scores.append(score)
        tau = thresholds.smoke
    return Evaluation(scores, int(test.sizes[SNAPSHOT]), tau, captured, details)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Snapshots in blocks, which this process or an executor processes in order."""

    surrogate: Surrogate  # that predicts them, on its device
    snapshots: xr.Dataset
    size: int
    stored: bool  # whether fields are read lazily from files, which may change
    runner: Runner | None

    def visit(self, function: Callable[[xr.Dataset], Any]) -> Iterator[Any]:
        """function(block) of every block, in order."""
        rows = row_blocks(self.snapshots.sizes[SNAPSHOT], self.size)
        shared = (function, self.snapshots, self.stored)
        return map_over(_visit_block, shared, rows, self.runner)


def _visit_all(
    parts: Sequence[_Blocks], make: Callable[[Surrogate], Callable[[xr.Dataset], Any]]
) -> Iterator[Any]:
    """make(surrogate)(block) of every block of every part, in order."""
    return chain.from_iterable(part.visit(make(part.surrogate)) for part in parts)


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
    placed = surrogate.on_device(device)
    return _Blocks(placed, snapshots, size, memory is not None, runner)


def _thresholds(parts: Sequence[_Blocks], captured: float) -> Thresholds:
    tau = smoke_threshold_over(
        lambda function: _visit_all(parts, lambda own: partial(_of_smoke, own.outputs, function)),
        captured,
    )
    alpha = decision_threshold_over(
        lambda function: _visit_all(parts, lambda own: partial(_of_detection, own, tau, function)),
        [tau],
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


def _score(name: str, tests: Sequence[_Blocks], thresholds: Thresholds) -> tuple[Score, xr.Dataset]:
    """The scores of a surrogate over all snapshots, and those of every snapshot."""
    parts = list(_visit_all(tests, lambda own: partial(_score_block, own, thresholds)))
    observed = [_observed(test.surrogate.outputs, test.snapshots) for test in tests]
    coords = [sample_coords(field) for field in observed]
    joined = {
        key: coords[0][key] if len(coords) == 1 else xr.concat([c[key] for c in coords], SNAPSHOT)
        for key in coords[0]
    }
    each = as_scores([part.each for part in parts], joined, thresholds.smoke)
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
