"""`read_weather`: choose the reader by the content of a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import WEATHER_HOUR
from plumecast.sources.weather.checks import (
    check_covers,
    check_fires,
    check_weather,
)
from plumecast.sources.weather.default import DAY_DEPTH, VEER
from plumecast.sources.weather.farsite import is_farsite, read_farsite
from plumecast.sources.weather.gridded import read_netcdf
from plumecast.sources.weather.options import Options
from plumecast.sources.weather.series import hourly_dataset, is_hourly, to_series
from plumecast.sources.weather.table import read_table
from plumecast.sources.weather.times import IgnitionTime

_NETCDF = (b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05")
_SNIFFED = 4096  # bytes


def read_weather(
    path: str | Path,
    *,
    ignition: IgnitionTime | None = None,
    speed_unit: str | None = None,
    direction_is: str | None = None,
    fire_ids: Collection[str] | None = None,
    hours: float | Mapping[str, float] | None = None,
    local_hour: float | None = None,
    latitude: float | None = None,
    longitude: float | None = None,
    elevation: float | None = None,
    veer: float = VEER,
    day_depth: float = DAY_DEPTH,
) -> xr.Dataset:
    """Hourly wind profiles and boundary-layer depth since ignition, from a file.

    The file is a CSV table (hour, height, speed, direction; optionally depth, fire), a FARSITE
    stream (.wxs, .wnd or an inputs file), a NetCDF extract of profiles (ERA5, HRRR), or a weather
    that was written with `to_netcdf`. The result has `wind_u`, `wind_v` (weather_hour, height) and
    `boundary_layer_depth` (weather_hour); a file of several fires adds a leading dimension `fire`
    with the coordinate `fire_id`.

    ignition: time of ignition where the file has dates: an ISO time, or month, day and time as in
    FARSITE, "05 03 1200". In the time zone of the file (NetCDF: UTC).
    speed_unit: "m/s", "km/h", "knots" or "mph", where the file does not state it.
    direction_is: "to" if the directions say where the wind blows to.
    fire_ids, hours: names of the fires and the last hour of them (or of each): raises if the
    weather is for other fires or ends before.
    local_hour: local solar time at ignition, for the default boundary layer and shear. By default
    from a FARSITE stream or from the longitude, else 12.
    latitude, longitude: the place in a gridded file; without them, the mean of the domain.
    elevation: height of the ground, m, where heights count from sea level.
    veer, day_depth: the default profile and boundary layer (see `constant_weather`) complete what
    the file does not have.
    """
    options = Options(
        ignition=ignition, speed_unit=speed_unit, direction_is=direction_is, local_hour=local_hour,
        latitude=latitude, longitude=longitude, elevation=elevation, veer=veer,
        day_depth=day_depth,
    )  # fmt: skip
    weather = _read(Path(path), options)
    if fire_ids is not None:
        check_fires(weather, fire_ids, path)
    if hours is not None:
        check_covers(weather, hours, path)
    return weather


def _read(path: Path, options: Options) -> xr.Dataset:
    head = _head(path)
    if head.startswith(_NETCDF):
        return _read_netcdf(path, options)
    if head.startswith(b"GRIB"):
        raise PlumecastError(
            f"{path}: a GRIB file; convert it to NetCDF first, e.g. with cdo -f nc4 copy"
        )
    if b"\0" in head:
        raise PlumecastError(f"{path}: neither a table, a FARSITE stream nor NetCDF")
    read = read_farsite if is_farsite(head.decode("utf-8-sig", "replace")) else read_table
    series, origin = read(path, options)
    return hourly_dataset(series, options.rules, origin)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(_SNIFFED)
    except OSError as error:
        reason = error.strerror or "not readable"
        raise PlumecastError(f"{path}: {reason}; give a weather file") from error
    if not head.strip():
        raise PlumecastError(f"{path}: the file is empty; give a weather file")
    return head


def _read_netcdf(path: Path, options: Options) -> xr.Dataset:
    # Imported here: surrogates need the default profile of this package, but no NetCDF library.
    from plumecast.base.integrity import check_complete

    check_complete(path, set())
    try:
        with xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as opened:
            data = opened.load()
    except (OSError, ValueError, RuntimeError) as error:
        raise PlumecastError(
            f"{path}: not a readable NetCDF file ({str(error).splitlines()[0]})"
        ) from error
    if WEATHER_HOUR in data.dims and "wind_u" in data:
        check_weather(data, path)
        if is_hourly(data):
            return data
        series, origin = to_series(data, path)
    else:
        series, origin = read_netcdf(data, path, options)
    return hourly_dataset(series, options.rules, origin)
