"""Options about the fires themselves: arrival-time rasters, and the simulator's landscape."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE
from plumecast.cli.options import Given, numbers
from plumecast.cli.show import note
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import RasterOptions
from plumecast.surrogate.file import is_saved
from plumecast.surrogate.load import load_surrogate

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
