"""What the fires of a store have in common: winds, weather, smoke scheme and fuel map.

The weather of a store has one axis of hours, 0 to a whole number of days. The weather of a shorter
fire is continued by its last hour, which no snapshot of it uses. A longer fire extends the axis:
the store is written again, in one commit. A fuel map is kept while all fires have the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import WEATHER_HOUR, WIND
from plumecast.compute.arrays import Array
from plumecast.data.covariates import FUEL_LOAD
from plumecast.data.rewrite import drop_variable, rewrite_fires
from plumecast.data.store import open_snapshots
from plumecast.sources.wrf.checks import SMOKE_SCHEME
from plumecast.weather.series import is_hourly
from plumecast.weather.snapshots import STATE_WEATHER, has_weather, pad_weather, without_weather
from plumecast.workflows.fires.conditions import with_user_weather

DAY = 24.0
"""The hours of a store's weather are a multiple of this, so that longer fires seldom extend it."""


@dataclass(slots=True)
class Agreement:
    """What the stored fires have; None where there are no fires yet."""

    path: Path
    weather: xr.Dataset | None  # that replaces the weather of all fires
    has_wind: bool | None = None
    weather_hours: float | None = None  # last hour of the stored weather; 0 without weather
    scheme: int | None = None
    fuel: Array | None = None  # (y, x), or None if the store has no map
    mixed_fuel: bool = False  # fires that replaced others have another map

    def learn(self, stored: xr.Dataset) -> None:
        """Take over what stored fires have."""
        self.has_wind = has_wind(stored)
        self.weather_hours = _last_hour(stored)
        self.scheme = _scheme(stored)
        self.fuel = stored[FUEL_LOAD].values if FUEL_LOAD in stored.variables else None

    def added(self, fires: xr.Dataset) -> xr.Dataset:
        """The fires as they are appended; raises where they do not agree with the stored ones."""
        fires = with_user_weather(fires, self.weather)
        if self.has_wind is not None:
            self._check_wind(fires)
            self._check_scheme(fires)
            fires = self._as_stored(fires)
        hours = self.weather_hours
        if has_weather(fires):
            longest = max(whole_days(_last_hour(fires)), hours or 0.0)
            if hours and longest > hours:
                rewrite_fires(
                    self.path,
                    lambda stored: pad_weather(stored, longest),
                    message=f"extend the weather to {longest:g} h",
                )
            fires = pad_weather(fires, longest)
        if self.has_wind is not None and self._fuel_differs(fires):
            if self.fuel is not None:
                drop_variable(self.path, FUEL_LOAD)
            fires = fires.drop_vars(FUEL_LOAD, errors="ignore")
        return fires

    def replaced(self, fires: xr.Dataset, *, whole: bool) -> xr.Dataset:
        """The fires as they replace stored ones; `whole` if no other fire is kept."""
        fires = with_user_weather(fires, self.weather)
        if not whole:
            self._check_scheme(fires)
            fires = self._as_stored(fires)
        if has_weather(fires):
            longest = whole_days(_last_hour(fires))
            if self.weather_hours and longest > self.weather_hours:
                raise PlumecastError(
                    f"{self.path} holds {self.weather_hours:g} h of weather, but fire "
                    f"'{_first(fires)}' lasts longer; read all fires into a new store"
                )
            self.weather_hours = self.weather_hours or longest
            fires = pad_weather(fires, self.weather_hours)
        if whole and self.fuel is None and not self.mixed_fuel:
            self.fuel = fires[FUEL_LOAD].values if FUEL_LOAD in fires.variables else None
        if not self._fuel_differs(fires):
            return fires
        self.mixed_fuel = True
        return fires.drop_vars(FUEL_LOAD, errors="ignore")

    def check_fuel(self, fires: xr.Dataset, source: str) -> None:
        """Raise if the stored fires lack the fuel map of fires whose fuels were given."""
        if self.has_wind is not None and self._fuel_differs(fires):
            what = "other fuels" if self.fuel is not None else "no fuel load"
            raise PlumecastError(
                f"{self.path} has fires with {what}, but {source} was given for fire "
                f"'{_first(fires)}'; read them into a new store"
            )

    def finish(self) -> None:
        """After fires were replaced: remove the fuel map if it is not that of all fires."""
        if self.mixed_fuel and FUEL_LOAD in open_snapshots(self.path, fields=()).variables:
            drop_variable(self.path, FUEL_LOAD)

    def leaves_out_weather(self, fires: xr.Dataset) -> bool:
        """Whether the fires have a weather that a store without weather does not take."""
        replaced = self.weather is not None and is_hourly(self.weather)
        return self.weather_hours == 0.0 and has_weather(fires) and not replaced

    def _as_stored(self, fires: xr.Dataset) -> xr.Dataset:
        """With weather only where the store has it; raises if one was given or is missing."""
        if self.weather_hours and not has_weather(fires):
            raise PlumecastError(
                f"the fires in {self.path} have an hourly weather, but that of fire "
                f"'{_first(fires)}' is unknown; {STATE_WEATHER}"
            )
        if self.leaves_out_weather(fires):
            return without_weather(fires)
        if not self.weather_hours and has_weather(fires):
            raise PlumecastError(
                f"{self.path} was made without the weather of its fires; read all fires again with "
                "--weather into a new store"
            )
        return fires

    def _check_wind(self, fires: xr.Dataset) -> None:
        if self.has_wind is False and has_wind(fires):
            raise PlumecastError(
                f"{self.path} was made without the wind of its fires, but fire '{_first(fires)}' "
                "has a wind; read all fires again into a new store"
            )
        if self.has_wind and not has_wind(fires):
            raise PlumecastError(
                f"the fires in {self.path} have a wind, but that of fire '{_first(fires)}' is "
                f"unknown; {STATE_WEATHER}"
            )

    def _check_scheme(self, fires: xr.Dataset) -> None:
        if self.scheme != _scheme(fires):
            raise PlumecastError(
                f"{self.path} holds runs with {SMOKE_SCHEME} {self.scheme}, but fire "
                f"'{_first(fires)}' has {SMOKE_SCHEME} {_scheme(fires)}, which releases smoke at "
                "other heights; put it into a store of its own"
            )

    def _fuel_differs(self, fires: xr.Dataset) -> bool:
        """Whether the fires have another fuel map than the store, or only one of them has one."""
        fuel = fires[FUEL_LOAD].values if FUEL_LOAD in fires.variables else None
        if fuel is None or self.fuel is None:
            return fuel is not self.fuel
        return fuel.shape == self.fuel.shape and not np.allclose(fuel, self.fuel, atol=0.0)


def whole_days(hours: float) -> float:
    """Hours of the weather that a store of fires with `hours` of weather has."""
    return DAY * max(1.0, float(np.ceil(hours / DAY)))


def has_wind(fires: xr.Dataset) -> bool:
    """Whether snapshots have a mean wind."""
    return set(WIND) <= set(fires.variables)


def _last_hour(fires: xr.Dataset) -> float:
    """Last hour of the weather that snapshots need; 0 without weather."""
    return float(fires[WEATHER_HOUR].values[-1]) if has_weather(fires) else 0.0


def _scheme(fires: xr.Dataset) -> int:
    """The smoke scheme of WRF runs; those that do not state it have WRF's first one, 0."""
    return int(fires.attrs.get(SMOKE_SCHEME, 0))


def _first(fires: xr.Dataset) -> str:
    return str(min(fires.fire_id.values.tolist()))
