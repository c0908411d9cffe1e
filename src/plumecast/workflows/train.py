"""Train a surrogate: filter, split, fit, choose thresholds on fires it has not seen, record how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.resources import LOCAL, Resources, hears_names
from plumecast.data.lazy_store import one_version
from plumecast.data.split import SplitRecipe, split_by_fire
from plumecast.data.store import open_snapshots
from plumecast.data.training import field_names
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.error_bars.calibration import make_calibration
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Agreement, OutputRecord, Thresholds
from plumecast.surrogate.update import HELD_OUT
from plumecast.workflows.evaluate import (
    Fit,
    check_folds,
    evaluate,
    fit_thresholds,
    score_out_of_fold,
)
from plumecast.workflows.held_out.record import TRIVIAL, HeldOutScores
from plumecast.workflows.held_out.scoring import agreeing, check_reading

PAPER_SPLIT = SplitRecipe()
"""No filters, the paper's shares, whole ignitions."""

DEFAULT_PRESET = "recommended"

_RULES = ("rank", "std_fraction", "variance_fraction")
OTHER_FAMILY = {"family", "degree", "penalty", "center", "kernel", "length_scale", "epochs"} | {
    f"{side}_{rule}" for side in ("fire", "smoke") for rule in _RULES
}
"""Choices of other families than that of the default preset."""

SETTLED = ("frame", "physics")
"""Settings that fits without a fold take from the fit to all snapshots."""

READING, FITTING, THRESHOLDS = "reading", "fitting", "thresholds"
"""The steps that progress is told of; `fitting: …` and `thresholds: …` are parts of them."""


@folded_arguments(
    resources=Resources,
    reading=Reading,
    renamed={"checkpoint_interval": "interval"},
    adapted={"progress": hears_names},
)
def train_surrogate(
    data: str | Path | xr.Dataset,
    preset: str | None = None,
    *,
    split: SplitRecipe | None = PAPER_SPLIT,
    folds: int | None = None,
    reading: Reading = AS_STORED,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    resources: Resources = LOCAL,
    **choices: Any,
) -> Surrogate:
    """Train a surrogate on a snapshot store or a Dataset, as `plumecast train` does.

    The surrogate is fitted to the training part. The smoke threshold and the decision threshold are
    chosen on the validation part. The test part is not used: `plumecast evaluate` repeats the
    recorded split and scores there. A surrogate that is trained on all snapshots, or on fewer than
    six groups, has thresholds and scores from further fits, each without a fold of groups. If none
    can be chosen, `training["problem"]` says why. The same predictions calibrate error bars
    (`predict_interval`), if they are of at least five groups; if not, `training["no_error_bars"]`
    says why. With thresholds, a surrogate with a detection score predicts smoke above the one
    exactly where its score is above the other (`training["agree"]`).

    Parameters
    ----------
    data
        Snapshots, or the path of their store.
    preset, choices
        As for `fit_surrogate`; "recommended", unless a choice belongs to another family. The groups
        are those of `split`.
    split
        How to filter the snapshots and how to split them; None trains on all.
    folds
        Number of folds: by default five, or one per group if there are fewer than six; 0 skips
        them.
    reading
        Values at which the recorded scores have hit rate, false alarms and bias, as in `evaluate`.
    inputs, outputs
        Variables. Several outputs, such as ["smoke", "surface_smoke"], are fitted together; each
        has its own thresholds and scores (`Surrogate.records`).
    resources
        With a memory limit or a runner the fields stay in their store and are read in blocks. The
        progress is told of each step as it begins.
    """
    check_folds(folds)
    names, wanted = field_names(inputs), field_names(outputs)
    if len(set(wanted)) < len(wanted):
        raise ArgumentError(
            "outputs", ",".join(wanted), "give it once", problem="names a variable twice"
        )
    resources.step(READING)
    if not isinstance(data, xr.Dataset):
        data = open_snapshots(data, fields=[*names, *wanted])
    for name in wanted:
        if name in data:
            check_reading(reading, data[name])
    recipe = SplitRecipe(fractions=None) if split is None else split
    chosen = preset or (None if OTHER_FAMILY & set(choices) else DEFAULT_PRESET)
    training = _Training(recipe, chosen, choices, names, wanted, folds, reading, resources)
    with one_version(data):
        return training.of(data)


