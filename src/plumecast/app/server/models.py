"""The surrogates that the page offers, and trainings of further ones.

Each training runs in a process of its own, which can be stopped and does not slow the server. A
finished one leaves two files in the folder of the server, the surrogate and its scores.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.server.kept import EventLog, new_id
from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import SNAPSHOT
from plumecast.compute.processes import end_with_parent, interrupts_blocked
from plumecast.compute.resources import Resources
from plumecast.data.covariates import extrapolating
from plumecast.data.store import open_snapshots
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.evaluate import evaluate_at
from plumecast.workflows.held_out.record import TRIVIAL
from plumecast.workflows.train import THRESHOLDS, train_surrogate

FEWEST = 3
"""Ignitions that a training needs: thresholds are chosen by leaving some out."""

_SCORES = ("iou", "deployable_iou", "auc", "relative_error", "snapshot_error", "smoke_iou")


@dataclass(frozen=True, slots=True)
class Model:
    """A surrogate with its name on the page, and its scores if it was trained here."""

    name: str
    surrogate: Surrogate
    result: Mapping[str, Any] | None = None
    id: str = field(default_factory=new_id)

    @property
    def threshold(self) -> float | None:
        """The decision threshold of its footprint, if it has one."""
        stored = self.surrogate.record.thresholds
        return None if stored is None else stored.decision

    @property
    def calibrated(self) -> bool:
        """Whether it has error bars."""
        return self.surrogate.error_bars is not None

    def record(self) -> dict[str, Any]:
        """What the page shows of it."""
        surrogate = self.surrogate
        training, settings = surrogate.training, surrogate.settings
        return {
            "id": self.id,
            "name": self.name,
            "preset": settings.get("preset"),
            "family": settings.get("family"),
            "snapshots": training.get("snapshots"),
            "ignitions": len(training.get("ignition_id", ())) or None,
            "needs_weather": surrogate.operator.needs_weather or surrogate.operator.needs_wind,
            "needs_drought": surrogate.scenario is not None,
            "calibrated": self.calibrated,
            "result": self.result,
        }


class Models:
    """All models; those of the start stay, and new ones are added."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._models: dict[str, Model] = {}

    def add(self, model: Model) -> None:
        """Add a model; it becomes the last."""
        self._models[model.id] = model

    def all(self) -> list[Model]:
        """The models in the order in which they came."""
        return list(self._models.values())

    def get(self, key: str | None) -> Model:
        """The model of an id, or the latest without one."""
        chosen = self.all()[-1] if key is None else self._models.get(key)
        if chosen is None:
            raise PlumecastError("this model is no longer loaded: reload the page")
        return chosen

    @property
    def full(self) -> bool:
        """Whether no further model can be kept."""
        return len(self._models) >= self.most


@dataclass(frozen=True, slots=True)
class Task:
    """What to train: choices of `train_surrogate`, on some ignitions, scored on others."""

    store: str
    train: list[str]  # ignitions
    test: list[str]
    choices: dict[str, Any]  # preset or family
    path: str  # of the surrogate to write


def train_and_score(task: Task, progress: Callable[[str], None]) -> dict[str, Any]:
    """Train, score on the ignitions held out beside the baselines, and write both files."""
    snapshots = open_snapshots(task.store)
    labels = snapshots["ignition_id"].values.astype(str)
    train, test = (
        snapshots.isel({SNAPSHOT: np.flatnonzero(np.isin(labels, part))}).load()
        for part in (task.train, task.test)
    )
    start, fitted = time.perf_counter(), 0.0

    def tell(done: int, total: int, step: str) -> None:
        nonlocal fitted
        if step == THRESHOLDS:
            fitted = time.perf_counter() - start
        progress(step)

    resources = Resources(progress=tell)
    surrogate = train_surrogate(train, split=None, resources=resources, **task.choices)
    seconds = time.perf_counter() - start
    progress("scoring")
    scores = _scores(surrogate, train, test)
    result = {
        "preset": str(task.choices.get("preset") or task.choices.get("family")),
        "ignitions": len(task.train),
        "snapshots": int(train.sizes[SNAPSHOT]),
        "seconds": seconds,
        "fit_seconds": fitted,
        "scores": scores.pop("surrogate", None),
        "baselines": scores,
        "problem": surrogate.training.get("problem"),
    }
    surrogate.save(task.path)
    write_json(Path(task.path).with_suffix(".json"), result)
    return result


def _scores(
    surrogate: Surrogate, train: xr.Dataset, test: xr.Dataset
) -> dict[str, dict[str, float] | None]:
    """Scores on test of the surrogate and of the baselines, at thresholds chosen out of fold."""
    thresholds = surrogate.record.thresholds
    if thresholds is None:
        return {}
    chosen = {item["name"]: item for item in surrogate.record.scores["out_of_fold"]["scores"]}
    compared = {"surrogate": (surrogate, thresholds)}
    for name in TRIVIAL:
        if name in chosen:
            level = Thresholds(thresholds.smoke, chosen[name]["decision_threshold"])
            compared[name] = (fit_baseline(name, train), level)
    with extrapolating():
        scores = evaluate_at(compared, test).scores
    return {score.name: {name: asdict(score)[name] for name in _SCORES} for score in scores}


def saved_model(path: Path) -> Model:
    """A surrogate that was trained here, with its scores."""
    scores = path.with_suffix(".json")
    if not scores.is_file():
        return Model(path.stem, load_surrogate(path))
    result = json.loads(scores.read_text(encoding="utf-8"))
    name = f"{result['preset']}, {result['ignitions']} ignitions"
    return Model(name, load_surrogate(path), result)


def _work(pipe: Connection, task: Task) -> None:
    """In the process: train, and send progress and the result."""
    end_with_parent()

    def progress(step: str) -> None:
        pipe.send(("progress", {"step": step}))

    try:
        pipe.send(("result", train_and_score(task, progress)))
    except PlumecastError as error:
        pipe.send(("error", {"error": str(error)}))
    except MemoryError:
        pipe.send(("error", {"error": "the memory is not enough; train on fewer ignitions"}))


@dataclass
class Job:
    """One training in a process of its own; `finished` gets its model."""

    task: Task
    finished: Callable[[Model], object]
    events: EventLog = field(default_factory=EventLog)
    process: Any = None
    state: str = "waiting"

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self.state in ("waiting", "running"):
            self.state = "cancelled"
            self.events.add("error", {"error": "the training was cancelled"})
        if self.process is not None and self.process.is_alive():
            self.process.terminate()
        self.events.close()

    def run(self) -> None:
        """Train, unless the job was cancelled while it waited."""
        try:
            if self.state == "waiting":
                self._train()
        finally:
            self.events.close()

    def _train(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(theirs, self.task), daemon=True)
        self.state = "running"
        start = time.perf_counter()
        with interrupts_blocked():
            self.process.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            while True:
                name, value = ours.recv()
                if name == "progress":
                    value["seconds"] = time.perf_counter() - start
                elif name == "result":
                    model = saved_model(Path(self.task.path))
                    self.finished(model)
                    value, self.state = {"model": model.id, **value}, "done"
                else:
                    self.state = "failed"
                self.events.add(name, value)
        self.process.join()
        if self.state == "running":
            self.state = "failed"
            problem = "the training ended by itself, perhaps for lack of memory"
            self.events.add("error", {"error": f"{problem}; train on fewer ignitions"})


def new_path(folder: Path, label: str) -> Path:
    """Path of a surrogate to be trained; no part of it comes from a request."""
    return folder / f"{label}-{new_id()}.plume"
