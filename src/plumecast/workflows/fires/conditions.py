"""Weather and fuels that a user gives for fires, against what a surrogate and the fires need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, GROUND, SNAPSHOT, WEATHER_NAMES, WIND
from plumecast.compute.arrays import Array
from plumecast.sources.rasters.georeference import read_fuel_load
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.fires import with_weather
from plumecast.weather.read import WeatherLike, as_weather
from plumecast.weather.series import check_fires, is_hourly
from plumecast.weather.snapshots import SOURCE_ATTRIBUTES, STATE_WEATHER, has_weather

CONSTANT = (
    "constant mean wind since ignition; above 10 m the default profile and boundary layer of "
    "pc.weather.constant_weather"
)
"""What a surrogate that uses weather makes of a mean wind."""


def user_weather(weather: WeatherLike | None) -> xr.Dataset | None:
    """The weather that a user gave, read and checked; None if none was."""
    return None if weather is None else as_weather(weather)


def with_user_weather(fires: xr.Dataset, weather: xr.Dataset | None) -> xr.Dataset:
    """The fires with the weather that was given for them; without one, as they are."""
    return fires if weather is None else with_weather(fires, weather)


def winds_needed(surrogate: Surrogate) -> tuple[str, ...]:
    """The wind coordinates that predictions need: in the wind frame both, or as covariates."""
    if surrogate.operator.needs_wind:
        return WIND
    return tuple(item.name for item in surrogate.covariates if item.name in WIND)


def check_has_weather(surrogate: Surrogate, variables: Iterable[object], source: str) -> None:
    """Raise before any work if a surrogate needs a wind or a weather that the fires do not have.

    A mean wind is enough for the weather: it is then constant, with the default profile.
    """
    present = set(variables)
    if surrogate.operator.needs_weather and not ({*WEATHER_NAMES} <= present or {*WIND} <= present):
        raise PlumecastError(
            f"{source}: the surrogate was trained with the weather of every fire, and these fires "
            f"have none; {STATE_WEATHER}"
        )
    missing = sorted(set(winds_needed(surrogate)) - present, reverse=True)
    if missing:
        raise PlumecastError(
            f"{source}: the surrogate needs the wind of every fire, and '{missing[0]}' is missing; "
            f"{STATE_WEATHER}"
        )


def ignored_weather(surrogate: Surrogate, weather: xr.Dataset | None) -> str | None:
    """Note when a surrogate ignores or simplifies the weather that was given."""
    if weather is None or surrogate.operator.needs_weather:
        return None
    if not winds_needed(surrogate):
        what = "weather" if is_hourly(weather) else "wind"
        return f"the surrogate does not use the {what}, so that the one you gave changes nothing"
    if is_hourly(weather):
        return (
            "the surrogate was trained without hourly weather: of the weather that you gave it "
            "uses only the mean 10 m wind"
        )
    return None


def refuse_other_inputs(surrogate: Surrogate, source: str) -> None:
    """Raise if a surrogate has other inputs than the time since ignition."""
    if surrogate.inputs.names != (FIRE,):
        raise PlumecastError(
            f"the surrogate needs {', '.join(surrogate.inputs.names)}, but {source} give only "
            f"{FIRE}; predict from a store instead"
        )


def weather_attributes(surrogate: Surrogate, fires: xr.Dataset) -> dict[str, str]:
    """Attributes of a prediction: where its weather came from, and what was filled in."""
    if not surrogate.operator.needs_weather:
        return {}
    if not has_weather(fires):
        return {"weather_kind": "constant", "weather_comment": CONSTANT}
    return {key: str(fires.attrs[key]) for key in SOURCE_ATTRIBUTES if key in fires.attrs}


def check_raster_fires(
    weather: xr.Dataset | None,
    files: Iterable[Path],
    format: str | None,
    done: Collection[str] = (),
) -> None:
    """Raise before any file is read if a weather lacks a raster, whose fire is named after it.

    LANDIS-II files may hold several fires; these are checked when they are read.
    """
    if weather is not None and format != "landis":
        check_fires(weather, {path.stem for path in files} - set(done))


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
    fuels = as_fuels(fuels, snapshots)
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
    (entry,) = GROUND
    load = np.nan_to_num(fuels.load, nan=0.0)
    return snapshots.drop_vars(entry.name, errors="ignore").assign(
        {entry.name: (entry.dims, load, entry.attrs)}
    )


def use_of_fuels(surrogate: Surrogate, fuels: FuelsGiven | None) -> str | None:
    """What a surrogate makes of fuels that were given, if they change nothing."""
    if fuels is None or surrogate.operator.uses_fuel:
        return None
    return (
        "the surrogate was trained without the fuel load of its fires, so the fuels that you gave "
        "change nothing"
    )


def with_conditions(
    weather: xr.Dataset | None, fuels: Fuels | None, fires: xr.Dataset
) -> xr.Dataset:
    """The fires with the weather and the fuels that were given for them."""
    fires = with_user_weather(fires, weather)
    return fires if fuels is None else with_fuels(fires, fuels)
