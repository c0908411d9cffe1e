"""Fuels that the user states: a raster of fuel models → the fuel load of fires."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, GROUND, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.sources.rasters.georeference import read_fuel_load
from plumecast.surrogate.surrogate import Surrogate


@dataclass(frozen=True, slots=True)
class Fuels:
    """Fuel load of the cells of a grid."""

    source: str  # the file, for messages
    load: Array  # (ny, nx), kg m⁻²; NaN where it is unknown


FuelsGiven: TypeAlias = Fuels | str | Path
"""A raster of Scott and Burgan fuels, or what was read from it."""


def as_fuels(fuels: FuelsGiven, like: xr.Dataset, crs: Any = None) -> Fuels:
    """Read the raster on the grid of `like`; `crs` is that of a file without one."""
    if isinstance(fuels, Fuels):
        return fuels
    return Fuels(str(fuels), read_fuel_load(fuels, like, crs=crs))


def with_fuels(snapshots: xr.Dataset, fuels: FuelsGiven) -> xr.Dataset:
    """Snapshots with the fuel load of a raster of Scott and Burgan fuels (FBFM40).

    The load of a cell is the area mean over the raster. It replaces that of the snapshots; 0 where
    the raster has no fuel or no value. Raises if a fire burns where the raster has no value, or
    only where nothing burns: the raster is then of another place.
    """
    given = as_fuels(fuels, snapshots)
    _check_burned(snapshots, given)
    (entry,) = GROUND
    load = np.nan_to_num(given.load, nan=0.0)
    return snapshots.drop_vars(entry.name, errors="ignore").assign(
        {entry.name: (entry.dims, load, entry.attrs)}
    )


def _check_burned(snapshots: xr.Dataset, fuels: Fuels) -> None:
    """Raise at the first snapshot that burns where the load is unknown, or nowhere above 0."""
    burned = snapshots[FIRE].transpose(SNAPSHOT, "y", "x").values > 0.0
    names = snapshots["fire_id"].values.astype(str)
    unknown = (burned & np.isnan(fuels.load)).sum(axis=(1, 2))
    if unknown.any():
        row = int(np.argmax(unknown > 0))
        raise PlumecastError(
            f"{fuels.source} has no fuel in {unknown[row]} of the {burned[row].sum()} cells where "
            f"fire '{names[row]}' burns; give a raster that covers the fires"
        )
    fuelled = (burned & (fuels.load > 0.0)).any(axis=(1, 2)) | ~burned.any(axis=(1, 2))
    if not fuelled.all():
        row = int(np.argmin(fuelled))
        raise PlumecastError(
            f"fire '{names[row]}' burns only where {fuels.source} has ground that does not burn; "
            "check its CRS and the place of the fire"
        )


def use_of_fuels(surrogate: Surrogate, fuels: FuelsGiven | None) -> str | None:
    """What a surrogate makes of fuels that were given, if they change nothing."""
    if fuels is None or surrogate.operator.uses_fuel:
        return None
    return (
        "the surrogate was trained without the fuel load of its fires, so the fuels that you gave "
        "change nothing"
    )
