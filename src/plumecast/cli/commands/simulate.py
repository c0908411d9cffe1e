"""`plumecast simulate`: an ensemble of fires and their smoke from the embedded simulator."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.cli import landscape_options as landscape
from plumecast.cli.options import SCHEDULER, running
from plumecast.cli.show import counted, say, wrote
from plumecast.workflows.simulate import simulate


def command(
    out: Path = typer.Option(..., "--out", "-o", help="The store to write or to continue."),
    preset: str = typer.Option(
        None, help="demo (a minute on two cores) or paper (about 7,300 snapshots over 10⁵ acres)."
    ),
    ignitions: int = typer.Option(None, help="Number of ignitions, without or within a preset."),
    droughts: str = typer.Option("low,medium,high", help="Scenarios, separated by commas."),
    checkpoints: int = typer.Option(None, help="Snapshots of each fire, six hours apart."),
    seed: int = typer.Option(0, help="Seed of landscape, weather and ignitions."),
    workers: int = typer.Option(os.cpu_count() or 1, help="Processes; the result does not change."),
    dem: Path = landscape.DEM,
    fuels: Path = landscape.FUELS,
    bare_where_missing: bool = landscape.BARE_WHERE_MISSING,
    steering: float = landscape.STEERING,
    scheduler: str = SCHEDULER,
) -> None:
    """Simulate an ensemble of large fires and their smoke.

    Every finished fire is kept: after Ctrl-C or a kill, the same command goes on where it stopped.

    Example: `plumecast simulate --preset demo -o ensemble.zarr`
    """
    if workers < 1:
        raise PlumecastError(f"workers={workers}; give at least one")
    with counted("simulating fires") as step, running(scheduler, workers) as runner:
        snapshots = simulate(
            out,
            preset=preset,
            ignitions=ignitions,
            droughts=droughts.split(","),
            checkpoints=checkpoints,
            seed=seed,
            workers=workers,
            runner=runner,
            dem=dem,
            fuels=fuels,
            bare_where_missing=bare_where_missing,
            steering=steering,
            progress=step,
        )
    fires = len(set(snapshots.fire_id.values.tolist()))
    say(f"{fires} fires, {snapshots.sizes[SNAPSHOT]} snapshots")
    wrote(out, "the ensemble")
    say(f"next: plumecast train {out}")
