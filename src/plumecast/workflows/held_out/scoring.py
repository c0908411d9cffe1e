"""The engine that scores predictions of snapshots which a fit has not seen.

Every threshold and every score is a pass over the blocks of some parts, whose results are added:
it does not depend on the blocks or on who computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.scores.footprint import as_scores, smoke_threshold_over
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
    Exceedance,
    Tally,
    exceedance_counts,
    exceedance_of,
    join_tallies,
    tally_rows,
)
from plumecast.surrogate.error_bars.counting import CellBins, Cells, add_cells
from plumecast.surrogate.guards import refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Agreement, Thresholds, joint_score
from plumecast.workflows.held_out.parts import (
    HeldOut,
    Part,
    PredictedBlock,
    observed_field,
    visit_parts,
)
from plumecast.workflows.held_out.record import Score

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


# -- Values of the user at which predictions are scored


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


def _exceedances(reading: Reading, tau: float, counts: np.ndarray) -> tuple[Exceedance, ...]:
    name = reading.quantity_or(DEFAULT)
    levels = [(tau, "sum"), *((level, name) for level in reading.thresholds)]
    return tuple(
        exceedance_of(level, of_level, quantity)
        for (level, quantity), of_level in zip(levels, counts, strict=True)
    )


# -- Scores


class Scored(NamedTuple):
    """Scores of a surrogate over all snapshots, those of every snapshot, and cells by group."""

    score: Score
    details: xr.Dataset
    cells: Cells | None = None  # for error bars


def tally_parts(
    parts: Iterable[Part], *, tau: float | None = None, alpha: float | None = None
) -> Tally:
    """The tally of all parts together."""
    return join_tallies(visit_parts(parts, partial(_tally, tau, alpha)))


def _tally(tau: float | None, alpha: float | None, block: PredictedBlock) -> Tally:
    return tally_rows(
        block.smoke, block.detected, block.observed, tau=tau, alpha=alpha, seconds=block.seconds
    )


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
    details = as_scores([tally.each], _joined_coords(parts), chosen.smoke)
    undefined = int(np.isnan(tally.each["auc"]).sum())
    score = Score(
        name=name,
        auc=tally.median("auc"),
        iou=tally.median("iou"),
        deployable_iou=tally.median("deployable_iou"),
        decision_threshold=chosen.decision,
        relative_error=tally.relative_error,
        snapshot_error=tally.median("relative_error"),
        auc_undefined=undefined,
        predict_ms=1e3 * tally.seconds / details.sizes[SNAPSHOT],
        smoke_iou=tally.median("smoke_iou"),
        exceedances=_exceedances(reading, chosen.smoke, tally.above),
    )
    return Scored(score, details, add_cells(cells for _, cells in blocks))


def _score_block(
    chosen: Thresholds, reading: Reading, bins: CellBins | None, block: PredictedBlock
) -> tuple[Tally, Cells | None]:
    tally = _tally(chosen.smoke, chosen.decision, block)
    refuse_infinite(tally.wrong)
    above = np.concatenate([tally.above, _counts_above(reading, block)])
    cells = None
    if bins is not None and block.snapshots is not None:
        cells = bins.count(block.snapshots, block.smoke, block.detected, block.observed)
    return replace(tally, above=above), cells


def _joined_coords(parts: Sequence[Part]) -> dict[str, xr.DataArray]:
    every = [part.coords or {} for part in parts]
    if len(every) == 1:
        return dict(every[0])
    return {name: xr.concat([coords[name] for coords in every], SNAPSHOT) for name in every[0]}
