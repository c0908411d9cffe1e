"""The weather of snapshots: checked, completed and read, and the mean winds that follow from it.

The contract: hourly `wind_u`, `wind_v` (snapshot, weather_hour, height) and `boundary_layer_depth`
(snapshot, weather_hour), or only the mean wind since ignition; directions count from the north of
the snapshots' grid. A snapshot needs the weather up to its own hour; later values are not read.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR as IGNITION_LOCAL_HOUR
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.integrity import Finding
from plumecast.base.names import (
    ALOFT_WIND_LIMIT,
    DEEPEST_BOUNDARY_LAYER,
    HEIGHT,
    SNAPSHOT,
    SURFACE_LAYER,
    SURFACE_WIND_LIMIT,
    TABLE,
    WEATHER,
    WEATHER_AXES,
    WEATHER_HOUR,
    WEATHER_NAMES,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.weather.profile import (
    HEIGHTS,
    LOCAL_HOUR,
    POWER_LAW_TOP,
    SURFACE,
    default_depth,
    extend_profile,
    mean_wind,
    surface_wind,
)

LATE_START = 1.0
"""The first hour of a weather may be this much after ignition, h; its wind is used until then. The
weather of snapshots may end as much before the last of them."""

CHECK_UNIT = "check its unit, which may be knots, mph or km/h"
"""What to do about a wind that is too fast."""

SOURCE_ATTRIBUTES = ("weather_source", "weather_kind", "weather_comment")
"""Attributes of snapshots that say where a weather comes from and what was filled in."""

STATE_WEATHER = (
    "give --weather FILE (a table, a FARSITE stream or a NetCDF extract) or one wind, --weather "
    "'12 mph from SW', to ingest, predict or ensemble (in Python: pc.weather.with_weather)"
)
"""The next step for a user whose fires have no weather or no wind."""

HOURS_TOLERANCE = 0.01  # h; hours of fires are rounded, and counted from a second
_BLOCK = 256  # snapshots read at once
U, V, DEPTH = WEATHER_NAMES


def has_weather(data: xr.Dataset) -> bool:
    """Whether snapshots have hourly weather."""
    return all(name in data.variables for name in WEATHER_NAMES)


def without_weather(data: xr.Dataset) -> xr.Dataset:
    """Snapshots without hourly weather, its axes and its attributes."""
    kept = data.drop_vars([*WEATHER_NAMES, WEATHER_HOUR, HEIGHT], errors="ignore")
    kept.attrs = {key: value for key, value in data.attrs.items() if key not in SOURCE_ATTRIBUTES}
    return kept


# -- checks


def check_weather_axes(snapshots: xr.Dataset) -> None:
    """Raise unless the weather, where there is one, is complete, labelled, and covers the fires.

    Only axes and labels are read. A boundary layer may be missing: it is filled in where smoke is
    carried, with a warning.
    """
    if not _has_all_parts(snapshots):
        return
    for entry in (*WEATHER, *WEATHER_AXES):
        array = snapshots.variables.get(entry.name)
        if array is not None and array.dims != entry.dims:
            raise PlumecastError(
                f"'{entry.name}' has dimensions {array.dims}, expected {entry.dims}"
            )
        if array is not None and array.dtype.kind not in "fiu":
            raise PlumecastError(f"'{entry.name}' holds {array.dtype}, not numbers")
    check_weather_covers(snapshots, _until(snapshots))


def _has_all_parts(data: xr.Dataset) -> bool:
    """Whether there is a weather; raises if a part of it is missing, but for the boundary layer."""
    names = [entry.name for entry in (*WEATHER, *WEATHER_AXES)]
    parts = [name for name in WEATHER_NAMES if name in data.variables]
    for name in names if parts else ():
        if name not in data.variables and name != DEPTH:
            raise PlumecastError(
                f"there is '{parts[0]}', but no '{name}'; a weather has {', '.join(names)}"
            )
    return bool(parts)


def check_weather_covers(data: xr.Dataset, until: Array | None) -> None:
    """Raise unless a weather has all parts, axes that rise, and the hours `until` (M,) of fires."""
    if not _has_all_parts(data):
        return
    lowest, _ = _checked_axis(data, HEIGHT, "m")
    if lowest <= 0.0:
        raise PlumecastError(
            f"'{HEIGHT}' begins at {lowest:g} m; heights are above ground, give them above 0 m"
        )
    first, last = _checked_axis(data, WEATHER_HOUR, "h")
    if first > LATE_START:
        raise PlumecastError(
            f"the weather begins {first:g} h after ignition ('{WEATHER_HOUR}'); add the hours from "
            "0 on"
        )
    if until is None or not until.size:
        return
    row = int(np.argmax(until))
    if until[row] > last + LATE_START:
        raise PlumecastError(
            f"{_who(data, row)} lasts until {until[row]:g} h, but the weather ends at {last:g} h "
            f"('{WEATHER_HOUR}'); add the hours up to {np.ceil(until[row]):g}"
        )


def _checked_axis(snapshots: xr.Dataset, name: str, unit: str) -> tuple[float, float]:
    """The ends of an axis; raises unless it rises."""
    values = snapshots[name].values.astype(np.float64)
    if not values.size:
        raise PlumecastError(f"'{name}' is empty; give the weather at one {unit} or more")
    if not np.isfinite(values).all():
        raise PlumecastError(f"'{name}' holds NaN or infinite values; fill them in")
    falls = np.flatnonzero(np.diff(values) <= 0.0)
    if falls.size:
        before, after = values[falls[0]], values[falls[0] + 1]
        raise PlumecastError(
            f"'{name}' must increase, but {after:g} {unit} follows {before:g} {unit}; sort the "
            "weather and give each once"
        )
    return float(values[0]), float(values[-1])


def _until(snapshots: xr.Dataset) -> Array | None:
    """(M,) hour of each snapshot; None if it is not known."""
    hours = snapshots.variables.get("hours")
    if hours is None or hours.dims != (SNAPSHOT,) or hours.dtype.kind not in "fiu":
        return None
    values: Array = hours.values.astype(np.float64)
    return np.where(np.isfinite(values), values, 0.0)  # other hours are refused elsewhere


def _who(data: xr.Dataset, row: int) -> str:
    fires = data.variables.get("fire_id")
    if fires is None or fires.dims != (SNAPSHOT,):
        return f"row {row}"
    return f"fire '{fires.values[row]}'"


def check_weather_values(snapshots: xr.Dataset) -> None:
    """Raise at the first wind or depth, up to its snapshot's hour, that cannot be true."""
    for row, text in _problems(snapshots):
        raise PlumecastError(f"the weather of {_who(snapshots, row)}: {text}")


