"""`plumecast evaluate`: score a surrogate beside the baselines on fires it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.checkpoints import equal_interval, recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import DATA_VERSION, SNAPSHOT
from plumecast.base.paths import check_output
from plumecast.base.version import __version__
from plumecast.cli.evaluate_task import EvaluationTask
from plumecast.cli.options import (
    CHECKPOINT_INTERVAL,
    DATA,
    MODEL,
    QUANTITY,
    Given,
    place_options,
    running,
    threshold_reading,
    with_options,
)
from plumecast.cli.show import note, progress, wrote
from plumecast.cli.tables import refuse_other_scores, show_results
from plumecast.compute.blocks import Runner
from plumecast.compute.resources import Resources
from plumecast.data.lazy_store import one_version
from plumecast.data.split import Split
from plumecast.scores.quantities import DEFAULT
from plumecast.surrogate.baselines import BASELINES
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.surrogate.update import SINCE_FIT
from plumecast.workflows.evaluate import (
    evaluate,
    evaluate_at,
    fit_thresholds,
)
from plumecast.workflows.held_out.record import Evaluation, stored_scores


@with_options(place=place_options)
def command(
    model: Path = MODEL,
    data: Path = DATA,
    out: Path = typer.Option(
        None,
        "--out",
        "-o",
        "--json",
        help="File to write the scores to.",
        show_default="MODEL with the ending .scores.json; for a store of other fires "
        ".DATA.scores.json",
    ),
    baselines: str = typer.Option(
        None,
        help="Baselines to score too, separated by commas, or 'none'.",
        show_default="all; with --memory or --scheduler only the mean field",
    ),
    thresholds: str = typer.Option(
        "",
        help="Values of --quantity at which to score hit rate, false alarms and bias, separated by "
        "commas: 35,100 are µg m⁻³ of the time mean. The smoke threshold τ, a value of the sum "
        "over checkpoints, is always among them.",
    ),
    quantity: str = QUANTITY,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    trained_on: Path = typer.Option(
        None, help="Store of training, to fit the baselines when DATA is a store of other fires."
    ),
    *,
    place: Given,
) -> None:
    """Score a surrogate beside the baselines on the test part of its split.

    The split is the one recorded at training. A surrogate that was trained on all snapshots has
    out-of-fold scores, which are shown. A store of other fires is scored whole, without fires of
    training, with the thresholds chosen at training. Several outputs are scored side by side.

    The second table has, for predicted smoke above each threshold and over all cells: the hit rate
    (share of the observed cells that are found), the share of false alarms among the predicted
    cells, the bias (predicted over observed cells) and the IoU. Thresholds are values of the time
    mean since ignition, whatever the interval between checkpoints; --quantity changes that.

    Example: `plumecast evaluate smoke.plume ensemble.zarr`
    """
    reading = threshold_reading(thresholds, quantity, checkpoint_interval)
    task = EvaluationTask(model, data, load_surrogate(model), baselines, reading, place, trained_on)
    snapshots = task.open(data)
    split = None if task.is_whole else task.training_split(snapshots)
    if split is not None:
        ending, scored = ".scores.json", "test snapshots"
    elif task.is_whole and task.is_all_seen(snapshots):
        ending, scored = ".scores.json", "snapshots, each predicted by a fit without it"
    else:
        ending, scored = f".{data.stem}.scores.json", f"snapshots of {data}"
    where = out or model.with_suffix(ending)
    check_output(where, content="scores", inputs=[model, data, trained_on])
    version = snapshots.attrs.get(DATA_VERSION)
    refuse_other_scores(where, data, version)
    if version != task.surrogate.training.get("data_version") and ending == ".scores.json":
        note(f"{data} has changed since {model} was trained (version {version})")
    results: dict[str, Evaluation] = {}
    with one_version(snapshots):
        for output_task in task.outputs():
            if split is not None:
                evaluation = _score_test_part(output_task, split)
            elif ending == ".scores.json":
                evaluation = _recorded_scores(output_task)
            else:
                evaluation = _score_other_store(output_task, snapshots)
            results[output_task.surrogate.outputs.names[0]] = evaluation
    # First written, then shown: nobody may read the output to its end (`| head`).
    record = _record(next(iter(results.values())), model, data, version) | {"scored": scored}
    if len(results) > 1:
        record["outputs"] = {name: item.record() for name, item in results.items()}
    write_json(where, record)
    show_results(results, scored)
    wrote(where, "the scores")


def _score_test_part(task: EvaluationTask, split: Split) -> Evaluation:
    """Thresholds from the validation part, scores on the test part."""
    names = _names(task)
    device, scheduler = task.place["device"], task.place["scheduler"]
    train, validation, test = map(task.loaded, (split.train, split.validation, split.test))
    with (
        progress("evaluating", total=2 * len(names) + 1) as begin,
        running(scheduler, device=device) as runner,
    ):
        surrogates = {task.name: task.surrogate}
        for name in names:
            begin(f"fitting {name}")
            surrogates[name] = task.fit_baseline(name, train, runner)
        return evaluate(
            surrogates,
            validation,
            test,
            reading=task.reading,
            by=split.by,
            resources=task.resources(runner, begin),
        )


def _recorded_scores(task: EvaluationTask) -> Evaluation:
    """The out-of-fold scores that were recorded at training."""
    recorded = stored_scores(task.surrogate.training)
    if recorded is None or recorded.folds is None:
        why = task.surrogate.training.get("problem", "it has no out-of-fold scores")
        raise PlumecastError(
            f"{task.model} was trained on every snapshot and nothing is held out ({why}); train "
            "again without --all or --folds 0, or give a store of other fires"
        )
    later = task.surrogate.training.get(SINCE_FIT, 0)
    if later:
        note(f"these are scores of the last fit, before {later} ignitions were taken in")
    result, reading = recorded.evaluation, task.reading
    scored = {(item.threshold, item.quantity) for item in result.scores[0].exceedances}
    if not scored.issuperset((value, reading.quantity) for value in reading.thresholds):
        levels = ",".join(f"{value:g}" for value in reading.thresholds)
        words = f"--thresholds {levels}"
        words += "" if reading.quantity == DEFAULT else f" --quantity {reading.quantity}"
        raise PlumecastError(
            f"{words}: the out-of-fold scores of {task.model} were recorded at training, for other "
            f"values or another quantity; train again with {words}, or give a store of other fires"
        )
    if task.baselines is None:
        return result
    names = task.baselines.split(",")
    unknown = [n for n in names if n != "none" and n not in {s.name for s in result.scores}]
    if unknown:
        raise PlumecastError(
            f"baseline '{unknown[0]}' has no out-of-fold scores in {task.model}; choose from "
            f"{', '.join(score.name for score in result.scores[1:])}, none"
        )
    own, *others = result.scores
    return replace(result, scores=[own, *(score for score in others if score.name in names)])


def _score_other_store(task: EvaluationTask, snapshots: xr.Dataset) -> Evaluation:
    """Scores on all snapshots of a store of other fires, with the thresholds of training."""
    model, data = task.model, task.data
    thresholds = task.surrogate.record.thresholds
    if thresholds is None:
        raise PlumecastError(
            f"{model} has no thresholds, which a store of other fires needs; train it again "
            "without --folds 0"
        )
    unseen = task.unseen(snapshots)
    if unseen.snapshots.sizes[SNAPSHOT] == 0:
        raise PlumecastError(
            f"{data} has no snapshot that {model} can be scored on: {unseen.filtered} are dropped "
            f"by the filters of training, and {unseen.trained} {task.recipe.by}(s) were in training"
        )
    task.note(
        f"{data} is not the store of training: all of it is scored, with the stored thresholds"
    )
    if unseen.trained:
        task.note(
            f"{unseen.trained} {task.recipe.by}(s) of {data} were in training and are left out"
        )
    if unseen.filtered:
        task.note(f"{unseen.filtered} snapshots of {data} do not pass the filters of training")
    _note_other_interval(task, snapshots)
    device, test = task.place["device"], task.loaded(unseen.snapshots)
    with (
        progress("evaluating", total=None) as begin,
        running(task.place["scheduler"], device=device) as runner,
    ):
        surrogates = {task.name: (task.surrogate, thresholds)}
        surrogates |= _placed_baselines(task, thresholds.smoke, runner, begin)
        return evaluate_at(
            surrogates,
            test,
            reading=task.reading,
            resources=task.resources(runner, begin),
        )


def _note_other_interval(task: EvaluationTask, snapshots: xr.Dataset) -> None:
    """Say that sums of this store and of the training store have other sizes."""
    name = task.recorded["outputs"]
    learned = recorded_interval(task.surrogate.outputs.fields[0].attrs)
    own = recorded_interval(snapshots[name].attrs) or task.reading.interval
    if learned is not None and own is not None and equal_interval([learned, own]) is None:
        note(
            f"{task.data} has a checkpoint every {own:g} h and the training fires one every "
            f"{learned:g} h: sums differ in size, and so do the errors and the IoU of them; only "
            "the scores at --thresholds of the mean or the dose compare like with like"
        )


def _placed_baselines(
    task: EvaluationTask, tau: float, runner: Runner | None, begin: Callable[[str], None]
) -> dict[str, tuple[Surrogate, Thresholds]]:
    """Baselines fitted to the store of training, each with its decision threshold."""
    if task.baselines == "none":
        return {}
    if task.trained_on is None:
        task.note(
            "no baselines are shown: they are fitted to the store of training; give --trained-on"
        )
        return {}
    stored = task.open(task.trained_on)
    split = None if task.is_whole else task.training_split(stored)
    if split is None and not (task.is_whole and task.is_all_seen(stored)):
        raise PlumecastError(
            f"--trained-on {task.trained_on} is not the store that {task.model} was trained on; "
            "give that one or leave it out"
        )
    if split is None:
        train = task.loaded(task.recipe.select(stored, task.output_names))
        recorded = stored_scores(task.surrogate.training)
        return {
            score.name: (
                task.fit_baseline(score.name, train, runner),
                Thresholds(tau, score.decision_threshold),
            )
            for score in (recorded.evaluation.scores[1:] if recorded else ())
        }
    train, validation = task.loaded(split.train), task.loaded(split.validation)
    found = {}
    for name in _names(task):
        begin(f"fitting {name}")
        baseline = task.fit_baseline(name, train, runner)
        limits = Resources(memory=task.limit, runner=runner)
        chosen = fit_thresholds(baseline, validation, resources=limits)
        found[name] = (baseline, Thresholds(tau, chosen.decision))
    return found


def _names(task: EvaluationTask) -> list[str]:
    """The baselines of the option; by default all that fit into the memory."""
    if task.baselines == "none":
        return []
    if task.baselines is not None:
        return task.baselines.split(",")
    if task.limit is None:
        return list(BASELINES)
    task.note(
        "only the mean field is shown as a baseline: the others need all training fires in memory"
    )
    return ["mean-field"]


def _record(result: Evaluation, model: Path, data: Path, version: object) -> dict[str, Any]:
    return {
        "plumecast": __version__,
        "model": str(model),
        "data": str(data),
        "data_version": version,
        "test_snapshots": result.snapshots,
        "smoke_threshold": result.smoke_threshold,
        "captured": result.captured,
        "quantity": result.quantity,
        "scores": [asdict(score) for score in result.scores],
    }
