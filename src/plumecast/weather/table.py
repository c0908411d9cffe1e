"""Weather tables (CSV): one row for every hour and height, or one wind for every fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.tables import DIRECTION, Column, Table, TableFormat, read_table
from plumecast.base.units import factor
from plumecast.compute.arrays import Array
from plumecast.weather.options import Options, hours_since, parse_ignition, parse_time
from plumecast.weather.profile import (
    LOCAL_HOUR,
    SURFACE,
    complete_profile,
    components,
    default_depth,
    direction_from,
)
from plumecast.weather.series import Origin, Series, Sounding, fire_winds, hourly_dataset, place

_HOURS = "hours h hr weather_hour time_since_ignition hour_since_ignition hours_since_ignition"
_FROM = "wind_from from direction_from from_direction dir_from"
_TO = ("toward towards wind_to wind_toward wind_towards dir_to direction_to to_direction "
       "blowing_to")  # fmt: skip
_WIND, _LENGTH = "speed", "length"

FORMAT = TableFormat(
    columns=(
        Column("hour", _HOURS, "time", required=False),
        Column("time", "datetime date_time valid_time timestamp date", required=False),
        Column("height", "z height_agl height_above_ground agl", _LENGTH, required=False),
        Column("altitude", "height_asl height_amsl asl amsl geopotential_height", _LENGTH,
               required=False),
        Column("speed", "wind_speed windspeed wind_spd windspd wspd ws ff", _WIND, 0.0,
               required=False),
        Column("direction", "wind_direction dir wind_dir winddir wdir wd dd drct", DIRECTION, 0.0,
               360.0, required=False),
        Column("wind_from_direction", _FROM, DIRECTION, 0.0, 360.0, required=False),
        Column("to", _TO, DIRECTION, 0.0, 360.0, required=False),
        Column("wind_to_direction", "", DIRECTION, 0.0, 360.0, required=False),
        Column("u", "wind_u u_wind uwnd ugrd eastward_wind u_component", _WIND, required=False),
        Column("v", "wind_v v_wind vwnd vgrd northward_wind v_component", _WIND, required=False),
        Column("depth", "boundary_layer_depth boundary_layer_height boundary_layer blh pblh hpbl "
               "pbl mixing_height mixing_depth", _LENGTH, required=False, filled=False),
        Column("fire", "fire_id fire_name fireid", required=False),
    ),
    row="fire",
    row_name="fire",
    unique=("fire", "hour", "time", "height", "altitude"),
)  # fmt: skip
"""The columns of weather tables; the unit of speeds must be stated."""

_DIRECTIONS = ("direction", "wind_from_direction", "to", "wind_to_direction")
_SAYS = {"wind_from_direction": "from", "to": "to", "wind_to_direction": "to"}


def read_weather_table(
    path: Path, options: Options, *, default_unit: str | None = None
) -> xr.Dataset:
    """The weather of a table: hourly, or of a table without hours one wind for every fire.

    `default_unit` is that of speeds where neither the header nor the options say it. The winds of a
    table without hours are at 10 m, unless it has a column of heights.
    """
    table = read_table(path, FORMAT)
    _check_columns(table, options)
    speeds = {}
    for name in ("speed", "u", "v"):
        if name in table:
            label = table.units.get(name, default_unit if options.speed_unit is None else None)
            unit = options.speed_unit_of(table.source, label, f"'{table.headers[name]}'")
            scale = 1.0 if name in table.units else factor(unit, "speed")
            speeds[name] = table.numbers[name] * scale
    turned = "wind_to_direction" in table or "to" in table or options.direction_is == "to"
    note = {"": "directions that the wind blows to were turned by 180 degrees"} if turned else {}
    origin = Origin(path, "table", note, north=options.north)
    rows: dict[str | None, list[int]] = {}  # of every fire, in the order of the table
    for row, fire in enumerate(table.texts.get("fire", [None] * len(table))):
        rows.setdefault(fire, []).append(row)
    if "hour" not in table and "time" not in table:
        return _fire_winds(table, rows, _winds(table, speeds, options), origin, options)
    hours, heights = _hours(table, options), _heights(table, options)
    if {"u", "v"} <= set(speeds):
        winds = speeds["u"], speeds["v"]
    else:
        winds = components(*_winds(table, speeds, options))
    series = [
        Series(_soundings(table, at, hours, heights, winds), fire, options.profile.local_hour)
        for fire, at in rows.items()
    ]
    return hourly_dataset(series, origin, options.profile)


def _check_columns(table: Table, options: Options) -> None:
    """Raise unless the table has a wind, and directions and heights that can be understood."""
    needed: dict[str, tuple[str, ...]] = {"speed": ("speed",), "direction": _DIRECTIONS}
    if {"u", "v"} <= set(table.headers):
        needed = {}
    if "hour" in table or "time" in table:
        needed["height"] = ("height", "altitude")
    for name, columns in needed.items():
        if not set(columns) & set(table.headers):
            raise PlumecastError(
                f"{table.source}: the column {name} is missing; expected speed, direction and, for "
                "hourly weather, hour and height; optionally depth and fire, found "
                f"{', '.join([*table.headers.values(), *table.extra])}"
            )
    shown = [name for name in _DIRECTIONS if name in table]
    if len(shown) > 1:
        first, second = (table.headers[name] for name in shown[:2])
        raise PlumecastError(
            f"{table.source}: the columns '{first}' and '{second}' are both directions; keep one"
        )
    says = _SAYS.get(shown[0]) if shown else None
    advice = ""
    if shown == ["to"] and options.direction_is != "to":
        advice = "blows to; give the direction it comes from, or say 'to' here"
    elif says is not None and options.direction_is not in (None, says):
        advice = f"{'blows to' if says == 'to' else 'comes from'}; leave it out"
    if advice:
        raise ArgumentError(
            "direction_is", options.direction_is, f"{table.source}: the column "
            f"'{table.headers[shown[0]]}' says where the wind {advice}"
        )  # fmt: skip
    if "altitude" in table and "height" not in table and options.site.elevation is None:
        raise ArgumentError(
            "elevation", None, f"{table.source}: the column '{table.headers['altitude']}' counts "
            "from sea level; give the height of the ground in m, or heights above ground"
        )  # fmt: skip


def _winds(table: Table, speeds: Mapping[str, Array], options: Options) -> tuple[Array, Array]:
    """(n,) speeds in m s⁻¹ and directions that the winds come from, in degrees."""
    if {"u", "v"} <= set(speeds):
        return np.hypot(speeds["u"], speeds["v"]), direction_from(speeds["u"], speeds["v"])
    name = next(name for name in _DIRECTIONS if name in table)
    degrees = table.numbers[name]
    if name in ("to", "wind_to_direction") or options.direction_is == "to":
        degrees = degrees + 180.0
    return speeds["speed"], degrees


def _hours(table: Table, options: Options) -> Array:
    """(n,) hours since ignition."""
    if "hour" in table:
        return table.numbers["hour"]
    ignition = parse_ignition(options.ignition, table.source, "the table has times")
    times = [
        parse_time(text, f"{table.where(row)}: ") for row, text in enumerate(table.texts["time"])
    ]
    if len({zoned for _, zoned in times} | {ignition.has_zone}) > 1:
        raise PlumecastError(
            f"{table.source}: give ignition and all times with a zone (such as Z), or none of them"
        )
    stamps = np.array([time for time, _ in times], dtype="datetime64[s]")
    return hours_since(stamps, ignition, table.source)


def _heights(table: Table, options: Options) -> Array:
    """(n,) heights above ground, m."""
    name = "height" if "height" in table else "altitude"
    ground = float(options.site.elevation or 0.0) if name == "altitude" else 0.0
    heights = table.numbers[name] - ground
    for row in np.flatnonzero(heights < 0.0).tolist():
        raise table.error(
            row, f"{table.headers[name]} {table.texts[name][row]} is below the ground; give "
            "heights above ground"
        )  # fmt: skip
    return np.asarray(heights)


def _soundings(
    table: Table, rows: Sequence[int], hours: Array, heights: Array, winds: tuple[Array, Array]
) -> list[Sounding]:
    """The soundings of one fire; the rows of an hour must stand together, in order."""
    groups: dict[float, list[int]] = {}
    for row in rows:
        hour = float(hours[row])
        latest = next(reversed(groups), hour)
        if hour < latest or (hour in groups and hour != latest):
            raise table.error(
                row, f"hours must increase, but {hour:g} h follows {latest:g} h; sort the table by "
                "hour and height"
            )  # fmt: skip
        groups.setdefault(hour, []).append(row)
    return [
        Sounding(hour, heights[at], winds[0][at], winds[1][at], _depth(table, at, hour))
        for hour, at in groups.items()
    ]


def _depth(table: Table, rows: Sequence[int], hour: float) -> float:
    """Depth of the boundary layer in the rows of one hour; NaN if it is left out."""
    if "depth" not in table:
        return np.nan
    depths = {value for value in table.numbers["depth"][rows].tolist() if np.isfinite(value)}
    if len(depths) > 1:
        raise table.error(
            rows[0], f"several depths of the boundary layer at hour {hour:g} "
            f"({', '.join(f'{depth:g}' for depth in sorted(depths))}); give one for an hour"
        )  # fmt: skip
    return depths.pop() if depths else np.nan


def _fire_winds(
    table: Table,
    rows: Mapping[str | None, list[int]],
    winds: tuple[Array, Array],
    origin: Origin,
    options: Options,
) -> xr.Dataset:
    """One wind at 10 m for every fire, or for all fires."""
    for fire, lines in rows.items():
        if len(lines) > 1:
            raise PlumecastError(
                f"{place(table.source, fire)}{len(lines)} lines, but no column hour; keep one, or "
                "give each its hour"
            )
    speed, direction = (np.array(part) for part in winds)
    if "height" in table or "altitude" in table:
        heights, hour = _heights(table, options), options.profile.local_hour
        noon = LOCAL_HOUR if hour is None else hour
        for row in np.flatnonzero(heights != SURFACE).tolist():
            u, v = components(speed[row : row + 1], direction[row : row + 1])
            (east,), (north,) = complete_profile(
                (heights[row : row + 1], u, v), [SURFACE], local_hour=noon,
                depth=float(default_depth(noon)), veer=options.profile.veer,
            )  # fmt: skip
            speed[row], direction[row] = np.hypot(east, north), direction_from(east, north)
    direction = np.where(direction > 360.0, direction - 360.0, direction)
    names = [str(fire) for fire in rows] if "fire" in table else None
    shape = () if names is None else (len(names),)
    return fire_winds(np.reshape(speed, shape), np.reshape(direction, shape), origin, names)
