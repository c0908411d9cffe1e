"""How commands choose snapshots: filters and split, written down so that others can repeat them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.blocks import Runner
from plumecast.data.row_source import floor_as_read
from plumecast.data.schema import drop_small_fires, select_drought
from plumecast.data.split import PAPER_FRACTIONS, Split, split_by_fire
from plumecast.data.store import open_snapshots

DATA = typer.Argument(help="Snapshot store: Icechunk, Zarr or NetCDF.", show_default=False)
MIN_ACRES = typer.Option(
    None, help="Keep snapshots with at least this burned area; the paper uses 1e5."
)
DROUGHT = typer.Option(None, help="Keep these drought scenarios, separated by commas.")
FLOOR = typer.Option(None, help="Set smoke below this value (µg m⁻³) to zero.")
SEED = typer.Option(None, help="Seed of the split; 0 if not given.")
BY = typer.Option(None, help="What must not be torn apart: ignition_id (default) or fire_id.")
FRACTIONS = typer.Option(
    None, help="Shares of training, validation and test; 0.45,0.1,0.45 if not given."
)
INPUT = typer.Option(None, help=f"Input variables, separated by commas; {FIRE} if not given.")
OUTPUT = typer.Option(None, help=f"Output variable; {SMOKE} if not given.")
DEVICE = typer.Option("cpu", help="Where to compute: cpu, cuda (PyTorch) or cupy.")
MEMORY = typer.Option(
    None, help="Keep the fields in their store and take at most this much memory, e.g. 2GB."
)
SCHEDULER = typer.Option(
    None, help="Work on a Dask cluster: tcp://host:8786, or local for processes of this machine."
)


@contextlib.contextmanager
def running(
    scheduler: str | None, workers: int | None = None, device: str = "cpu"
) -> Iterator[Runner | None]:
    """A runner on the scheduler that was given; None without one."""
    if scheduler is None:
        yield None
        return
    if device != "cpu":
        raise PlumecastError(f"give --scheduler or --device {device}, not both")
    from plumecast.compute.cluster import cluster

    with cluster(scheduler, workers or os.cpu_count() or 1) as runner:
        yield runner


@dataclass(frozen=True, slots=True)
class Recipe:
    """The way from a store to a split, saved in the surrogate so that `evaluate` repeats it."""

    min_acres: float | None = None
    drought: str | None = None
    smoke_floor: float | None = None
    seed: int = 0
    by: str = "ignition_id"
    fractions: str = ",".join(map(str, PAPER_FRACTIONS))
    inputs: str = FIRE
    outputs: str = SMOKE

    def override(self, parameters: Mapping[str, Any]) -> Recipe:
        """This recipe with what a user gave: of all parameters of a command those that are its."""
        own = {field.name: parameters.get(field.name) for field in fields(self)}
        return replace(self, **{name: value for name, value in own.items() if value is not None})

    def select(self, data: Path) -> xr.Dataset:
        """The snapshots of a store that pass the filters."""
        snapshots = open_snapshots(data, fields=[*self.input_names, self.outputs])
        if self.drought is not None:
            snapshots = select_drought(snapshots, self.drought.split(","))
        if self.min_acres is not None:
            snapshots = drop_small_fires(snapshots, self.min_acres)
        if self.smoke_floor is not None:
            snapshots = floor_as_read(snapshots, self.smoke_floor, self.outputs)
        return snapshots

    def split(self, data: Path) -> Split:
        """The split of a store."""
        return split_by_fire(self.select(data), _shares(self.fractions), self.seed, by=self.by)

    @property
    def input_names(self) -> list[str]:
        """The input variables."""
        return self.inputs.split(",")

    def record(self) -> dict[str, Any]:
        """What is saved beside a surrogate."""
        return asdict(self)


def _shares(text: str) -> Sequence[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise PlumecastError(f"fractions '{text}' are not numbers separated by commas") from None