def weather_findings(snapshots: xr.Dataset) -> Iterator[tuple[str, Finding]]:
    """The first problem in the weather of every fire, by `fire_id`."""
    fires = snapshots.fire_id.values.astype(str)
    first: dict[str, Finding] = {}
    for row, text in _problems(snapshots):
        first.setdefault(str(fires[row]), Finding("weather", text))
    yield from first.items()


def _problems(snapshots: xr.Dataset) -> Iterator[tuple[int, str]]:
    """At most one problem of each snapshot: (row, text)."""
    if any(name not in snapshots.variables for name in WEATHER_NAMES):
        return
    axis = snapshots[WEATHER_HOUR].values.astype(np.float64)
    until = _until(snapshots)
    for rows in row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK):
        try:
            part = [snapshots[name].isel({SNAPSHOT: rows}).values for name in WEATHER_NAMES]
        except PlumecastError as error:
            yield rows.start, str(error)
            continue
        needed = _needed_hours(axis, None if until is None else until[rows], part[0].shape[0])
        for row, text in impossible_weather(snapshots[HEIGHT].values, part, needed, axis):
            yield row + rows.start, text


def _needed_hours(axis: Array, until: Array | None, count: int) -> Array:
    """(M, H) hours of the weather that snapshots need: up to the first not before their own."""
    if until is None:
        return np.ones((count, axis.size), dtype=bool)
    last = np.searchsorted(axis, until - HOURS_TOLERANCE)
    return np.asarray(np.arange(axis.size) <= last[:, None])


