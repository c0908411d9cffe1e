"""`plumecast train`: fit a fire-to-smoke surrogate and save it."""

from __future__ import annotations

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
    place_options,
    running,
    split_options,
    split_recipe,
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
from plumecast.operators.lift import PARTS, PRODUCTS
from plumecast.operators.settings import FAMILIES, FRAMES, PHYSICS, PRESETS
from plumecast.operators.targets import TARGETS
from plumecast.surrogate.error_bars.interval import promise_text
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.record import judge, stored_scores
from plumecast.workflows.train import DEFAULT_PRESET, FITTING, THRESHOLDS, train_surrogate

CHOICES = (
    "degree",
    "penalty",
    "fire_rank",
    "smoke_rank",
    "center",
    "kernel",
    "length_scale",
    "family",
    "age_bins",
    "frame",
    "physics",
    "layers",
    "correction",
    "epochs",
    "updatable",
)
"""Options with the name of a choice of `fit_surrogate`."""

LISTS = ("lift", "products", "targets", "covariates")
"""The same, with several values separated by commas."""

SHARES = {
    "fire_std": ("fire_rank", "fire_std_fraction"),
    "smoke_std": ("smoke_rank", "smoke_std_fraction"),
}
"""Options that choose a rank by its share of Σσ: the rank, and the choice of `fit_surrogate`."""

SHOWN_COVERAGE = 0.9
"""Coverage for which the promise of the error bars is shown."""


@with_options(split=split_options, names=variable_options, place=place_options)
def command(
    parsed: typer.Context,
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
    degree: int = typer.Option(None, help="Degree of the polynomial, 1 to 4."),
    penalty: float = typer.Option(
        None,
        help="Regularisation λ.",
        show_default="the preset's, or chosen by leaving out one group at a time",
    ),
    fire_rank: int = typer.Option(None, help="Number of PCA modes of the input."),
    fire_std: float = typer.Option(None, help="Share of Σσ to keep of the input, e.g. 0.95."),
    smoke_rank: int = typer.Option(None, help="Number of PCA modes of the output."),
    smoke_std: float = typer.Option(None, help="Share of Σσ to keep of the output, e.g. 0.95."),
    center: bool = typer.Option(None, help="Subtract the mean fields before encoding."),
    kernel: str = typer.Option(
        None, help="polynomial, matern-5/2, squared-exponential, or 'polynomial-1 + matern-5/2'."
    ),
    length_scale: float = typer.Option(
        None,
        help="Length scale of the kernel; 1 is the typical distance between fires.",
        show_default="chosen with the penalty",
    ),
    family: str = typer.Option(
        None, help=f"Family of operators: {', '.join(FAMILIES)}.", show_default="the preset's"
    ),
    lift: str = typer.Option(
        None, help=f"Fields made of the fire, separated by commas: {', '.join(PARTS)}."
    ),
    products: str = typer.Option(
        None, help=f"Scalars that multiply these fields: {', '.join(PRODUCTS)}."
    ),
    age_bins: int = typer.Option(
        None, help="Number of bins of the time since ignition, for --lift age-bins."
    ),
    targets: str = typer.Option(None, help=f"Fields to fit: {', '.join(TARGETS)}."),
    covariates: str = typer.Option(
        None, help="Scalars of each snapshot to use as inputs, e.g. fuel_moisture,wind_speed."
    ),
    frame: str = typer.Option(None, help=f"Frame of the fields: {', '.join(FRAMES)}."),
    physics: str = typer.Option(
        None,
        help=f"Smoke carried by the weather of every fire, as channels: {', '.join(PHYSICS)}.",
    ),
    layers: int = typer.Option(None, help="Number of layers of the spectral family."),
    correction: bool = typer.Option(
        None, help="Add the residuals of similar training fires to the spectral family."
    ),
    epochs: int = typer.Option(None, help="Passes over the training data, for networks."),
    updatable: bool = typer.Option(
        None,
        "--updatable",
        help="Keep what `plumecast update` adds new fires to; the file is several times as large.",
    ),
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
    *,
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
    recipe = split_recipe(split, SplitRecipe.from_record(tuned))
    recipe = replace(recipe, fractions=None) if whole else recipe
    inputs, outputs = variables(names, tuned)
    choices = _choices(tuned_choices, parsed.params)
    tuned_preset = choices.pop("preset", None)
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
        **choices,
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


def _choices(tuned: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of `fit_surrogate`: options that were given replace tuned settings."""
    given = {name: parameters[name] for name in (*CHOICES, *LISTS, *SHARES)}
    given = {name: value for name, value in given.items() if value is not None}
    choices = dict(tuned)
    for name, value in given.items():
        if name in SHARES:
            choices.pop(SHARES[name][0], None)  # the share replaces a tuned rank
            choices[SHARES[name][1]] = value
        else:
            choices[name] = value.split(",") if name in LISTS else value
    return choices


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
    known = {"preset", *CHOICES, *LISTS, *(choice for _, choice in SHARES.values())}
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
