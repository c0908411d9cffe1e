"""A small ensemble on which every study can run, and a function that runs studies on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.names import SNAPSHOT, TABLE
from plumecast.data.split import split_by_fire
from plumecast.paper.context import Context, StudyLimits
from plumecast.paper.results import (
    StudyOutcome,
    claim_folder,
    describe_run,
    find_studies,
    run_studies,
)
from support.snapshots import make_snapshots

SMALL = StudyLimits(
    repeats=3, shift_train=30, curve_train=40, scored=30, curves=5,
    weather_sizes=(4,), weather_draws=1, weather_tested=3,
)  # fmt: skip
DROUGHTS = ("low", "medium", "high")
MOISTURE = {"low": 0.10, "medium": 0.05, "high": 0.0}


def three_droughts(
    ignitions: int = 20, checkpoints: int = 2, shape: tuple[int, int] = (6, 8)
) -> xr.Dataset:
    """Ignitions under three droughts, with moisture and wind that differ between droughts."""
    snapshots = make_snapshots(
        fires=3 * ignitions, checkpoints=checkpoints, shape=shape, droughts=DROUGHTS
    )
    moisture = np.array([MOISTURE[name] for name in snapshots.drought.values])
    wind = 5.0 + 20.0 * (0.1 - moisture) + 0.1 * snapshots.hours.values
    return snapshots.assign_coords(
        fuel_moisture=(SNAPSHOT, moisture, TABLE["fuel_moisture"].attrs),
        wind_speed=(SNAPSHOT, wind, TABLE["wind_speed"].attrs),
        wind_from_direction=(
            SNAPSHOT,
            200.0 + 400.0 * moisture,
            TABLE["wind_from_direction"].attrs,
        ),
    )


def study_into(
    folder: Path, names: list[str], snapshots: xr.Dataset | None = None
) -> tuple[Context, list[StudyOutcome]]:
    """Run the named studies on the small ensemble and write their results into a folder."""
    split = split_by_fire(three_droughts() if snapshots is None else snapshots)
    recipe = {"fractions": "0.45,0.1,0.45", "min_acres": None, "drought": None, "smoke_floor": None}
    run = describe_run(split, Path("ensemble.zarr"), recipe, seed=0, command="plumecast study all")
    claim_folder(folder, run)
    context = Context(
        split, fingerprint=run["fingerprint"], folder=folder / "surrogates", limits=SMALL
    )
    return context, run_studies(find_studies(names), context, folder)