def impossible_weather(
    heights: Array, part: list[Array], needed: Array, axis: Array
) -> Iterator[tuple[int, str]]:
    """Rows of u, v (M, H, Z) and depth (M, H) that cannot be true where needed, and why."""
    u, v, depth = part
    speed = np.hypot(u, v)
    limit = np.where(heights <= SURFACE_LAYER, SURFACE_WIND_LIMIT, ALOFT_WIND_LIMIT)
    unknown = needed[:, :, None] & ~np.isfinite(speed)
    fast = needed[:, :, None] & (speed > limit)
    odd_depth = needed & ~((depth > 0.0) & (depth <= DEEPEST_BOUNDARY_LAYER))
    wrong = unknown.any(axis=(1, 2)) | fast.any(axis=(1, 2)) | odd_depth.any(axis=1)
    for row in np.flatnonzero(wrong).tolist():
        winds = unknown[row] if unknown[row].any() else fast[row]
        if not winds.any():
            hour = int(np.argmax(odd_depth[row]))
            value = f"{depth[row, hour]:g} m at hour {axis[hour]:g}"
            yield (
                row,
                f"'{DEPTH}' is {value}; give a depth above 0 m, at most {DEEPEST_BOUNDARY_LAYER:g}",
            )
            continue
        hour, level = np.argwhere(winds)[0]
        place = f"at hour {axis[hour]:g}, {heights[level]:g} m"
        if np.isfinite(speed[row, hour, level]):
            yield row, f"{speed[row, hour, level]:.4g} m/s {place} is no wind; {CHECK_UNIT}"
        else:
            name, wind = (U, u) if not np.isfinite(u[row, hour, level]) else (V, v)
            yield row, f"'{name}' is {wind[row, hour, level]:g} {place}; fill it in"


# -- completion


class CompletedWeather(PlumecastWarning):
    """Parts of a weather were missing and were filled in."""


def complete_weather(data: xr.Dataset) -> xr.Dataset:
    """Snapshots whose hourly weather is complete; a warning says what was filled in.

    A boundary layer that is missing is that of the hour of the day, and winds at one height, or at
    several below `POWER_LAW_TOP`, are extended by the default profile. Without hourly winds
    nothing is filled in.
    """
    if not all(name in data.variables and WEATHER_HOUR in data[name].dims for name in (U, V)):
        return data
    filled = []
    ignition = data.attrs.get(IGNITION_LOCAL_HOUR)
    local = float(LOCAL_HOUR if ignition is None else ignition) + data[WEATHER_HOUR].values
    if DEPTH not in data.variables:
        dims = [dim for dim in data[U].dims if dim not in (WEATHER_HOUR, HEIGHT)] + [WEATHER_HOUR]
        sizes = [data.sizes[dim] for dim in dims]
        depth = np.broadcast_to(default_depth(local), sizes).astype(np.float32)
        data = data.assign({DEPTH: (dims, depth, TABLE[DEPTH].attrs)})
        start = "assumed" if ignition is None else "of ignition"
        filled.append(
            f"no '{DEPTH}': taken from the hour of the day ({local[0]:g} h local time {start}), "
            f"{depth.min():.0f} to {depth.max():.0f} m"
        )
    data = _with_heights(data)
    heights = data[HEIGHT].values.astype(np.float64)
    if heights.size and heights[-1] < POWER_LAW_TOP and (np.diff(heights) > 0.0).all():
        data = _extended(data, local)
        reach = f"{'at' if heights.size == 1 else 'up to'} {heights[-1]:g} m"
        filled.append(f"winds {reach} alone: extended upwards by the default profile")
    if filled:
        warnings.warn(f"the weather has {'; '.join(filled)}", CompletedWeather, stacklevel=3)
    return data


def _with_heights(data: xr.Dataset) -> xr.Dataset:
    """Snapshots whose winds have heights; winds without are at the one of the data, or at 10 m."""
    with_heights = [name for name in (U, V) if HEIGHT in data[name].dims]
    if len(with_heights) == 1:
        raise PlumecastError(
            f"'{with_heights[0]}' has heights and the other wind has none; give both at the same "
            "heights"
        )
    if with_heights and HEIGHT not in data.variables:
        raise PlumecastError(f"the winds have no coordinate '{HEIGHT}'; add their heights in m")
    if with_heights:
        return data
    height = float(data[HEIGHT].values.item()) if HEIGHT in data.variables else SURFACE
    winds = data.drop_vars(HEIGHT, errors="ignore")
    return winds.assign({name: winds[name].expand_dims({HEIGHT: [height]}) for name in (U, V)})


