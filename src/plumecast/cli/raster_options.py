"""Options of commands that read arrival-time rasters, and the grid they are put on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import FORMATS, UNITS
from plumecast.sources.rasters import HORIZON as MOST_HOURS
from plumecast.surrogate.file import is_saved
from plumecast.surrogate.surrogate import load_surrogate

FORMAT = typer.Option(None, help=f"Who wrote the rasters: {', '.join(FORMATS)}.")
UNIT = typer.Option(None, help=f"Unit of the arrival times: {', '.join(UNITS)}.")
CRS = typer.Option(
    None, help="CRS of files that carry none, e.g. EPSG:5070; 'local': already the grid's."
)
HOURS = typer.Option(
    None, help="Hours since ignition to look at, e.g. 6,12,18; default: the latest arrival."
)
DROUGHT = typer.Option(None, help="Drought label of all these fires.")
NODATA = typer.Option(None, help="Another value that means unburned.")
VARIABLE = typer.Option(None, help="The variable of NetCDF files with several.")
HORIZON = typer.Option(
    MOST_HOURS, help="Arrivals later than this (hours) are refused as a wrong unit."
)
AGGREGATE = typer.Option("mean", help="Raster cells to grid cells: mean (by area) or max.")
BATCH = typer.Option(64, help="Files in memory, and in a commit, at a time.")


NAMES = (
    "format",
    "unit",
    "crs",
    "hours",
    "drought",
    "nodata",
    "variable",
    "horizon",
    "aggregate",
    "batch",
)
"""What a command that reads rasters calls these options."""


def chosen(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Of all parameters of a command those above, as the readers take them."""
    given = {name: parameters[name] for name in NAMES}
    hours, batch = given["hours"], given["batch"]
    if batch < 1:
        raise PlumecastError(f"batch={batch}; give at least one")
    try:
        given["hours"] = None if hours is None else [float(part) for part in hours.split(",")]
    except ValueError:
        raise PlumecastError(f"hours '{hours}' are not numbers separated by commas") from None
    return given


def grid_of(path: Path) -> xr.Dataset:
    """The grid of a saved surrogate's input, or of a store."""
    if path.is_file() and is_saved(path):
        return load_surrogate(path).grid
    return open_snapshots(path, fields=(FIRE,))
