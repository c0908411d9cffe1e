"""Options about the fires themselves: arrival-time rasters, and the simulator's landscape."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.names import FIRE
from plumecast.cli.options import Given, numbers
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import FORMATS, HORIZON, UNITS
from plumecast.surrogate.file import is_saved
from plumecast.surrogate.load import load_surrogate

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
CHECKPOINTS_AS_TRAINED = typer.Option(
    None,
    show_default="as in training, or 15",
    help="With --simulate: snapshots of each fire, six hours apart.",
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


FUELS_OF_STORES = "a store has a fuel load of its own: ingest rasters --fuels writes it"
"""The next step for a user who gives fuels for the fires of a store."""


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
        help="Hours since ignition to read the fires at, e.g. 1,2.5,6; any hours.",
        show_default="the latest arrival; stores: their snapshots",
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


def in_options(message: str, like: str = "the surrogate") -> str:
    """A reader's message in the words of a command: options, and what `like` is there."""
    named = re.sub(rf"(?<![\w-])({_ARGUMENTS})=(?=\S)", r"--\1=", message)
    return named.replace("`like`", like)


def grid_of(path: Path) -> xr.Dataset:
    """The grid of a saved surrogate's input, or of a store."""
    if path.is_file() and is_saved(path):
        return load_surrogate(path).grid
    return open_snapshots(path, fields=(FIRE,))