def _extended(data: xr.Dataset, local: Array) -> xr.Dataset:
    """Winds of some heights that rise, with those of the default profile below and above."""
    heights, stored = data[HEIGHT].values.astype(np.float64), np.asarray(HEIGHTS)
    parts = xr.broadcast(data[U], data[V], data[DEPTH].astype(np.float64))
    lead = [dim for dim in parts[0].dims if dim not in (WEATHER_HOUR, HEIGHT)]
    dims = (*lead, WEATHER_HOUR, HEIGHT)
    u, v, depth = (part.transpose(*dims).values.astype(np.float64) for part in parts)
    below, above = (
        extend_profile(
            (u[..., [k]], v[..., [k]]),
            heights[k],
            stored,
            local_hour=local[:, None],
            depth=depth[..., [k]],
        )
        for k in (0, -1)
    )
    low, high = stored < heights[0], stored > heights[-1]
    axis = np.concatenate([stored[low], heights, stored[high]])
    winds = {
        name: np.concatenate([first[..., low], part, last[..., high]], axis=-1)
        for name, part, first, last in zip((U, V), (u, v), below, above, strict=True)
    }
    made = data.drop_vars([U, V, HEIGHT]).assign(
        {name: (dims, wind.astype(np.float32), TABLE[name].attrs) for name, wind in winds.items()}
    )
    return made.assign_coords({HEIGHT: (HEIGHT, axis, TABLE[HEIGHT].attrs)})


# -- mean winds


def with_mean_winds(snapshots: xr.Dataset) -> xr.Dataset:
    """Snapshots with the mean 10 m winds of their weather, if they have one and no such winds.

    Nothing is derived from a weather whose lowest wind is above 10 m, or without the hours of the
    snapshots.
    """
    has_winds = any(name in snapshots.variables for name in WIND)
    needed = has_weather(snapshots) and "hours" in snapshots.variables
    if has_winds or not needed or snapshots[HEIGHT].values[0] > SURFACE:
        return snapshots
    rows = row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK)
    parts = [_mean_winds(snapshots.isel({SNAPSHOT: part})) for part in rows]
    return assign_mean_winds(snapshots, np.concatenate(parts, axis=1))


def _mean_winds(snapshots: xr.Dataset) -> Array:
    """(2, M) mean speeds and directions that the wind came from, in degrees."""
    weather, _ = _read_rows(snapshots, {SNAPSHOT: snapshots.sizes[SNAPSHOT]})
    u, v = (surface_wind(weather["heights"], weather[name]) for name in ("u", "v"))
    until = snapshots["hours"].values[:, None]
    winds = [mean_wind(weather["hours"], u[m], v[m], until[m]) for m in range(until.size)]
    return np.array(winds, dtype=np.float64).reshape(-1, 2).T


def assign_mean_winds(snapshots: xr.Dataset, winds: Array) -> xr.Dataset:
    """Snapshots with (2, M) speeds and directions as their mean winds since ignition."""
    return snapshots.assign_coords(
        {name: (SNAPSHOT, row, TABLE[name].attrs) for name, row in zip(WIND, winds, strict=True)}
    )


# -- hours


def on_weather_hours(fire: xr.Dataset, hours: Array) -> xr.Dataset:
    """The fire with its weather on the hours of another one, of a store for instance.

    Hours that the fire does not reach may be dropped or added, the latter with the last values. A
    fire whose weather has other hours, or that lasts longer than `hours`, is returned as it is.
    """
    if not has_weather(fire) or np.array_equal(fire[WEATHER_HOUR].values, hours):
        return fire
    fire_hours = fire[WEATHER_HOUR].values
    shared = min(fire_hours.size, hours.size)
    lasts = float(fire["hours"].max()) if "hours" in fire.variables else float(fire_hours[-1])
    if not np.array_equal(fire_hours[:shared], hours[:shared]) or lasts > (
        hours[shared - 1] + HOURS_TOLERANCE
    ):
        return fire
    return _with_hours(fire, hours)