@dataclass(frozen=True, slots=True)
class _Training:
    """What is trained, how it is scored, and where that is computed."""

    recipe: SplitRecipe
    preset: str | None
    choices: Mapping[str, Any]
    inputs: list[str]
    outputs: list[str]
    folds: int | None
    reading: Reading
    resources: Resources

    def of(self, data: xr.Dataset) -> Surrogate:
        """The surrogate of an opened store."""
        recipe, resources = self.recipe, self.resources
        selected = recipe.select(data, self.outputs)
        train, validation = selected, None
        if not recipe.leaves_groups_out(selected):  # if not, scores come from folds
            assert recipe.fractions is not None
            parts = split_by_fire(selected, recipe.fractions, recipe.seed, by=recipe.by)
            train, validation = parts.train, parts.validation
        if not resources.lazy:
            train = train.compute()
        resources.step(FITTING)
        surrogate = self._fit(resources.within(FITTING), train)
        names = {"inputs": ",".join(self.inputs), "outputs": ",".join(self.outputs)}
        split = recipe.record() | names | {"all": validation is None}
        record: dict[str, Any] = {"split": split}
        if surrogate.sums is not None:  # groups that an update must not take in
            every, trained = (set(part[recipe.by].values.astype(str)) for part in (selected, train))
            record[HELD_OUT] = sorted(map(str, every - trained))
        scores: dict[str, OutputRecord] = {}
        try:
            if validation is not None:
                resources.step(THRESHOLDS)
                validation = validation if resources.lazy else validation.compute()
                scores = self._score_validation(surrogate, train, validation)
            elif self.folds != 0:
                resources.step(THRESHOLDS)
                scored = score_out_of_fold(
                    *(train, self._fits(surrogate)),
                    by=recipe.by,
                    folds=self.folds,
                    reading=self.reading,
                    resources=resources.within(THRESHOLDS),
                )
                scores = {name: _output_record(one, surrogate) for name, one in scored.items()}
        except PlumecastError as error:  # the fit is worth keeping
            record["problem"] = f"no thresholds were chosen: {error}"
        surrogate = replace(surrogate, training=surrogate.training | record)
        return surrogate.with_records(scores) if scores else surrogate

    def _fit(self, resources: Resources, part: xr.Dataset, **settled: Any) -> Surrogate:
        return fit_surrogate(
            part,
            self.preset,
            inputs=self.inputs,
            outputs=self.outputs,
            group_by=self.recipe.by,
            resources=resources,
            **(dict(self.choices) | settled),
        )

    def _fits(self, surrogate: Surrogate) -> dict[str, Fit]:
        """How the surrogate, which is first, and the trivial baselines are fitted to a part.

        Frame and physics were chosen by out-of-fold errors; to choose them again in every fold
        would take as long as all the fits.
        """
        settled = {n: surrogate.training[n] for n in SETTLED if n in surrogate.training}
        name = str(surrogate.settings.get("preset") or "surrogate")
        quiet = self.resources.quiet()
        fits: dict[str, Fit] = {name: partial(self._fit, quiet, updatable=False, **settled)}
        fields: dict[str, Any] = {"inputs": self.inputs, "outputs": self.outputs}
        for baseline in TRIVIAL:
            if not quiet.lazy or baseline == "mean-field":  # the others need all fires in memory
                fits[baseline] = partial(fit_baseline, baseline, resources=quiet, **fields)
        return fits

    def _score_validation(
        self, surrogate: Surrogate, train: xr.Dataset, validation: xr.Dataset
    ) -> dict[str, OutputRecord]:
        """Thresholds and scores on validation, beside baselines fitted to the training part."""
        quiet = self.resources.quiet()
        name, *others = fits = self._fits(surrogate)
        baselines = {other: fits[other](train) for other in others}
        scores = {}
        for output in surrogate.outputs.names:
            scored = surrogate.output(output)
            if scored.detects:
                chosen = fit_thresholds(scored, validation, joint=True, resources=quiet)
                scored = agreeing(scored, chosen)
            compared = {other: item.output(output) for other, item in baselines.items()}
            result = evaluate(
                {name: scored} | compared,
                validation,
                validation,
                reading=self.reading,
                by=self.recipe.by,
                resources=quiet,
                calibrate=True,
            )
            scores[output] = _output_record(HeldOutScores(result), surrogate)
        return scores


def _output_record(scores: HeldOutScores, surrogate: Surrogate) -> OutputRecord:
    """The record of an output, with error bars from the cells that scoring has counted."""
    evaluation = scores.evaluation
    chosen = Thresholds(evaluation.smoke_threshold, evaluation.scores[0].decision_threshold)
    record = OutputRecord(
        chosen, Agreement(chosen) if surrogate.detects else None, scores=scores.record()
    )
    if evaluation.cells is None:
        why = "they need smoke, or another output that is never negative"
        return replace(record, no_error_bars=why)
    try:
        return replace(record, error_bars=make_calibration(evaluation.cells))
    except PlumecastError as error:
        return replace(record, no_error_bars=str(error))
