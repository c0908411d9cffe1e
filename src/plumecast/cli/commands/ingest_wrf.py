"""`plumecast ingest wrf`: WRF-Fire runs into a snapshot store."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.cli.options import SCHEDULER, running
from plumecast.cli.outcomes import show_outcomes
from plumecast.cli.show import counted
from plumecast.sources.wrf import SMOKE_FLOOR
from plumecast.workflows.ingest import ingest_wrf


def command(
    runs: list[str] = typer.Argument(
        help="One folder of wrfout files, or one glob in quotes, per fire.", show_default=False
    ),
    out: Path = typer.Option(..., "--out", "-o", help="The store to write or to continue."),
    smoke: str = typer.Option("fire_smoke", help="The smoke variable."),
    smoke_unit: str = typer.Option(
        None, help="Its unit, e.g. g/kg or ug/m3, where it is not known from its name."
    ),
    drought: str = typer.Option(None, help="Drought label of all these fires."),
    drought_from: Path = typer.Option(
        None, help="CSV table with the columns fire_id,drought and perhaps ignition_id."
    ),
    every: str = typer.Option(None, help="Keep checkpoints this far apart, e.g. 6h; default: all."),
    domain: str = typer.Option(None, help="E.g. d02; default: the one with the finest fire grid."),
    aggregate: str = typer.Option("mean", help="Fire cells to smoke cells: mean or max."),
    floor: float = typer.Option(SMOKE_FLOOR, help="Smoke below this (µg m⁻³) is stored as zero."),
    workers: int = typer.Option(os.cpu_count() or 1, help="Processes; the result does not change."),
    report: Path = typer.Option(None, "--json", help="Also write the table of fires here."),
    scheduler: str = SCHEDULER,
) -> None:
    """Read WRF-Fire runs into a snapshot store, one fire per folder.

    Fires already there are passed over, so the same command goes on where it was stopped. A fire
    that cannot be read is named and does not stop the others; the exit code is then 1.

    Example: `plumecast ingest wrf runs/fire_* -o ensemble.zarr --every 6h --drought high`
    """
    if workers < 1:
        raise PlumecastError(f"workers={workers}; give at least one")
    if drought is not None and drought_from is not None:
        raise PlumecastError("give either --drought or --drought-from")
    with counted("reading fires") as step, running(scheduler, workers) as runner:
        outcomes = ingest_wrf(
            runs,
            out,
            drought=drought,
            labels=drought_from,
            workers=workers,
            runner=runner,
            progress=step,
            smoke=smoke,
            smoke_unit=smoke_unit,
            every=every,
            domain=domain,
            aggregate=aggregate,
            floor=floor,
        )
    show_outcomes(outcomes, out, report)
