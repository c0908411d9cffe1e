"""`plumecast train`: fit a fire-to-smoke surrogate and save it."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.paths import check_output, check_regular
from plumecast.base.values import shown
from plumecast.cli.options import (
    CHECKPOINT_INTERVAL,
    DATA,
    QUANTITY,
    Given,
    options_of,
    place_options,
    running,
    settings_given,
    threshold_reading,
    variable_options,
    variables,
    with_options,
)
from plumecast.cli.show import next_step, note, progress, say, warn, wrote
from plumecast.compute.resources import Resources
from plumecast.data.schema import SMOKE_FLOOR
from plumecast.data.split import SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.operators.settings import PRESETS, RULES, SIDES, settings_classes
from plumecast.surrogate.error_bars.interval import promise_text
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.record import judge, stored_scores
from plumecast.workflows.train import DEFAULT_PRESET, FITTING, THRESHOLDS, train_surrogate

CHOICES = settings_classes()
"""Classes whose fields are options of this command and choices of `fit_surrogate`."""

SHOWN_COVERAGE = 0.9
"""Coverage for which the promise of the error bars is shown."""


@with_options(
    choices=options_of(*CHOICES),
    split=options_of(SplitRecipe),
    names=variable_options,
    place=place_options,
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
    thresholds: str = typer.Option(
        "",
        help="Values of --quantity at which the recorded scores have hit rate, false alarms and "
        "bias, separated by commas (35 is 35 µg m⁻³ of the time mean), for `evaluate` of a "
        "surrogate trained on all snapshots.",
    ),
    quantity: str = QUANTITY,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    split: Given,
    names: Given,
    place: Given,
) -> None:
    """Fit a fire-to-smoke surrogate and save it.

    Trains on the training part of the split, chooses thresholds on the validation part and leaves
    the test part to `plumecast evaluate`. With fewer than 6 ignitions it trains on all of them, and
    scores by leaving out one ignition at a time.

    Example: `plumecast train ensemble.zarr -o smoke.plume`
    """
    check_output(out, content="a saved surrogate", inputs=[data, settings])
    tuned, tuned_choices = _read_settings(settings)
    recipe = replace(SplitRecipe.from_record(tuned), **settings_given(split, SplitRecipe))
    recipe = replace(recipe, fractions=None) if whole else recipe
    inputs, outputs = variables(names, tuned)
    chosen = _choices(tuned_choices, choices)
    tuned_preset = chosen.pop("preset", None)
    snapshots = open_snapshots(data, fields=[*inputs, *outputs])
    surrogate, seconds, scoring = _train_and_save(
        snapshots,
        out,
        place,
        preset=preset or tuned_preset,
        split=recipe,
        folds=folds,
        reading=threshold_reading(thresholds, quantity, checkpoint_interval),
        inputs=inputs,
        outputs=outputs,
        **chosen,
    )
    count = surrogate.training["snapshots"]
    say(f"trained on {count} snapshots in {seconds:.2f} s: {_summary(surrogate.training)}")
    recorded = stored_scores(surrogate.training)
    if recorded is not None and recorded.folds is not None:
        count = recorded.folds.folds
        say(f"{count} further fits, each without some of them, took {scoring:.2f} s (--folds)")
    for name in outputs:
        show_training_scores(surrogate.output(name), name if len(outputs) > 1 else "")
    _show_error_bars(surrogate)
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


def _show_error_bars(surrogate: Surrogate) -> None:
    """Say for every output what its error bars promise, or why there are none."""
    for number, name in enumerate(surrogate.outputs.names):
        own, which = surrogate.records[name], f"{name}: " if number else ""
        if own.error_bars is not None:
            say(f"{which}{promise_text(own.error_bars, SHOWN_COVERAGE)} (predict --interval)")
        elif own.no_error_bars is not None:
            say(f"{which}no error bars for predict --interval: {own.no_error_bars}")


def _choices(tuned: Mapping[str, Any], options: Given) -> dict[str, Any]:
    """Choices of `fit_surrogate`: options that were given replace tuned settings."""
    chosen = settings_given(options, *CHOICES)
    rules = [{f"{side}_{rule}" for rule in RULES} for side in SIDES]
    replaced = set().union(*(names for names in rules if names & chosen.keys()))
    return {name: value for name, value in tuned.items() if name not in replaced} | chosen


def _train_and_save(
    snapshots: xr.Dataset, out: Path, place: Given, **choices: Any
) -> tuple[Surrogate, float, float]:
    """The saved surrogate, the seconds that the fit took, and those of thresholds and scores."""
    began: dict[str, float] = {}
    device, memory = place["device"], place["memory"]
    with (
        progress("training", total=4) as begin,
        running(place["scheduler"], device=device) as runner,
    ):

        def show(done: int, total: int, step: str) -> None:
            began[step] = time.perf_counter()
            begin(step, within=":" in step)

        resources = Resources(device, memory, runner, show)
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
    known = {"preset", *inspect.signature(options_of(*CHOICES)).parameters}
    for name in settings:
        if name not in known:
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
