"""A constant wind with the default profile and boundary layer."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.sources.weather.checks import Sounding
from plumecast.sources.weather.default import (
    DAY_DEPTH,
    HEIGHTS,
    LOCAL_HOUR,
    POWER_LAW_TOP,
    SURFACE,
    VEER,
)
from plumecast.sources.weather.options import Options
from plumecast.sources.weather.series import Origin, Series, hourly_dataset
from plumecast.sources.weather.units import SPEEDS, components


def constant_weather(
    speed: float,
    from_direction: float,
    hours: float,
    *,
    speed_unit: str = "m/s",
    local_hour: float = LOCAL_HOUR,
    veer: float = VEER,
    day_depth: float = DAY_DEPTH,
) -> xr.Dataset:
    """Hourly weather of a 10 m wind that does not change, from ignition to `hours`.

    `from_direction` is where the wind comes from, in degrees clockwise from north. Above 10 m the
    speed grows as (z/10)^p up to 300 m and is constant above; p is 0.24 at night and 0.12 at 15 h
    local time. The wind turns clockwise by `veer` degrees between the ground and the top of the
    boundary layer (negative: in the southern hemisphere). The boundary layer is 250 m deep at night
    and `day_depth` at 15 h. `local_hour` is the local solar time at ignition.
    """
    options = Options(speed_unit=speed_unit, local_hour=local_hour, veer=veer, day_depth=day_depth)
    if not 0.0 <= speed < np.inf:
        raise PlumecastError(f"speed={speed:g}; give a speed of 0 or more")
    if not 0.0 <= from_direction <= 360.0:
        raise PlumecastError(
            f"from_direction={from_direction:g}; give the direction that the wind comes from, 0 to "
            "360 degrees (270 is a west wind)"
        )
    if not 0.0 < hours < np.inf:
        raise PlumecastError(f"hours={hours:g}; give the last hour of the fire, above 0")
    wind = components(np.array([speed * SPEEDS[speed_unit]]), np.array([from_direction]))
    times = np.append(np.arange(np.ceil(hours)), hours)
    soundings = [Sounding(float(hour), np.array([SURFACE]), *wind) for hour in times]
    note = (
        f"constant 10 m wind; power law up to {POWER_LAW_TOP:g} m, turning by {veer:g} degrees "
        f"across the boundary layer, up to {HEIGHTS[-1]:g} m"
    )
    source = f"wind of {speed:g} {speed_unit} from {from_direction:g} degrees"
    return hourly_dataset(
        [Series(soundings, None, local_hour)], options.rules, Origin(source, "constant", {"": note})
    )
