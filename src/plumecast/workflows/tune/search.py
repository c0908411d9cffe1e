"""Score candidates by cross-validation within training, and the best of them on validation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.base.values import check_count, check_fields, check_number
from plumecast.compute.arrays import Array
from plumecast.data.conditions.covariates import extrapolating
from plumecast.scores.footprint import choose_decision_threshold, relative_error, score_footprints
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.tune.candidates import Plan
from plumecast.workflows.tune.folds import Fold

PINNED = ("penalty", "length_scale", "fire_rank", "smoke_rank")
"""Values that a fit chooses and that are recorded as choices of a confirmed candidate."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of a candidate; footprints are those of its detection score if it has one.

    All but the relative error and the threshold are medians over snapshots.
    """

    relative_error: float  # of smoke, in the Frobenius norm over all snapshots
    auc: float
    iou: float
    deployable_iou: float
    decision_threshold: float

    def key(self, rank_by: str) -> float:
        """Sort key from best to worst."""
        value: float = getattr(self, rank_by)
        if math.isnan(value):
            return math.inf
        return value if rank_by == "relative_error" else -value


@dataclass(frozen=True, slots=True)
class Candidate:
    """One set of choices and its scores."""

    name: str
    family: str
    choices: dict[str, Any]  # keywords of `fit_surrogate`
    folds: Scores | None = None  # of out-of-fold predictions of all training fires
    validation: Scores | None = None  # of the fit to all training fires, if confirmed
    seconds: float = 0.0  # of the fits and predictions of all folds
    fit_seconds: float | None = None  # of the fit to all training fires, if confirmed
    problem: str | None = None  # why it was not tried, or the error of its fit

    def settings(self) -> dict[str, Any]:
        """The keywords of `fit_surrogate` that repeat this candidate."""
        return dict(self.choices)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many candidates are tried, and for how long."""

    confirm: int = 3  # number of candidates fitted again to all training fires
    most: int | None = None  # largest number of candidates tried
    budget_seconds: float | None = None  # no candidate is started later

    def __post_init__(self) -> None:
        check_fields(self)
        check_count("confirm", self.confirm)
        if self.most is not None:
            check_count("most", self.most)
        if self.budget_seconds is not None:
            check_number("budget_seconds", self.budget_seconds, least=0.0)

    def left_out(self, number: int, spent: float) -> str | None:
        """Why candidate `number` is not tried, or None; the first candidate is always tried."""
        if self.most is not None and number >= self.most:
            return f"not tried: beyond the first {self.most}"
        if self.budget_seconds is not None and number > 0 and spent > self.budget_seconds:
            return f"not tried: the budget of {self.budget_seconds:g} s was spent"
        return None


@dataclass(frozen=True, slots=True)
class Search:
    """The data of a search, and the scores of candidates by folds and on validation."""

    train: xr.Dataset
    validation: xr.Dataset
    folds: list[Fold]
    fields: dict[str, Any]
    tau: float
    validation_tau: float
    rank_by: str

    def run(
        self, plans: Sequence[Plan], limits: Limits, progress: Callable[[int, int], None]
    ) -> list[Candidate]:
        """Try the plans in order and confirm the best few; candidates from best to worst."""
        begin = time.perf_counter()
        count = min(len(plans), limits.most or len(plans))
        total = count + min(limits.confirm, count)
        found = []
        for number, plan in enumerate(plans):
            why = limits.left_out(number, time.perf_counter() - begin)
            if why is None:
                progress(number, total)
                found.append(self.try_folds(plan))
            else:
                found.append(Candidate(plan.name, plan.family, plan.choices, problem=why))
        ranked = self._ranked(found)
        for number, candidate in enumerate(ranked[: limits.confirm]):
            progress(count + number, total)
            ranked[number] = self.confirm(candidate)
        progress(total, total)
        return self._ranked(ranked)

    def _ranked(self, candidates: list[Candidate]) -> list[Candidate]:
        """Confirmed candidates, then the others, each from best to worst; failed ones last."""
        if all(candidate.folds is None for candidate in candidates):
            raise PlumecastError(f"no candidate could be fitted: {candidates[0].problem}")

        def key(candidate: Candidate) -> tuple[int, float]:
            if candidate.validation is not None:
                return 0, candidate.validation.key(self.rank_by)
            if candidate.folds is not None and candidate.problem is None:
                return 1, candidate.folds.key(self.rank_by)
            return 2, 0.0

        return sorted(candidates, key=key)

    def try_folds(self, plan: Plan) -> Candidate:
        """Score the out-of-fold predictions of all training fires."""
        start = time.perf_counter()
        observed = self.train[self.fields["outputs"]].transpose(SNAPSHOT, ...).values
        smoke, found = np.empty_like(observed), np.empty_like(observed)
        candidate = Candidate(plan.name, plan.family, plan.choices)
        try:
            for fold in self.folds:
                surrogate = fold.fit(plan)
                smoke[fold.rows], found[fold.rows] = _predict(surrogate, fold.held_out)
        except PlumecastError as error:
            return replace(candidate, problem=str(error), seconds=time.perf_counter() - start)
        seconds = time.perf_counter() - start
        return replace(candidate, folds=_score(smoke, found, observed, self.tau), seconds=seconds)

    def confirm(self, candidate: Candidate) -> Candidate:
        """Fit to all training fires, score on validation, and record what the fit chose."""
        if candidate.folds is None:
            return candidate
        start = time.perf_counter()
        try:
            surrogate = fit_surrogate(self.train, **candidate.choices, **self.fields)
        except PlumecastError as error:
            return replace(candidate, problem=str(error))
        seconds = time.perf_counter() - start
        pinned = {name: surrogate.training[name] for name in PINNED if name in surrogate.training}
        sides = tuple(f"{side}_" for side in ("fire", "smoke") if f"{side}_rank" in pinned)
        kept = {
            name: value for name, value in candidate.choices.items() if not name.startswith(sides)
        }
        smoke, found = _predict(surrogate, self.validation)
        observed = self.validation[self.fields["outputs"]].transpose(SNAPSHOT, ...).values
        scores = _score(
            smoke, found, observed, self.validation_tau, candidate.folds.decision_threshold
        )
        return replace(candidate, choices=kept | pinned, validation=scores, fit_seconds=seconds)


def _predict(surrogate: Surrogate, part: xr.Dataset) -> tuple[Array, Array]:
    """Smoke, and the field whose threshold gives the footprint: the detection score, or smoke."""
    with extrapolating():
        smoke, found = surrogate.predict_both(part)
    return tuple(  # type: ignore[return-value]
        field.transpose(SNAPSHOT, ...).values for field in (smoke, found)
    )


def _score(
    smoke: Array, found: Array, observed: Array, tau: float, alpha: float | None = None
) -> Scores:
    if alpha is None:
        alpha = choose_decision_threshold(found, observed, tau)
    scores = score_footprints(found, observed, tau, alpha)
    return Scores(
        relative_error=relative_error(smoke, observed),
        auc=float(scores.auc.median()),
        iou=float(scores.iou.median()),
        deployable_iou=float(scores.deployable_iou.median()),
        decision_threshold=alpha,
    )
