"""Choose a surrogate by cross-validation among candidates of all families.

Candidates are scored by folds of the training part. The best few are fitted again to the whole
training part and scored on the validation part. Penalty and length scale are not candidates: every
fit chooses them in closed form, by leaving out one ignition at a time. All coded candidates of a
fold share one PCA of the inputs and one of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.data.conditions.covariates import own_covariates, own_winds, read_wind
from plumecast.data.split import check_apart
from plumecast.operators.coded.fit import PAPER_TRUNCATION
from plumecast.operators.neural.map import check_torch
from plumecast.operators.pca import Truncation
from plumecast.operators.settings import NETWORKS
from plumecast.scores.footprint import smoke_threshold
from plumecast.workflows.tune.candidates import (
    CLOSED_FORM,
    KERNELS,
    STD_FRACTIONS,
    Plan,
    check_families,
    coded_plans,
    given_plans,
    lifted_plans,
    neural_plans,
    spectral_plans,
    turn,
)
from plumecast.workflows.tune.folds import Fold, fold_rows, input_basis
from plumecast.workflows.tune.search import Candidate, Limits, Search

RANK_BY = ("iou", "deployable_iou", "auc", "relative_error")


def tune_surrogate(
    train: xr.Dataset,
    validation: xr.Dataset,
    *,
    families: Sequence[str] = CLOSED_FORM,
    given: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    degrees: Sequence[int] = (1, 2, 3),
    kernels: Sequence[str] = KERNELS,
    std_fractions: Sequence[float] = STD_FRACTIONS,
    smoke: Truncation = PAPER_TRUNCATION,
    inputs: str | Sequence[str] = FIRE,
    outputs: str = SMOKE,
    group_by: str = "ignition_id",
    captured: float = 0.95,
    rank_by: str = "iou",
    folds: int = 3,
    confirm: int = 3,
    most: int | None = None,
    budget_seconds: float | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Candidate]:
    """Candidates from best to worst: first those scored on validation, then the others by their
    cross-validation scores, then those that failed or were not tried.

    `families` are "coded" (ranks, degrees and kernels), "lifted" (the coded family on lifted
    fields), "spectral" (the recommended preset and single changes of it), "unet" and "fno". `given`
    are candidates of your own: keywords of `fit_surrogate` by a name of your choice.

    At most `most` candidates are tried, and none is started after `budget_seconds`: first your own,
    then `recommended`, then the others by cost. The best `confirm` are fitted again. The decision
    threshold of the deployable IoU is chosen on out-of-fold predictions, so that the score on
    validation is one that a user could have obtained.
    """
    if rank_by not in RANK_BY:
        raise PlumecastError(f"rank_by='{rank_by}' is unknown; choose from {', '.join(RANK_BY)}")
    limits = Limits(confirm, most, budget_seconds)
    check_families(families)
    networks = [name for name in NETWORKS if name in families]
    if networks:
        check_torch()
    check_apart(group_by, train=train, validation=validation)
    parts = fold_rows(train[group_by].values, folds, group_by)
    plans = given_plans(given)
    if "spectral" in families:
        plans += _spectral_plans(train, group_by)
    if "lifted" in families:
        plans += lifted_plans(smoke)
    plans += neural_plans(networks)
    if "coded" in families:
        plans += coded_plans(
            input_basis(train, inputs, Truncation(std_fraction=max(std_fractions, default=1.0))),
            train.sizes[SNAPSHOT],
            degrees=degrees,
            kernels=kernels,
            std_fractions=std_fractions,
            smoke=smoke,
        )
    if not plans:
        raise PlumecastError("there is nothing to try; name a family or give candidates")
    largest = max(plan.choices.get("fire_rank", 1) for plan in plans)
    fire = Truncation(std_fraction=1.0, max_rank=largest)  # enough modes for every candidate
    search = Search(
        train=train,
        validation=validation,
        folds=[Fold(train, rows, inputs, outputs, group_by, fire, smoke) for rows in parts],
        fields={"inputs": inputs, "outputs": outputs, "group_by": group_by},
        tau=smoke_threshold(train[outputs], captured),
        validation_tau=smoke_threshold(validation[outputs], captured),
        rank_by=rank_by,
    )
    return search.run(sorted(plans, key=turn), limits, progress)


def _spectral_plans(train: xr.Dataset, group_by: str) -> list[Plan]:
    """Spectral candidates, with those that the winds and covariates of training suggest."""
    groups = train[group_by].values
    try:
        winds = own_winds(train, groups, read_wind(train))
    except PlumecastError:  # winds that are not finite; the candidates that need them will fail
        winds = False
    return spectral_plans(winds=winds, covariates=own_covariates(train, groups))
