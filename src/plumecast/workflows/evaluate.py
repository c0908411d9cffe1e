"""Score surrogates and baselines side by side on snapshots they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.resources import LOCAL, Resources, hears_names
from plumecast.data.covariates import extrapolating
from plumecast.data.split import FEW_GROUPS, group_rows
from plumecast.operators.family import fold_numbers
from plumecast.operators.lifted import LiftedOperator
from plumecast.scores.quantities import DEFAULT
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.surrogate.error_bars.counting import choose_bins
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.held_out.record import Evaluation, Folds, HeldOutScores
from plumecast.workflows.held_out.scoring import (
    Scored,
    agreeing,
    check_reading,
    choose_thresholds,
    held_out,
    observed_field,
    score_parts,
    separate,
)

CAPTURED = 0.95
"""Share of the footprint that the smoke threshold captures: β in the paper."""

FOLDS = 5
"""Number of folds if there are many groups; few groups are left out one at a time."""

Fit = Callable[[xr.Dataset], Surrogate]


def fit_thresholds(
    surrogate: Surrogate,
    validation: xr.Dataset,
    captured: float = CAPTURED,
    *,
    joint: bool = False,
    resources: Resources = LOCAL,
) -> Thresholds:
    """Choose the thresholds on validation: τ by its rule, α by the largest mean IoU.

    With `joint`, α is that of the joint score, for a surrogate that will be `agreeing`.
    """
    scored = separate(surrogate) if joint else surrogate
    return choose_thresholds([held_out(scored, validation, resources)], captured, joint=joint)


@folded_arguments(
    resources=Resources,
    reading=Reading,
    renamed={"checkpoint_interval": "interval"},
    adapted={"progress": hears_names},
)
def evaluate(
    surrogates: Mapping[str, Surrogate],
    validation: xr.Dataset,
    test: xr.Dataset,
    *,
    captured: float = CAPTURED,
    reading: Reading = AS_STORED,
    by: str = "ignition_id",
    resources: Resources = LOCAL,
    calibrate: bool = False,
) -> Evaluation:
    """Choose thresholds on validation and score on test, for every surrogate.

    Raises if a surrogate was trained on an ignition of either part (or on another group, if `by`
    names another grouping coordinate).

    Parameters
    ----------
    surrogates
        The surrogates by the names that the scores have.
    validation, test
        The parts of a split.
    captured
        Share β of the smoke that the smoke threshold τ captures.
    reading
        Values at which hit rate, false alarms and bias are scored, beside τ, and the quantity of
        smoke that they are of: the time mean since ignition by default. τ and the other scores are
        of the sum over checkpoints.
    by
        The grouping coordinate.
    resources
        Where predictions and scores are computed, in blocks that keep to the memory if the fields
        are in a store. The workers of a runner send back scores and counts alone. The progress
        hears the name of each surrogate.
    calibrate
        Also count the cells of the first surrogate by predicted and observed smoke, for error bars.
    """
    if not surrogates:
        raise PlumecastError("there is no surrogate to evaluate; give at least one")
    for surrogate in surrogates.values():
        check_reading(reading, observed_field(surrogate.outputs, test))
    scored = {}
    for number, (name, surrogate) in enumerate(surrogates.items()):
        resources.progress(number, len(surrogates), name)
        refuse_leaks(surrogate, by, validation, test)
        parts = [held_out(surrogate, part, resources) for part in (validation, test)]
        chosen = choose_thresholds(parts[:1], captured)
        bins = choose_bins(surrogate, chosen.smoke, by) if calibrate and number == 0 else None
        scored[name] = score_parts(name, parts[1:], chosen, reading, bins)
    return _evaluation(scored, chosen.smoke, captured, reading)


def evaluate_at(
    surrogates: Mapping[str, tuple[Surrogate, Thresholds]],
    test: xr.Dataset,
    *,
    reading: Reading = AS_STORED,
    resources: Resources = LOCAL,
) -> Evaluation:
    """Score surrogates on all of `test`, with thresholds that were chosen on other snapshots."""
    scored = {}
    for number, (name, (surrogate, chosen)) in enumerate(surrogates.items()):
        resources.progress(number, len(surrogates), name)
        check_reading(reading, observed_field(surrogate.outputs, test))
        part = held_out(surrogate, test, resources)
        scored[name] = score_parts(name, [part], chosen, reading)
    return _evaluation(scored, chosen.smoke, CAPTURED, reading)


def _evaluation(
    scored: Mapping[str, Scored], tau: float, captured: float, reading: Reading
) -> Evaluation:
    """The scores of all surrogates on the same snapshots; cells are those of the first."""
    first, *_ = scored.values()
    return Evaluation(
        [one.score for one in scored.values()],
        first.details.sizes[SNAPSHOT],
        tau,
        captured,
        {name: one.details for name, one in scored.items()},
        reading.quantity_or(DEFAULT),
        first.cells,
    )


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


# -- Out of fold: fits that leave out folds of groups


def check_folds(folds: int | None) -> None:
    """Raise for a number of folds that leaves nothing out."""
    if folds is not None and folds != 0 and folds < 2:
        raise ArgumentError(
            "folds", folds, "give at least 2, or 0 for none", problem="leaves nothing out"
        )


def score_out_of_fold(
    snapshots: xr.Dataset,
    fits: Mapping[str, Fit],
    *,
    by: str = "ignition_id",
    folds: int | None = None,
    reading: Reading = AS_STORED,
    resources: Resources = LOCAL,
) -> dict[str, HeldOutScores]:
    """Scores by output of fits to all folds but one that predict that one, all together.

    `fits` are functions of training snapshots by name, the surrogate first; the others (baselines)
    have the same outputs and are scored on the same snapshots. Folds are whole groups. `reading`
    is that of `evaluate`.
    """
    if by not in snapshots.variables:
        raise PlumecastError(f"coordinate '{by}' is missing; it groups the snapshots of the folds")
    labels = snapshots[by].values.astype(str)
    check_folds(folds)
    groups = len(group_rows(labels))
    count = min(folds or (groups if groups < FEW_GROUPS else FOLDS), groups)
    if count < 2:
        raise PlumecastError(f"there is a single {by}, which cannot be left out; add fires")
    numbers = fold_numbers(labels, count)
    pairs: dict[str, list[tuple[Surrogate, xr.Dataset]]] = {name: [] for name in fits}
    left_out: set[str] = set()
    for fold in range(count):
        resources.progress(fold, count, f"fold {fold + 1} of {count}")
        rest = snapshots.isel({SNAPSHOT: np.flatnonzero(numbers != fold)})
        held = snapshots.isel({SNAPSHOT: np.flatnonzero(numbers == fold)})
        for number, (name, fit) in enumerate(fits.items()):
            fitted = fit(rest)
            if number == 0:
                predictable = _has_known_drought(fitted, held)
                if "fire_id" in held.variables:
                    left_out |= set(held["fire_id"].values.astype(str)[~predictable].tolist())
                held = held.isel({SNAPSHOT: np.flatnonzero(predictable)})
            if held.sizes[SNAPSHOT]:
                pairs[name].append((fitted, held))
    if not any(pairs.values()):
        raise PlumecastError(
            f"every {by} has a drought of its own, so that none can be predicted by a fit without "
            "it; add fires"
        )
    made = Folds(by, groups, count, tuple(sorted(left_out)))
    results = {}
    for output in fitted.outputs.names:
        of_output = {
            name: [(surrogate.output(output), held) for surrogate, held in of_name]
            for name, of_name in pairs.items()
        }
        with extrapolating():
            evaluation = _evaluate_folds(of_output, by, reading, resources)
        results[output] = HeldOutScores(evaluation, made)
    return results


def _evaluate_folds(
    folds: Mapping[str, Sequence[tuple[Surrogate, xr.Dataset]]],
    by: str,
    reading: Reading,
    resources: Resources,
) -> Evaluation:
    """Choose thresholds and score on out-of-fold predictions.

    `folds` has pairs by name: a surrogate, and the snapshots that were left out of its fit. The
    thresholds of a name are the same for all its folds and are chosen on the predictions that are
    scored, so its deployable IoU is slightly too good: by the choice of one number. Surrogates with
    a detection score are scored as they will be used: `agreeing`. The cells of the first name are
    counted for its error bars.
    """
    scored: dict[str, Scored] = {}
    for name, pairs in folds.items():
        for surrogate, part in pairs:
            refuse_leaks(surrogate, by, part)
            check_reading(reading, observed_field(surrogate.outputs, part))
        parts = [held_out(*pair, resources) for pair in pairs]
        chosen = choose_thresholds(parts, CAPTURED, joint=True)
        parts = [replace(part, surrogate=agreeing(part.surrogate, chosen)) for part in parts]
        bins = None if scored else choose_bins(pairs[0][0], chosen.smoke, by)
        scored[name] = score_parts(name, parts, chosen, reading, bins)
    return _evaluation(scored, chosen.smoke, CAPTURED, reading)


def _has_known_drought(surrogate: Surrogate, snapshots: xr.Dataset) -> np.ndarray:
    """(M,) whether the drought of a snapshot was in training, for surrogates that use it."""
    operator, count = surrogate.operator, snapshots.sizes[SNAPSHOT]
    labels: Sequence[str] = operator.labels if isinstance(operator, LiftedOperator) else ()
    if surrogate.scenario is None or not labels:
        return np.ones(count, dtype=bool)
    return np.isin(np.broadcast_to(snapshots[surrogate.scenario].values.astype(str), count), labels)