def pad_weather(data: xr.Dataset, last: float) -> xr.Dataset:
    """Snapshots whose weather has the hours 0, 1, … `last`; their last hour is repeated.

    Raises if the weather is longer: its end is not cut off.
    """
    hours = data[WEATHER_HOUR].values
    wanted = np.arange(last + 1.0)
    if np.array_equal(hours, wanted):
        return data
    if not np.array_equal(hours, wanted[: hours.size]):
        raise PlumecastError(
            f"the weather has the hours {hours[0]:g} to {hours[-1]:g}, which are not hourly from 0 "
            f"to at most {last:g}"
        )
    return _with_hours(data, wanted)


def hold_weather(data: xr.Dataset, until: float) -> xr.Dataset:
    """Snapshots whose weather has one more hour, `until`, with the values of the last one."""
    return _with_hours(data, np.append(data[WEATHER_HOUR].values, until))


def _with_hours(data: xr.Dataset, hours: Array) -> xr.Dataset:
    """Snapshots with the first values of their weather, or the last one repeated, at `hours`."""
    axis = data[WEATHER_HOUR]
    chosen = data.isel({WEATHER_HOUR: np.minimum(np.arange(hours.size), axis.size - 1)})
    return chosen.assign_coords({WEATHER_HOUR: (WEATHER_HOUR, hours, axis.attrs)})


# -- reading


def read_weather_rows(
    data: xr.Dataset, sizes: Mapping[Hashable, int] | None = None
) -> dict[str, Array]:
    """Hours (H,), heights (Z,), and per row u, v (M, H, Z) and depth (M, H).

    Rows are all combinations of the dimensions in `sizes`, in C order; by default the snapshots. A
    weather is repeated along the dimensions that it lacks. Missing values after the hour of a
    snapshot, which are not needed, become the last one before.
    """
    one_each: Mapping[Hashable, int] = {SNAPSHOT: data.sizes[SNAPSHOT]} if sizes is None else sizes
    weather, until = _read_rows(data, one_each)
    part = [weather[short] for short in ("u", "v", "depth")]
    needed = _needed_hours(weather["hours"], until, part[0].shape[0])
    for row, text in impossible_weather(weather["heights"], part, needed, weather["hours"]):
        raise PlumecastError(f"the weather of {_who(data, row)}: {text}")
    return weather


def _read_rows(
    data: xr.Dataset, rows: Mapping[Hashable, int]
) -> tuple[dict[str, Array], Array | None]:
    """The arrays of `read_weather_rows`, not checked, and the hours (M,) of the rows."""
    hours = data[WEATHER_HOUR].values.astype(np.float64)
    weather = {"hours": hours, "heights": data[HEIGHT].values.astype(np.float64)}
    until = _rows(data, "hours", rows) if "hours" in data.variables else None
    for short, name in zip(("u", "v", "depth"), WEATHER_NAMES, strict=True):
        values = _rows(data, name, rows)
        missing = ~np.isfinite(values)
        if until is not None and missing.any():
            last = np.minimum(np.searchsorted(hours, until - HOURS_TOLERANCE), hours.size - 1)
            kept = np.minimum(np.arange(hours.size), last[:, None])
            values = np.where(missing, values[np.arange(last.size)[:, None], kept], values)
        weather[short] = values
    return weather, until


def _rows(data: xr.Dataset, name: str, rows: Mapping[Hashable, int]) -> Array:
    variable = data[name].variable
    axes = [dim for dim in (WEATHER_HOUR, HEIGHT) if dim in variable.dims]
    beyond = [str(dim) for dim in variable.dims if dim not in rows and dim not in axes]
    if beyond:
        raise PlumecastError(
            f"'{name}' has dimension '{beyond[0]}', which the fires lack; give one weather per fire"
        )
    ones = xr.Variable(list(rows), np.empty(list(rows.values())))
    (wide, _) = xr.broadcast(xr.DataArray(variable), xr.DataArray(ones))
    values = wide.transpose(*rows, *axes).values
    shaped: Array = values.reshape(-1, *(variable.sizes[dim] for dim in axes)).astype(np.float64)
    return shaped
