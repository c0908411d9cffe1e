"""`plumecast compare`: the differences of scenarios, with intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import published_together
from plumecast.base.names import SMOKE, shown_units
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    FireReader,
    check_simulate,
    drawing,
    drawn_options,
    note_other_settings,
    raster_options,
    read_weather_options,
    refuse_weather,
    wind_options,
)
from plumecast.cli.options import POINTS, Given, reading_of, reading_options, with_options
from plumecast.cli.show import count, counted, note, say, table, wrote
from plumecast.compute.resources import Resources
from plumecast.data.schema import select_drought
from plumecast.data.store import open_snapshots
from plumecast.impact.compare import Comparing, compare_scenarios
from plumecast.impact.comparison import SCENARIO, Comparison, export_maps, write_json, write_table
from plumecast.impact.difference import MOST
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.export import FORMATS
from plumecast.workflows.statistics.point_table import without_noise

_FORM = re.compile(r"(?:(?P<name>[^=/\\]+)=)?(?P<what>.+?)(?:@(?P<drought>[^@/\\]+))?")
_NONE = "–"


class NamedScenario(NamedTuple):
    """One scenario of the command line, [NAME=]WHAT[@DROUGHT]."""

    name: str
    what: str  # a path, or a drought
    drought: str | None


@with_options(
    reading=reading_options, comparing=Comparing, rasters=raster_options, drawn=drawn_options,
    wind=wind_options,
)  # fmt: skip
def command(
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
    points: Path = POINTS,
    out: Path = typer.Option(
        None, "--out", "-o", help="Write maps of the differences: .nc, .zarr, or .tif for each map."
    ),
    table: Path = typer.Option(None, help="Write the table of places to this CSV file."),
    json: Path = typer.Option(None, help="Write the table of places to this JSON file."),
    *,
    reading: Given,
    comparing: Comparing,
    rasters: Given,
    drawn: Given,
    wind: Given,
    memory: str = typer.Option(None, help="Memory limit of the maps.", show_default="4GB"),
) -> None:
    """Compare the smoke of scenarios at places and in every cell, with intervals.

    For each scenario and place (without --points for the mean over the grid): the difference from
    the first scenario, its interval, the chance that the mean is lower, the share of fires with
    less smoke, and how many more ignitions would settle the sign. Fires of the same ignition are
    compared as pairs, which needs far fewer fires. Only the last snapshot of every fire is used.
    Intervals account for the sampling of fires, not for the error of a surrogate. Where a few fires
    make most of the difference, they are too short and are marked "rough".

    Example: `plumecast compare before=untreated.zarr after=treated.zarr --points towns.csv` or
    `plumecast compare fires.zarr@low fires.zarr@high --model smoke.plume -o diff.nc` or
    `plumecast compare --simulate 100 --dem dem.tif untreated=fuels.tif treated=thinned.tif
    --points towns.csv`
    """
    named = _read_scenarios(scenarios)
    inputs = [model, points, drawn["dem"], drawn["fuels"], *(item.what for item in named)]
    for path, endings in ((out, FORMATS), (table, ()), (json, ())):
        if path is not None:
            check_output(path, endings=endings, overwrite=False, inputs=inputs)
    asked, reader = reading_of(reading), FireReader(rasters, read_weather_options(wind))
    _check_options(reader, drawn, wind, model)
    surrogate = None if model is None else load_surrogate(model)
    weather: dict[str, Any] = {}
    if surrogate is not None and drawn["simulate"] is None:
        reader.note_use(surrogate)
    if drawn["simulate"] is not None:
        sources = _drawn(named, surrogate, drawn)
    elif surrogate is not None and reader.reads_rasters:
        sources = {
            item.name: reader.read(
                surrogate, [item.what], **({"drought": item.drought} if item.drought else {})
            )
            for item in named
        }
    else:
        sources = {item.name: _store(item, surrogate) for item in named}
        asked, weather = replace(asked, hours=reader.hours), {"weather": reader.weather}
    with counted("comparing") as step:
        comparison = compare_scenarios(
            sources,
            asked,
            replace(comparing, maps=out is not None),
            model=surrogate,
            places=points,
            resources=Resources(memory=memory, progress=step),
            notify=reader.notices.append,
            **weather,
        )
    show_comparison(comparison)
    written: list[tuple[Path, str]] = []
    with published_together():
        if out is not None and comparison.maps is not None:
            written += [(path, "the maps") for path in export_maps(comparison.maps, out)]
        if table is not None:
            written.append((write_table(comparison, table), "the table"))
        if json is not None:
            written.append((write_json(comparison, json), "the table"))
    for path, what in written:
        wrote(path, what)
    reader.finish(done=1)


def _read_scenarios(texts: Sequence[str]) -> list[NamedScenario]:
    """The scenarios; raises for a name that occurs twice."""
    named: list[NamedScenario] = []
    for text in texts:
        parts = None if Path(text).exists() else _FORM.fullmatch(text)
        what = text if parts is None else parts["what"]
        drought = None if parts is None else parts["drought"]
        stem = Path(what.rstrip("/")).stem
        default = f"{stem}-{drought}" if drought else stem
        name = default if parts is None else parts["name"] or default
        item = NamedScenario(name, what, drought)
        for other in named:
            if (other.what, other.drought) == (item.what, item.drought):
                raise PlumecastError(
                    f"scenarios '{other.name}' and '{name}' are both {what}"
                    f"{f'@{drought}' if drought else ''}; give another"
                )
            if other.name == name:
                raise PlumecastError(
                    f"two scenarios are named '{name}'; name them, as in other={text}"
                )
        named.append(item)
    return named


def _check_options(reader: FireReader, drawn: Given, wind: Given, model: Path | None) -> None:
    check_simulate(drawn, wind, rasters=reader.reads_rasters)
    if reader.reads_rasters and model is None:
        raise PlumecastError(
            "rasters have no smoke; give a surrogate that predicts it with --model"
        )
    drought = drawn["drought"]
    if drought is not None and drawn["simulate"] is None and not reader.reads_rasters:
        raise ArgumentError(
            "drought",
            drought,
            f"for a store write STORE@{drought}",
            problem="is for rasters and --simulate",
        )
    if model is None:
        refuse_weather(wind)


def _store(item: NamedScenario, surrogate: Surrogate | None) -> Any:
    """A store, or its fires of one drought."""
    if item.drought is None:
        return Path(item.what)
    fields = (SMOKE,) if surrogate is None else list(surrogate.inputs.names)
    try:
        return select_drought(open_snapshots(item.what, fields=fields), item.drought)
    except PlumecastError as error:
        raise error.at(f"scenario '{item.name}'") from error


def _drawn(
    named: Sequence[NamedScenario], surrogate: Surrogate | None, drawn: Given
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
    if drawn["drought"] is not None and any(change.droughts for change in changes.values()):
        raise ArgumentError(
            "drought",
            drawn["drought"],
            "leave the option out",
            problem="is for scenarios that differ in fuels, but one of these has a drought "
            "of its own",
        )
    number, with_smoke = drawn["simulate"], surrogate is None
    fires = draw_scenarios(number, changes, with_smoke=with_smoke, **drawing(surrogate, drawn))
    if surrogate is not None:
        for name, drawn_fires in fires.items():
            note_other_settings(surrogate, drawn_fires.settings, name)
    return fires


def show_comparison(comparison: Comparison) -> None:
    """One table for each scenario against the reference, and the notes."""
    places = comparison.places.map(without_noise, keep_attrs=True)
    level = 100 * places.attrs["coverage"]
    unit = shown_units(places.attrs["units"])
    say(f"{places.attrs['quantity']} ({unit}) at the last snapshot of each fire, mean over fires")
    for name in places[SCENARIO].values:
        one = places.sel({SCENARIO: name})
        columns = [
            "", comparison.reference, str(name), "difference", f"{level:g} % interval", "percent",
            f"its {level:g} % interval", "chance lower", "lower / higher in", "more ignitions",
        ]  # fmt: skip
        rows = [
            _row(one.sel(place=place), places["chance"].size > 1) for place in one["place"].values
        ]
        compared = count(int(one["ignitions"]), "ignition")
        if bool(one["paired"]):
            compared = f"{count(int(one['pairs']), 'pair')} of {compared}"
        else:
            compared = f"unpaired, at least {compared} each"
        table(f"{name} − {comparison.reference}: {compared}", columns, rows)
        for level_ in one["threshold"].values if "threshold" in one.dims else ():
            _show_exceedance(comparison.reference, str(name), one.sel(threshold=level_), unit)
    tests = places["chance"].notnull().sum().item()
    if tests > 1:
        say(
            f"intervals hold for one place at a time; * marks what is clear at {level:g} % among "
            f"all {tests} together (Holm)"
        )
    for text in comparison.notes:
        note(text)


def _row(place: xr.Dataset, several: bool) -> list[str]:
    """Cells of one place; a star marks what is clear among several."""
    value = {str(name): item.item() for name, item in place.data_vars.items() if not item.dims}
    bounded = math.isfinite(value["relative_lower"])  # a ratio to a mean near 0 tells nothing
    return [
        f"{place['place'].item()}{' *' if several and value['clear'] else ''}",
        _number(value["reference_mean"]),
        _number(value["scenario_mean"]),
        _number(value["difference"], "+"),
        _interval(value["lower"], value["upper"]),
        _number(100 * value["relative"] if bounded else math.nan, "+"),
        _interval(100 * value["relative_lower"], 100 * value["relative_upper"]),
        _chance(value["chance"]),
        _NONE if math.isnan(value["better"]) else f"{value['better']:.0%} / {value['worse']:.0%}",
        _more(value),
    ]


def _show_exceedance(reference: str, name: str, one: xr.Dataset, unit: str) -> None:
    rows = []
    for place in one["place"].values:
        at = one.sel(place=place)
        value = {key: 100 * float(at[key]) for key in at.data_vars if "exceedance" in str(key)}
        rows.append([
            str(place), _number(value["reference_exceedance"]),
            _number(value["scenario_exceedance"]), _number(value["exceedance_difference"], "+"),
            _interval(value["exceedance_lower"], value["exceedance_upper"]),
        ])  # fmt: skip
    level = 100 * one.attrs["coverage"]
    columns = ["", reference, name, "difference", f"{level:g} % interval"]
    table(f"percent of fires above {float(one['threshold']):g} {unit}", columns, rows)


def _number(value: float, sign: str = "") -> str:
    return _NONE if not math.isfinite(value) else f"{value:{sign}.3g}"


def _interval(low: float, high: float) -> str:
    if math.isnan(low):
        return _NONE
    if not math.isfinite(low):
        return "unknown"
    return f"{low:+.3g} … {high:+.3g}"


def _chance(value: float) -> str:
    """A probability, never rounded to certainty."""
    if math.isnan(value):
        return _NONE
    return "> 0.999" if value > 0.999 else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _more(value: dict[str, Any]) -> str:
    if value["difference"] == 0.0 and math.isnan(value["lower"]):
        return "no fire differs"
    more = value["more_ignitions"]
    if more == 0:
        return "rough" if value["rough"] else "settled"
    if math.isinf(value["lower"]):
        return _NONE
    return f"not with {MOST:,}" if math.isinf(more) else f"{more:.0f}"
