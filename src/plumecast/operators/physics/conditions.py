"""The weather and the fuel load of every snapshot as arrays on the host. Arrays only, no labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like, take_rows
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


@dataclass(frozen=True, slots=True)
class FuelLoads:
    """The different maps of fuel load, and the map of every snapshot.

    Fires share a few maps (a landscape, or one for every scenario or year), which are kept once.
    """

    maps: Array  # (U, ny, nx), kg m⁻²
    number: Array  # (M,), of the map of every snapshot

    def at(self, rows: Array | slice) -> FuelLoads:
        """The loads of some snapshots."""
        return replace(self, number=self.number[rows])

    def on(self, fire: Array) -> Array:
        """(M, ny, nx) loads, or (1, ny, nx) if all have one map, as float32 where `fire` is."""
        used, own = np.unique(self.number, return_inverse=True)
        maps = like(np.asarray(self.maps[used], dtype=np.float32), fire)
        return maps if used.size == 1 else take_rows(maps, own)

    def mean(self) -> Array:
        """(ny, nx) mean over the snapshots, float32; the map itself if there is one."""
        if self.maps.shape[0] == 1:
            return np.asarray(self.maps[0], dtype=np.float32)
        counts = np.bincount(self.number, minlength=self.maps.shape[0])
        mean = np.tensordot(counts / counts.sum(), self.maps.astype(np.float64), axes=1)
        return np.asarray(mean, dtype=np.float32)
