"""Options about the fires themselves: arrival-time rasters, and the simulator's landscape."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.cli.options import Given, numbers
from plumecast.cli.show import note
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import FORMATS, HORIZON, UNITS
from plumecast.surrogate.file import is_saved
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.fires.winds import Winds, as_winds, read_winds, winds_needed

_ARGUMENTS = "crs|horizon|nodata|unit|variable"  # that errors of the readers name

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


def landscape_options(
    dem: Path = typer.Option(None, help="GeoTIFF of elevation (m) instead of a synthetic one."),
    fuels: Path = typer.Option(None, help="GeoTIFF of Scott & Burgan fuel codes (FBFM40)."),
    bare_where_missing: bool = typer.Option(
        False, "--bare-where-missing", help="Treat missing raster values as bare ground."
    ),
    steering: float = STEERING,
) -> None:
    """The ground of simulated fires, and its effect on the wind."""


def raster_options(
    format: str = typer.Option(None, help=f"Program that wrote the rasters: {', '.join(FORMATS)}."),
    unit: str = typer.Option(None, help=f"Unit of the arrival times: {', '.join(UNITS)}."),
    crs: str = typer.Option(
        None,
        help="Coordinate system of files that state none, e.g. EPSG:5070; 'local' if it is that "
        "of the grid.",
        show_default="that of the grid",
    ),
    hours: str = typer.Option(
        None,
        help="Hours since ignition of the snapshots, e.g. 6,12,18.",
        show_default="the latest arrival",
    ),
    drought: str = typer.Option(None, help="Drought label of fires that have none."),
    nodata: float = typer.Option(None, help="Another value that means unburned."),
    variable: str = typer.Option(None, help="Variable to read from NetCDF files with several."),
    horizon: float = typer.Option(
        HORIZON, help="Reject arrival times above this (hours): the unit is probably wrong."
    ),
    aggregate: str = typer.Option(
        "mean", help="How raster cells become grid cells: mean (by area) or max."
    ),
    batch: int = typer.Option(64, help="Files that are read, and committed, together."),
) -> None:
    """How to read arrival-time rasters."""


def wind_options(
    wind_speed: float = typer.Option(
        None, help="Mean 10 m wind speed of all these fires since ignition (m/s); with --wind-from."
    ),
    wind_from: float = typer.Option(
        None, help="Direction that this wind comes from, in degrees from north; 270 is a west wind."
    ),
    winds: Path = typer.Option(
        None,
        help="CSV table of the wind of every fire: fire_id, wind_speed, wind_from_direction and "
        "optionally hours.",
    ),
) -> None:
    """The wind of fires whose files do not contain it; it replaces the wind that they have."""


def read_wind_options(given: Given) -> Winds | None:
    """The winds that the options state; None if they state none."""
    speed, direction, table = given["wind_speed"], given["wind_from"], given["winds"]
    if table is not None:
        if speed is not None or direction is not None:
            raise PlumecastError(
                f"give either --winds {table} or --wind-speed and --wind-from, not both"
            )
        return read_winds(table)
    if (speed is None) != (direction is None):
        stated = f"--wind-speed={speed:g}" if direction is None else f"--wind-from={direction:g}"
        other = "--wind-from" if direction is None else "--wind-speed"
        raise PlumecastError(f"{stated} needs {other} too")
    return None if speed is None else as_winds((speed, direction))


def note_unused_winds(winds: Winds | None, surrogate: Surrogate) -> None:
    """Say so if winds were given to a surrogate that does not use them."""
    if winds is not None and not winds_needed(surrogate):
        note("the surrogate does not use the wind, so the winds that you gave change nothing")


def is_raster(given: Given) -> bool:
    """Whether the options say that the fires are rasters."""
    return given["format"] is not None or given["unit"] is not None


def read_raster_options(given: Given) -> dict[str, Any]:
    """The raster options as the readers take them."""
    if given["batch"] < 1:
        raise PlumecastError(f"--batch={given['batch']}; give at least 1")
    hours = given["hours"]
    return {**given, "hours": None if hours is None else numbers(hours, "--hours")}


def in_options(message: str, like: str = "the surrogate") -> str:
    """A reader's message in the words of a command: options, and what `like` is there."""
    named = re.sub(rf"(?<![\w-])({_ARGUMENTS})=(?=\S)", r"--\1=", message)
    return named.replace("`like`", like)


def grid_of(path: Path) -> xr.Dataset:
    """The grid of a saved surrogate's input, or of a store."""
    if path.is_file() and is_saved(path):
        return load_surrogate(path).grid
    return open_snapshots(path, fields=(FIRE,))
