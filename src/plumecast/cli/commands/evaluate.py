"""`plumecast evaluate`: score a surrogate beside the baselines on fires it has not seen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.version import __version__
from plumecast.cli import options
from plumecast.cli.options import Recipe
from plumecast.cli.show import note, progress, table, write_json
from plumecast.data.store import DATA_VERSION
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.memory_plan import CLUSTER_MEMORY
from plumecast.surrogate.surrogate import load_surrogate
from plumecast.workflows.evaluate import CAPTURED, Evaluation, evaluate


def command(
    model: Path = typer.Argument(help="A saved surrogate.", show_default=False),
    data: Path = options.DATA,
    out: Path = typer.Option(
        None, "--json", help="Where to write the scores; default: MODEL with .scores.json."
    ),
    captured: float = typer.Option(CAPTURED, help="Share of the footprint the threshold captures."),
    baselines: str = typer.Option(
        None,
        help="Baselines shown beside it, separated by commas, or 'none'; all if not given, with "
        "--memory or --scheduler the mean field alone.",
        show_default=False,
    ),
    device: str = options.DEVICE,
    memory: str = options.MEMORY,
    scheduler: str = options.SCHEDULER,
) -> None:
    """Score a surrogate beside the baselines on the test part of its split.

    The split is the one recorded at training; a fire known from training is refused.

    Example: `plumecast evaluate smoke.plume ensemble.zarr`
    """
    surrogate = load_surrogate(model)
    recorded = dict(surrogate.training.get("split", {}))
    if recorded.pop("all", False):
        raise PlumecastError(
            f"{model} was trained on every snapshot, nothing is held out; train without --all"
        )
    recipe = Recipe(**recorded)
    split = recipe.split(data)
    version = split.train.attrs.get(DATA_VERSION)
    if version != surrogate.training.get("data_version"):
        note(f"{data} has changed since {model} was trained (version {version})")
    limit = memory or (CLUSTER_MEMORY if scheduler else None)
    names = _names(baselines, limit)
    parts = (split.train, split.validation, split.test)
    train, validation, test = parts if limit else (part.load() for part in parts)
    with (
        progress("evaluating", total=2 * len(names) + 1) as begin,
        options.running(scheduler, device=device) as runner,
    ):
        own = surrogate.settings.get("preset") or model.stem
        surrogates = {f"{own} (model)" if own in BASELINES else own: surrogate}
        for name in names:
            begin(f"fitting {name}")
            surrogates[name] = fit_baseline(
                name,
                train,
                inputs=recipe.input_names,
                outputs=recipe.outputs,
                memory=limit,
                runner=runner,
            )
        result = evaluate(
            surrogates,
            validation,
            test,
            captured=captured,
            by=recipe.by,
            progress=begin,
            device=device,
            memory=limit,
            runner=runner,
        )
    show_scores(result)
    where = out or model.with_suffix(".scores.json")
    write_json(where, _record(result, model, data, version), "the scores")


def _names(baselines: str | None, memory: str | None) -> list[str]:
    """The baselines asked for; by default those that keep the memory limit."""
    if baselines == "none":
        return []
    if baselines is not None:
        return baselines.split(",")
    if memory is None:
        return list(BASELINES)
    note("only the mean field is shown beside it: the other baselines hold all training fires")
    return ["mean-field"]


def show_scores(result: Evaluation) -> None:
    """The table of an evaluation: the surrogate beside the baselines."""
    columns = ["median over snapshots", "AUC", "IoU", "deployable IoU", "error", "all", "ms"]
    rows = [
        [
            score.name,
            f"{score.auc:.3f}",
            f"{score.iou:.3f}",
            f"{score.deployable_iou:.3f}",
            f"{score.snapshot_error:.2f}",
            f"{score.relative_error:.2f}",
            f"{score.predict_ms:.2f}",
        ]
        for score in result.scores
    ]
    title = (
        f"{result.snapshots} test snapshots, smoke above {result.smoke_threshold:.3g} "
        f"({result.captured:.0%} of the footprint)"
    )
    table(title, columns, rows)


def _record(result: Evaluation, model: Path, data: Path, version: object) -> dict[str, Any]:
    return {
        "plumecast": __version__,
        "model": str(model),
        "data": str(data),
        "data_version": version,
        "test_snapshots": result.snapshots,
        "smoke_threshold": result.smoke_threshold,
        "captured": result.captured,
        "scores": [asdict(score) for score in result.scores],
    }
