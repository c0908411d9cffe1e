"""What `plumecast evaluate` scores: a surrogate, its outputs, and the recorded split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.cli.options import Given
from plumecast.cli.show import note
from plumecast.compute.blocks import Runner
from plumecast.compute.resources import Resources
from plumecast.data.split import Split, SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.scores.reading import Reading
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.unseen import (
    Unseen,
    is_same_version,
    training_split,
    unseen_snapshots,
)
from plumecast.workflows.predict import CLUSTER_MEMORY


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """A surrogate and the options of the command."""

    model: Path
    data: Path
    surrogate: Surrogate
    baselines: str | None
    reading: Reading
    place: Given
    trained_on: Path | None
    quiet: bool = False  # notes were shown before, for the first output

    def outputs(self) -> list[EvaluationTask]:
        """The same task for each of several outputs."""
        names = self.surrogate.outputs.names
        return [
            replace(self, surrogate=self.surrogate.output(name), quiet=name != names[0])
            for name in names
        ]

    def note(self, text: str) -> None:
        """Show a note, once for all outputs."""
        if not self.quiet:
            note(text)

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

    def resources(self, runner: Runner | None, begin: Callable[[str], None]) -> Resources:
        """Where to compute; `begin` hears the name of each surrogate."""
        return Resources(
            self.place["device"], self.limit, runner, lambda done, total, what: begin(what)
        )

    @property
    def name(self) -> str:
        """The name of the surrogate beside those of the baselines."""
        preset = self.surrogate.settings.get("preset") or self.model.stem
        return f"{preset} (model)" if preset in BASELINES else preset

    def open(self, path: Path) -> xr.Dataset:
        """The snapshots of a store."""
        fields = [*self.recorded["inputs"].split(","), *self.output_names]
        return open_snapshots(path, fields=fields)

    @property
    def output_names(self) -> list[str]:
        """The output variables."""
        names: list[str] = self.recorded["outputs"].split(",")
        return names

    def training_split(self, snapshots: xr.Dataset) -> Split | None:
        """The split of training; None if this is another store."""
        return training_split(self.surrogate, self.recipe, snapshots, self.output_names)

    def unseen(self, snapshots: xr.Dataset) -> Unseen:
        """The snapshots whose groups were not in training."""
        return unseen_snapshots(self.surrogate, self.recipe, snapshots, self.output_names)

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
            resources=Resources(memory=self.limit, runner=runner),
        )
