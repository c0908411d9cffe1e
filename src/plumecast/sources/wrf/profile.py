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

SURFACE_ONLY = "wrf_surface"
"""Attribute `weather_kind` of runs without U and V, whose winds aloft are the default profile's."""

_MOST_COLUMNS = 40_000
"""On larger domains the winds aloft are those of every second, third, … column: the median of so
many columns does not change, and memory is limited."""

_VARIABLES = ("U", "V", "U10", "V10", "PBLH")  # beside PH and PHB
_STEP = 0.99 * 3600.0  # s; frames of adaptive time steps are seconds off the hour
_LARGEST = 1e30  # values beyond it were not written: the fill value of NetCDF is 9.97e36


class FrameProfile(NamedTuple):
    """Ambient weather of one frame; WRF writes the surface values after its first step."""

    seconds: float  # since the start of the simulation
    height: Array  # (n,) of `HEIGHTS` that the levels reach; empty without U and V
    u: Array  # (n,)
    v: Array
    surface: tuple[float, float] | None  # 10 m wind
    depth: float  # of the boundary layer, m; NaN if it is not written

    def sounding(self, hour: float) -> Sounding:
        """The profile from the 10 m wind up."""
        height, u, v = self.height, self.u, self.v
        if self.surface is not None and not (height.size and height[0] <= SURFACE):
            height = np.append(SURFACE, height)
            u, v = np.append(self.surface[0], u), np.append(self.surface[1], v)
        return Sounding(hour, height, u, v, self.depth)


def weather_variables(dataset: netCDF4.Dataset) -> frozenset[str]:
    """The variables of the weather that a file has, with WRF's dimensions; winds in pairs."""
    names = {
        name
        for name in _VARIABLES
        if name in dataset.variables and dataset[name].dimensions == dimensions_of(name)
    }
    for pair in ({"U", "V"}, {"U10", "V10"}):
        names -= set() if pair <= names else pair
    return frozenset(names)


def weather_frames(
    frames: Sequence[Frame], kept: Collection[Frame], names: Collection[str]
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
    read: Callable[[str], Array], seconds: float, names: Collection[str]
) -> FrameProfile:
    """Profile of the frame at `seconds`; `names` are the variables of the weather in its file.

    `read` returns one variable of the frame by name.
    """
    fields, surface = None, None
    if {"U10", "V10"} <= set(names):
        u10, v10 = read("U10"), read("V10")
        if _is_written(u10, v10) and (u10.any() or v10.any()):
            fields, surface = (u10, v10), (_median(u10), _median(v10))
    depth = read("PBLH") if "PBLH" in names else np.zeros(1)
    deep = _median(depth) if _is_written(depth) and depth.any() else np.nan
    levels = (np.empty(0), np.empty(0), np.empty(0))
    if {"U", "V"} <= set(names):
        levels = _levels(read, fields)
    return FrameProfile(seconds, *levels, surface, deep)


def _levels(
    read: Callable[[str], Array], surface: tuple[Array, Array] | None
) -> tuple[Array, Array, Array]:
    """(height, u, v) of the ambient wind at those `HEIGHTS` above ground that the levels reach.

    U and V are averaged from the faces of a cell to its centre, PH + PHB from the faces of a layer
    to its middle. In each column, u and v are linear in ln z between the levels and the 10 m wind.
    """
    faces = (read("PH") + read("PHB")).astype(np.float64) / GRAVITY
    fields = _middle(read("U"), 2), _middle(read("V"), 1), _middle(faces - faces[0], 0)
    u, v, z = (_fewer_columns(field) for field in fields)
    if not _is_written(u, v, z):
        raise PlumecastError("NaN or unwritten U, V, PH or PHB; did the run stop early?")
    if surface is not None and z[0].min() > SURFACE:
        z = np.concatenate([np.full((1, *z.shape[1:]), SURFACE), z])
        u, v = (
            np.concatenate([_fewer_columns(at_10_m[None]), field])
            for at_10_m, field in zip(surface, (u, v), strict=True)
        )
    inside = [h for h in HEIGHTS if z[0].max() <= h <= z[-1].min()]
    log_z = np.log(z)
    winds = [[_median(_at_height(log_z, field, np.log(h))) for h in inside] for field in (u, v)]
    return np.array(inside), np.array(winds[0]), np.array(winds[1])


def weather_of(
    profiles: list[FrameProfile], *, ignition: float, source: object, attributes: Mapping[str, Any]
) -> tuple[xr.Dataset | None, tuple[Finding, ...]]:
    """Hourly weather of the frames of a run; `ignition` is in s since the start of the simulation.

    Frames before the last one before ignition are not used. None if no frame has a wind. Frames
    that are many hours apart, or that begin long after ignition, give no hourly weather, but they
    still give snapshots: a finding says why.
    """
    if len(profiles) > 1 and (profiles[0].surface is None or np.isnan(profiles[0].depth)):
        first = profiles[0]._replace(surface=profiles[1].surface, depth=profiles[1].depth)
        profiles = [first, *profiles[1:]]
    hours = [(profile.seconds - ignition) / 3600.0 for profile in profiles]
    start = max([n for n, hour in enumerate(hours) if hour <= 0.0], default=0)
    soundings = [
        profile.sounding(hour)
        for profile, hour in zip(profiles[start:], hours[start:], strict=True)
        if profile.height.size or profile.surface is not None
    ]
    if not soundings:
        return None, ()
    has_levels = any(profile.height.size for profile in profiles)
    note = (
        "ambient wind along the grid: median of all columns; before WRF's first step, the 10 m "
        "wind and the boundary layer are those of the next frame"
    )
    if not has_levels:
        note += "; the files have no U and V, the default profile is used above 10 m"
    origin = Origin(source, "wrf" if has_levels else SURFACE_ONLY, {"": note})
    try:
        weather = hourly_dataset([Series(soundings)], origin, DefaultProfile())
    except PlumecastError as error:
        reason = str(error).removeprefix(f"{source}: ")
        return None, (Finding("no hourly weather", reason),)
    scheme = smoke_scheme(attributes)
    return (weather if scheme is None else weather.assign_attrs({SMOKE_SCHEME: scheme})), ()


def _fewer_columns(field: Array) -> Array:
    """Every n-th column of a field (level, ny, nx), at most `_MOST_COLUMNS`."""
    step = int(np.ceil(np.sqrt(field.shape[1] * field.shape[2] / _MOST_COLUMNS)))
    return field[:, ::step, ::step]


def _median(field: Array) -> float:
    return float(np.median(np.asarray(field, dtype=np.float64)))


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


def _is_written(*fields: Array) -> bool:
    return all((np.abs(field) < _LARGEST).all() for field in fields)
