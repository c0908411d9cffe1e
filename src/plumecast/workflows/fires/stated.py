"""What the user states about the air of fires: their winds, or their weather."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeAlias

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.data.conditions.covariates import STATE_WIND, WIND
from plumecast.data.conditions.weather import (
    SOURCE_ATTRIBUTES,
    STATE_WEATHER,
    WEATHER_NAMES,
    has_weather,
)
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.weather import Weather, WeatherGiven, as_weather, with_weather
from plumecast.workflows.fires.winds import Winds, WindsGiven, as_winds, with_winds

Stated: TypeAlias = Winds | Weather
"""Winds or weather of fires, checked."""


def stated(winds: WindsGiven | None, weather: WeatherGiven | None) -> Stated | None:
    """The winds or the weather that was given; None if neither was."""
    if winds is not None and weather is not None:
        raise PlumecastError(
            "both winds and weather are given; give one, because the winds follow from the weather"
        )
    if weather is not None:
        return as_weather(weather)
    return None if winds is None else as_winds(winds)


def with_stated(fires: xr.Dataset, given: Stated | None) -> xr.Dataset:
    """The fires with the winds or the weather that was given for them."""
    if given is None:
        return fires
    return with_weather(fires, given) if isinstance(given, Weather) else with_winds(fires, given)


def is_for(given: Stated, names: Collection[str]) -> bool:
    """Whether winds or weather are those of all fires, or of one of these."""
    if isinstance(given, Weather):
        return True
    return given.every_fire is not None or bool(set(names) & set(given.fires))


def winds_needed(surrogate: Surrogate) -> tuple[str, ...]:
    """The wind coordinates that predictions need: in the wind frame both, or as covariates."""
    if surrogate.operator.needs_wind:
        return WIND
    return tuple(item.name for item in surrogate.covariates if item.name in WIND)


def check_stated(surrogate: Surrogate, variables: Iterable[object], source: str) -> None:
    """Raise before any work if a surrogate needs a wind or a weather that the fires do not have.

    A mean wind is enough for the weather: it is then constant, with the default profile.
    """
    known = set(variables)
    if surrogate.operator.needs_weather and not ({*WEATHER_NAMES} <= known or {*WIND} <= known):
        raise PlumecastError(
            f"{source}: the surrogate was trained with the weather of every fire, and these fires "
            f"have none; {STATE_WEATHER}"
        )
    missing = sorted(set(winds_needed(surrogate)) - known, reverse=True)
    if missing:
        raise PlumecastError(
            f"{source}: the surrogate needs the wind of every fire, and '{missing[0]}' is missing; "
            f"{STATE_WIND}"
        )


def use_of(surrogate: Surrogate, given: Stated | None) -> str | None:
    """What a surrogate makes of what was given, if it is less, or other, than a user expects."""
    if given is None:
        return None
    if isinstance(given, Weather):
        if surrogate.operator.needs_weather:
            return None
        if winds_needed(surrogate):
            return (
                "the surrogate was trained without hourly weather: of the weather that you gave it "
                "uses only the mean 10 m wind"
            )
        return "the surrogate was trained without weather and makes no use of the one that you gave"
    if not surrogate.operator.needs_weather and not winds_needed(surrogate):
        return "the surrogate does not use the wind, so the winds that you gave change nothing"
    return None


CONSTANT = (
    "constant mean wind since ignition; above 10 m the default profile and boundary layer of "
    "pc.constant_weather"
)
"""What a surrogate that uses weather makes of a mean wind."""


def weather_attributes(surrogate: Surrogate, fires: xr.Dataset) -> dict[str, str]:
    """Attributes of a prediction: where its weather came from, and what was filled in."""
    if not surrogate.operator.needs_weather:
        return {}
    if not has_weather(fires):
        return {"weather_kind": "constant", "weather_comment": CONSTANT}
    return {key: str(fires.attrs[key]) for key in SOURCE_ATTRIBUTES if key in fires.attrs}


def check_raster_fires(
    given: Stated | None,
    files: Iterable[Path],
    format: str | None,
    done: Collection[str] = (),
) -> None:
    """Raise before any file is read if a table lacks a raster, whose fire is named after it.

    LANDIS-II files may hold several fires; these are checked when they are read.
    """
    if given is not None and format != "landis":
        given.check_fires({path.stem for path in files} - set(done))
