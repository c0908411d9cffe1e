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
from plumecast.compute.resources import Resources
from plumecast.data.lazy_store import one_version
from plumecast.data.samples import field_names
from plumecast.data.split import SplitRecipe, group_rows, split_by_fire
from plumecast.data.store import open_snapshots
from plumecast.scores.quantities import DEFAULT
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.error_bars.calibration import make_calibration
from plumecast.surrogate.error_bars.interval import NO_ERROR_BARS
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import FURTHER, Thresholds
from plumecast.surrogate.update import HELD_OUT
from plumecast.workflows.evaluate import agreeing, evaluate, fit_thresholds
from plumecast.workflows.held_out.evaluation import Evaluation
from plumecast.workflows.held_out.levels import Levels, make_levels
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

SETTLED = ("frame", "physics")
"""Settings that fits without a fold take from the fit to all snapshots."""

READING, FITTING, THRESHOLDS = "reading", "fitting", "thresholds"
"""The steps that `progress` is called with; `fitting: …` and `thresholds: …` are parts of them."""


CALIBRATION = "calibration"
"""Entry of what scoring gives beside the training record: the table for error bars."""


def default_preset(choices: Iterable[str]) -> str | None:
    """The preset if none is given: `recommended`, unless a choice belongs to another family."""
    return None if OTHER_FAMILY & set(choices) else DEFAULT_PRESET


