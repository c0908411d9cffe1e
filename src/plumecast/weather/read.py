"""Weather that users give: files, one wind for all fires, or text, as a checked Dataset."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np
import xarray as xr

from plumecast.base.deprecated import deprecate, folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.integrity import check_complete
from plumecast.base.names import WEATHER_HOUR
from plumecast.base.units import parse_direction, parse_quantity
from plumecast.weather.farsite import is_farsite, read_farsite
from plumecast.weather.gridded import read_netcdf
from plumecast.weather.options import (
    TRUE,
    DefaultProfile,
    IgnitionTime,
    Options,
    Site,
    check_north,
    checked_speed_unit,
)
from plumecast.weather.profile import HEIGHTS, LOCAL_HOUR, POWER_LAW_TOP, SURFACE, components
from plumecast.weather.series import (
    Origin,
    Series,
    Sounding,
    as_hourly,
    check_covers,
    check_fires,
    fire_winds,
    hourly_dataset,
)
from plumecast.weather.table import read_weather_table

WeatherLike: TypeAlias = xr.Dataset | str | Path | tuple[float | str, float | str]
"""A weather: a Dataset, a file, one wind as (speed, direction it comes from), or its text."""

_NETCDF = (b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05")
_SNIFFED = 4096  # bytes
_WIND_TEXT = re.compile(r"([\d.].*?)\s+(?:from\s+(?:the\s+)?)?([A-Za-z-]+|[\d.]+\s*(?:°|deg\w*)?)")

P = ParamSpec("P")
Result = TypeVar("Result")


@folded_arguments(site=Site, profile=DefaultProfile)
def read_weather(
    path: str | Path,
    *,
    ignition: IgnitionTime | None = None,
    speed_unit: str | None = None,
    direction_is: str | None = None,
    north: str = TRUE,
    fire_ids: Collection[str] | None = None,
    hours: float | Mapping[str, float] | None = None,
    site: Site | None = None,
    profile: DefaultProfile | None = None,
) -> xr.Dataset:
    """Weather of one fire or of several, from a file.

    The file is a CSV table (hour, height, speed, direction; optionally depth, fire), a FARSITE
    stream (.wxs, .wnd or an inputs file), a NetCDF extract of profiles (ERA5, HRRR), or a weather
    that was written with `to_netcdf`. A table without hours has one wind for each fire.

    Parameters
    ----------
    path : str or Path
        The file.
    ignition : str, datetime or datetime64, optional
        Time of ignition where the file has dates: an ISO time, or month, day and time as in
        FARSITE, "05 03 1200". In the time zone of the file (NetCDF: UTC).
    speed_unit : str, optional
        Unit of speeds, such as "mph", where the file does not state it.
    direction_is : {"from", "to"}, optional
        "to" if the directions say where the wind blows to.
    north : {"true", "grid"}
        Whether directions count from true north, or from the y axis of the grid of the fires.
    fire_ids, hours : optional
        Names of the fires and the last hour of them (or of each): raises if the weather is for
        other fires or ends before.
    site : Site, optional
        Place in a gridded file (without it, the mean of the domain), and the height of its ground,
        where heights count from sea level.
    profile : DefaultProfile, optional
        Completes what the file does not say of winds aloft and of the boundary layer.

    Returns
    -------
    Dataset
        Hourly `wind_u`, `wind_v` (weather_hour, height) and `boundary_layer_depth` (weather_hour),
        or `wind_speed` and `wind_from_direction` of a table without hours. A file of several fires
        adds a leading dimension `fire` with the coordinate `fire_id`.
    """
    options = Options(
        ignition=ignition, speed_unit=speed_unit, direction_is=direction_is, north=north,
        site=site or Site(), profile=profile or DefaultProfile(),
    )  # fmt: skip
    weather = _read(Path(path), options)
    if fire_ids is not None:
        check_fires(weather, fire_ids, path)
    if hours is not None:
        check_covers(weather, hours, path)
    return weather


def _read(path: Path, options: Options) -> xr.Dataset:
    try:
        with path.open("rb") as file:
            head = file.read(_SNIFFED)
    except OSError as error:
        reason = error.strerror or "not readable"
        raise PlumecastError(f"{path}: {reason}; give a weather file") from error
    if not head.strip():
        raise PlumecastError(f"{path}: the file is empty; give a weather file")
    if head.startswith(_NETCDF):
        return _read_netcdf(path, options)
    if head.startswith(b"GRIB"):
        raise PlumecastError(
            f"{path}: a GRIB file; convert it to NetCDF first, e.g. with cdo -f nc4 copy"
        )
    if b"\0" in head:
        raise PlumecastError(f"{path}: neither a table, a FARSITE stream nor NetCDF")
    if is_farsite(head.decode("utf-8-sig", "replace")):
        return hourly_dataset(*read_farsite(path, options), options.profile)
    return read_weather_table(path, options)


def _read_netcdf(path: Path, options: Options) -> xr.Dataset:
    check_complete(path, set())
    try:
        with xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as opened:
            data = opened.load()
    except (OSError, ValueError, RuntimeError) as error:
        raise PlumecastError(
            f"{path}: not a readable NetCDF file ({str(error).splitlines()[0]})"
        ) from error
    if WEATHER_HOUR in data.dims and "wind_u" in data:
        return as_hourly(data, path)
    return hourly_dataset(*read_netcdf(data, path, options), options.profile)


@folded_arguments(profile=DefaultProfile)
def constant_weather(
    speed: float | str,
    from_direction: float | str,
    hours: float,
    *,
    speed_unit: str = "m/s",
    north: str = TRUE,
    profile: DefaultProfile | None = None,
) -> xr.Dataset:
    """Hourly weather of a 10 m wind that does not change, from ignition to `hours`.

    Above 10 m the speed grows as (z/10)^p up to 300 m and is constant above; p is 0.24 at night and
    0.12 at 15 h local time. The wind turns clockwise by `profile.veer` degrees between the ground
    and the top of the boundary layer (negative: in the southern hemisphere). The boundary layer is
    250 m deep at night and `profile.day_depth` at 15 h.

    Parameters
    ----------
    speed : float or str
        At 10 m, in `speed_unit` or with its unit, such as "12 mph".
    from_direction : float or str
        Where the wind comes from: degrees clockwise from north, or a compass point such as "SW".
    hours : float
        Last hour of the fire.
    speed_unit : str
        Unit of a speed that is a number.
    north : {"true", "grid"}
        Whether the direction counts from true north, or from the y axis of the grid of the fires.
    profile : DefaultProfile, optional
        The local solar time at ignition, the turning and the deepest boundary layer.
    """
    profile = profile or DefaultProfile()
    check_north(north)
    unit = checked_speed_unit(speed_unit)
    metres, degrees = _parsed_wind(unit, speed=speed, from_direction=from_direction)
    if not 0.0 < hours < np.inf:
        raise ArgumentError("hours", hours, "give the last hour of the fire, above 0")
    wind = components(np.array([metres]), np.array([degrees]))
    times = np.append(np.arange(np.ceil(hours)), hours)
    soundings = [Sounding(float(hour), np.array([SURFACE]), *wind) for hour in times]
    note = (
        f"constant 10 m wind; power law up to {POWER_LAW_TOP:g} m, turning by {profile.veer:g} "
        f"degrees across the boundary layer, up to {HEIGHTS[-1]:g} m"
    )
    shown = speed if isinstance(speed, str) else f"{speed:g} {unit}"
    source = f"wind of {shown} from {degrees:g} degrees"
    series = Series(
        soundings, None, LOCAL_HOUR if profile.local_hour is None else profile.local_hour
    )
    origin = Origin(source, "constant", {"": note}, north=north)
    return hourly_dataset([series], origin, profile)


def as_weather(weather: WeatherLike, options: Options | None = None) -> xr.Dataset:
    """The weather that a user gave, read and checked; `options` are about a file or a wind."""
    if isinstance(weather, xr.Dataset):
        return as_hourly(weather, weather.attrs.get("weather_source", "the weather"))
    options = options or Options()
    if isinstance(weather, tuple | list) and len(weather) == 2:
        return one_wind(*weather, options, unit="m/s")
    if not isinstance(weather, str | Path):
        raise ArgumentError(
            "weather", weather, "give a file, a Dataset, or one wind as (speed, direction)"
        )
    wind = _WIND_TEXT.fullmatch(weather.strip()) if isinstance(weather, str) else None
    if wind is None or Path(weather).exists():
        return _read(Path(weather), options)
    try:
        return one_wind(wind[1], wind[2], options)
    except ArgumentError as error:  # the user gave one text, not a speed and a direction
        raise ArgumentError("weather", weather, error.advice) from None


def one_wind(
    speed: float | str, direction: float | str, options: Options, unit: str | None = None
) -> xr.Dataset:
    """One wind for all fires; `unit` is that of a speed without one, unless the options say it."""
    unit = options.speed_unit or unit
    metres, degrees = _parsed_wind(unit, wind_speed=speed, wind_from=direction)
    if options.direction_is == "to":
        degrees = (degrees + 180.0) % 360.0
    source = f"wind of {metres:g} m/s from {degrees:g} degrees"
    origin = Origin(source, "wind", north=options.north)
    return fire_winds(np.array(metres), np.array(degrees), origin)


def _parsed_wind(unit: str | None, **wind: float | str) -> tuple[float, float]:
    """Speed in m s⁻¹ and direction in degrees of a wind, by the names of the two arguments."""
    (speed_name, speed), (direction_name, direction) = wind.items()
    try:
        metres = parse_quantity(speed, "speed", unit)
    except PlumecastError as error:
        raise ArgumentError(speed_name, speed, str(error)) from None
    if metres < 0.0:
        raise ArgumentError(speed_name, speed, "give a speed of 0 or more")
    try:
        return metres, parse_direction(direction)
    except PlumecastError:
        raise ArgumentError(
            direction_name, direction, "give the direction that the wind comes from, 0 to 360 "
            "degrees (270 is a west wind) or a compass point such as SW"
        ) from None  # fmt: skip


def accepts_winds(function: Callable[P, Result]) -> Callable[P, Result]:
    """Accept the old argument `winds` as `weather`, with a deprecation warning."""

    @functools.wraps(function)
    def call(*positional: P.args, **keywords: P.kwargs) -> Result:
        named: dict[str, Any] = dict(keywords)
        winds = named.pop("winds", None)
        if winds is not None:
            deprecate(f"{function.__name__}(winds=…)", "weather=…, which takes winds too")
            if named.get("weather") is not None:
                raise ArgumentError("winds", winds, "give weather alone; its winds follow from it")
            named["weather"] = winds_as_weather(winds)
        return function(*positional, **named)

    return call


def winds_as_weather(
    winds: str | Path | tuple[float, float], options: Options | None = None
) -> xr.Dataset:
    """The old argument `winds`: a pair, or a table whose speeds are in m/s unless it states it."""
    if isinstance(winds, str | Path):
        return read_weather_table(Path(winds), options or Options(), default_unit="m/s")
    return as_weather(winds, options)
