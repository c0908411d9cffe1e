"""`plumecast ingest`: fires of other models into a store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import FIRE
from plumecast.base.paths import check_output
from plumecast.cli import COMMANDS, OptionNamingCommand, new_group
from plumecast.cli.fire_options import (
    in_options,
    raster_options,
    read_weather_options,
    wind_options,
)
from plumecast.cli.options import (
    SCHEDULER,
    STORE,
    WORKERS,
    Given,
    ResourceOptions,
    settings_given,
    with_options,
)
from plumecast.cli.show import (
    count,
    exit_code,
    fires_kept,
    note,
    say,
    show_problems,
    table,
    when_stopped,
    wrote,
)
from plumecast.data.clock import checkpoint_interval
from plumecast.data.store import open_snapshots, stored_fires
from plumecast.sources.rasters import RasterOptions
from plumecast.sources.wrf import TIME_LIMIT, WrfOptions
from plumecast.surrogate.file import is_saved
from plumecast.surrogate.load import load_surrogate
from plumecast.workflows.fires.growing_store import Outcome
from plumecast.workflows.ingest import (
    RELABEL,
    REPLACE,
    SKIP,
    ingest_rasters,
    ingest_wrf,
    read_labels,
)

_COLUMNS = ("fire", "", "snapshots", "hours", "acres", "checks")
_MOST_ROWS = 60  # of the table
_MOST_NAMES = 5  # fires in one line
_RELABEL = typer.Option(
    False, "--relabel", help="Change the labels of fires that are already in the store."
)
_REPORT = typer.Option(None, "--json", help="Also write the table of fires to this file.")

app = new_group(help=COMMANDS["ingest"], invoke_without_command=True)


@app.callback()
def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())


@app.command("wrf", cls=OptionNamingCommand)
@with_options(options=WrfOptions, wind=wind_options)
def wrf(
    runs: list[str] = typer.Argument(
        help="One folder of wrfout files, or one glob in quotes, per fire; or a folder of files "
        "such as fire_001.nc, one fire per file.",
        show_default=False,
    ),
    out: Path = STORE,
    drought: str = typer.Option(None, help="Drought label of all these fires."),
    drought_from: Path = typer.Option(
        None,
        help="CSV table with the columns fire_id, drought and optionally ignition_id, wind_speed "
        "and wind_from_direction.",
    ),
    *,
    options: WrfOptions,
    wind: Given,
    relabel: bool = _RELABEL,
    replace: bool = typer.Option(
        False, "--replace", help="Read fires again that are already in the store."
    ),
    workers: int = WORKERS,
    time_limit: float = typer.Option(
        TIME_LIMIT,
        help="Seconds without progress after which a file is given up; a damaged one may hang.",
    ),
    report: Path = _REPORT,
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
    weather = read_weather_options(wind)
    with (
        when_stopped(lambda: fires_kept(out)),
        ResourceOptions(scheduler=scheduler).resources("reading fires", workers) as resources,
    ):
        outcomes = ingest_wrf(
            runs,
            out,
            options,
            drought=drought,
            labels=labels,
            weather=weather,
            existing=REPLACE if replace else RELABEL if relabel else SKIP,
            workers=workers,
            time_limit=time_limit,
            resources=resources,
        )
    _note_weather(outcomes, out)
    if stored_fires(out) and checkpoint_interval(open_snapshots(out)) is None:
        note(
            f"the checkpoints in {out} are not all equally far apart; smoke is a sum over them, "
            "so that amounts of different fires cannot be compared: set one interval with --every"
        )
    _show_outcomes(outcomes, out, report)


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
    calm = [item.fire_id for item in outcomes if item.state == "read" and not item.has_wind]
    if calm:
        note(
            f"the wind of fire '{calm[0]}'{_others(calm)} is unknown, because U10 and V10 are "
            "missing; give it by --wind-speed and --wind-from, or by --weather"
        )


def _others(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


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
    report: Path = _REPORT,
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
    grid = None
    if like is not None and like.is_file() and is_saved(like):
        grid = load_surrogate(like).grid
    elif like is not None:
        grid = open_snapshots(like, fields=(FIRE,))
    with (
        when_stopped(lambda: fires_kept(out)),
        ResourceOptions(scheduler=scheduler).resources("reading fires") as resources,
    ):
        outcomes = ingest_rasters(
            files,
            out,
            RasterOptions(like=grid, **settings_given(rasters, RasterOptions)),
            weather=read_weather_options(wind),
            fuels=rasters["fuels"],
            batch=rasters["batch"],
            relabel=relabel,
            resources=resources,
            on_note=note,
            words=in_options,
        )
    _show_outcomes(outcomes, out, report)


def _check_outputs(out: Path, report: Path | None, inputs: Sequence[str | Path | None]) -> None:
    check_output(out, "store", inputs=inputs)
    if report is not None:
        check_output(report, content="a table of fires", inputs=inputs)
        if Path(os.path.realpath(report)).is_relative_to(os.path.realpath(out)):
            raise PlumecastError(
                f"--json={report} is in the store of --out; choose a path outside {out}"
            )


def _show_outcomes(outcomes: Sequence[Outcome], out: Path, report: Path | None) -> None:
    """Print the table of fires, the findings of the checks and the errors; set the exit code."""
    if report is not None:
        write_json(report, [asdict(item) | {"state": item.state} for item in outcomes])
    states = [item.state for item in outcomes]
    counts = {state: states.count(state) for state in ("read", "skipped", "failed")}
    relabelled = sum(item.relabelled for item in outcomes)
    shown = counts | ({"relabelled": relabelled} if relabelled else {})
    title = ", ".join(f"{number} {state}" for state, number in shown.items())
    rows = [_row(item) for item in outcomes[:_MOST_ROWS]]
    table(f"{len(outcomes)} fires: {title}", _COLUMNS, rows)
    if len(outcomes) > _MOST_ROWS:
        say(f"… and {len(outcomes) - _MOST_ROWS} more; --json writes all of them")
    for item in outcomes[:_MOST_ROWS]:
        for finding in item.quality:
            note(f"{item.fire_id}: {finding}")
    _show_differences(outcomes)
    show_problems([item.problem for item in outcomes if item.problem])
    if report is not None:
        wrote(report, "the table")
    done = counts["read"] + counts["skipped"] + relabelled
    if done:
        total = sum(item.snapshots for item in outcomes if item.state == "read")
        say(f"added {total} snapshots of {counts['read']} fires to {out}")
    exit_code(failed=counts["failed"], done=done)


def _row(item: Outcome) -> list[str]:
    numbers = ["", "", ""]
    if item.snapshots:
        numbers = [str(item.snapshots), f"{item.hours:.4g}", f"{item.acres:,.0f}"]
    checks = count(len(item.quality), "finding") if item.quality else "passed"
    if item.state != "read":
        checks = item.state if item.relabelled else "already stored" if item.stored else ""
    return [item.fire_id, item.state, *numbers, checks]


def _show_differences(outcomes: Sequence[Outcome]) -> None:
    """One line for each difference between the stored fires and what was asked for."""
    fires: dict[str, list[str]] = {}
    for item in outcomes:
        kept = [f"{text}; the label is kept, --relabel replaces it" for text in item.other_labels]
        kept += [
            f"{text}; the fire is kept, --replace reads it again" for text in item.other_settings
        ]
        for text in kept:
            fires.setdefault(f"already stored with {text}", []).append(item.fire_id)
    for text, names in fires.items():
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        note(f"{', '.join(names[:_MOST_NAMES])}{more}: {text}")
