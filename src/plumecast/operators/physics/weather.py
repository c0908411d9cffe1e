"""The weather of every snapshot as arrays on the host."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, like


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
        """(M, n, L) winds towards east and north, and (M, n) depths, on the device of an array.

        They are linear in time and height. Beyond the first and last hour and height, the nearest
        is used.
        """
        in_time = _interpolation(self.hours, times)
        in_height = _interpolation(self.heights, heights)
        by_time, by_height = (
            like(matrix.astype(np.float32), like_array) for matrix in (in_time, in_height.T)
        )
        u, v, depth = (
            like(np.asarray(values, dtype=np.float32), like_array)
            for values in (self.u, self.v, self.depth)
        )
        return (
            by_time @ u @ by_height,
            by_time @ v @ by_height,
            (by_time @ depth[..., None])[..., 0],
        )


def _interpolation(places: Array, wanted: Array) -> Array:
    """(n, len(places)) matrix of linear interpolation."""
    matrix = np.zeros((wanted.size, places.size))
    if places.size == 1:
        matrix[:] = 1.0
        return matrix
    upper = np.clip(np.searchsorted(places, wanted), 1, places.size - 1)
    below, above = places[upper - 1], places[upper]
    share = np.clip((wanted - below) / (above - below), 0.0, 1.0)
    rows = np.arange(wanted.size)
    matrix[rows, upper - 1], matrix[rows, upper] = 1.0 - share, share
    return matrix
