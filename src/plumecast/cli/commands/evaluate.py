"""`plumecast evaluate`: score a surrogate beside the baselines on fires it has not seen."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.checkpoints import equal_interval, recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import DATA_VERSION, FIRE, SMOKE, SNAPSHOT
from plumecast.base.paths import check_output
from plumecast.base.version import __version__
from plumecast.cli.options import (
    DATA,
    MODEL,
    Given,
    ResourceOptions,
    reading_of,
    reading_options,
    with_options,
)
from plumecast.cli.score_tables import show_results
from plumecast.cli.show import note, progress, wrote
from plumecast.compute.blocks import Runner
from plumecast.compute.resources import Resources
from plumecast.data.lazy_store import one_version
from plumecast.data.split import Split, SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.scores.quantities import DEFAULT
from plumecast.scores.reading import Reading
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.surrogate.update import SINCE_FIT
from plumecast.workflows.evaluate import evaluate, evaluate_at, fit_thresholds
from plumecast.workflows.held_out.record import Evaluation, stored_scores
from plumecast.workflows.held_out.unseen import is_same_version, training_split, unseen_snapshots
from plumecast.workflows.predict import CLUSTER_MEMORY


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """A surrogate and the options of the command."""

    model: Path
    data: Path
    surrogate: Surrogate
    baselines: str | None
    reading: Reading
    compute: ResourceOptions
    trained_on: Path | None
    note: Callable[[str], None]  # shows a note, once for all outputs

    @property
    def recorded(self) -> dict[str, Any]:
        """The split and the variables that were recorded at training."""
        split: dict[str, Any] = self.surrogate.training.get("split", {})
        return {"inputs": FIRE, "outputs": SMOKE} | split

    @property
    def recipe(self) -> SplitRecipe:
        """How snapshots were filtered and split at training."""
        return SplitRecipe.from_record(self.recorded)

    @property
    def is_whole(self) -> bool:
        """Whether the surrogate was trained on all snapshots."""
        return bool(self.recorded.get("all", False))

    @property
    def output_names(self) -> list[str]:
        """The output variables."""
        names: list[str] = self.recorded["outputs"].split(",")
        return names

    @property
    def limit(self) -> str | None:
        """The memory limit, if fields are read in blocks."""
        return self.compute.memory or (CLUSTER_MEMORY if self.compute.scheduler else None)

    @property
    def name(self) -> str:
        """The name of the surrogate beside those of the baselines."""
        preset = self.surrogate.settings.get("preset") or self.model.stem
        return f"{preset} (model)" if preset in BASELINES else preset

    def resources(self, runner: Runner | None, begin: Callable[[str], None]) -> Resources:
        """Where to compute; `begin` hears the name of each surrogate."""
        device = self.compute.device
        return Resources(device, self.limit, runner, lambda done, total, what: begin(what))

    def open(self, path: Path) -> xr.Dataset:
        """The snapshots of a store."""
        fields = [*self.recorded["inputs"].split(","), *self.output_names]
        return open_snapshots(path, fields=fields)

    def loaded(self, part: xr.Dataset) -> xr.Dataset:
        """The snapshots in memory, unless they are read in blocks."""
        return part if self.limit else part.load()

    def training_split(self, snapshots: xr.Dataset) -> Split | None:
        """The split of training; None for all snapshots, or for another store."""
        if self.is_whole:
            return None
        return training_split(self.surrogate, self.recipe, snapshots, self.output_names)

    def is_all_seen(self, snapshots: xr.Dataset) -> bool:
        """Whether the surrogate was trained on all of a store."""
        if not self.is_whole or is_same_version(self.surrogate, snapshots):
            return self.is_whole
        unseen = unseen_snapshots(self.surrogate, self.recipe, snapshots, self.output_names)
        return unseen.snapshots.sizes[SNAPSHOT] == 0

    def baseline_names(self) -> list[str]:
        """The baselines of the option; by default all that fit into the memory."""
        if self.baselines is not None:
            return [] if self.baselines == "none" else self.baselines.split(",")
        if self.limit is None:
            return list(BASELINES)
        self.note(
            "only the mean field is shown as a baseline: the others need all training fires in "
            "memory"
        )
        return ["mean-field"]

    def fit_baseline(self, name: str, train: xr.Dataset, runner: Runner | None) -> Surrogate:
        """A baseline with the variables of the surrogate."""
        return fit_baseline(
            name,
            train,
            inputs=self.recorded["inputs"].split(","),
            outputs=self.recorded["outputs"],
            resources=Resources(memory=self.limit, runner=runner),
        )


@with_options(reading=reading_options, compute=ResourceOptions)
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
    *,
    reading: Given,
    trained_on: Path = typer.Option(
        None, help="Store of training, to fit the baselines when DATA is a store of other fires."
    ),
    compute: ResourceOptions,
) -> None:
    """Score a surrogate beside the baselines on the test part of its split.

    The split is the one recorded at training. A surrogate that was trained on all snapshots has
    out-of-fold scores, which are shown. A store of other fires is scored whole, without fires of
    training, with the thresholds chosen at training. Several outputs are scored side by side.

    The column "mass" has the total predicted over the total observed smoke at the last hour of a
    fire, the median over fires; the line below has the 10th and 90th percentile.

    The second table has, for predicted smoke above each threshold and over all cells: the hit rate
    (share of the observed cells that are found), the share of false alarms among the predicted
    cells, the bias (predicted over observed cells) and the IoU. Thresholds are values of the time
    mean since ignition, whatever the interval between checkpoints; --quantity changes that. The
    smoke threshold τ, a value of the sum over checkpoints, is always among them.

    Example: `plumecast evaluate smoke.plume ensemble.zarr`
    """
    surrogate, asked = load_surrogate(model), reading_of(reading)
    say_once = functools.cache(note)
    task = EvaluationTask(model, data, surrogate, baselines, asked, compute, trained_on, say_once)
    snapshots = task.open(data)
    split = task.training_split(snapshots)
    ending, scored = f".{data.stem}.scores.json", f"snapshots of {data}"
    if split is not None:
        ending, scored = ".scores.json", "test snapshots"
    elif task.is_all_seen(snapshots):
        ending, scored = ".scores.json", "snapshots, each predicted by a fit without it"
    where = out or model.with_suffix(ending)
    check_output(where, content="scores", inputs=[model, data, trained_on])
    version = snapshots.attrs.get(DATA_VERSION)
    _refuse_other_scores(where, data, version)
    if version != surrogate.training.get("data_version") and ending == ".scores.json":
        note(f"{data} has changed since {model} was trained (version {version})")
    results: dict[str, Evaluation] = {}
    with one_version(snapshots):
        for name in surrogate.outputs.names:
            output = replace(task, surrogate=surrogate.output(name))
            if split is not None:
                results[name] = _score_test_part(output, split)
            elif ending == ".scores.json":
                results[name] = _recorded_scores(output)
            else:
                results[name] = _score_other_store(output, snapshots)
    # First written, then shown: nobody may read the output to its end (`| head`).
    first = next(iter(results.values()))
    record: dict[str, Any] = {
        "plumecast": __version__,
        "model": str(model),
        "data": str(data),
        "data_version": version,
        "test_snapshots": first.snapshots,
        "smoke_threshold": first.smoke_threshold,
        "captured": first.captured,
        "quantity": first.quantity,
        "scores": [asdict(score) for score in first.scores],
        "scored": scored,
    }
    if len(results) > 1:
        record["outputs"] = {name: item.record() for name, item in results.items()}
    write_json(where, record)
    show_results(results, scored)
    wrote(where, "the scores")


def _refuse_other_scores(where: Path, data: Path, version: object) -> None:
    """Raise if a file has the scores of another store."""
    if not where.is_file():
        return
    try:
        scores = json.loads(where.read_text(encoding="utf-8"))
        other, other_version = Path(scores["data"]), scores["data_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    if other.absolute() != data.absolute() and (version is None or version != other_version):
        raise PlumecastError(
            f"{where} has the scores of another store, {other}; give --out another file, or remove "
            "this one"
        )


def _score_test_part(task: EvaluationTask, split: Split) -> Evaluation:
    """Thresholds from the validation part, scores on the test part."""
    names = task.baseline_names()
    train, validation, test = map(task.loaded, (split.train, split.validation, split.test))
    with (
        progress("evaluating", total=2 * len(names) + 1) as begin,
        task.compute.running() as runner,
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
    quantity = reading.quantity_or(DEFAULT)
    if not scored.issuperset((value, quantity) for value in reading.thresholds):
        levels = ",".join(f"{value:g}" for value in reading.thresholds)
        words = f"--thresholds {levels}"
        words += "" if quantity == DEFAULT else f" --quantity {quantity}"
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
    surrogate, *others = result.scores
    return replace(result, scores=[surrogate, *(score for score in others if score.name in names)])


def _score_other_store(task: EvaluationTask, snapshots: xr.Dataset) -> Evaluation:
    """Scores on all snapshots of a store of other fires, with the thresholds of training."""
    model, data = task.model, task.data
    thresholds = task.surrogate.record.thresholds
    if thresholds is None:
        raise PlumecastError(
            f"{model} has no thresholds, which a store of other fires needs; train it again "
            "without --folds 0"
        )
    unseen = unseen_snapshots(task.surrogate, task.recipe, snapshots, task.output_names)
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
    learned = recorded_interval(task.surrogate.outputs.fields[0].attrs)
    interval = recorded_interval(snapshots[task.recorded["outputs"]].attrs) or task.reading.interval
    if learned and interval and equal_interval([learned, interval]) is None:
        note(
            f"{data} has a checkpoint every {interval:g} h and the training fires one every "
            f"{learned:g} h: sums differ in size, and so do the errors and the IoU of them; only "
            "the scores at --thresholds of the mean or the dose compare like with like"
        )
    test = task.loaded(unseen.snapshots)
    with (
        progress("evaluating", total=None) as begin,
        task.compute.running() as runner,
    ):
        surrogates = {task.name: (task.surrogate, thresholds)}
        surrogates |= _placed_baselines(task, thresholds.smoke, runner, begin)
        return evaluate_at(
            surrogates,
            test,
            reading=task.reading,
            resources=task.resources(runner, begin),
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
    split = task.training_split(stored)
    if split is None and not task.is_all_seen(stored):
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
    placed = {}
    for name in task.baseline_names():
        begin(f"fitting {name}")
        baseline = task.fit_baseline(name, train, runner)
        limits = Resources(memory=task.limit, runner=runner)
        chosen = fit_thresholds(baseline, validation, resources=limits)
        placed[name] = (baseline, Thresholds(tau, chosen.decision))
    return placed
