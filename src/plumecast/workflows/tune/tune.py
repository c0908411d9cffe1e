"""Choose a surrogate by cross-validation among candidates of all families.

Candidates are scored by folds of the training part. The best few are fitted again to the whole
training part and scored on the validation part. Penalty and length scale are not candidates: every
fit chooses them in closed form, by leaving out one ignition at a time. All coded candidates of a
fold share one PCA of the inputs and one of the outputs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.base.values import check_count, check_fields, check_number, setting
from plumecast.compute.resources import LOCAL, Resources, hears_counts
from plumecast.data.split import check_apart
from plumecast.operators.pca import Truncation
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.evaluate import CAPTURED
from plumecast.workflows.held_out.record import Score
from plumecast.workflows.held_out.scoring import Predicted, choose_decision, predicted, score_parts
from plumecast.workflows.tune.candidates import Fold, Plan, SearchSpace, fold_rows

RANK_BY = ("iou", "deployable_iou", "auc", "relative_error")

PINNED = ("penalty", "length_scale", "fire_rank", "smoke_rank")
"""Values that a fit chooses and that are recorded as choices of a confirmed candidate."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One set of choices and its scores."""

    name: str
    family: str
    choices: dict[str, Any]  # keywords of `fit_surrogate`
    folds: Score | None = None  # of out-of-fold predictions of all training fires
    validation: Score | None = None  # of the fit to all training fires, if confirmed
    seconds: float = 0.0  # of the fits and predictions of all folds
    fit_seconds: float | None = None  # of the fit to all training fires, if confirmed
    problem: str | None = None  # why it was not tried, or the error of its fit

    def settings(self) -> dict[str, Any]:
        """The keywords of `fit_surrogate` that repeat this candidate."""
        return dict(self.choices)


def sort_key(score: Score, rank_by: str) -> float:
    """Sort key of scores from best to worst."""
    value: float = getattr(score, rank_by)
    if math.isnan(value):
        return math.inf
    return value if rank_by == "relative_error" else -value


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """By how many folds candidates are scored, how many are tried, and for how long."""

    folds: int = setting(
        3, "Number of cross-validation folds of training ignitions.", default_text="3"
    )
    confirm: int = setting(3, "Number of best candidates to score on validation.", default_text="3")
    most: int | None = setting(
        None,
        "Try at most this many: first recommended, then the cheapest.",
        option="candidates",
    )
    budget_seconds: float | None = setting(None, "Start no candidate after this time.")

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


@folded_arguments(
    space=SearchSpace,
    limits=SearchLimits,
    resources=Resources,
    renamed={"given": "candidates"},
    adapted={"progress": hears_counts},
)
def tune_surrogate(
    train: xr.Dataset,
    validation: xr.Dataset,
    *,
    space: SearchSpace | None = None,
    limits: SearchLimits | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str = SMOKE,
    group_by: str = "ignition_id",
    captured: float = CAPTURED,
    rank_by: str = "iou",
    resources: Resources = LOCAL,
) -> list[Candidate]:
    """Try candidates of a surrogate; they are returned from best to worst.

    Those scored on validation are first, then the others by their cross-validation scores, then
    those that failed or were not tried. Candidates are tried in the order: your own, `recommended`,
    the others by cost. The decision threshold of the deployable IoU is chosen on out-of-fold
    predictions, so that the score on validation is one that a user could have obtained.

    Parameters
    ----------
    train, validation
        The parts of a split; folds are made within the training part.
    space
        What is tried: by default the coded, the lifted and the spectral family.
    limits
        How many candidates are tried, for how long, and how many of the best are fitted again.
    inputs, outputs, group_by
        As for `fit_surrogate`.
    captured
        Share β of the smoke that the smoke threshold captures.
    rank_by
        The score that decides.
    resources
        Only their progress is used: candidates are fitted in the memory of this machine.
    """
    if rank_by not in RANK_BY:
        raise ArgumentError(
            "rank_by", rank_by, f"choose from {', '.join(RANK_BY)}", problem="is unknown"
        )
    if resources.lazy or resources.device != "cpu":
        raise PlumecastError(
            "candidates are fitted by the processor and in the memory of this machine; leave "
            "device, memory and runner out"
        )
    space, limits = space or SearchSpace(), limits or SearchLimits()
    check_apart(group_by, train=train, validation=validation)
    parts = fold_rows(train[group_by].values, limits.folds, group_by)
    plans = space.plans(train, inputs, group_by)
    largest = max(plan.choices.get("fire_rank", 1) for plan in plans)
    fire = Truncation(std_fraction=1.0, max_rank=largest)  # enough modes for every candidate
    fields = {"inputs": inputs, "outputs": outputs, "group_by": group_by}
    search = _Search(
        train=train,
        validation=validation,
        folds=[Fold(train, rows, fields, fire, space.smoke) for rows in parts],
        fields=fields,
        tau=smoke_threshold(train[outputs], captured),
        validation_tau=smoke_threshold(validation[outputs], captured),
        rank_by=rank_by,
    )
    return search.run(plans, limits, resources)


