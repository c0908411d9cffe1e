"""`plumecast evaluate`: score a surrogate beside the baselines on fires it has not seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.base.outputs import check_output
from plumecast.base.version import __version__
from plumecast.cli.options import DATA, MODEL, Given, place_options, running, with_options
from plumecast.cli.show import note, progress, say, table, warn, write_json
from plumecast.compute.blocks import Runner
from plumecast.data.split import Split, SplitRecipe
from plumecast.data.store import DATA_VERSION, open_snapshots
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.memory_plan import CLUSTER_MEMORY
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.evaluate import (
    CAPTURED,
    Evaluation,
    Thresholds,
    evaluate,
    evaluate_at,
    fit_thresholds,
    recorded_evaluation,
)
from plumecast.workflows.held_out.unseen import (
    Unseen,
    is_same_version,
    stored_thresholds,
    training_split,
    unseen_snapshots,
)
from plumecast.workflows.held_out.verdict import judge


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
    captured: float = typer.Option(
        CAPTURED, help="Share of the footprint that the smoke threshold captures."
    ),
    baselines: str = typer.Option(
        None,
        help="Baselines to score too, separated by commas, or 'none'.",
        show_default="all; with --memory or --scheduler only the mean field",
    ),
    trained_on: Path = typer.Option(
        None, help="Store of training, to fit the baselines when DATA is a store of other fires."
    ),
    *,
    place: Given,
) -> None:
    """Score a surrogate beside the baselines on the test part of its split.

    The split is the one recorded at training. A surrogate that was trained on all snapshots has
    out-of-fold scores, which are shown. A store of other fires is scored whole, without fires of
    training, with the thresholds chosen at training.

    Example: `plumecast evaluate smoke.plume ensemble.zarr`
    """
    task = _Task(
        model, data, load_surrogate(model), captured, baselines, place, trained_on=trained_on
    )
    snapshots = task.open(data)
    split = None if task.is_whole else task.training_split(snapshots)
    if split is not None:
        ending, scored = ".scores.json", "test snapshots"
    elif task.is_whole and task.is_all_seen(snapshots):
        ending, scored = ".scores.json", "snapshots, each predicted by a fit without it"
    else:
        ending, scored = f".{data.stem}.scores.json", f"snapshots of {data}"
    where = check_output(out or model.with_suffix(ending), inputs=[model, data])
    version = snapshots.attrs.get(DATA_VERSION)
    _refuse_other_scores(where, data, version)
    if version != task.surrogate.training.get("data_version") and ending == ".scores.json":
        note(f"{data} has changed since {model} was trained (version {version})")
    if split is not None:
        result = _score_test_part(task, split)
    elif ending == ".scores.json":
        result = _recorded_scores(task)
    else:
        result = _score_other_store(task, snapshots)
    show_scores(result, scored)
    show_verdict(result)
    write_json(where, _record(result, model, data, version) | {"scored": scored}, "the scores")


@dataclass(frozen=True, slots=True)
class _Task:
    """A surrogate and the options of the command."""

    model: Path
    data: Path
    surrogate: Surrogate
    captured: float
    baselines: str | None
    place: Given
    trained_on: Path | None

    @property
    def recorded(self) -> dict[str, Any]:
        """The split and the variables that were recorded at training."""
        found: dict[str, Any] = self.surrogate.training.get("split", {})
        return {"inputs": FIRE, "outputs": SMOKE} | found

    @property
    def recipe(self) -> SplitRecipe:
        """How snapshots were filtered and split at training."""
        return SplitRecipe.from_record(self.recorded)

    @property
    def is_whole(self) -> bool:
        """Whether the surrogate was trained on all snapshots."""
        return bool(self.recorded.get("all", False))

    @property
    def limit(self) -> str | None:
        """The memory limit, if fields are read in blocks."""
        return self.place["memory"] or (CLUSTER_MEMORY if self.place["scheduler"] else None)

    @property
    def name(self) -> str:
        """The name of the surrogate beside those of the baselines."""
        own = self.surrogate.settings.get("preset") or self.model.stem
        return f"{own} (model)" if own in BASELINES else own

    def open(self, path: Path) -> xr.Dataset:
        """The snapshots of a store."""
        fields = [*self.recorded["inputs"].split(","), self.recorded["outputs"]]
        return open_snapshots(path, fields=fields)

    def training_split(self, snapshots: xr.Dataset) -> Split | None:
        """The split of training; None if this is another store."""
        return training_split(self.surrogate, self.recipe, snapshots, self.recorded["outputs"])

    def unseen(self, snapshots: xr.Dataset) -> Unseen:
        """The snapshots whose groups were not in training."""
        return unseen_snapshots(self.surrogate, self.recipe, snapshots, self.recorded["outputs"])

    def is_all_seen(self, snapshots: xr.Dataset) -> bool:
        """Whether all groups of a store were in training."""
        if is_same_version(self.surrogate, snapshots):
            return True
        return self.unseen(snapshots).snapshots.sizes[SNAPSHOT] == 0

    def loaded(self, part: xr.Dataset) -> xr.Dataset:
        """The snapshots in memory, unless they are read in blocks."""
        return part if self.limit else part.load()

    def fit_baseline(self, name: str, train: xr.Dataset, runner: Runner | None) -> Surrogate:
        """A baseline with the variables of the surrogate."""
        return fit_baseline(
            name,
            train,
            inputs=self.recorded["inputs"].split(","),
            outputs=self.recorded["outputs"],
            memory=self.limit,
            runner=runner,
        )


def _score_test_part(task: _Task, split: Split) -> Evaluation:
    """Thresholds from the validation part, scores on the test part."""
    names = _names(task.baselines, task.limit)
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
            captured=task.captured,
            by=split.by,
            progress=begin,
            device=device,
            memory=task.limit,
            runner=runner,
        )


def _recorded_scores(task: _Task) -> Evaluation:
    """The out-of-fold scores that were recorded at training."""
    found = task.surrogate.training.get("out_of_fold")
    if found is None:
        why = task.surrogate.training.get("problem", "it has no out-of-fold scores")
        raise PlumecastError(
            f"{task.model} was trained on every snapshot and nothing is held out ({why}); train "
            "again without --all or --folds 0, or give a store of other fires"
        )
    _refuse_captured(task)
    result = recorded_evaluation(found)
    if task.baselines is None:
        return result
    asked = task.baselines.split(",")
    unknown = [n for n in asked if n != "none" and n not in {s.name for s in result.scores}]
    if unknown:
        raise PlumecastError(
            f"baseline '{unknown[0]}' has no out-of-fold scores in {task.model}; choose from "
            f"{', '.join(score.name for score in result.scores[1:])}, none"
        )
    own, *others = result.scores
    return replace(result, scores=[own, *(score for score in others if score.name in asked)])


def _score_other_store(task: _Task, snapshots: xr.Dataset) -> Evaluation:
    """Scores on all snapshots of a store of other fires, with the thresholds of training."""
    model, data, training = task.model, task.data, task.surrogate.training
    thresholds = stored_thresholds(training)
    if thresholds is None:
        raise PlumecastError(
            f"{model} has no thresholds, which a store of other fires needs; train it again "
            "without --folds 0"
        )
    _refuse_captured(task)
    unseen = task.unseen(snapshots)
    if unseen.snapshots.sizes[SNAPSHOT] == 0:
        raise PlumecastError(
            f"{data} has no snapshot that {model} can be scored on: {unseen.filtered} are dropped "
            f"by the filters of training, and {unseen.trained} {task.recipe.by}(s) were in training"
        )
    note(f"{data} is not the store of training: all of it is scored, with the stored thresholds")
    if unseen.trained:
        note(f"{unseen.trained} {task.recipe.by}(s) of {data} were in training and are left out")
    if unseen.filtered:
        note(f"{unseen.filtered} snapshots of {data} do not pass the filters of training")
    device, test = task.place["device"], task.loaded(unseen.snapshots)
    with (
        progress("evaluating", total=None) as begin,
        running(task.place["scheduler"], device=device) as runner,
    ):
        surrogates = {task.name: (task.surrogate, thresholds)}
        surrogates |= _placed_baselines(task, thresholds.smoke, runner, begin)
        return evaluate_at(
            surrogates, test, progress=begin, device=device, memory=task.limit, runner=runner
        )


def _placed_baselines(
    task: _Task, tau: float, runner: Runner | None, begin: Callable[[str], None]
) -> dict[str, tuple[Surrogate, Thresholds]]:
    """Baselines fitted to the store of training, each with its decision threshold."""
    if task.baselines == "none":
        return {}
    if task.trained_on is None:
        note("no baselines are shown: they are fitted to the store of training; give --trained-on")
        return {}
    stored = task.open(task.trained_on)
    split = None if task.is_whole else task.training_split(stored)
    known = task.surrogate.training.get("out_of_fold", {}).get("scores", [])[1:]
    if split is None and not (task.is_whole and task.is_all_seen(stored)):
        raise PlumecastError(
            f"--trained-on {task.trained_on} is not the store that {task.model} was trained on; "
            "give that one or leave it out"
        )
    if split is None:
        train = task.loaded(task.recipe.select(stored, task.recorded["outputs"]))
        fitted = {score["name"]: task.fit_baseline(score["name"], train, runner) for score in known}
        return {
            score["name"]: (fitted[score["name"]], Thresholds(tau, score["decision_threshold"]))
            for score in known
        }
    train, validation = task.loaded(split.train), task.loaded(split.validation)
    found = {}
    for name in _names(task.baselines, task.limit):
        begin(f"fitting {name}")
        baseline = task.fit_baseline(name, train, runner)
        chosen = fit_thresholds(baseline, validation, memory=task.limit, runner=runner)
        found[name] = (baseline, Thresholds(tau, chosen.decision))
    return found


def _refuse_captured(task: _Task) -> None:
    if task.captured != CAPTURED:
        raise PlumecastError(
            f"captured={task.captured} cannot be chosen here, because the thresholds of "
            f"{task.model} were chosen at training with {CAPTURED}; leave it out"
        )


def _refuse_other_scores(where: Path, data: Path, version: object) -> None:
    """Raise if a file has the scores of another store."""
    try:
        found = json.loads(where.read_text(encoding="utf-8"))
        other, other_version = Path(found["data"]), found["data_version"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if other.absolute() != data.absolute() and (version is None or version != other_version):
        raise PlumecastError(
            f"{where} has the scores of another store, {other}; give --out another file, or remove "
            "this one"
        )


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


def show_scores(result: Evaluation, what: str = "test snapshots") -> None:
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
            "–" if math.isnan(score.predict_ms) else f"{score.predict_ms:.2f}",
        ]
        for score in result.scores
    ]
    title = (
        f"{result.snapshots} {what}, smoke above {result.smoke_threshold:.3g} "
        f"({result.captured:.0%} of the footprint)"
    )
    table(title, columns, rows)


def show_verdict(result: Evaluation) -> None:
    """Say whether the surrogate, which is first, beats the mean field and the nearest fire."""
    verdict = judge(result.scores)
    if verdict is not None:
        (say if verdict.beats else warn)(verdict.text)


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
