"""Ambient hourly wind profile of a WRF run, from U, V, PH + PHB, U10, V10 and PBLH.

Winds are along the grid, as U10 and V10 of the snapshots. One frame is in memory at a time.

The wind of a height is the median over all columns. Above the boundary layer only the fire changes
the initial wind of an idealised run: there the root-mean-square error against the sounding is 0.051
m/s for the mean of all columns, 0.028 for the mean of columns without smoke and 0.026 for the
median (fire_003, 1500 to 6000 m, 12 h). Two ignitions under one weather (fire_018 and fire_021)
have the same ambient weather: their 10 m winds differ by 0.095, 0.109 and 0.062 m/s, their boundary
layers by 37, 31 and 26 m. The median also needs no threshold of smoke and has no jump when smoke
fills the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import netCDF4
import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import Finding
from plumecast.base.names import GRAVITY
from plumecast.compute.arrays import Array
from plumecast.sources.wrf.checks import SMOKE_SCHEME, smoke_scheme
from plumecast.sources.wrf.files import Frame
from plumecast.sources.wrf.integrity import dimensions_of
from plumecast.weather.options import DefaultProfile
from plumecast.weather.profile import HEIGHTS, SURFACE
from plumecast.weather.series import Origin, Series, Sounding, hourly_dataset

COLUMNS = ("median", "clear", "mean")
"""Ambient wind: median of all columns, mean of columns without smoke, or mean of all columns."""

CLEAR_SHARE = 1e-4
"""A column is without smoke if its largest mixing ratio is below this share of the domain's."""

LEAST_CLEAR = 0.2
"""With a smaller share of columns without smoke, their mean is that of all columns."""

MOST_COLUMNS = 40_000
"""On larger domains the winds aloft are those of every second, third, … column: the median of so
many columns does not change, and memory is limited."""

VARIABLES = ("U", "V", "U10", "V10", "PBLH")
"""Variables that a profile is read from, beside PH and PHB."""

SURFACE_ONLY = "wrf_surface"
"""Attribute `weather_kind` of runs without U and V, whose winds aloft are the default profile's."""

Read = Callable[[str], Array]
"""Reads one variable of one frame by name."""


_STEP = 0.99 * 3600.0  # s; frames of adaptive time steps are seconds off the hour


class FrameProfile(NamedTuple):
    """Ambient weather of one frame; WRF writes the surface values after its first step."""

    seconds: float  # since the start of the simulation
    height: Array  # (n,) of `HEIGHTS` that the levels reach; empty without U and V
    u: Array  # (n,)
    v: Array
    surface: tuple[float, float] | None  # 10 m wind
    depth: float  # of the boundary layer, m; NaN if it is not written


def weather_variables(dataset: netCDF4.Dataset) -> frozenset[str]:
    """The variables of the weather that a file has, with WRF's dimensions; winds in pairs."""
    found = {
        name
        for name in VARIABLES
        if name in dataset.variables and dataset[name].dimensions == dimensions_of(name)
    }
    for pair in ({"U", "V"}, {"U10", "V10"}):
        found -= set() if pair <= found else pair
    return frozenset(found)


def weather_frames(
    frames: Sequence[Frame], kept: Sequence[Frame], names: Collection[str]
) -> set[Frame]:
    """Frames that the weather is read from: those that are kept, and one of every hour."""
    if not set(names) - {"PBLH"}:
        return set()
    chosen, last = set(kept), -np.inf
    for frame in frames:
        if frame.seconds >= last + _STEP:
            chosen.add(frame)
            last = frame.seconds
    return chosen


def read_frame_profile(
    read: Read,
    seconds: float,
    names: Collection[str],
    *,
    columns: str = "median",
    smoke: str = "fire_smoke",
) -> FrameProfile:
    """Profile of the frame at `seconds`; `names` are the variables of the weather in its file."""
    surface = _surface(read, names, columns, smoke)
    levels = (np.empty(0), np.empty(0), np.empty(0))
    if {"U", "V"} <= set(names):
        levels = frame_levels(read, columns=columns, smoke=smoke, surface=surface.fields)
    return FrameProfile(seconds, *levels, surface.wind, surface.depth)


