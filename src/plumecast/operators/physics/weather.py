"""The weather of every snapshot as arrays on the host."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.linalg import interpolation


@dataclass(frozen=True, slots=True)
class WeatherSeries:
    """Hourly winds and boundary layers since ignition."""

    hours: Array  # (H,) since ignition, ascending
    heights: Array  # (Z,) above ground, m, ascending
    u: Array  # (M, H, Z) towards east, m s⁻¹
    v: Array  # (M, H, Z) towards north
    depth: Array  # (M, H) of the boundary layer, m
    until: Array  # (M,) hour of the snapshot

    def at(self, rows: Array | slice) -> WeatherSeries:
        """The weather of some snapshots."""
        parts = {name: getattr(self, name)[rows] for name in ("u", "v", "depth", "until")}
        return replace(self, **parts)

    def at_times(self, times: Array, heights: Array, like_array: Array) -> tuple[Array, ...]:
        """(M, n) times → (M, n, L) winds towards east and north, (M, n) depths, on a device.

        They are linear in time and height. Beyond the first and last hour and height, the nearest
        is used.
        """
        known, asked = (like(values, like_array) for values in (self.hours, times))
        xp = array_namespace(like_array)
        by_time = xp.astype(interpolation(known, asked), xp.float32)  # many: made on the device
        by_height = like(interpolation(self.heights, heights).T.astype(np.float32), like_array)
        u, v, depth = (
            like(np.asarray(values, dtype=np.float32), like_array)
            for values in (self.u, self.v, self.depth)
        )
        return (
            by_time @ u @ by_height,
            by_time @ v @ by_height,
            (by_time @ depth[..., None])[..., 0],
        )
