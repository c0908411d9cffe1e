"""Score surrogates and baselines side by side on snapshots they have not seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, like, to_numpy
from plumecast.compute.blocks import Runner, add_up
from plumecast.data.layout import Layout, to_rows
from plumecast.scores.footprint import (
    as_scores,
    ratio,
    row_errors,
    sample_coords,
    score_rows,
    smoke_threshold_over,
)
from plumecast.scores.quantities import DEFAULT
from plumecast.scores.roc import decision_threshold_over, iou_at
from plumecast.scores.summary import known_median
from plumecast.surrogate.error_bars.counting import CellBins, Cells, add_cells, choose_bins
from plumecast.surrogate.guards import refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import AGREE, Thresholds, joint_score, stored_agreement
from plumecast.workflows.held_out.blocks import HeldOutBlocks, in_blocks, visit_all
from plumecast.workflows.held_out.evaluation import Evaluation, Score
from plumecast.workflows.held_out.levels import Levels, make_levels

CAPTURED = 0.95
"""Share of the footprint that the smoke threshold captures: β in the paper."""


def fit_thresholds(
    surrogate: Surrogate,
    validation: xr.Dataset,
    captured: float = CAPTURED,
    *,
    joint: bool = False,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
) -> Thresholds:
    """Choose the thresholds on validation: τ by its rule, α by the largest mean IoU.

    With `joint`, α is that of the joint score, for a surrogate that will be `agreeing`.
    """
    own = separate(surrogate) if joint else surrogate
    return _thresholds([in_blocks(own, validation, device, memory, runner)], captured, joint=joint)


def agreeing(surrogate: Surrogate, thresholds: Thresholds) -> Surrogate:
    """The surrogate with recorded thresholds: if it detects, its smoke and footprint agree."""
    record = thresholds.record(agree=surrogate.detects)
    return replace(surrogate, training=surrogate.training | record)


def separate(surrogate: Surrogate) -> Surrogate:
    """The surrogate with smoke and detection score as they were fitted, two answers."""
    kept = {name: value for name, value in surrogate.training.items() if name != AGREE}
    return replace(surrogate, training=kept)


def evaluate(
    surrogates: Mapping[str, Surrogate],
    validation: xr.Dataset,
    test: xr.Dataset,
    *,
    captured: float = CAPTURED,
    thresholds: Sequence[float] = (),
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    by: str = "ignition_id",
    progress: Callable[[str], None] = lambda name: None,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    calibrate: bool = False,
) -> Evaluation:
    """Choose thresholds on validation and score on test, for every surrogate.

    `thresholds` are values at which hit rate, false alarms and bias are scored, beside τ. They are
    compared with a `quantity` of smoke: the time mean since ignition (µg m⁻³), the "dose"
    (µg m⁻³ h) or the "sum" over checkpoints; `checkpoint_interval` states their interval in hours
    where the snapshots do not record it. τ and the other scores are of the sum.
    Raises if a surrogate was trained on an ignition of either part (or on another group, if `by`
    names another grouping coordinate). Predictions and scores are computed on `device`, in blocks
    that keep to `memory` ("2GB") if the fields are in a store. With a `runner` (`pc.cluster`) the
    workers of a cluster read, predict and score the blocks, each within `memory`; only scores and
    counts are sent back. `progress` is called with the name of each surrogate. With `calibrate` the
    cells of the first one are also counted by predicted and observed smoke, for its error bars.
    """
    if not surrogates:
        raise PlumecastError("there is no surrogate to evaluate; give at least one")
    levels = make_levels(thresholds, quantity, checkpoint_interval)
    for surrogate in surrogates.values():
        levels.check(_observed(surrogate.outputs, test))
    scores, details, cells, tau = list[Score](), {}, None, math.nan
    for name, surrogate in surrogates.items():
        progress(name)
        refuse_leaks(surrogate, by, validation, test)
        parts = [in_blocks(surrogate, part, device, memory, runner) for part in (validation, test)]
        chosen = _thresholds(parts[:1], captured)
        tau = chosen.smoke
        bins = choose_bins(surrogate, tau, by) if calibrate and not scores else None
        score, details[name], found = _score(name, parts[1:], chosen, levels, bins)
        cells = cells or found
        scores.append(score)
    count = int(test.sizes[SNAPSHOT])
    return Evaluation(scores, count, tau, captured, details, levels.quantity, cells)


def evaluate_folds(
    folds: Mapping[str, Sequence[tuple[Surrogate, xr.Dataset]]],
    *,
    captured: float = CAPTURED,
    thresholds: Sequence[float] = (),
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    by: str = "ignition_id",
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    calibrate: bool = False,
) -> Evaluation:
    """Choose thresholds and score on out-of-fold predictions.

    `folds` has pairs by name: a surrogate, and the snapshots that were left out of its fit. The
    thresholds of a name are the same for all its folds and are chosen on the predictions that are
    scored, so its deployable IoU is slightly too good: by the choice of one number. Surrogates with
    a detection score are scored as they will be used: `agreeing`. `calibrate` as in `evaluate`.
    """
    levels = make_levels(thresholds, quantity, checkpoint_interval)
    scores, details, cells, count, tau = list[Score](), {}, None, 0, math.nan
    for name, pairs in folds.items():
        for surrogate, part in pairs:
            refuse_leaks(surrogate, by, part)
            levels.check(_observed(surrogate.outputs, part))
        parts = [in_blocks(*pair, device, memory, runner) for pair in pairs]
        chosen = _thresholds(parts, captured, joint=True)
        parts = [replace(part, surrogate=agreeing(part.surrogate, chosen)) for part in parts]
        tau, count = chosen.smoke, sum(part.sizes[SNAPSHOT] for _, part in pairs)
        bins = choose_bins(pairs[0][0], tau, by) if calibrate and not scores else None
        score, details[name], found = _score(name, parts, chosen, levels, bins)
        cells = cells or found
        scores.append(score)
    return Evaluation(scores, count, tau, captured, details, levels.quantity, cells)


def evaluate_at(
    surrogates: Mapping[str, tuple[Surrogate, Thresholds]],
    test: xr.Dataset,
    *,
    captured: float = CAPTURED,
    thresholds: Sequence[float] = (),
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    progress: Callable[[str], None] = lambda name: None,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
) -> Evaluation:
    """Score surrogates on all of `test`, with thresholds that were chosen on other snapshots."""
    levels = make_levels(thresholds, quantity, checkpoint_interval)
    scores, details, tau = [], {}, math.nan
    for name, (surrogate, chosen) in surrogates.items():
        progress(name)
        levels.check(_observed(surrogate.outputs, test))
        part = in_blocks(surrogate, test, device, memory, runner)
        score, details[name], _ = _score(name, [part], chosen, levels)
        scores.append(score)
        tau = chosen.smoke
    return Evaluation(scores, int(test.sizes[SNAPSHOT]), tau, captured, details, levels.quantity)


def _thresholds(
    parts: Sequence[HeldOutBlocks], captured: float, *, joint: bool = False
) -> Thresholds:
    """τ and α; the recorded ones of a surrogate whose smoke and footprint agree at this τ."""
    tau = smoke_threshold_over(
        lambda function: visit_all(parts, lambda own: partial(_of_smoke, own.outputs, function)),
        captured,
    )
    known = [stored_agreement(part.surrogate.training) for part in parts]
    if known[0] is not None and known[0].thresholds.smoke == tau and len(set(known)) == 1:
        return known[0].thresholds

    def detect(own: Surrogate, function: Callable[[Array, Array], np.ndarray]) -> Any:
        return partial(_of_detection, own, tau, joint and own.detects, function)

    alpha = decision_threshold_over(
        lambda function: visit_all(parts, lambda own: detect(own, function)), [tau]
    )
    return Thresholds(tau, alpha)


def _of_smoke(outputs: Layout, function: Callable[[np.ndarray], Any], block: xr.Dataset) -> Any:
    """A function of the (m, N) observed smoke of a block, in the precision of the store."""
    observed = _observed(outputs, block).transpose(SNAPSHOT, ...)
    return function(np.ascontiguousarray(observed.values).reshape(observed.shape[0], -1))


def _of_detection(
    surrogate: Surrogate,
    tau: float,
    joint: bool,
    function: Callable[[Array, Array], np.ndarray],
    block: xr.Dataset,
) -> np.ndarray:
    """A function of the detection score (or the smoke) and the observed footprint of a block."""
    smoke, score = _predict(surrogate, block)
    score = joint_score(smoke, score, tau) if joint else score
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
    counts: np.ndarray  # (1 + T, 3) of `Levels.counts`: at τ and at every threshold
    wrong: float  # Σ (ĝ − g)²
    size: float  # Σ g²
    seconds: float  # of the prediction
    cells: Cells | None  # by group, for error bars


def _score_block(
    surrogate: Surrogate,
    chosen: Thresholds,
    levels: Levels,
    bins: CellBins | None,
    block: xr.Dataset,
) -> _BlockScores:
    start = time.perf_counter()
    predicted, detected = _predict(surrogate, block)
    float(predicted[0, 0])  # waits for the device
    seconds = time.perf_counter() - start
    truth = _truth(surrogate, block, predicted)
    each = score_rows(detected, truth, chosen.smoke, chosen.decision)
    each["smoke_iou"] = to_numpy(iou_at(predicted, truth > chosen.smoke, chosen.smoke))
    xp = array_namespace(predicted)
    wrong = float(xp.sum((predicted - truth) ** 2))
    refuse_infinite(wrong)
    return _BlockScores(
        each | {"relative_error": row_errors(predicted, truth)},
        levels.counts(
            surrogate, block, _observed(surrogate.outputs, block), predicted, truth, chosen.smoke
        ),
        wrong,
        float(xp.sum(truth**2)),
        seconds,
        None if bins is None else bins.count(block, predicted, detected, truth),
    )


def _score(
    name: str,
    tests: Sequence[HeldOutBlocks],
    chosen: Thresholds,
    levels: Levels,
    bins: CellBins | None = None,
) -> tuple[Score, xr.Dataset, Cells | None]:
    """Scores of a surrogate over all snapshots, those of every snapshot, and cells by group."""
    parts = list(visit_all(tests, lambda own: partial(_score_block, own, chosen, levels, bins)))
    observed = [_observed(test.surrogate.outputs, test.snapshots) for test in tests]
    coords = [sample_coords(field) for field in observed]
    joined = {
        key: coords[0][key] if len(coords) == 1 else xr.concat([c[key] for c in coords], SNAPSHOT)
        for key in coords[0]
    }
    each = as_scores([part.each for part in parts], joined, chosen.smoke)
    counts = add_up(part.counts for part in parts)
    score = Score(
        name=name,
        auc=known_median(each.auc.values),
        iou=known_median(each.iou.values),
        deployable_iou=known_median(each.deployable_iou.values),
        decision_threshold=chosen.decision,
        relative_error=ratio(sum(part.wrong for part in parts), sum(part.size for part in parts)),
        snapshot_error=known_median(each.relative_error.values),
        auc_undefined=int(np.isnan(each.auc.values).sum()),
        predict_ms=1e3 * sum(part.seconds for part in parts) / each.sizes[SNAPSHOT],
        smoke_iou=known_median(each.smoke_iou.values),
        exceedances=levels.scores(chosen.smoke, counts),
    )
    return score, each, add_cells(part.cells for part in parts)


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
            f"footprints need one output, this surrogate has {', '.join(outputs.names)}; score "
            f"one at a time: surrogate.output('{outputs.names[0]}')"
        )
    name = outputs.names[0]
    if name not in part:
        raise PlumecastError(
            f"variable '{name}' is missing from these snapshots; a score needs observed {SMOKE}"
        )
    return part[name]
