"""`plumecast ingest rasters`: arrival-time rasters into a store of fires."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.cli import raster_options as options
from plumecast.cli.options import SCHEDULER, running
from plumecast.cli.outcomes import show_outcomes
from plumecast.cli.show import counted
from plumecast.workflows.ingest import ingest_rasters


def command(
    parsed: typer.Context,
    files: list[str] = typer.Argument(
        help="Files, folders or globs in quotes; one fire per file.", show_default=False
    ),
    out: Path = typer.Option(..., "--out", "-o", help="The store to write or to continue."),
    format: str = options.FORMAT,
    unit: str = options.UNIT,
    like: Path = typer.Option(
        None, help="A saved surrogate or a store whose grid the fires are put on."
    ),
    crs: str = options.CRS,
    hours: str = options.HOURS,
    drought: str = options.DROUGHT,
    nodata: float = options.NODATA,
    variable: str = options.VARIABLE,
    horizon: float = options.HORIZON,
    aggregate: str = options.AGGREGATE,
    batch: int = options.BATCH,
    report: Path = typer.Option(None, "--json", help="Also write the table of fires here."),
    scheduler: str = SCHEDULER,
) -> None:
    """Read arrival-time rasters (ASCII grid, GeoTIFF, NetCDF) into a store of fires.

    The unit is stated by --unit or by --format: farsite (minutes), elmfire (seconds), pyretechnics
    (minutes) or landis (day of the year, one fire per event). The store holds no smoke; `plumecast
    predict` adds it. Fires already there are passed over.

    Example: `plumecast ingest rasters runs/*.asc --format farsite --like smoke.plume -o fires.zarr`
    """
    given = options.chosen(parsed.params)
    grid = None if like is None else options.grid_of(like)
    with counted("reading fires") as step, running(scheduler) as runner:
        outcomes = ingest_rasters(files, out, like=grid, runner=runner, progress=step, **given)
    show_outcomes(outcomes, out, report)
