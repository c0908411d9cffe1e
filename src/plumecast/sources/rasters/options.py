"""Options for reading arrival-time rasters, and the conventions of known fire models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.values import check_number
from plumecast.compute import regrid

UNITS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
"""Hours per unit of arrival time."""

HORIZON = 720.0
"""Default limit for an arrival after ignition, h; a later one suggests a wrong unit."""


class Format(NamedTuple):
    """Convention of one fire model."""

    unit: str | None
    unburned: tuple[float, ...] = ()  # values that mean unburned
    step: float = 0.0  # resolution of the arrival times, h


FORMATS = {
    "farsite": Format("min", (-9999.0,)),
    "elmfire": Format("s", (-9999.0,)),
    "pyretechnics": Format("min"),
    # day of the year; 0 inactive, 1 (older releases) or 999 unburned, so 1 January cannot burn
    "landis": Format("d", (0.0, 1.0, 999.0), step=24.0),
    "generic": Format(None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How rasters are read; see `read_arrival_times`."""

    unit: str | None = None
    format: str | None = None
    like: xr.Dataset | xr.DataArray | None = None
    crs: Any = None
    hours: Sequence[float] | None = None
    aggregate: str = "mean"
    horizon: float = HORIZON
    nodata: float | None = None
    variable: str | None = None
    drought: str | None = None
    step: float | None = None  # hours between further snapshots of every fire before its last

    def __post_init__(self) -> None:
        if self.convention not in FORMATS:
            raise ArgumentError(
                "format", self.format, f"choose one of {', '.join(FORMATS)}", problem="is unknown"
            )
        if self.aggregate not in regrid.AGGREGATES:
            raise PlumecastError(regrid.unknown_aggregate(self.aggregate))
        check_number("horizon", self.horizon, above=0.0)
        if self.hours is not None:
            series = np.asarray(self.hours, dtype=float)
            if series.ndim != 1 or not series.size or not (np.diff(series, prepend=0) > 0).all():
                raise ArgumentError("hours", self.hours, "give increasing hours above 0")

    @property
    def convention(self) -> str:
        """The format's name; "generic" where none is stated."""
        return self.format or "generic"

    @property
    def has_events(self) -> bool:
        """Whether a file may contain several fires, which an event-ID map separates."""
        return self.convention == "landis"

    def without_fields(self) -> Options:
        """The same options with only the grid in `like`, so that less is sent to workers."""
        like = self.like
        if isinstance(like, xr.Dataset):
            fields = [name for name, item in like.data_vars.items() if item.ndim]
            return replace(self, like=like.drop_vars(fields))
        return self if like is None else replace(self, like=like.coords.to_dataset())

    def hours_per_unit(self, path: Path) -> float:
        """Hours per unit of the arrival times: the stated unit, or else that of the format."""
        unit = self.unit or FORMATS[self.convention].unit
        if unit in UNITS:
            return UNITS[unit]
        given = f"unit={unit!r} is unknown" if unit else "the unit of arrival times is not stated"
        raise PlumecastError(
            f"{path}: {given}; give unit ({', '.join(UNITS)}) or a format ({', '.join(FORMATS)})"
        )
