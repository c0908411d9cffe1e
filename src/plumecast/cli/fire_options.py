"""Options about the fires themselves: arrival-time rasters, landscapes and fires of --simulate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, SIMULATION
from plumecast.cli.options import Given, numbers
from plumecast.cli.show import note
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import RasterOptions
from plumecast.surrogate.file import is_saved
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate

STEERING_STRENGTH = 1.2
"""The simulator's default. Importing it from there would need the `simulator` extra."""

_STEERING = (
    "How strongly terrain steers the wind; 0 is not at all. At s, wind along a straight deep "
    "valley blows 1 + s/2 times as fast, and wind across it 1 − s/2 times."
)
STEERING = typer.Option(None, show_default=f"{STEERING_STRENGTH:g}", help=_STEERING)
STEERING_AS_TRAINED = typer.Option(
    None, show_default=f"as in training, or {STEERING_STRENGTH:g}", help=_STEERING
)
CHECKPOINTS_AS_TRAINED = typer.Option(
    None,
    show_default="as in training, or 15",
    help="With --simulate: snapshots of each fire, six hours apart.",
)

GROUND = ("dem", "fuels", "bare_where_missing", "steering")
OPTIONS = ("preset", "seed", "checkpoints", *GROUND)
"""Options of --simulate; fuels are those of rasters too."""

AS_TRAINED = ("seed", "checkpoints", "steering")
"""Options whose default is the value of the training fires."""


def landscape_options(
    dem: Path = typer.Option(None, help="GeoTIFF of elevation (m) instead of a synthetic one."),
    fuels: Path = typer.Option(None, help="GeoTIFF of Scott & Burgan fuel codes (FBFM40)."),
    bare_where_missing: bool = typer.Option(
        False, "--bare-where-missing", help="Treat missing raster values as bare ground."
    ),
    steering: float = STEERING,
) -> None:
    """The ground of simulated fires, and its effect on the wind."""


FUELS_OF_STORES = "a store has a fuel load of its own: ingest rasters --fuels writes it"
"""The next step for a user who gives fuels for the fires of a store."""


def option_of(settings: type[Any], name: str, *names: str, **shown: Any) -> Any:
    """A field of a settings class, with its default and help, as an option of the command line."""
    (field,) = (field for field in fields(settings) if field.name == name)
    return typer.Option(field.default, *names, help=field.metadata["help"], **shown)


def raster_options(
    format: str = option_of(RasterOptions, "format"),
    unit: str = option_of(RasterOptions, "unit"),
    crs: str = option_of(RasterOptions, "crs", show_default="that of the grid"),
    hours: str = option_of(
        RasterOptions, "hours", show_default="the latest arrival; stores: their snapshots"
    ),
    drought: str = option_of(RasterOptions, "drought"),
    nodata: float = option_of(RasterOptions, "nodata"),
    variable: str = option_of(RasterOptions, "variable"),
    horizon: float = option_of(RasterOptions, "horizon"),
    aggregate: str = option_of(RasterOptions, "aggregate"),
    fuels: Path = typer.Option(
        None,
        help="Raster of the Scott & Burgan fuels (FBFM40) that burn; surrogates that were trained "
        "with a fuel load release smoke by it.",
    ),
    batch: int = typer.Option(64, help="Files that are read, and committed, together."),
) -> None:
    """How to read arrival-time rasters."""


def is_raster(given: Given) -> bool:
    """Whether the options say that the fires are rasters."""
    return given["format"] is not None or given["unit"] is not None


def read_raster_options(given: Given) -> dict[str, Any]:
    """The raster options as the readers take them."""
    hours = given["hours"]
    return {**given, "hours": None if hours is None else numbers(hours, "--hours")}


def raster_reports(problems: list[str]) -> dict[str, Any]:
    """How readers of rasters report: problems are collected, notes shown, both name options."""
    return {
        "on_error": lambda path, message: problems.append(message),
        "on_note": note,
        "words": in_options,
    }


def in_options(error: PlumecastError) -> str:
    """The message of an error of a reader, with the option instead of the argument."""
    if isinstance(error, ArgumentError):
        return error.worded(f"--{error.argument}")
    return str(error)


def grid_of(path: Path) -> xr.Dataset:
    """The grid of a saved surrogate's input, or of a store."""
    if path.is_file() and is_saved(path):
        return load_surrogate(path).grid
    return open_snapshots(path, fields=(FIRE,))


def check_simulate(given: Mapping[str, Any], *, rasters: bool) -> None:
    """Raise for options of --simulate without it, and for those of rasters with it."""
    if given["simulate"] is not None:
        if rasters:
            raise PlumecastError("--format and --unit are for rasters, not for --simulate")
        return
    if given["fuels"] is not None and not rasters:
        raise ArgumentError(
            "fuels", given["fuels"], FUELS_OF_STORES, problem="is for --simulate and for rasters"
        )
    for name in OPTIONS:
        if name != "fuels" and given[name] is not None and given[name] is not False:
            raise PlumecastError(f"--{name.replace('_', '-')} is for --simulate; leave it out")


def drawing(surrogate: Surrogate | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `draw_fires` and `draw_scenarios` from the options.

    With a surrogate, the fires are like those of its training, as far as it is known how those were
    simulated; options that were given replace these settings. Without one, each fire has a drawn
    weather.
    """
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.simulator.ensemble import DROUGHTS
    from plumecast.simulator.weather import OWN
    from plumecast.workflows.simulate import WEATHER_KIND, Ground

    known: dict[str, Any] = {}
    weather: dict[str, Any] = {"weathers": 1}
    if surrogate is not None:
        recorded = simulation_of(surrogate)
        known = {name: recorded[name] for name in AS_TRAINED if name in recorded}
        known["like"] = surrogate.grid
        trained = getattr(surrogate.operator, "labels", ()) or DROUGHTS
        if recorded.get(WEATHER_KIND) != OWN and OWN not in trained:
            weather = {"droughts": [name for name in DROUGHTS if name in trained]}
    if given["drought"] is not None:
        weather = {"droughts": [name.strip() for name in given["drought"].split(",")]}
    chosen = known | {name: given[name] for name in OPTIONS if given[name] is not None}
    ground = {name: chosen.pop(name) for name in GROUND if name in chosen}
    return {**weather, **chosen, "ground": Ground(**ground)}


def note_other_settings(
    surrogate: Surrogate, settings: Mapping[str, Any], scenario: str | None = None
) -> None:
    """Tell which settings of simulated fires the training fires did not have."""
    recorded = simulation_of(surrogate)
    where = "" if scenario is None else f"scenario '{scenario}': "
    for name, value in settings.items():
        if recorded and recorded.get(name, value) != value:
            note(
                f"{where}the training fires were simulated with {name}={recorded[name]}, these "
                f"with {value}: the surrogate has not learned from such fires"
            )


def simulation_of(surrogate: Surrogate) -> Mapping[str, Any]:
    """How the training fires were simulated; empty if they were not, or if it is not recorded."""
    return surrogate.training.get(SIMULATION) or {}
