"""`plumecast ingest`: fires of other models into a store."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.cli import COMMANDS, OptionNamingCommand, new_group
from plumecast.cli.fire_options import grid_of, raster_options, read_raster_options
from plumecast.cli.options import (
    SCHEDULER,
    STORE,
    TABLE,
    WORKERS,
    Given,
    check_workers,
    running,
    with_options,
)
from plumecast.cli.outcomes import show_outcomes
from plumecast.cli.show import counted
from plumecast.sources.wrf import SMOKE_FLOOR
from plumecast.workflows.ingest import ingest_rasters, ingest_wrf

RELABEL = typer.Option(
    False, "--relabel", help="Change the labels of fires that are already in the store."
)

app = new_group(help=COMMANDS["ingest"], no_args_is_help=True)


@app.command("wrf", cls=OptionNamingCommand)
def wrf(
    runs: list[str] = typer.Argument(
        help="One folder of wrfout files, or one glob in quotes, per fire; or a folder of files "
        "such as fire_001.nc, one fire per file.",
        show_default=False,
    ),
    out: Path = STORE,
    smoke: str = typer.Option("fire_smoke", help="The smoke variable."),
    smoke_unit: str = typer.Option(
        None, help="Unit of the smoke variable, e.g. g/kg or ug/m3, if its name does not imply it."
    ),
    drought: str = typer.Option(None, help="Drought label of all these fires."),
    drought_from: Path = typer.Option(
        None, help="CSV table with the columns fire_id, drought and optionally ignition_id."
    ),
    every: str = typer.Option(
        None, help="Interval between the checkpoints to keep, e.g. 6h.", show_default="keep all"
    ),
    domain: str = typer.Option(
        None, help="WRF domain, e.g. d02.", show_default="the one with the finest fire grid"
    ),
    aggregate: str = typer.Option("mean", help="How fire cells become smoke cells: mean or max."),
    floor: float = typer.Option(
        SMOKE_FLOOR, help="Smoke below this value (µg m⁻³) is stored as zero."
    ),
    relabel: bool = RELABEL,
    replace: bool = typer.Option(
        False, "--replace", help="Read fires again that are already in the store."
    ),
    workers: int = WORKERS,
    report: Path = TABLE,
    scheduler: str = SCHEDULER,
) -> None:
    """Read WRF-Fire runs into a snapshot store, one fire per folder.

    Fires that are already in the store are skipped, so that the same command continues after an
    interruption; what differs from their labels and settings is said. --relabel changes their
    labels, --replace reads them again; each is one commit. A fire that cannot be read is reported
    and does not stop the others; the exit code is then 1.

    Example: `plumecast ingest wrf runs/fire_* -o ensemble.zarr --every 6h --drought high`
    """
    check_workers(workers)
    if drought is not None and drought_from is not None:
        raise PlumecastError("give either --drought or --drought-from, not both")
    with counted("reading fires") as step, running(scheduler, workers) as runner:
        outcomes = ingest_wrf(
            runs,
            out,
            drought=drought,
            labels=drought_from,
            workers=workers,
            runner=runner,
            relabel=relabel,
            replace=replace,
            progress=step,
            smoke=smoke,
            smoke_unit=smoke_unit,
            every=every,
            domain=domain,
            aggregate=aggregate,
            floor=floor,
        )
    show_outcomes(outcomes, out, report)


@app.command("rasters", cls=OptionNamingCommand)
@with_options(rasters=raster_options)
def rasters(
    files: list[str] = typer.Argument(
        help="Files, folders or globs in quotes; one fire per file.", show_default=False
    ),
    out: Path = STORE,
    like: Path = typer.Option(
        None, help="A saved surrogate or a store; the fires are put on its grid."
    ),
    *,
    rasters: Given,
    relabel: bool = RELABEL,
    report: Path = TABLE,
    scheduler: str = SCHEDULER,
) -> None:
    """Read arrival-time rasters (ASCII grid, GeoTIFF, NetCDF) into a store of fires.

    State the unit by --unit or by --format: farsite (minutes), elmfire (seconds), pyretechnics
    (minutes) or landis (day of the year, one fire per event). The store has no smoke; `plumecast
    predict` adds it. Fires that are already in the store are skipped.

    Example: `plumecast ingest rasters runs/*.asc --format farsite --like smoke.plume -o fires.zarr`
    """
    given = read_raster_options(rasters)
    grid = None if like is None else grid_of(like)
    with counted("reading fires") as step, running(scheduler) as runner:
        outcomes = ingest_rasters(
            files, out, like=grid, relabel=relabel, runner=runner, progress=step, **given
        )
    show_outcomes(outcomes, out, report)
