"""The fuel load of every snapshot as arrays on the host. Arrays only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, like, take_rows


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