class _Surface(NamedTuple):
    """10 m wind and boundary layer of a frame: fields, and their ambient values."""

    fields: tuple[Array, Array] | None
    wind: tuple[float, float] | None
    depth: float


def _surface(read: Read, names: Collection[str], columns: str, smoke: str) -> _Surface:
    clear = _clear_columns(read, smoke) if columns == "clear" else None
    fields = tuple(read(name) for name in ("U10", "V10")) if {"U10", "V10"} <= set(names) else ()
    written = bool(fields) and all(_is_written(field) for field in fields)
    written = written and any(field.any() for field in fields)
    depth = read("PBLH") if "PBLH" in names else np.zeros(1)
    u10, v10 = fields if written else (None, None)
    return _Surface(
        (u10, v10) if u10 is not None else None,
        (_ambient(u10, columns, clear), _ambient(v10, columns, clear)) if written else None,
        _ambient(depth, columns, clear) if _is_written(depth) and depth.any() else np.nan,
    )


def frame_levels(
    read: Read,
    *,
    columns: str,
    smoke: str = "fire_smoke",
    surface: tuple[Array, Array] | None = None,
    heights: Sequence[float] = HEIGHTS,
) -> tuple[Array, Array, Array]:
    """(height, u, v) of the ambient wind at those `heights` above ground that the levels reach.

    U and V are averaged from the faces of a cell to its centre, PH + PHB from the faces of a layer
    to its middle. In each column, u and v are linear in ln z between the levels and the 10 m wind.
    """
    u = _middle(read("U"), 2)
    v = _middle(read("V"), 1)
    faces = (read("PH") + read("PHB")).astype(np.float64) / GRAVITY
    z = _middle(faces - faces[0], 0)
    u, v, z = (_fewer_columns(field) for field in (u, v, z))
    if not all(_is_written(field) for field in (u, v, z)):
        raise PlumecastError("NaN or unwritten U, V, PH or PHB; did the run stop early?")
    if surface is not None and z[0].min() > SURFACE:
        z = np.concatenate([np.full((1, *z.shape[1:]), SURFACE), z])
        u, v = (
            np.concatenate([_fewer_columns(at_10_m[None]), field])
            for at_10_m, field in zip(surface, (u, v), strict=True)
        )
    inside = [h for h in heights if z[0].max() <= h <= z[-1].min()]
    clear = _clear_columns(read, smoke) if columns == "clear" else None
    clear = None if clear is None else _fewer_columns(clear[None])[0]
    log_z = np.log(z)
    winds = [
        [_ambient(_at_height(log_z, field, np.log(h)), columns, clear) for h in inside]
        for field in (u, v)
    ]
    return np.array(inside), np.array(winds[0]), np.array(winds[1])


def _fewer_columns(field: Array) -> Array:
    """Every n-th column of a field (level, ny, nx), at most `MOST_COLUMNS`."""
    step = int(np.ceil(np.sqrt(field.shape[1] * field.shape[2] / MOST_COLUMNS)))
    return field[:, ::step, ::step]


def profile_dataset(
    profiles: Sequence[FrameProfile],
    *,
    ignition: float,
    source: object,
    columns: str = "median",
    attributes: Mapping[str, Any] | None = None,
) -> xr.Dataset | None:
    """Hourly weather of the frames of a run; `ignition` is in s since the start of the simulation.

    Frames before the last one before ignition are not used. None if no frame has a wind.
    """
    profiles = _with_first_surface(profiles)
    hours = [(profile.seconds - ignition) / 3600.0 for profile in profiles]
    start = max([n for n, hour in enumerate(hours) if hour <= 0.0], default=0)
    soundings = [
        _sounding(profile, hour)
        for profile, hour in zip(profiles[start:], hours[start:], strict=True)
        if profile.height.size or profile.surface is not None
    ]
    if not soundings:
        return None
    has_levels = any(profile.height.size for profile in profiles)
    note = (
        f"ambient wind along the grid: {_described(columns)}; before WRF's first step, the 10 m "
        "wind and the boundary layer are those of the next frame"
    )
    if not has_levels:
        note += "; the files have no U and V, the default profile is used above 10 m"
    origin = Origin(source, "wrf" if has_levels else SURFACE_ONLY, {"": note})
    weather = hourly_dataset([Series(soundings)], origin, DefaultProfile())
    scheme = smoke_scheme(attributes or {})
    return weather if scheme is None else weather.assign_attrs({SMOKE_SCHEME: scheme})


