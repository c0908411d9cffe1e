"""Score candidates by folds of ignitions within training, and confirm the best on validation."""

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
from plumecast.compute.arrays import Array
from plumecast.data.covariates import extrapolating
from plumecast.scores.footprint import choose_decision_threshold, relative_error, score_footprints
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.tune.candidates import Plan
from plumecast.workflows.tune.folds import Fold

PINNED = ("penalty", "length_scale", "fire_rank", "smoke_rank")
"""What a fit chooses by itself and `settings` then repeats."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Medians over snapshots, of the detection score where a candidate has one."""

    relative_error: float  # of smoke, all snapshots together
    auc: float
    iou: float
    deployable_iou: float
    decision_threshold: float

    def key(self, rank_by: str) -> float:
        """What sorts from best to worst."""
        value: float = getattr(self, rank_by)
        if math.isnan(value):
            return math.inf
        return value if rank_by == "relative_error" else -value


@dataclass(frozen=True, slots=True)
class Candidate:
    """One set of choices and how it did."""

    name: str
    family: str
    choices: dict[str, Any]  # keywords of `fit_surrogate`
    folds: Scores | None = None  # every training fire predicted by a fit without its fold
    validation: Scores | None = None  # of the fit on all training fires, where confirmed
    seconds: float = 0.0  # of the fits and predictions of all folds
    fit_seconds: float | None = None  # of the fit on all training fires, where confirmed
    problem: str | None = None  # why it was not tried, or failed

    def settings(self) -> dict[str, Any]:
        """The keywords of `fit_surrogate` that repeat this candidate."""
        return dict(self.choices)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is tried."""

    confirm: int = 3  # candidates fitted again on all training fires
    most: int | None = None  # candidates tried
    budget_seconds: float | None = None  # no candidate begins after it

    def __post_init__(self) -> None:
        if self.confirm < 1 or (self.most is not None and self.most < 1):
            raise PlumecastError(f"confirm={self.confirm} and most={self.most} must be at least 1")
        if self.budget_seconds is not None and not self.budget_seconds >= 0.0:
            raise PlumecastError(f"budget_seconds={self.budget_seconds} must be ≥ 0")

    def left_out(self, number: int, spent: float) -> str | None:
        """Why the candidate of this number is not tried; the first always is."""
        if self.most is not None and number >= self.most:
            return f"not tried: beyond the first {self.most}"
        if self.budget_seconds is not None and number > 0 and spent > self.budget_seconds:
            return f"not tried: the budget of {self.budget_seconds:g} s was spent"
        return None


@dataclass(frozen=True, slots=True)
class Search:
    """The data of a search, and the two ways a candidate is scored."""

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
        """Try the plans in their order, confirm the best few; from best to worst."""
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
        """Confirmed before the rest, each from best to worst; what could not be scored last."""
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
        """Every training fire predicted by a fit without its fold."""
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
        """Fit on all training fires, score on validation, and pin what the fit chose."""
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
    """Smoke, and what its footprint is read from: the detection score where there is one."""
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
