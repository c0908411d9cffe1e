"""The engine that scores predictions of snapshots which a fit has not seen.

A part is a set of snapshots with their predictions: made anew, block by block, by a surrogate
(`HeldOut`), or already in memory (`Predicted`). Every threshold and every score is a pass over the
blocks of some parts, whose results are added: it does not depend on the blocks or on who computes
them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.compute.resources import Resources, refuse_device
from plumecast.data.clock import by_fire, fire_blocks
from plumecast.data.covariates import extrapolating
from plumecast.data.layout import Layout, to_rows
from plumecast.data.lazy_store import check_unchanged
from plumecast.scores.footprint import as_scores, sample_coords, smoke_threshold_over
from plumecast.scores.quantities import (
    DEFAULT,
    as_integrals,
    find_quantity,
    quantity_factors,
    refuse_other_interval,
)
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.scores.roc import decision_threshold_over
from plumecast.scores.tally import (
    Tally,
    exceedance_counts,
    exceedance_of,
    join_tallies,
    known_values,
    tally_rows,
)
from plumecast.surrogate.error_bars.counting import CellBins, Cells, add_cells
from plumecast.surrogate.guards import refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Agreement, Thresholds, joint_score
from plumecast.workflows.held_out.record import Score
from plumecast.workflows.predict import CLUSTER_MEMORY, prediction_rows

BLOCK = 256
"""Largest number of snapshots scored at a time."""

SCORE_BYTES = 160.0
"""Bytes per cell while a snapshot is scored: about twenty arrays, most of them for the ROC."""


# -- Parts


@dataclass(frozen=True, slots=True)
class PredictedBlock:
    """Predictions of some snapshots: (m, N) float64 matrices on one device."""

    smoke: Array
    detected: Array  # detection score; the smoke itself where the surrogate has none
    observed: Array
    seconds: float  # of the prediction
    surrogate: Surrogate | None = None  # with `snapshots`, for thresholds of other quantities
    snapshots: xr.Dataset | None = None


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Snapshots that a surrogate predicts in blocks, in this process or by an executor."""

    surrogate: Surrogate  # on its device
    snapshots: xr.Dataset
    size: int
    stored: bool  # whether fields are read lazily from files, which may change
    runner: Runner | None

    @property
    def coords(self) -> Mapping[str, xr.DataArray]:
        """The coordinates of the snapshots."""
        return sample_coords(observed_field(self.surrogate.outputs, self.snapshots))

    def visit(self, function: Callable[[PredictedBlock], Any]) -> Iterator[Any]:
        """function(block) of every predicted block, in order."""
        return self._visit(partial(_of_predicted, self.surrogate, function))

    def visit_observed(self, function: Callable[[np.ndarray], Any]) -> Iterator[Any]:
        """The same of the (m, N) observed smoke, in the precision of the store."""
        return self._visit(partial(_of_observed, self.surrogate.outputs, function))

    def _visit(self, function: Callable[[xr.Dataset], Any]) -> Iterator[Any]:
        rows = fire_blocks(self.snapshots, self.size)
        return map_over(_visit_block, (function, self.snapshots, self.stored), rows, self.runner)


def held_out(surrogate: Surrogate, snapshots: xr.Dataset, resources: Resources) -> HeldOut:
    """Blocks of whole fires that keep to the memory limit; sorting for the ROC needs most of it."""
    memory = resources.memory
    if resources.runner is not None:
        memory = memory or CLUSTER_MEMORY
        refuse_device(resources.device)
    size = prediction_rows(
        surrogate, memory, input_bytes=24.0, output_bytes=SCORE_BYTES, what="scoring", most=BLOCK
    )
    placed = surrogate.on_device(resources.device)
    return HeldOut(placed, by_fire(snapshots), size, memory is not None, resources.runner)


def _visit_block(shared: tuple[Callable[[xr.Dataset], Any], xr.Dataset, bool], rows: Any) -> Any:
    function, snapshots, stored = shared
    if stored:
        check_unchanged(snapshots)
    return function(snapshots.isel({SNAPSHOT: rows}))


def _of_observed(outputs: Layout, function: Callable[[np.ndarray], Any], block: xr.Dataset) -> Any:
    observed = observed_field(outputs, block).transpose(SNAPSHOT, ...)
    return function(np.ascontiguousarray(observed.values).reshape(observed.shape[0], -1))


def _of_predicted(
    surrogate: Surrogate, function: Callable[[PredictedBlock], Any], block: xr.Dataset
) -> Any:
    """Values are rounded to the precision of the input, as in `Surrogate.predict`."""
    start = time.perf_counter()
    both = surrogate.predict_both_rows(*surrogate.read_rows(block))
    single = block[surrogate.inputs.fields[0].name].dtype == np.float32

    def rounded(values: Array) -> Array:
        xp = array_namespace(values)
        values = xp.astype(values, xp.float32, copy=False) if single else values
        return xp.astype(values, xp.float64, copy=False)

    smoke = rounded(both[0])
    detected = smoke if both[1] is both[0] else rounded(both[1])
    float(smoke[0, 0])  # waits for the device
    seconds = time.perf_counter() - start
    observed = to_rows(
        observed_field(surrogate.outputs, block), surrogate.outputs.fields[0], [SNAPSHOT]
    )
    return function(
        PredictedBlock(smoke, detected, like(observed, smoke), seconds, surrogate, block)
    )


