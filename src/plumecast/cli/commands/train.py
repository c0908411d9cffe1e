"""`plumecast train` and `plumecast tune`: fit a surrogate, and choose its settings."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.paths import check_output, check_regular
from plumecast.base.values import shown
from plumecast.cli.options import (
    DATA,
    Given,
    ResourceOptions,
    options_of,
    reading_of,
    reading_options,
    settings_given,
    variable_options,
    variables,
    with_options,
)
from plumecast.cli.show import counted, next_step, note, progress, say, table, warn, wrote
from plumecast.compute.resources import Resources
from plumecast.data.lazy_store import one_version
from plumecast.data.schema import SMOKE_FLOOR
from plumecast.data.split import SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.operators.settings import NETWORKS, PRESETS, RULES, SIDES, settings_classes
from plumecast.surrogate.error_bars.interval import promise_text
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.record import judge, stored_scores
from plumecast.workflows.train import DEFAULT_PRESET, FITTING, THRESHOLDS, train_surrogate
from plumecast.workflows.tune.candidates import SearchSpace
from plumecast.workflows.tune.tune import Candidate, SearchLimits, tune_surrogate

CHOICES = settings_classes()
"""Classes whose fields are options of this command and choices of `fit_surrogate`."""

SHOWN_COVERAGE = 0.9
"""Coverage for which the promise of the error bars is shown."""


@with_options(
    choices=options_of(*CHOICES, defaults=False),
    split=options_of(SplitRecipe),
    reading=reading_options,
    names=variable_options,
    compute=ResourceOptions,
)
def command(
    data: Path = DATA,
    out: Path = typer.Option(
        Path("smoke.plume"), "--out", "-o", help="File to save the surrogate in."
    ),
    preset: str = typer.Option(
        None,
        help=f"{', '.join(PRESETS)}.",
        show_default=f"{DEFAULT_PRESET}, unless an option of another family is given",
    ),
    settings: Path = typer.Option(None, help="Settings that `plumecast tune` wrote."),
    *,
    choices: Given,
    whole: bool = typer.Option(
        False,
        "--all",
        help="Train on every snapshot; thresholds, scores and error bars come from further fits, "
        "each without a fold of ignitions.",
    ),
    folds: int = typer.Option(
        None,
        help="Number of these folds, with --all or fewer than 6 ignitions; 0 for none.",
        show_default="5, or every ignition if there are fewer than 6",
    ),
    reading: Given,
    split: Given,
    names: Given,
    compute: ResourceOptions,
) -> None:
    """Fit a fire-to-smoke surrogate and save it.

    Trains on the training part of the split, chooses thresholds on the validation part and leaves
    the test part to `plumecast evaluate`. With fewer than 6 ignitions it trains on all of them, and
    scores by leaving out one ignition at a time. With --thresholds the recorded scores have the hit
    rate, false alarms and bias above these values, as those of `plumecast evaluate`.

    Example: `plumecast train ensemble.zarr -o smoke.plume`
    """
    check_output(out, content="a saved surrogate", inputs=[data, settings])
    tuned, tuned_choices = _read_settings(settings)
    recipe = replace(SplitRecipe.from_record(tuned), **settings_given(split, SplitRecipe))
    recipe = replace(recipe, fractions=None) if whole else recipe
    inputs, outputs = variables(names, tuned)
    given = settings_given(choices, *CHOICES)  # these replace tuned settings
    rules = [{f"{side}_{rule}" for rule in RULES} for side in SIDES]
    replaced = set().union(*(rule for rule in rules if rule & given.keys()))
    chosen = {name: tuned_choices[name] for name in tuned_choices if name not in replaced} | given
    tuned_preset = chosen.pop("preset", None)
    snapshots = open_snapshots(data, fields=[*inputs, *outputs])
    surrogate, seconds, scoring = _train_and_save(
        snapshots,
        out,
        compute,
        preset=preset or tuned_preset,
        split=recipe,
        folds=folds,
        reading=reading_of(reading),
        inputs=inputs,
        outputs=outputs,
        **chosen,
    )
    training = surrogate.training
    number = training["snapshots"]
    say(f"trained on {number} snapshots in {seconds:.2f} s: {_summary(training)}")
    scores = stored_scores(training)
    if scores is not None and scores.folds is not None:
        number = scores.folds.folds
        say(f"{number} further fits, each without some of them, took {scoring:.2f} s (--folds)")
    for name in outputs:
        show_training_scores(surrogate.output(name), name if len(outputs) > 1 else "")
    for number, name in enumerate(outputs):
        record, which = surrogate.records[name], f"{name}: " if number else ""
        if record.error_bars is not None:
            say(f"{which}{promise_text(record.error_bars, SHOWN_COVERAGE)} (predict --interval)")
        elif record.no_error_bars is not None:
            say(f"{which}no error bars for predict --interval: {record.no_error_bars}")
    wrote(out, "the surrogate")
    recorded = snapshots[outputs[0]].attrs.get(SMOKE_FLOOR, snapshots.attrs.get(SMOKE_FLOOR))
    if recipe.smoke_floor is None and recorded is None:
        note("the data records no smoke floor, so traces count as smoke; set --smoke-floor")
    if folds != 0 or not surrogate.training["split"]["all"]:
        next_step("evaluate", out, data)


def show_training_scores(surrogate: Surrogate, output: str = "") -> None:
    """Say how the surrogate did on validation or out of fold, or why it has no thresholds.

    `output` names the output that is meant, if there are several.
    """
    training = surrogate.training
    which = f"{output}: " if output else ""
    if "problem" in training:
        note(f"{training['problem']}; the surrogate is saved without them")
    recorded = stored_scores(training)
    if recorded is None:
        return
    count, folds = recorded.evaluation.snapshots, recorded.folds
    where = f"on {count} validation snapshots"
    if folds is not None:
        where = f"on {count} snapshots, each predicted by a fit without its {folds.by}"
        if folds.left_out:
            note(
                f"{', '.join(folds.left_out)}: the drought is in no other {folds.by}, so no "
                "score includes these fires; add fires"
            )
    verdict = judge(recorded.evaluation.scores)
    if verdict is not None:
        (say if verdict.beats else warn)(f"{which}{where}, {verdict.text}")


def _train_and_save(
    snapshots: xr.Dataset, out: Path, compute: ResourceOptions, **choices: Any
) -> tuple[Surrogate, float, float]:
    """The saved surrogate, the seconds that the fit took, and those of thresholds and scores."""
    began: dict[str, float] = {}
    with progress("training", total=4) as begin, compute.running() as runner:

        def show(done: int, total: int, step: str) -> None:
            began[step] = time.perf_counter()
            begin(step, within=":" in step)

        resources = Resources(compute.device, compute.memory, runner, show)
        surrogate = train_surrogate(snapshots, resources=resources, **choices)
        ended = time.perf_counter()
        fitted = began.get(THRESHOLDS, ended)
        begin("saving")
        surrogate.save(out)
    return surrogate, fitted - began[FITTING], ended - fitted


def _summary(chosen: Mapping[str, Any]) -> str:
    """What the fit chose, for any family."""
    if "fire_rank" not in chosen:
        scenarios = ", ".join(chosen["scenarios"]) or "not distinguished"
        carried = chosen.get("physics", "none")
        physics = "" if carried == "none" else f", physics {carried}"
        return f"scenarios {scenarios}, frame {chosen['frame']}{physics}"
    ranks = f"{chosen['fire_rank']} → {chosen['smoke_rank']}"
    length = f", length scale {chosen['length_scale']:.3g}" if "length_scale" in chosen else ""
    return f"ranks {ranks}{length}, penalty {chosen['penalty']:.4g}"


def _read_settings(path: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The split with its variables, and the choices, that `plumecast tune` wrote."""
    if path is None:
        return {}, {}
    check_regular(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        recipe, settings = dict(content["recipe"]), dict(content["settings"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PlumecastError(
            f"--settings {path} has no settings; write them with plumecast tune"
        ) from None
    names = {"preset", *inspect.signature(options_of(*CHOICES)).parameters}
    for name in settings:
        if name not in names:
            raise PlumecastError(
                f"--settings {path} has '{shown(name)}', which is no setting of a surrogate; "
                "remove it, or write the settings with plumecast tune"
            )
    for name in ("inputs", "outputs"):
        if not isinstance(recipe.get(name, ""), str):
            raise PlumecastError(
                f"--settings {path}: {name}={shown(recipe[name])} is not the name of a variable"
            )
    return recipe, settings


@with_options(space=SearchSpace, limits=SearchLimits, recipe=SplitRecipe, names=variable_options)
def tune(
    data: Path = DATA,
    out: Path = typer.Option(
        Path("tuned.json"), "--out", "-o", help="File to write the settings to."
    ),
    neural: bool = typer.Option(
        False, "--neural", help=f"Also try networks: {', '.join(NETWORKS)}; needs PyTorch."
    ),
    rank_by: str = typer.Option(
        "iou", help="Score that ranks candidates: iou, deployable_iou, auc, relative_error."
    ),
    *,
    space: SearchSpace,
    limits: SearchLimits,
    recipe: SplitRecipe,
    names: Given,
) -> None:
    """Choose the settings of a surrogate by cross-validation within the training part.

    The best candidates are then compared on the validation part.

    Example: `plumecast tune ensemble.zarr -o tuned.json --budget-seconds 600`, then
    `plumecast train ensemble.zarr --settings tuned.json`
    """
    check_output(out, content="settings", inputs=[data])
    inputs, (outputs, *others) = variables(names)
    if others:
        raise PlumecastError(
            f"--outputs={names['outputs']}: settings are chosen on one output; give --outputs "
            f"{outputs}, and all of them to plumecast train"
        )
    snapshots = open_snapshots(data, fields=[*inputs, outputs])
    parts = recipe.split(snapshots, outputs)
    with one_version(snapshots), counted("tuning") as step:
        candidates = tune_surrogate(
            parts.train.load(),
            parts.validation.load(),
            space=replace(space, families=[*space.families, *(NETWORKS if neural else ())]),
            limits=limits,
            inputs=inputs,
            outputs=outputs,
            group_by=recipe.by,
            rank_by=rank_by,
            resources=Resources(progress=step),
        )
    content = {
        "settings": candidates[0].settings(),
        "recipe": recipe.record() | {"inputs": ",".join(inputs), "outputs": outputs},
        "candidates": [asdict(candidate) for candidate in candidates],
    }
    write_json(out, content)
    _show_candidates(candidates, rank_by, limits.folds)
    wrote(out, f"the settings of '{candidates[0].name}'")
    next_step("train", data, "--settings", out)


def _show_candidates(candidates: Sequence[Candidate], rank_by: str, folds: int) -> None:
    columns = ["candidate", "error", "AUC", "IoU", "depl.", "s", "valid."]
    rows = []
    for candidate in candidates:
        scores = candidate.folds
        if scores is None:
            continue
        values = (scores.relative_error, scores.auc, scores.iou, scores.deployable_iou)
        confirmed = candidate.validation
        rows.append(
            [
                candidate.name,
                *(f"{value:.3f}" for value in values),
                f"{candidate.seconds:.1f}",
                "" if confirmed is None else f"{getattr(confirmed, rank_by):.3f}",
            ]
        )
    table(f"{folds} folds of training; valid.: {rank_by} on validation, best first", columns, rows)
    failed = [
        c for c in candidates if c.problem is not None and not c.problem.startswith("not tried")
    ]
    for candidate in failed:
        note(f"{candidate.name}: {candidate.problem}")
    untried = [c for c in candidates if c.problem is not None and c not in failed]
    if untried:
        names = "; ".join(candidate.name for candidate in untried)
        note(f"{untried[0].problem}: {names}")