def _with_first_surface(profiles: Sequence[FrameProfile]) -> list[FrameProfile]:
    """The profiles; the first one has the surface values of the second where it lacks them."""
    if len(profiles) < 2:
        return list(profiles)
    first, second = profiles[:2]
    if first.surface is None or np.isnan(first.depth):
        first = first._replace(surface=second.surface, depth=second.depth)
    return [first, *profiles[1:]]


def weather_of(
    profiles: Sequence[FrameProfile],
    *,
    ignition: float,
    source: object,
    columns: str,
    attributes: Mapping[str, Any],
) -> tuple[xr.Dataset | None, tuple[Finding, ...]]:
    """`profile_dataset`; a finding says why frames with winds give no hourly weather.

    Frames that are many hours apart, or that begin long after ignition, still give snapshots.
    """
    try:
        weather = profile_dataset(
            profiles, ignition=ignition, source=source, columns=columns, attributes=attributes
        )
    except PlumecastError as error:
        reason = str(error).removeprefix(f"{source}: ")
        return None, (Finding("no hourly weather", reason),)
    return weather, ()


def _sounding(profile: FrameProfile, hour: float) -> Sounding:
    height, u, v = profile.height, profile.u, profile.v
    if profile.surface is not None and not (height.size and height[0] <= SURFACE):
        height = np.append(SURFACE, height)
        u, v = np.append(profile.surface[0], u), np.append(profile.surface[1], v)
    return Sounding(hour, height, u, v, profile.depth)


def _clear_columns(read: Read, smoke: str) -> Array:
    """Columns (ny, nx) without smoke; all columns if too few are."""
    most = np.maximum(read(smoke), 0.0).max(axis=0)
    clear = most <= CLEAR_SHARE * most.max()
    return clear if clear.mean() >= LEAST_CLEAR else np.ones_like(clear)


def _ambient(field: Array, columns: str, clear: Array | None) -> float:
    """One value for a field (ny, nx)."""
    values = np.asarray(field, dtype=np.float64)
    if columns == "median":
        return float(np.median(values))
    return float(values.mean() if clear is None else values[clear].mean())


def _at_height(log_z: Array, field: Array, log_height: float) -> Array:
    """Values (ny, nx) of a field (level, ny, nx), linear in ln z within each column."""
    upper = np.clip((log_z < log_height).sum(axis=0), 1, log_z.shape[0] - 1)[None]
    below, above = (np.take_along_axis(log_z, n, axis=0)[0] for n in (upper - 1, upper))
    share = (log_height - below) / (above - below)
    low, high = (np.take_along_axis(field, n, axis=0)[0] for n in (upper - 1, upper))
    return low + share * (high - low)


def _middle(field: Array, axis: int) -> Array:
    """Mean of neighbours along an axis: from n + 1 faces to n centres."""
    before, after = [slice(None)] * 3, [slice(None)] * 3
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    return 0.5 * (field[tuple(before)] + field[tuple(after)])


LARGEST = 1e30
"""Values beyond it were not written: the fill value of NetCDF is 9.97e36."""


def _is_written(field: Array) -> bool:
    return bool((np.abs(field) < LARGEST).all())


def _described(columns: str) -> str:
    return {
        "median": "median of all columns",
        "clear": "mean of the columns without smoke",
        "mean": "mean of all columns",
    }[columns]
