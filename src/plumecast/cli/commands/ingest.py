"""`plumecast ingest`: fires of other models into a store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.paths import check_output
from plumecast.cli import COMMANDS, OptionNamingCommand, new_group
from plumecast.cli.fire_options import (
    grid_of,
    in_options,
    option_of,
    raster_options,
    read_raster_options,
)
from plumecast.cli.options import (
    SCHEDULER,
    STORE,
    TABLE,
    WORKERS,
    Given,
    running,
    with_options,
)
from plumecast.cli.outcomes import fires_kept, note_mixed_intervals, show_outcomes
from plumecast.cli.show import counted, note, say, when_stopped
from plumecast.cli.weather_options import read_wind_options, wind_options
from plumecast.compute.resources import Resources
from plumecast.sources.rasters import RasterOptions
from plumecast.sources.wrf import TIME_LIMIT, WrfOptions
from plumecast.workflows.fires.growing_store import Outcome
from plumecast.workflows.ingest import (
    RELABEL,
    REPLACE,
    SKIP,
    ingest_rasters,
    ingest_wrf,
    read_labels,
)

_RELABEL = typer.Option(
    False, "--relabel", help="Change the labels of fires that are already in the store."
)

app = new_group(help=COMMANDS["ingest"], invoke_without_command=True)


@app.callback()
def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


@app.command("wrf", cls=OptionNamingCommand)
@with_options(wind=wind_options)
def wrf(
    runs: list[str] = typer.Argument(
        help="One folder of wrfout files, or one glob in quotes, per fire; or a folder of files "
        "such as fire_001.nc, one fire per file.",
        show_default=False,
    ),
    out: Path = STORE,
    smoke: str = option_of(WrfOptions, "smoke"),
    smoke_unit: str = option_of(WrfOptions, "smoke_unit"),
    surface: bool = option_of(WrfOptions, "surface", "--surface"),
    tracers: str = option_of(WrfOptions, "tracers", show_default="none"),
    drought: str = typer.Option(None, help="Drought label of all these fires."),
    drought_from: Path = typer.Option(
        None,
        help="CSV table with the columns fire_id, drought and optionally ignition_id, wind_speed "
        "and wind_from_direction.",
    ),
    *,
    wind: Given,
    every: str = option_of(WrfOptions, "every", show_default="keep all"),
    domain: str = option_of(WrfOptions, "domain", show_default="the one with the finest fire grid"),
    aggregate: str = option_of(WrfOptions, "aggregate"),
    floor: float = option_of(WrfOptions, "floor"),
    relabel: bool = _RELABEL,
    replace: bool = typer.Option(
        False, "--replace", help="Read fires again that are already in the store."
    ),
    workers: int = WORKERS,
    time_limit: float = typer.Option(
        TIME_LIMIT,
        help="Seconds without progress after which a file is given up; a damaged one may hang.",
    ),
    report: Path = TABLE,
    scheduler: str = SCHEDULER,
) -> None:
    """Read WRF-Fire runs into a snapshot store, one fire per folder.

    Fires that are already in the store are skipped, so that the same command continues after an
    interruption; what differs from their labels and settings is said. --relabel changes their
    labels, --replace reads them again; each is one commit. The wind of a fire is the mean of U10
    and V10 since ignition, its hourly weather the median over the columns of U, V, U10, V10 and
    PBLH, unless --weather or --wind-speed states them. A fire that cannot be read is reported and
    does not stop the others; the exit code is then 1.

    Example: `plumecast ingest wrf runs/fire_* -o ensemble.zarr --every 6h --drought high`
    """
    _check_outputs(out, report, runs)
    if drought is not None and drought_from is not None:
        raise PlumecastError("give either --drought or --drought-from, not both")
    labels = None if drought_from is None else read_labels(drought_from)
    air = read_wind_options(wind)
    options = WrfOptions(
        smoke=smoke,
        smoke_unit=smoke_unit,
        every=every,
        domain=domain,
        aggregate=aggregate,
        floor=floor,
        surface=surface,
        tracers=tracers,
    )
    with (
        when_stopped(lambda: fires_kept(out)),
        counted("reading fires") as step,
        running(scheduler, workers) as runner,
    ):
        outcomes = ingest_wrf(
            runs,
            out,
            options,
            drought=drought,
            labels=labels,
            **air,
            existing=REPLACE if replace else RELABEL if relabel else SKIP,
            workers=workers,
            time_limit=time_limit,
            resources=Resources(runner=runner, progress=step),
        )
    _note_weather(outcomes, out)
    _note_missing_winds(outcomes)
    note_mixed_intervals(out)
    show_outcomes(outcomes, out, report)


def _note_weather(outcomes: list[Outcome], out: Path) -> None:
    """Say once what is missing of the weather of the fires that were read."""
    left_out = [item.fire_id for item in outcomes if item.weather_left_out]
    if left_out:
        note(
            f"{out} was made without the hourly weather of its fires; that of fire "
            f"'{left_out[0]}'{_others(left_out)} is left out; --replace with all fires reads it"
        )
    surface = [item.fire_id for item in outcomes if item.default_profile]
    if surface:
        note(
            f"the files of fire '{surface[0]}'{_others(surface)} have no U and V: above 10 m their "
            "winds are those of the default profile; --weather gives others"
        )


def _others(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _note_missing_winds(outcomes: list[Outcome]) -> None:
    """Say once which fires were read without a wind."""
    calm = [item.fire_id for item in outcomes if item.state == "read" and not item.has_wind]
    if calm:
        note(
            f"the wind of fire '{calm[0]}'{_others(calm)} is unknown, because U10 and V10 are "
            "missing; give it by --wind-speed and --wind-from, or by "
            "--weather"
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
    relabel: bool = _RELABEL,
    report: Path = TABLE,
    scheduler: str = SCHEDULER,
) -> None:
    """Read arrival-time rasters (ASCII grid, GeoTIFF, NetCDF) into a store of fires.

    State the unit by --unit or by --format: farsite (minutes), elmfire (seconds), pyretechnics
    (minutes) or landis (day of the year, one fire per event). The store has no smoke; `plumecast
    predict` adds it. --weather adds the weather of the fires, which surrogates may need, --fuels
    the fuel load of the cells that burn. Fires that are already in the store are skipped.

    Example: `plumecast ingest rasters runs/*.asc --format farsite --like smoke.plume -o fires.zarr`
    """
    _check_outputs(out, report, [*files, like, rasters["fuels"]])
    chosen = read_raster_options(rasters)
    fuels, batch = chosen.pop("fuels"), chosen.pop("batch")
    grid = None if like is None else grid_of(like)
    with (
        when_stopped(lambda: fires_kept(out)),
        counted("reading fires") as step,
        running(scheduler) as runner,
    ):
        outcomes = ingest_rasters(
            files,
            out,
            RasterOptions(like=grid, **chosen),
            **read_wind_options(wind),
            fuels=fuels,
            batch=batch,
            relabel=relabel,
            resources=Resources(runner=runner, progress=step),
            on_note=note,
            words=in_options,
        )
    show_outcomes(outcomes, out, report)


def _check_outputs(out: Path, report: Path | None, inputs: Sequence[str | Path | None]) -> None:
    check_output(out, "store", inputs=inputs)
    if report is not None:
        check_output(report, content="a table of fires", inputs=inputs)
        if Path(os.path.realpath(report)).is_relative_to(os.path.realpath(out)):
            raise PlumecastError(
                f"--json={report} is in the store of --out; choose a path outside {out}"
            )
