"""`plumecast ingest`: fires of other models into a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.outputs import check_output
from plumecast.cli import COMMANDS, OptionNamingCommand, new_group
from plumecast.cli.fire_options import (
    grid_of,
    in_options,
    raster_options,
    read_raster_options,
    read_wind_options,
    wind_options,
)
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
from plumecast.cli.outcomes import fires_kept, note_mixed_intervals, show_outcomes
from plumecast.cli.show import counted, note, when_stopped
from plumecast.sources.wrf import SMOKE_FLOOR
from plumecast.workflows.ingest import Outcome, ingest_rasters, ingest_wrf, read_labels

RELABEL = typer.Option(
    False, "--relabel", help="Change the labels of fires that are already in the store."
)

app = new_group(help=COMMANDS["ingest"], no_args_is_help=True)


@app.command("wrf", cls=OptionNamingCommand)
@with_options(wind=wind_options)
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
        None,
        help="CSV table with the columns fire_id, drought and optionally ignition_id, wind_speed "
        "and wind_from_direction.",
    ),
    *,
    wind: Given,
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
    labels, --replace reads them again; each is one commit. The wind of a fire is the mean of U10
    and V10 since ignition, unless it is stated. A fire that cannot be read is reported and does
    not stop the others; the exit code is then 1.

    Example: `plumecast ingest wrf runs/fire_* -o ensemble.zarr --every 6h --drought high`
    """
    _check_outputs(out, report, runs)
    check_workers(workers)
    if drought is not None and drought_from is not None:
        raise PlumecastError("give either --drought or --drought-from, not both")
    labels = None if drought_from is None else read_labels(drought_from)
    if labels is not None and labels.unknown:
        note(f"{drought_from}: these columns are not read: {', '.join(labels.unknown)}")
    with (
        when_stopped(lambda: fires_kept(out)),
        counted("reading fires") as step,
        running(scheduler, workers) as runner,
    ):
        outcomes = ingest_wrf(
            runs,
            out,
            drought=drought,
            labels=labels,
            winds=read_wind_options(wind),
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
    _note_missing_winds(outcomes)
    note_mixed_intervals(out)
    show_outcomes(outcomes, out, report)


def _note_missing_winds(outcomes: list[Outcome]) -> None:
    """Say once which fires were read without a wind."""
    calm = [item.fire_id for item in outcomes if item.state == "read" and not item.has_wind]
    if calm:
        others = f" and {len(calm) - 1} more" if len(calm) > 1 else ""
        note(
            f"the wind of fire '{calm[0]}'{others} is unknown, because U10 and V10 are missing; "
            "state it by --wind-speed and --wind-from, or by a table with --winds"
        )


@app.command("rasters", cls=OptionNamingCommand)
@with_options(rasters=raster_options, wind=wind_options)
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
    wind: Given,
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
    _check_outputs(out, report, [*files, like])
    given = {**read_raster_options(rasters), "winds": read_wind_options(wind)}
    given["on_note"] = lambda message: note(in_options(message, "--like"))
    grid = None if like is None else grid_of(like)
    with (
        when_stopped(lambda: fires_kept(out)),
        counted("reading fires") as step,
        running(scheduler) as runner,
    ):
        outcomes = ingest_rasters(
            files, out, like=grid, relabel=relabel, runner=runner, progress=step, **given
        )
    show_outcomes(outcomes, out, report)


def _check_outputs(out: Path, report: Path | None, inputs: Sequence[str | Path | None]) -> None:
    check_output(out, "store", inputs=inputs)
    if report is not None:
        check_output(report, inputs=inputs)
