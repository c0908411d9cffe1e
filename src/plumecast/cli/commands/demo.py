"""`plumecast demo`: from nothing to scored surrogates, a report, and a map to explore."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.app.maps.draw import draw_map
from plumecast.app.maps.sources import MOST_FIRES
from plumecast.base.files import write_json
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.base.paths import check_output
from plumecast.cli.options import WORKERS
from plumecast.cli.score_tables import show_scores
from plumecast.cli.show import (
    command_line,
    count,
    counted,
    fires_kept,
    next_step,
    progress,
    say,
    when_stopped,
    wrote,
)
from plumecast.compute.resources import Resources
from plumecast.data.covariates import extrapolating
from plumecast.data.schema import PAPER_MIN_ACRES, drop_small_fires
from plumecast.data.split import SplitRecipe
from plumecast.operators.settings import PRESETS
from plumecast.paper.context import Context, StudyLimits
from plumecast.paper.figures import (
    compare_maps,
    hours_text,
    mean_colours,
    percentile_rows,
    plain,
    save_figure,
)
from plumecast.paper.methods import fitted
from plumecast.paper.results import claim_folder, describe_run, find_studies, run_studies
from plumecast.paper.scoring import outcome
from plumecast.report.page import write_report
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.held_out.record import Evaluation
from plumecast.workflows.held_out.scoring import agreeing
from plumecast.workflows.simulate import simulate

PERCENTILES = (10, 50, 90)
STUDIES = [
    "optical-depth", "footprint-linear", "footprint-quadratic", "footprint-recommended",
    "sensitivity", "gaussian-process", "summary",
]  # fmt: skip
"""Studies that use the surrogates of the demo; the others would train many more."""

LIMITS = StudyLimits(repeats=10, literal=False)


def command(
    out: Path = typer.Option(Path("plumecast-demo"), "--out", "-o", help="Folder of the results."),
    preset: str = typer.Option("demo", help="Ensemble to simulate: demo or paper."),
    seed: int = typer.Option(0, help="Seed of the ensemble."),
    workers: int = WORKERS,
) -> None:
    """Simulate fires, train every preset, score them beside the baselines, write a report.

    An ensemble that is already in the folder is reused, and so are surrogates trained on it.

    Example: `plumecast demo`
    """
    check_output(out, "folder")
    with when_stopped(lambda: _kept(out)):
        _demo(out, preset, seed, workers)


def _kept(out: Path) -> str:
    """What is kept of a demo that was stopped: the fires, and the surrogates trained on them."""
    trained = len(list(out.glob("*.plume")))
    also = f"{count(trained, 'surrogate')} and " if trained else ""
    return f"{also}{fires_kept(out / 'ensemble.zarr')}"


def _demo(out: Path, preset: str, seed: int, workers: int) -> None:
    store = out / "ensemble.zarr"
    with counted("simulating fires") as step:
        resources = Resources(progress=step)
        snapshots = simulate(store, preset=preset, seed=seed, workers=workers, resources=resources)
    large = drop_small_fires(snapshots, PAPER_MIN_ACRES)
    say(
        f"{snapshots.sizes[SNAPSHOT]} snapshots of {len(set(snapshots.fire_id.values))} fires, "
        f"{large.sizes[SNAPSHOT]} with at least {PAPER_MIN_ACRES:,.0f} burned acres"
    )
    recipe = SplitRecipe(min_acres=PAPER_MIN_ACRES)
    split = recipe.split(large.load())
    record = recipe.record() | {"inputs": FIRE, "outputs": SMOKE}
    run = describe_run(split, store, record, seed=0, command=command_line())
    context = Context(split, fingerprint=run["fingerprint"], folder=out, limits=LIMITS)
    presets = [name for name in context.methods if name in PRESETS]
    _train(context, out)
    result = _score(context)
    for score in result.scores:  # saved again, with what `train` records
        if score.name in presets:
            surrogate = fitted(context, score.name).surrogate
            training = surrogate.training | {"split": record | {"all": False}}
            limits = Thresholds(result.smoke_threshold, score.decision_threshold)
            made = agreeing(replace(surrogate, training=training), limits)
            made.save(out / f"{score.name}.plume")
    write_json(out / "scores.json", {"scores": [asdict(score) for score in result.scores]})
    show_scores(result)
    say("A useful surrogate scores better than the mean field and the nearest fire.")
    wrote(store, "the ensemble")
    wrote(out / "scores.json", "the scores")
    shown = {name: fitted(context, name).surrogate for name in presets}
    wrote(_maps(split.test, shown, result, out / "maps.png"), "maps, observed and predicted")
    _report(context, run, out)
    fires = list(dict.fromkeys(split.test.fire_id.values.tolist()))[:MOST_FIRES]
    title = "Smoke of fires that the surrogate has not seen"
    model = out / "recommended.plume"
    drawn = draw_map(split.test, out / "map.html", model=model, fire=fires, title=title)
    wrote(drawn.path, "the map")
    say(f"open {drawn.path} in a browser to see fires and their smoke")
    next_step("serve", model, "--data", store)


def _train(context: Context, out: Path) -> None:
    count = context.split.train.sizes[SNAPSHOT]
    with progress("training", total=len(context.methods)) as begin:
        for name in context.methods:
            begin(name)
            seconds = sum(fitted(context, name).seconds.values())
            if name in PRESETS:
                say(f"trained {name} on {count} snapshots in {seconds:.2f} s")
                wrote(out / f"{name}.plume", "the surrogate")


def _score(context: Context) -> Evaluation:
    scores = []
    with progress("scoring", total=len(context.methods)) as begin:
        for name in context.methods:
            begin(name)
            scores.append(outcome(context, name).score)
    details = {name: outcome(context, name).scores for name in context.methods}
    count = int(context.split.test.sizes[SNAPSHOT])
    return Evaluation(scores, count, context.smoke_threshold, context.captured, details)


def _report(context: Context, run: dict[str, Any], out: Path) -> None:
    """Run the studies that need no further training, and write their page."""
    claim_folder(out / "results", run)
    with progress("studying", total=len(STUDIES)) as begin:
        outcomes = run_studies(
            find_studies(STUDIES), context, out / "results", begin=lambda study: begin(study.name)
        )
    for item in outcomes:
        if item.problem:
            say(f"{item.study.name} could not be run: {item.problem}")
    wrote(write_report(out / "results", out / "report.html").path, "the report")


def _maps(
    test: xr.Dataset, surrogates: dict[str, Surrogate], result: Evaluation, path: Path
) -> Path:
    scores = result.details["recommended"].iou
    rows = percentile_rows(scores, PERCENTILES)
    chosen = test.isel({SNAPSHOT: list(rows.values())}).load()
    predictions = {}
    for name, surrogate in surrogates.items():
        with extrapolating():
            predicted = surrogate.predict(chosen)
        assert isinstance(predicted, xr.DataArray)
        predictions[name] = predicted
    titles = [
        f"{percentile}th percentile, IoU {scores.values[row]:.2f}\n"
        f"{plain(test.fire_id.values[row])} at {hours_text(test.hours.values[row])}"
        for percentile, row in rows.items()
    ]
    colours, tau = mean_colours(chosen), result.smoke_threshold
    drawn = range(len(rows))
    figure = compare_maps(chosen, predictions, drawn, titles, threshold=tau, colours=colours)
    return save_figure(figure, path)
