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
from plumecast.base.names import SNAPSHOT
from plumecast.cli import options
from plumecast.cli.options import Recipe
from plumecast.cli.show import note, progress, say, wrote
from plumecast.data.schema import SMOKE_FLOOR
from plumecast.operators.families import FAMILIES
from plumecast.operators.fields.lift import PARTS, PRODUCTS
from plumecast.operators.fields.targets import TARGETS
from plumecast.operators.settings import FRAMES, PRESETS
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.evaluate import fit_thresholds

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
    "layers",
    "correction",
    "epochs",
)
"""Options that are choices of `fit_surrogate` by the same name."""

LISTS = ("lift", "products", "targets", "covariates")
"""The same, several separated by commas."""

SHARES = {
    "fire_std": ("fire_rank", "fire_std_fraction"),
    "smoke_std": ("smoke_rank", "smoke_std_fraction"),
}
"""Options that replace a rank, and the name of their choice."""


def command(
    parsed: typer.Context,
    data: Path = options.DATA,
    out: Path = typer.Option(Path("smoke.plume"), "--out", "-o", help="Where to save."),
    preset: str = typer.Option(None, help=f"{', '.join(PRESETS)}; default paper-linear."),
    settings: Path = typer.Option(None, help="Settings written by `plumecast tune`."),
    degree: int = typer.Option(None, help="Degree of the polynomial, 1 to 4."),
    penalty: float = typer.Option(
        None, help="Penalty λ; else the preset's, or chosen by leave-one-fire-out."
    ),
    fire_rank: int = typer.Option(None, help="Modes of the input."),
    fire_std: float = typer.Option(None, help="Share of Σσ kept of the input, e.g. 0.95."),
    smoke_rank: int = typer.Option(None, help="Modes of the output."),
    smoke_std: float = typer.Option(None, help="Share of Σσ kept of the output, e.g. 0.95."),
    center: bool = typer.Option(None, help="Subtract the mean fields before encoding."),
    kernel: str = typer.Option(
        None, help="polynomial, matern-5/2, squared-exponential, or 'polynomial-1 + matern-5/2'."
    ),
    length_scale: float = typer.Option(
        None, help="Of the kernel, 1 = typical distance between fires; else chosen."
    ),
    family: str = typer.Option(None, help=f"{', '.join(FAMILIES)}; else the preset's."),
    lift: str = typer.Option(None, help=f"Fields of the fire, by commas: {', '.join(PARTS)}."),
    products: str = typer.Option(None, help=f"What multiplies them: {', '.join(PRODUCTS)}."),
    age_bins: int = typer.Option(None, help="Bins of the time since ignition, for age-bins."),
    targets: str = typer.Option(None, help=f"What is fitted: {', '.join(TARGETS)}."),
    covariates: str = typer.Option(None, help="Scalars that join, e.g. fuel_moisture,wind_speed."),
    frame: str = typer.Option(None, help=f"{', '.join(FRAMES)}."),
    layers: int = typer.Option(None, help="Layers of the spectral family."),
    correction: bool = typer.Option(
        None, help="Correct the spectral family by the training fires most alike."
    ),
    epochs: int = typer.Option(None, help="Passes over the data, of a network."),
    whole: bool = typer.Option(
        False, "--all", help="Train on every snapshot; nothing is held out."
    ),
    min_acres: float = options.MIN_ACRES,
    drought: str = options.DROUGHT,
    smoke_floor: float = options.FLOOR,
    seed: int = options.SEED,
    by: str = options.BY,
    fractions: str = options.FRACTIONS,
    inputs: str = options.INPUT,
    outputs: str = options.OUTPUT,
    device: str = options.DEVICE,
    memory: str = options.MEMORY,
    scheduler: str = options.SCHEDULER,
) -> None:
    """Fit a fire-to-smoke surrogate and save it.

    Trains on the training part of the split and keeps the rest for `plumecast evaluate`.

    Example: `plumecast train ensemble.zarr --preset paper-quadratic -o smoke.plume`
    """
    tuned, choices = _read_settings(settings)
    recipe = tuned.override(parsed.params)
    choices = _choices(choices, parsed.params)
    tuned_preset = choices.pop("preset", None)
    chosen = preset or tuned_preset or (None if choices else "paper-linear")
    surrogate, train, seconds = _train_and_save(
        recipe,
        data,
        out,
        whole=whole,
        preset=chosen,
        choices=choices,
        place={"device": device, "memory": memory},
        scheduler=scheduler,
    )
    count = train.sizes[SNAPSHOT]
    say(f"trained on {count} snapshots in {seconds:.2f} s: {_summary(surrogate.training)}")
    wrote(out, "the surrogate")
    if train[recipe.outputs].attrs.get(SMOKE_FLOOR, train.attrs.get(SMOKE_FLOOR)) is None:
        note("the data records no smoke floor: traces count as smoke; see --smoke-floor")
    if not whole:
        say(f"next: plumecast evaluate {out} {data}")