def train_surrogate(
    data: str | Path | xr.Dataset,
    preset: str | None = None,
    *,
    split: SplitRecipe | None = PAPER_SPLIT,
    folds: int | None = None,
    thresholds: Sequence[float] = (),
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
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
    surrogate has none, and `training["problem"]` says why. With thresholds, a surrogate with a
    detection score predicts smoke above the one exactly where its score is above the other
    (`training["agree"]`). The same predictions calibrate error bars (`predict_interval`), if they
    are of at least five groups; if not, `training["no_error_bars"]` says why. `thresholds` are
    values at which the recorded scores have hit rate, false alarms and bias; their `quantity` and
    `checkpoint_interval` are those of `evaluate`.

    Several `outputs`, such as ["smoke", "surface_smoke"], are fitted together. Each has its own
    thresholds and scores: those of the first in `training` itself, those of the others in
    `training["further"]` by name (`Surrogate.output`).

    `preset` and `choices` are those of `fit_surrogate`; its `group_by` is `split.by`. The default
    is "recommended", unless a choice belongs to another family. With `memory` or a `runner` the
    fields stay in their store and are read in blocks. `progress` is called with the name of each
    step as it begins.
    """
    recipe = ALL_SNAPSHOTS if split is None else split
    check_folds(folds)
    levels = make_levels(thresholds, quantity, checkpoint_interval)
    names, wanted = field_names(inputs), field_names(outputs)
    if len(set(wanted)) < len(wanted):
        raise PlumecastError(f"outputs={','.join(wanted)} names a variable twice; give it once")
    place: dict[str, Any] = {"device": device, "memory": memory, "runner": runner}
    progress(READING)
    if not isinstance(data, xr.Dataset):
        data = open_snapshots(data, fields=[*names, *wanted])
    for name in wanted:
        if name in data:
            levels.check(data[name])
    with one_version(data):
        return _train(data, preset, recipe, folds, names, wanted, place, progress, choices, levels)


def _train(
    data: xr.Dataset,
    preset: str | None,
    recipe: SplitRecipe,
    folds: int | None,
    names: list[str],
    outputs: list[str],
    place: dict[str, Any],
    progress: Callable[[str], None],
    choices: dict[str, Any],
    levels: Levels,
) -> Surrogate:
    """`train_surrogate` of an opened store, with where to compute in `place`."""
    memory, runner = place["memory"], place["runner"]
    lazy = memory is not None or runner is not None
    selected = recipe.select(data, outputs)
    train, validation = _parts(recipe, selected)
    train = train if lazy else train.compute()

    def fit(
        part: xr.Dataset, progress: Callable[[str], None] = no_progress, **settled: Any
    ) -> Surrogate:
        return fit_surrogate(
            part,
            preset or default_preset(choices),
            inputs=names,
            outputs=outputs,
            group_by=recipe.by,
            resources=Resources(**place, progress=lambda done, total, what: progress(what)),
            **(choices | settled),
        )

    progress(FITTING)
    surrogate = fit(train, lambda step: progress(f"{FITTING}: {step}"))
    known = {"inputs": ",".join(names), "outputs": ",".join(outputs), "all": validation is None}
    record: dict[str, Any] = {"split": recipe.record() | known}
    asked = {"thresholds": levels.values, "quantity": levels.quantity}
    scoring = place | asked | {"checkpoint_interval": levels.interval}
    read = Resources(memory=memory, runner=runner)
    # Frame and physics were chosen by out-of-fold errors; to choose them again in every fold would
    # take as long as all the fits.
    settled = {name: surrogate.training[name] for name in SETTLED if name in surrogate.training}
    settled["updatable"] = False
    if surrogate.sums is not None:
        record[HELD_OUT] = _groups_apart(selected, train, recipe.by)
    fits: dict[str, Fit] = {_name(surrogate): partial(fit, **settled)}
    fits |= {
        name: partial(fit_baseline, name, inputs=names, outputs=outputs, resources=read)
        for name in TRIVIAL
        if not lazy or name == "mean-field"  # the others need all training fires in memory
    }
    try:
        if validation is not None:
            progress(THRESHOLDS)
            validation = validation if lazy else validation.compute()
            record |= _score_validation(surrogate, fits, train, validation, recipe.by, scoring)
        elif folds != 0:
            progress(THRESHOLDS)
            record |= _score_folds(surrogate, fits, train, recipe.by, folds, progress, scoring)
    except PlumecastError as error:  # the fit is worth keeping
        record["problem"] = f"no thresholds were chosen: {error}"
    further = record.get(FURTHER, {})
    bars = record.pop(CALIBRATION, None)
    others = {name: own.pop(CALIBRATION) for name, own in further.items() if CALIBRATION in own}
    training = surrogate.training | record
    return replace(surrogate, training=training, error_bars=bars, further_bars=others or None)


def _groups_apart(selected: xr.Dataset, train: xr.Dataset, by: str) -> list[str]:
    """Groups that are not in the training part; an update must not take them in."""
    every, own = (set(part[by].values.astype(str).tolist()) for part in (selected, train))
    return sorted(every - own)


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
    scoring: dict[str, Any],
) -> dict[str, Any]:
    """Thresholds and scores on validation, beside baselines fitted to the training part."""
    own, *others = fits
    baselines = {name: fits[name](train) for name in others}

    def score(output: str) -> dict[str, Any]:
        scored = surrogate.output(output)
        if scored.detects:
            place = {name: scoring[name] for name in ("device", "memory", "runner")}
            chosen = fit_thresholds(scored, validation, joint=True, **place)
            scored = agreeing(scored, chosen)
        compared = {own: scored} | {name: item.output(output) for name, item in baselines.items()}
        result = evaluate(compared, validation, validation, by=by, calibrate=True, **scoring)
        return _chosen(result, surrogate) | _error_bars(result) | {"validation": result.record()}

    return _by_output({output: score(output) for output in surrogate.outputs.names})


def _score_folds(
    surrogate: Surrogate,
    fits: dict[str, Fit],
    train: xr.Dataset,
    by: str,
    folds: int | None,
    progress: Callable[[str], None],
    scoring: dict[str, Any],
) -> dict[str, Any]:
    """Thresholds and scores on out-of-fold predictions of all snapshots."""

    def tell(step: str) -> None:
        progress(f"{THRESHOLDS}: {step}")

    found = score_out_of_fold(train, fits, by=by, folds=folds, progress=tell, **scoring)
    groups = len(group_rows(train[by].values))
    how = {"by": by, "groups": groups, "folds": found.folds, "left_out": list(found.left_out)}
    return _by_output(
        {
            output: _chosen(result, surrogate)
            | _error_bars(result)
            | {"out_of_fold": result.record() | how}
            for output, result in found.results.items()
        }
    )


def _by_output(records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The records of the outputs as one: that of the first, with the others within it."""
    first, *others = records
    return records[first] | ({FURTHER: {name: records[name] for name in others}} if others else {})


def _error_bars(result: Evaluation) -> dict[str, Any]:
    """The calibration table of the first surrogate; if there can be none, the reason."""
    if result.cells is None:
        return {NO_ERROR_BARS: "they need smoke, or another output that is never negative"}
    try:
        return {CALIBRATION: make_calibration(result.cells)}
    except PlumecastError as error:
        return {NO_ERROR_BARS: str(error)}


def _name(surrogate: Surrogate) -> str:
    return str(surrogate.settings.get("preset") or "surrogate")


def _chosen(result: Evaluation, surrogate: Surrogate) -> dict[str, Any]:
    """The thresholds of the surrogate, the first that was scored."""
    chosen = Thresholds(result.smoke_threshold, result.scores[0].decision_threshold)
    return chosen.record(agree=surrogate.detects)
