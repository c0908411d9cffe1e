"""Train a surrogate: filter, split, fit, choose thresholds on fires it has not seen, record how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.blocks import Runner
from plumecast.compute.device import no_progress
from plumecast.data.split import SplitRecipe, split_by_fire
from plumecast.data.store import open_snapshots
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.evaluate import Evaluation, evaluate
from plumecast.workflows.held_out.out_of_fold import Fit, check_folds, score_out_of_fold
from plumecast.workflows.held_out.verdict import TRIVIAL

PAPER_SPLIT = SplitRecipe()
"""No filters, the paper's shares, whole ignitions."""

ALL_SNAPSHOTS = SplitRecipe(fractions=None)

DEFAULT_PRESET = "recommended"

_RULES = ("rank", "std_fraction", "variance_fraction")
OTHER_FAMILY = {"family", "degree", "penalty", "center", "kernel", "length_scale", "epochs"} | {
    f"{side}_{rule}" for side in ("fire", "smoke") for rule in _RULES
}
"""Choices of other families than that of the default preset."""

READING, FITTING, THRESHOLDS = "reading", "fitting", "thresholds"
"""The steps that `progress` is called with; `fitting: …` and `thresholds: …` are parts of them."""


def default_preset(choices: Iterable[str]) -> str | None:
    """The preset if none is given: `recommended`, unless a choice belongs to another family."""
    return None if OTHER_FAMILY & set(choices) else DEFAULT_PRESET


def train_surrogate(
    data: str | Path | xr.Dataset,
    preset: str | None = None,
    *,
    split: SplitRecipe | None = PAPER_SPLIT,
    folds: int | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str = SMOKE,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Callable[[str], None] = lambda step: None,
    **choices: Any,
) -> Surrogate:
    """Train a surrogate on a snapshot store or a Dataset, as `plumecast train` does.

    `split` says how to filter the snapshots and how to split them. The surrogate is fitted to the
    training part. The smoke threshold and the decision threshold are chosen on the validation part.
    The test part is not used: `plumecast evaluate` repeats the recorded split and scores there.

    `split=None` trains on all snapshots. So does the default split if there are fewer than six
    groups. Further fits, each without a fold of groups, then give out-of-fold predictions, on which
    thresholds are chosen and scores are recorded. `folds` is their number: by default five, or one
    per group if there are fewer than six; 0 skips them. If no thresholds can be chosen, the
    surrogate has none, and `training["problem"]` says why.

    `preset` and `choices` are those of `fit_surrogate`; its `group_by` is `split.by`. The default
    is "recommended", unless a choice belongs to another family. With `memory` or a `runner` the
    fields stay in their store and are read in blocks. `progress` is called with the name of each
    step as it begins.
    """
    recipe = ALL_SNAPSHOTS if split is None else split
    check_folds(folds)
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    place: dict[str, Any] = {"device": device, "memory": memory, "runner": runner}
    progress(READING)
    if not isinstance(data, xr.Dataset):
        data = open_snapshots(data, fields=[*names, outputs])
    lazy = memory is not None or runner is not None
    train, validation = _parts(recipe, recipe.select(data, outputs))
    train = train if lazy else train.compute()

    def fit(part: xr.Dataset, progress: Callable[[str], None] = no_progress) -> Surrogate:
        return fit_surrogate(
            part,
            preset or default_preset(choices),
            inputs=names,
            outputs=outputs,
            group_by=recipe.by,
            progress=progress,
            **choices,
            **place,
        )

    progress(FITTING)
    surrogate = fit(train, lambda step: progress(f"{FITTING}: {step}"))
    known = {"inputs": ",".join(names), "outputs": outputs, "all": validation is None}
    record: dict[str, Any] = {"split": recipe.record() | known}
    read: dict[str, Any] = {"memory": memory, "runner": runner}
    fits: dict[str, Fit] = {_name(surrogate): fit}
    fits |= {
        name: partial(fit_baseline, name, inputs=names, outputs=outputs, **read)
        for name in TRIVIAL
        if not lazy or name == "mean-field"  # the others need all training fires in memory
    }
    try:
        if validation is not None:
            progress(THRESHOLDS)
            validation = validation if lazy else validation.compute()
            record |= _score_validation(surrogate, fits, train, validation, recipe.by, place)
        elif folds != 0:
            progress(THRESHOLDS)
            record |= _score_folds(fits, train, recipe.by, folds, progress, place)
    except PlumecastError as error:  # the fit is worth keeping
        record["problem"] = f"no thresholds were chosen: {error}"
    return replace(surrogate, training=surrogate.training | record)


def _parts(recipe: SplitRecipe, selected: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset | None]:
    """Training and validation snapshots; no validation if scores come from folds."""
    if recipe.leaves_groups_out(selected):
        return selected, None
    assert recipe.fractions is not None
    parts = split_by_fire(selected, recipe.fractions, recipe.seed, by=recipe.by)
    return parts.train, parts.validation


def _score_validation(
    surrogate: Surrogate,
    fits: dict[str, Fit],
    train: xr.Dataset,
    validation: xr.Dataset,
    by: str,
    place: dict[str, Any],
) -> dict[str, Any]:
    """Thresholds and scores on validation, beside baselines fitted to the training part."""
    own, *baselines = fits
    compared = {own: surrogate} | {name: fits[name](train) for name in baselines}
    result = evaluate(compared, validation, validation, by=by, **place)
    return _chosen(result) | {"validation": result.record()}


def _score_folds(
    fits: dict[str, Fit],
    train: xr.Dataset,
    by: str,
    folds: int | None,
    progress: Callable[[str], None],
    place: dict[str, Any],
) -> dict[str, Any]:
    """Thresholds and scores on out-of-fold predictions of all snapshots."""

    def tell(step: str) -> None:
        progress(f"{THRESHOLDS}: {step}")

    found = score_out_of_fold(train, fits, by=by, folds=folds, progress=tell, **place)
    how = {"by": by, "folds": found.folds, "left_out": list(found.left_out)}
    return _chosen(found.result) | {"out_of_fold": found.result.record() | how}


def _name(surrogate: Surrogate) -> str:
    return str(surrogate.settings.get("preset") or "surrogate")


def _chosen(result: Evaluation) -> dict[str, Any]:
    """The thresholds of the surrogate, the first that was scored."""
    decision = result.scores[0].decision_threshold
    return {"thresholds": {"smoke": result.smoke_threshold, "decision": decision}}
