"""Choose degree, ranks and penalty: penalties in closed form on training, the rest on validation.

One decomposition of each side serves every rank, one eigendecomposition every penalty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import xarray as xr

from plumecast.encode import Basis, Truncation, fit_truncated_basis, rank_for_std
from plumecast.errors import PlumecastError
from plumecast.fit import TrainingMatrices, training_matrices
from plumecast.names import FIRE, SMOKE
from plumecast.operators import CodedOperator, tune_polynomial_map
from plumecast.quantity.footprint import (
    choose_decision_threshold,
    relative_error,
    score_footprints,
    smoke_threshold,
)
from plumecast.settings import PAPER_TRUNCATION
from plumecast.split import check_apart
from plumecast.surrogate import Surrogate

STD_FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
"""Shares of Σσ tried for the input basis; at degree ≥ 2 ranks beyond MAX_RANK are left out."""

MAX_RANK = {1: 2000, 2: 400, 3: 200, 4: 100}
"""Largest input rank tried at each degree: beyond it the products of codes are noise."""

RANK_BY = ("iou", "deployable_iou", "auc", "relative_error")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One set of choices with its scores on validation."""

    degree: int
    fire_rank: int
    smoke_rank: int
    penalty: float
    leave_out_error: float  # relative, on training, one fire left out at a time
    relative_error: float
    auc: float
    iou: float
    deployable_iou: float
    seconds: float

    def settings(self) -> dict[str, Any]:
        """The keywords of `fit_surrogate` that repeat this candidate."""
        names = ("degree", "fire_rank", "smoke_rank", "penalty")
        return {name: getattr(self, name) for name in names}


def tune_surrogate(
    train: xr.Dataset,
    validation: xr.Dataset,
    *,
    degrees: Sequence[int] = (1, 2, 3),
    std_fractions: Sequence[float] = STD_FRACTIONS,
    smoke: Truncation = PAPER_TRUNCATION,
    inputs: str | Sequence[str] = FIRE,
    outputs: str = SMOKE,
    group_by: str = "ignition_id",
    captured: float = 0.95,
    rank_by: str = "iou",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Candidate]:
    """Candidates from best to worst by a score on validation."""
    if rank_by not in RANK_BY:
        raise PlumecastError(f"rank_by='{rank_by}' is unknown; choose from {', '.join(RANK_BY)}")
    if not degrees or not std_fractions:
        raise PlumecastError("give at least one of degrees and one of std_fractions to try")
    check_apart(group_by, train=train, validation=validation)
    data = training_matrices(train, inputs, outputs)
    full = Truncation(std_fraction=max(std_fractions))
    input_basis = fit_truncated_basis(data.inputs, full)
    output_basis = fit_truncated_basis(data.outputs, smoke)
    plans = _plans(input_basis, degrees, std_fractions)
    tau = smoke_threshold(validation[outputs], captured)
    candidates = []
    for done, (degree, rank) in enumerate(plans):
        progress(done, len(plans))
        surrogate, found = _try(
            data, input_basis.truncate(rank), output_basis, degree=degree, group_by=group_by
        )
        candidates.append(_score(surrogate, found, validation, tau=tau))
    progress(len(plans), len(plans))
    worst_first = rank_by == "relative_error"
    return sorted(candidates, key=lambda c: getattr(c, rank_by), reverse=not worst_first)


def _plans(
    basis: Basis, degrees: Sequence[int], std_fractions: Sequence[float]
) -> list[tuple[int, int]]:
    ranks = sorted({rank_for_std(basis.spectrum, fraction) for fraction in std_fractions})
    plans = []
    for degree in degrees:
        if degree not in MAX_RANK:
            raise PlumecastError(f"degree={degree} is not one of 1…{max(MAX_RANK)}")
        plans += [(degree, rank) for rank in sorted({min(r, MAX_RANK[degree]) for r in ranks})]
    return plans


def _try(
    data: TrainingMatrices, input_basis: Basis, output_basis: Basis, *, degree: int, group_by: str
) -> tuple[Surrogate, dict[str, Any]]:
    start = time.perf_counter()
    code_map, scan = tune_polynomial_map(
        input_basis.encode(data.inputs),
        output_basis.encode(data.outputs),
        degree=degree,
        groups=data.groups(group_by),
        penalties=None,
    )
    found = {
        "degree": degree,
        "fire_rank": input_basis.rank,
        "smoke_rank": output_basis.rank,
        "penalty": scan.best,
        "leave_out_error": min(scan.errors),
        "seconds": time.perf_counter() - start,
    }
    surrogate = Surrogate(
        inputs=data.input_layout,
        outputs=data.output_layout,
        operator=CodedOperator(input_basis, code_map, output_basis),
        nonnegative=True,
        settings={},
        training={},
    )
    return surrogate, found


def _score(
    surrogate: Surrogate, found: dict[str, Any], validation: xr.Dataset, *, tau: float
) -> Candidate:
    predicted = surrogate.predict(validation)
    assert isinstance(predicted, xr.DataArray)
    observed = validation[surrogate.outputs.names[0]]
    alpha = choose_decision_threshold(predicted, observed, tau)
    scores = score_footprints(predicted, observed, tau, alpha)
    return Candidate(
        **found,
        relative_error=relative_error(predicted, observed),
        auc=float(scores.auc.median()),
        iou=float(scores.iou.median()),
        deployable_iou=float(scores.deployable_iou.median()),
    )
