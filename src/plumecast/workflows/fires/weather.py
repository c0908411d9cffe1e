"""The weather that a user gives for fires, against what a surrogate and its files need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import WEATHER_NAMES, WIND
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.checks import check_fires, is_hourly
from plumecast.weather.read import WeatherLike, as_weather
from plumecast.weather.snapshots import (
    SOURCE_ATTRIBUTES,
    STATE_WEATHER,
    has_weather,
    with_weather,
)

CONSTANT = (
    "constant mean wind since ignition; above 10 m the default profile and boundary layer of "
    "pc.constant_weather"
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
