"""Score a surrogate that is trained on all snapshots: by fits that leave out folds of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.blocks import Runner
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.split import FEW_GROUPS, group_rows
from plumecast.operators.family import fold_numbers
from plumecast.operators.lifted import LiftedOperator
from plumecast.scores.quantities import DEFAULT
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.evaluate import evaluate_folds
from plumecast.workflows.held_out.evaluation import Evaluation

FOLDS = 5
"""Number of folds if there are many groups; few groups are left out one at a time."""

Fit = Callable[[xr.Dataset], Surrogate]


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """Scores of out-of-fold predictions, of the surrogate first."""

    results: dict[str, Evaluation]  # by output
    folds: int
    left_out: tuple[str, ...]  # fires whose drought is in no other group: nothing predicts them


def check_folds(folds: int | None) -> None:
    """Raise for a number of folds that leaves nothing out."""
    if folds is not None and folds != 0 and folds < 2:
        raise PlumecastError(f"folds={folds} leaves nothing out; give at least 2, or 0 for none")


def score_out_of_fold(
    snapshots: xr.Dataset,
    fits: dict[str, Fit],
    *,
    by: str = "ignition_id",
    folds: int | None = None,
    thresholds: Sequence[float] = (),
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    progress: Callable[[str], None] = lambda step: None,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
) -> OutOfFold:
    """Fit to all folds but one, predict that one, and score all predictions together.

    `fits` are functions of training snapshots by name, the surrogate first; the others (baselines)
    have the same outputs and are scored on the same snapshots. Folds are whole groups.
    `thresholds`, their `quantity` and `checkpoint_interval` are those of `evaluate`.
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
        progress(f"fold {fold + 1} of {count}")
        rest = snapshots.isel({SNAPSHOT: np.flatnonzero(numbers != fold)})
        held = snapshots.isel({SNAPSHOT: np.flatnonzero(numbers == fold)})
        for number, (name, fit) in enumerate(fits.items()):
            fitted = fit(rest)
            if number == 0:
                known = _known(fitted, held)
                left_out |= set(_fires(held.isel({SNAPSHOT: np.flatnonzero(~known)})))
                held = held.isel({SNAPSHOT: np.flatnonzero(known)})
            if held.sizes[SNAPSHOT]:
                pairs[name].append((fitted, held))
    if not any(pairs.values()):
        raise PlumecastError(
            f"every {by} has a drought of its own, so that none can be predicted by a fit without "
            "it; add fires"
        )
    with extrapolating():
        results = {
            output: evaluate_folds(
                {
                    name: [(own.output(output), held) for own, held in found]
                    for name, found in pairs.items()
                },
                thresholds=thresholds,
                quantity=quantity,
                checkpoint_interval=checkpoint_interval,
                by=by,
                device=device,
                memory=memory,
                runner=runner,
                calibrate=True,
            )
            for output in fitted.outputs.names
        }
    return OutOfFold(results, count, tuple(sorted(left_out)))


def _known(surrogate: Surrogate, snapshots: xr.Dataset) -> np.ndarray:
    """(M,) whether the drought of a snapshot was in training, for surrogates that use it."""
    operator, count = surrogate.operator, snapshots.sizes[SNAPSHOT]
    labels: Sequence[str] = operator.labels if isinstance(operator, LiftedOperator) else ()
    if surrogate.scenario is None or not labels:
        return np.ones(count, dtype=bool)
    return np.isin(np.broadcast_to(snapshots[surrogate.scenario].values.astype(str), count), labels)


def _fires(snapshots: xr.Dataset) -> list[str]:
    name = "fire_id" if "fire_id" in snapshots.variables else SNAPSHOT
    known = name in snapshots.variables
    return np.unique(snapshots[name].values.astype(str)).tolist() if known else []
