"""`plumecast evaluate`: score a surrogate beside the baselines on fires it has not seen."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.base.outputs import check_output
from plumecast.base.version import __version__
from plumecast.cli.options import DATA, MODEL, Given, place_options, running, with_options
from plumecast.cli.show import note, progress, table, write_json
from plumecast.data.split import SplitRecipe
from plumecast.data.store import DATA_VERSION, open_snapshots
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.memory_plan import CLUSTER_MEMORY
from plumecast.surrogate.surrogate import load_surrogate
from plumecast.workflows.evaluate import CAPTURED, Evaluation, evaluate


@with_options(place=place_options)
def command(
    model: Path = MODEL,
    data: Path = DATA,
    out: Path = typer.Option(
        None,
        "--json",
        help="File to write the scores to.",
        show_default="MODEL with the ending .scores.json",
    ),
    captured: float = typer.Option(
        CAPTURED, help="Share of the footprint that the smoke threshold captures."
    ),
    baselines: str = typer.Option(
        None,
        help="Baselines to score too, separated by commas, or 'none'.",
        show_default="all; with --memory or --scheduler only the mean field",
    ),
    *,
    place: Given,
) -> None:
    """Score a surrogate beside the baselines on the test part of its split.

    The split is the one recorded at training. Data with a fire of the training part in another part
    is rejected.

    Example: `plumecast evaluate smoke.plume ensemble.zarr`
    """
    where = check_output(out or model.with_suffix(".scores.json"), inputs=[model, data])
    surrogate = load_surrogate(model)
    recorded = surrogate.training.get("split", {})
    if recorded.get("all", False):
        raise PlumecastError(
            f"{model} was trained on every snapshot and nothing is held out; train without --all"
        )
    recipe = SplitRecipe.from_record(recorded)
    inputs, outputs = recorded.get("inputs", FIRE).split(","), recorded.get("outputs", SMOKE)
    split = recipe.split(open_snapshots(data, fields=[*inputs, outputs]), outputs)
    version = split.train.attrs.get(DATA_VERSION)
    if version != surrogate.training.get("data_version"):
        note(f"{data} has changed since {model} was trained (version {version})")
    device, scheduler = place["device"], place["scheduler"]
    limit = place["memory"] or (CLUSTER_MEMORY if scheduler else None)
    names = _names(baselines, limit)
    parts = (split.train, split.validation, split.test)
    train, validation, test = parts if limit else (part.load() for part in parts)
    with (
        progress("evaluating", total=2 * len(names) + 1) as begin,
        running(scheduler, device=device) as runner,
    ):
        own = surrogate.settings.get("preset") or model.stem
        surrogates = {f"{own} (model)" if own in BASELINES else own: surrogate}
        for name in names:
            begin(f"fitting {name}")
            surrogates[name] = fit_baseline(
                name, train, inputs=inputs, outputs=outputs, memory=limit, runner=runner
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
    write_json(where, _record(result, model, data, version), "the scores")


def _names(baselines: str | None, memory: str | None) -> list[str]:
    """The baselines of the option; by default all that fit into the memory."""
    if baselines == "none":
        return []
    if baselines is not None:
        return baselines.split(",")
    if memory is None:
        return list(BASELINES)
    note("only the mean field is shown as a baseline: the others need all training fires in memory")
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