def observed_field(outputs: Layout, part: xr.Dataset) -> xr.DataArray:
    """The observed field of the only output; raises if there are several, or no such field."""
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


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predictions in memory, (M, …): smoke, detection score (or the smoke again), observed."""

    smoke: Array
    detected: Array
    observed: Array
    seconds: float = math.nan  # of the prediction
    coords: Mapping[str, xr.DataArray] | None = None
    fields: tuple[xr.DataArray, ...] = ()  # smoke and detection score of a surrogate, labelled

    def visit(self, function: Callable[[PredictedBlock], Any]) -> Iterator[Any]:
        """function(block) of every block, in order."""
        if self.smoke.shape != self.observed.shape:
            raise PlumecastError(
                f"prediction {self.smoke.shape} and observation {self.observed.shape} differ in "
                "shape"
            )

        def matrix(values: Array) -> Array:
            return values.reshape(values.shape[0], -1).astype(np.float64)

        for rows in row_blocks(self.smoke.shape[0], BLOCK):
            smoke = matrix(self.smoke[rows])
            detected = smoke if self.detected is self.smoke else matrix(self.detected[rows])
            seconds = self.seconds * smoke.shape[0] / self.smoke.shape[0]
            yield function(PredictedBlock(smoke, detected, matrix(self.observed[rows]), seconds))


def predicted(
    surrogate: Surrogate, snapshots: xr.Dataset, joined_at: float | None = None
) -> Predicted:
    """All predictions of a surrogate in memory.

    With `joined_at`, a smoke threshold τ, the detection score is joined with the smoke, as in a
    surrogate that will be `agreeing`.
    """
    observed = observed_field(surrogate.outputs, snapshots).transpose(SNAPSHOT, ...)
    start = time.perf_counter()
    with extrapolating():
        smoke, detected = surrogate.predict_both(snapshots)
    seconds = time.perf_counter() - start
    first, second, truth = (
        field.transpose(*observed.dims).values for field in (smoke, detected, observed)
    )
    if not surrogate.detects:
        second = first
    elif joined_at is not None:
        second = joint_score(first, second, joined_at)
    return Predicted(first, second, truth, seconds, sample_coords(observed), (smoke, detected))


Part: TypeAlias = HeldOut | Predicted


def visit_parts(parts: Iterable[Part], function: Callable[[PredictedBlock], Any]) -> Iterator[Any]:
    """function(block) of every block of every part, in order."""
    return chain.from_iterable(part.visit(function) for part in parts)


# -- Thresholds


def agreeing(surrogate: Surrogate, thresholds: Thresholds) -> Surrogate:
    """The surrogate with recorded thresholds: if it detects, its smoke and footprint agree."""
    first, *_ = records = surrogate.records
    agreement = Agreement(thresholds) if surrogate.detects else None
    chosen = replace(records[first], thresholds=thresholds, agreement=agreement)
    return surrogate.with_records(records | {first: chosen})


def separate(surrogate: Surrogate) -> Surrogate:
    """The surrogate with smoke and detection score as they were fitted, two answers."""
    first, *_ = records = surrogate.records
    return surrogate.with_records(records | {first: replace(records[first], agreement=None)})


def choose_thresholds(
    parts: Sequence[HeldOut], captured: float, *, joint: bool = False
) -> Thresholds:
    """τ by its rule, α by the largest mean IoU, over all parts together.

    They are the recorded ones of surrogates whose smoke and footprint agree at this τ. With
    `joint`, α is that of the joint score.
    """
    tau = smoke_threshold_over(
        lambda function: chain.from_iterable(part.visit_observed(function) for part in parts),
        captured,
    )
    agreements = {part.surrogate.record.agreement for part in parts}
    if len(agreements) == 1:
        (agreement,) = agreements
        if agreement is not None and agreement.thresholds.smoke == tau:
            return agreement.thresholds
    return Thresholds(tau, choose_decision(parts, tau, joint=joint))


def choose_decision(parts: Sequence[Part], tau: float, *, joint: bool = False) -> float:
    """The decision threshold α with the largest mean IoU of footprints at the smoke threshold τ."""
    return decision_threshold_over(
        lambda function: visit_parts(parts, partial(_of_detection, tau, joint, function)), [tau]
    )


def _of_detection(
    tau: float, joint: bool, function: Callable[[Array, Array], np.ndarray], block: PredictedBlock
) -> np.ndarray:
    score = block.detected
    if joint and score is not block.smoke:
        score = joint_score(block.smoke, score, tau)
    return function(score, block.observed > tau)


# -- Scores, also at values of the user


def check_reading(reading: Reading, observed: xr.DataArray) -> None:
    """Raise if a quantity of the observed smoke is unknown; without thresholds none is needed."""
    if reading.hours:
        raise ArgumentError(
            "hours", reading.hours, "scores are of the snapshots as they are stored; leave it out"
        )
    if reading.thresholds:
        refuse_other_interval(observed, reading.interval)
        quantity_factors(observed, observed, reading.quantity_or(DEFAULT), reading.interval)


def _counts_above(reading: Reading, block: PredictedBlock) -> np.ndarray:
    """(T, 3) counts of `exceedance_counts` at the thresholds of the reading.

    The quantity is read as `predict` writes it, from what the surrogate predicts of it.
    """
    surrogate, snapshots = block.surrogate, block.snapshots
    if not reading.thresholds or surrogate is None or snapshots is None:
        return np.empty((0, 3), dtype=np.int64)
    name = reading.quantity_or(DEFAULT)
    smoke = observed_field(surrogate.outputs, snapshots)
    seen, predictor, guess, truth = smoke, surrogate, block.smoke, block.observed
    if find_quantity(name).needs_interval:
        seen, predictor = as_integrals(smoke, reading.interval), surrogate.integrated()
    if predictor is not surrogate:
        guess = predictor.predict_rows(*predictor.read_rows(snapshots))
    if seen is not smoke:
        values = seen.transpose(SNAPSHOT, ...).values.reshape(truth.shape)
        truth = like(values, truth, truth.dtype)
    attrs = predictor.outputs.fields[0].attrs
    learned = recorded_interval(attrs)

    def read(sums: Array, field: xr.DataArray, interval: float | None) -> Array:
        factors = quantity_factors(field, field, name, interval)
        return sums * array_namespace(sums).reshape(like(factors, sums), (-1, 1))

    called = smoke.copy().assign_attrs(attrs)
    called_as = read(guess, called, reading.interval if learned is None else learned)
    present_as = read(truth, seen, reading.interval)
    return exceedance_counts(called_as, present_as, list(reading.thresholds))


class Scored(NamedTuple):
    """Scores of a surrogate over all snapshots, those of every snapshot, and cells by group."""

    score: Score
    details: xr.Dataset
    cells: Cells | None = None  # for error bars


def score_parts(
    name: str,
    parts: Sequence[Part],
    chosen: Thresholds,
    reading: Reading = AS_STORED,
    bins: CellBins | None = None,
) -> Scored:
    """Score the predictions of all parts together, in one pass.

    With `bins` their cells are also counted by predicted and observed smoke.
    """
    blocks = list(visit_parts(parts, partial(_score_block, chosen, reading, bins)))
    if not blocks:
        raise PlumecastError("there are no snapshots to score")
    tally = join_tallies(block for block, _ in blocks)
    every = [part.coords or {} for part in parts]
    coords = every[0] if len(every) == 1 else {
        name: xr.concat([coords[name] for coords in every], SNAPSHOT) for name in every[0]
    }  # fmt: skip
    details = as_scores([tally.each], dict(coords), chosen.smoke)
    quantity = reading.quantity_or(DEFAULT)
    levels = [(chosen.smoke, "sum"), *((level, quantity) for level in reading.thresholds)]
    masses = known_values(details["mass_ratio"].values[_last_of_fires(details)])
    masses = np.quantile(masses, [0.5, 0.1, 0.9]) if masses.size else np.full(3, np.nan)
    score = Score(
        name=name,
        auc=tally.median("auc"),
        iou=tally.median("iou"),
        deployable_iou=tally.median("deployable_iou"),
        decision_threshold=chosen.decision,
        relative_error=tally.relative_error,
        snapshot_error=tally.median("relative_error"),
        auc_undefined=int(np.isnan(tally.each["auc"]).sum()),
        predict_ms=1e3 * tally.seconds / details.sizes[SNAPSHOT],
        smoke_iou=tally.median("smoke_iou"),
        exceedances=tuple(
            exceedance_of(level, counts, quantity)
            for (level, quantity), counts in zip(levels, tally.above, strict=True)
        ),
        mass_ratio=float(masses[0]),
        mass_ratio_low=float(masses[1]),
        mass_ratio_high=float(masses[2]),
    )
    return Scored(score, details, add_cells(cells for _, cells in blocks))


def _last_of_fires(details: xr.Dataset) -> np.ndarray:
    """Rows of the last hour of every fire; all rows where fires or hours have no name."""
    if not {"fire_id", "hours"} <= set(details.variables):
        return np.arange(details.sizes[SNAPSHOT])
    fires, hours = details["fire_id"].values.astype(str), details["hours"].values
    order = np.lexsort((hours, fires))
    last: np.ndarray = order[np.append(fires[order][1:] != fires[order][:-1], True)]
    return last


def _score_block(
    chosen: Thresholds, reading: Reading, bins: CellBins | None, block: PredictedBlock
) -> tuple[Tally, Cells | None]:
    tally = tally_rows(
        *(block.smoke, block.detected, block.observed),
        tau=chosen.smoke,
        alpha=chosen.decision,
        seconds=block.seconds,
    )
    refuse_infinite(tally.wrong)
    above = np.concatenate([tally.above, _counts_above(reading, block)])
    cells = None
    if bins is not None and block.snapshots is not None:
        cells = bins.count(block.snapshots, block.smoke, block.detected, block.observed)
    return replace(tally, above=above), cells
