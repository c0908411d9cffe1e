"""`plumecast compare`: the differences of scenarios, with intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SMOKE
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    CHECKPOINTS_AS_TRAINED,
    STEERING_AS_TRAINED,
    check_simulate,
    drawing,
    is_raster,
    landscape_options,
    note_other_settings,
    raster_options,
    raster_reports,
    read_raster_options,
)
from plumecast.cli.options import Given, numbers, with_options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, warn, wrote
from plumecast.cli.tables import show_comparison
from plumecast.cli.weather_options import note_use, read_wind_options, wind_options
from plumecast.compute.resources import Resources
from plumecast.data.schema import select_drought
from plumecast.data.store import open_snapshots
from plumecast.impact.compare import Comparing, compare_scenarios
from plumecast.impact.comparison import export_maps, write_json, write_table
from plumecast.scores.quantities import DEFAULT, QUANTITIES
from plumecast.scores.reading import Reading
from plumecast.surrogate.guards import Notice
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.export import FORMATS
from plumecast.workflows.fires.conditions import refuse_other_inputs
from plumecast.workflows.fires.sources import raster_fires

_FORM = re.compile(r"(?:(?P<name>[^=/\\]+)=)?(?P<what>.+?)(?:@(?P<drought>[^@/\\]+))?")


@dataclass(frozen=True, slots=True)
class NamedScenario:
    """One scenario of the command line, [NAME=]WHAT[@DROUGHT]."""

    name: str
    what: str  # a path, or a drought
    drought: str | None


@with_options(landscape=landscape_options, rasters=raster_options, wind=wind_options)
def command(
    parsed: typer.Context,
    scenarios: list[str] = typer.Argument(
        ...,
        help="Two or more scenarios; the first is the reference. Each is [NAME=]STORE[@DROUGHT]; "
        "with --format or --unit, a folder of rasters; with --simulate, a fuel raster or a "
        "drought.",
        show_default=False,
    ),
    model: Path = typer.Option(
        None,
        "--model",
        "-m",
        help="A saved surrogate that predicts the smoke of every scenario. If it has several "
        "outputs, smoke is used.",
        show_default="the smoke of the stores, or simulated smoke",
    ),
    points: Path = typer.Option(
        None,
        help="CSV table of places: name, and lat and lon or x and y; optionally population.",
        show_default="the mean over the grid",
    ),
    out: Path = typer.Option(
        None, "--out", "-o", help="Write maps of the differences: .nc, .zarr, or .tif for each map."
    ),
    table: Path = typer.Option(None, help="Write the table of places to this CSV file."),
    json: Path = typer.Option(None, help="Write the table of places to this JSON file."),
    quantity: str = typer.Option(DEFAULT, help=f"What to compare: {', '.join(QUANTITIES)}."),
    thresholds: str = typer.Option(
        "", help="Also compare the share of fires above these values of the quantity, e.g. 35,100."
    ),
    checkpoint_interval: float = typer.Option(
        None, help="Hours between checkpoints of smoke that does not record them."
    ),
    coverage: float = typer.Option(
        0.95, help="Nominal coverage of the intervals; those marked rough reach less."
    ),
    paired: bool = typer.Option(
        None,
        "--paired/--unpaired",
        help="Compare pairs of fires with the same ignition, or all fires as independent.",
        show_default="paired where at least half of the ignitions are common",
    ),
    simulate: int = typer.Option(
        None,
        help="Simulate this many fires of each scenario, from the same ignitions. Without "
        "--model, their smoke is simulated too.",
    ),
    preset: str = typer.Option(None, help="With --simulate: demo, paper or weathers."),
    seed: int = typer.Option(
        None, help="With --simulate: seed of landscape and weather.", show_default="as in training"
    ),
    checkpoints: int = CHECKPOINTS_AS_TRAINED,
    *,
    landscape: Given,
    steering: float = STEERING_AS_TRAINED,
    rasters: Given,
    drought: str = typer.Option(
        None,
        help="Drought label of rasters. With --simulate: droughts of all scenarios, separated by "
        "commas.",
        show_default="with --simulate those of training, or a drawn weather each",
    ),
    wind: Given,
    memory: str = typer.Option(None, help="Memory limit of the maps.", show_default="4GB"),
) -> None:
    """Compare the smoke of scenarios at places and in every cell, with intervals.

    For each scenario and place: the difference from the first scenario, its interval, the chance
    that the mean is lower, the share of fires with less smoke, and how many more ignitions would
    settle the sign. Fires of the same ignition are compared as pairs, which needs far fewer fires.
    Only the last snapshot of every fire is used. Intervals account for the sampling of fires, not
    for the error of a surrogate. Where a few fires make most of the difference, they are too short
    and are marked "rough".

    Example: `plumecast compare before=untreated.zarr after=treated.zarr --points towns.csv` or
    `plumecast compare fires.zarr@low fires.zarr@high --model smoke.plume -o diff.nc` or
    `plumecast compare --simulate 100 --dem dem.tif untreated=fuels.tif treated=thinned.tif
    --points towns.csv`
    """
    named = _read_scenarios(scenarios)
    inputs = [model, points, landscape["dem"], landscape["fuels"], *(item.what for item in named)]
    _check_outputs(out, (table, json), inputs)
    levels = numbers(thresholds, "--thresholds") if thresholds else []
    air, given = read_wind_options(wind), read_raster_options(rasters)
    _check_options(parsed.params, is_raster(rasters), model)
    surrogate = None if model is None else load_surrogate(model)
    problems: list[str] = []
    notices: list[Notice] = []
    hours: Sequence[float] = ()
    if surrogate is not None:
        note_use(surrogate, air, None if simulate else rasters["fuels"])
    if simulate is not None:
        sources = _drawn(named, surrogate, simulate, parsed.params)
    elif surrogate is not None and is_raster(rasters):
        given |= raster_reports(problems)
        sources = {item.name: _rasters(item, surrogate, air, given) for item in named}
        air = {}
    else:
        sources = {item.name: _store(item, surrogate) for item in named}
        hours = given["hours"] or ()
    with counted("comparing") as step:
        comparison = compare_scenarios(
            sources,
            Reading(quantity, levels, hours, checkpoint_interval),
            Comparing(out is not None, paired, coverage),
            model=surrogate,
            places=points,
            resources=Resources(memory=memory, progress=step),
            notify=notices.append,
            **(air if simulate is None else {}),
        )
    show_comparison(comparison)
    if out is not None and comparison.maps is not None:
        for path in export_maps(comparison.maps, out):
            wrote(path, "the maps")
    if table is not None:
        wrote(write_table(comparison, table), "the table")
    if json is not None:
        wrote(write_json(comparison, json), "the table")
    for notice in notices:
        (warn if notice.loud else note)(notice.text)
    show_problems(problems)
    exit_code(failed=len(problems), done=1)


def _read_scenarios(texts: Sequence[str]) -> list[NamedScenario]:
    """The scenarios; raises for a name that occurs twice."""
    found: list[NamedScenario] = []
    for text in texts:
        parts = None if Path(text).exists() else _FORM.fullmatch(text)
        what = text if parts is None else parts["what"]
        drought = None if parts is None else parts["drought"]
        stem = Path(what.rstrip("/")).stem
        own = f"{stem}-{drought}" if drought else stem
        name = own if parts is None else parts["name"] or own
        item = NamedScenario(name, what, drought)
        for other in found:
            if (other.what, other.drought) == (item.what, item.drought):
                raise PlumecastError(
                    f"scenarios '{other.name}' and '{name}' are both {what}"
                    f"{f'@{drought}' if drought else ''}; give another"
                )
            if other.name == name:
                raise PlumecastError(
                    f"two scenarios are named '{name}'; name them, as in other={text}"
                )
        found.append(item)
    return found


def _check_outputs(
    out: Path | None, texts: Sequence[Path | None], inputs: Sequence[str | Path | None]
) -> None:
    if out is not None:
        check_output(out, endings=FORMATS, overwrite=False, inputs=inputs)
    for path in texts:
        if path is not None:
            check_output(path, overwrite=False, inputs=inputs)


def _check_options(given: Mapping[str, Any], rasters: bool, model: Path | None) -> None:
    drawn = given["simulate"] is not None
    check_simulate(given, rasters=rasters)
    if rasters and model is None:
        raise PlumecastError(
            "rasters have no smoke; give a surrogate that predicts it with --model"
        )
    if given["drought"] is not None and not drawn and not rasters:
        raise ArgumentError(
            "drought",
            given["drought"],
            f"for a store write STORE@{given['drought']}",
            problem="is for rasters and --simulate",
        )
    winds = [name for name in ("wind_speed", "wind_from", "winds", "weather") if given[name]]
    if winds and (drawn or model is None):
        raise PlumecastError(
            f"{winds[0]}={given[winds[0]]} is for fires whose smoke is predicted from stores or "
            "rasters; leave it out"
        )


def _store(item: NamedScenario, surrogate: Surrogate | None) -> Any:
    """A store, or its fires of one drought."""
    if item.drought is None:
        return Path(item.what)
    fields = (SMOKE,) if surrogate is None else list(surrogate.inputs.names)
    try:
        return select_drought(open_snapshots(item.what, fields=fields), item.drought)
    except PlumecastError as error:
        raise error.at(f"scenario '{item.name}'") from error


def _rasters(item: NamedScenario, surrogate: Surrogate, air: Given, given: Given) -> Any:
    own = {} if item.drought is None else {"drought": item.drought}
    return raster_fires(surrogate, [item.what], **air, **{**given, **own})


def _drawn(
    named: Sequence[NamedScenario],
    surrogate: Surrogate | None,
    count: int,
    given: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Simulated fires of every scenario; with a surrogate like those of its training."""
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.simulator.ensemble import DROUGHTS
    from plumecast.workflows.fires.draw_fires import Change, draw_scenarios

    changes = {}
    for item in named:
        is_drought = item.what in DROUGHTS
        if not is_drought and not Path(item.what).is_file():
            raise PlumecastError(
                f"scenario '{item.name}': '{item.what}' is neither a drought "
                f"({', '.join(DROUGHTS)}) nor a file with fuels"
            )
        label = item.what if is_drought else item.drought
        changes[item.name] = Change(
            None if is_drought else item.what, None if label is None else (label,)
        )
    if given["drought"] is not None and any(change.droughts for change in changes.values()):
        raise ArgumentError(
            "drought",
            given["drought"],
            "leave the option out",
            problem="is for scenarios that differ in fuels, but one of these has a drought "
            "of its own",
        )
    if surrogate is not None:
        refuse_other_inputs(surrogate, "simulated fires")
    drawn = draw_scenarios(
        count, changes, with_smoke=surrogate is None, **drawing(surrogate, given)
    )
    if surrogate is not None:
        for name, fires in drawn.items():
            note_other_settings(surrogate, fires.settings, name)
    return drawn