def _choices(tuned: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Choices of `fit_surrogate`: what was tuned, replaced by what was given."""
    given = {name: parameters[name] for name in (*CHOICES, *LISTS, *SHARES)}
    given = {name: value for name, value in given.items() if value is not None}
    choices = dict(tuned)
    for name, value in given.items():
        if name in SHARES:
            choices.pop(SHARES[name][0], None)  # replaces a rank that came with the settings
            choices[SHARES[name][1]] = value
        else:
            choices[name] = value.split(",") if name in LISTS else value
    return choices


def _train_and_save(
    recipe: Recipe,
    data: Path,
    out: Path,
    *,
    whole: bool,
    preset: str | None,
    choices: dict[str, Any],
    place: dict[str, Any],
    scheduler: str | None,
) -> tuple[Surrogate, xr.Dataset, float]:
    """The saved surrogate, what it was trained on, and the seconds of the fit."""
    with (
        progress("training", total=4) as begin,
        options.running(scheduler, device=place["device"]) as runner,
    ):
        begin("reading")
        split = None if whole else recipe.split(data)
        train = recipe.select(data) if split is None else split.train
        held = place["memory"] is None and runner is None
        if held:
            train.load()
        begin("encoding and fitting")
        start = time.perf_counter()
        surrogate = fit_surrogate(
            train,
            preset,
            inputs=recipe.input_names,
            outputs=recipe.outputs,
            group_by=recipe.by,
            runner=runner,
            progress=lambda step: begin(f"fitting, {step}", within=True),
            **choices,
            **place,
        )
        seconds = time.perf_counter() - start
        begin("thresholds")
        record: dict[str, Any] = {"split": recipe.record() | {"all": whole}}
        if split is not None:
            validation = split.validation
            if held:
                validation.load()
            thresholds = fit_thresholds(surrogate, validation, runner=runner, **place)
            record["thresholds"] = {"smoke": thresholds.smoke, "decision": thresholds.decision}
        surrogate = replace(surrogate, training=surrogate.training | record)
        begin("saving")
        surrogate.save(out)
    return surrogate, train, seconds


def _summary(chosen: dict[str, Any]) -> str:
    """What the fit chose, of either family."""
    if "fire_rank" not in chosen:
        told = ", ".join(chosen["scenarios"]) or "not told apart"
        return f"scenarios {told}, frame {chosen['frame']}"
    ranks = f"{chosen['fire_rank']} → {chosen['smoke_rank']}"
    length = f", length scale {chosen['length_scale']:.3g}" if "length_scale" in chosen else ""
    return f"ranks {ranks}{length}, penalty {chosen['penalty']:.4g}"


def _read_settings(path: Path | None) -> tuple[Recipe, dict[str, Any]]:
    """The way to the data and the choices that `plumecast tune` wrote; defaults without a file."""
    if path is None:
        return Recipe(), {}
    try:
        content = json.loads(path.read_text())
        return Recipe(**content["recipe"]), dict(content["settings"])
    except (ValueError, KeyError, TypeError):
        raise PlumecastError(f"{path} holds no settings; write them with plumecast tune") from None