@dataclass(frozen=True, slots=True)
class _Search:
    """The data of a search, and the scores of candidates by folds and on validation."""

    train: xr.Dataset
    validation: xr.Dataset
    folds: list[Fold]
    fields: dict[str, Any]
    tau: float
    validation_tau: float
    rank_by: str

    def run(
        self, plans: Sequence[Plan], limits: SearchLimits, resources: Resources
    ) -> list[Candidate]:
        """Try the plans in order and confirm the best few; candidates from best to worst."""
        begin = time.perf_counter()
        count = min(len(plans), limits.most or len(plans))
        total = count + min(limits.confirm, count)
        tried = []
        for number, plan in enumerate(plans):
            why = limits.left_out(number, time.perf_counter() - begin)
            if why is None:
                resources.progress(number, total, "candidates")
                tried.append(self.try_folds(plan))
            else:
                tried.append(Candidate(plan.name, plan.family, plan.choices, problem=why))
        ranked = self._ranked(tried)
        for number, candidate in enumerate(ranked[: limits.confirm]):
            resources.progress(count + number, total, "candidates")
            ranked[number] = self.confirm(candidate)
        resources.progress(total, total, "candidates")
        return self._ranked(ranked)

    def _ranked(self, candidates: list[Candidate]) -> list[Candidate]:
        """Confirmed candidates, then the others, each from best to worst; failed ones last."""
        if all(candidate.folds is None for candidate in candidates):
            raise PlumecastError(f"no candidate could be fitted: {candidates[0].problem}")

        def key(candidate: Candidate) -> tuple[int, float]:
            if candidate.validation is not None:
                return 0, sort_key(candidate.validation, self.rank_by)
            if candidate.folds is not None and candidate.problem is None:
                return 1, sort_key(candidate.folds, self.rank_by)
            return 2, 0.0

        return sorted(candidates, key=key)

    def try_folds(self, plan: Plan) -> Candidate:
        """Score predictions of all training fires, each by the fit without its fold."""
        start = time.perf_counter()
        candidate = Candidate(plan.name, plan.family, plan.choices)
        observed = self.train[self.fields["outputs"]].transpose(SNAPSHOT, ...).values
        smoke, detected = np.empty_like(observed), np.empty_like(observed)
        predicting = 0.0
        try:
            for fold in self.folds:
                part = predicted(fold.fit(plan), fold.held_out)
                smoke[fold.rows], detected[fold.rows] = part.smoke, part.detected
                predicting += part.seconds
            seconds = time.perf_counter() - start
            whole = Predicted(smoke, detected, observed, predicting)
            chosen = Thresholds(self.tau, choose_decision([whole], self.tau))
            score = score_parts(plan.name, [whole], chosen).score
        except PlumecastError as error:
            return replace(candidate, problem=str(error), seconds=time.perf_counter() - start)
        return replace(candidate, folds=score, seconds=seconds)

    def confirm(self, candidate: Candidate) -> Candidate:
        """Fit to all training fires, score on validation, and record what the fit chose."""
        if candidate.folds is None:
            return candidate
        start = time.perf_counter()
        chosen = Thresholds(self.validation_tau, candidate.folds.decision_threshold)
        try:
            surrogate = fit_surrogate(self.train, **candidate.choices, **self.fields)
            seconds = time.perf_counter() - start
            part = predicted(surrogate, self.validation)
            score = score_parts(candidate.name, [part], chosen).score
        except PlumecastError as error:
            return replace(candidate, problem=str(error))
        pinned = {name: surrogate.training[name] for name in PINNED if name in surrogate.training}
        sides = tuple(f"{side}_" for side in ("fire", "smoke") if f"{side}_rank" in pinned)
        kept = {
            name: value for name, value in candidate.choices.items() if not name.startswith(sides)
        }
        return replace(candidate, choices=kept | pinned, validation=score, fit_seconds=seconds)
