"""What a user states about a weather file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.sources.weather.default import DAY_DEPTH, NIGHT_DEPTH, VEER, Rules
from plumecast.sources.weather.times import IgnitionTime
from plumecast.sources.weather.units import SPEEDS

DIRECTIONS = ("from", "to")
"""Meanings of a direction: where the wind comes from, or where it blows to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `read_weather`, which explains them."""

    ignition: IgnitionTime | None = None
    speed_unit: str | None = None
    direction_is: str | None = None
    local_hour: float | None = None
    latitude: float | None = None
    longitude: float | None = None
    elevation: float | None = None
    veer: float = VEER
    day_depth: float = DAY_DEPTH

    def __post_init__(self) -> None:
        if self.speed_unit is not None and self.speed_unit not in SPEEDS:
            raise PlumecastError(
                f"speed_unit={self.speed_unit!r} is not known; give {', '.join(SPEEDS)}"
            )
        if self.direction_is not in (None, *DIRECTIONS):
            raise PlumecastError(f"direction_is={self.direction_is!r}; give 'from' or 'to'")
        if (self.latitude is None) != (self.longitude is None):
            raise PlumecastError("give both latitude and longitude, or none of them")
        limits = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 360.0),
                  "local_hour": (0.0, 24.0), "elevation": (-500.0, 9000.0),
                  "veer": (-90.0, 90.0), "day_depth": (NIGHT_DEPTH, 10_000.0)}  # fmt: skip
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if value is not None and not (low <= float(value) <= high and np.isfinite(value)):
                raise PlumecastError(f"{name}={value}; give a number from {low:g} to {high:g}")

    @property
    def rules(self) -> Rules:
        """How profiles are completed."""
        return Rules(self.veer, self.day_depth)
