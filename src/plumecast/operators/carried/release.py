"""When every cell releases its smoke, and the weather that carries it. Arrays only, no labels.

A fire may know how much of every cell had burned by when, or have several maps, from which that
follows (`FireHistory`, `compute.burned`).

A single map must tell it alone. While the front crosses the cell in a time D at a
constant rate, the age is s² / (2 D) at a time s after the front entered it; afterwards it is
s − D/2. D is about the difference of the ages of the cell and of its oldest neighbour. Inverting
gives the time of entry, and the share of the cell that has burned by any earlier time.

Small fires stop within cells, which then burn in part. The cell of the ignition tells in which
part: its burned area has an age of nearly the hours since ignition, so that the share of a cell
that burns at all is about the largest age divided by these hours (`partial_release_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, clip, is_numpy_array, like, take_rows
from plumecast.compute.burned import Shares, shares_of
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


LEAST_CROSSING = 0.5
"""Shortest time that a front needs to cross a cell, h."""

LEAST_SHARE = 0.02
"""Smallest share of a cell that burns, so that ages are divided by a positive number."""


class Release(Protocol):
    """How much of every cell of M fires has burned by when."""

    def by(self, hours: Array) -> Array:
        """(n, M) hours since ignition, on the host → (n, M, ny, nx) shares that have burned."""
        ...


@dataclass(frozen=True, slots=True)
class Front:
    """Entry of the front and time to cross, (M, ny, nx) each, in hours."""

    entry: Array
    crossing: Array
    burned: Array  # share of every cell that burns at all; 0.0 where nothing burned

    def by(self, hours: Array) -> Array:
        """(n, M) hours → (n, M, ny, nx) shares; the share rises evenly while the front crosses."""
        time = like(np.asarray(hours, dtype=np.float32)[..., None, None], self.entry)
        return clip((time - self.entry) / self.crossing, 0.0, 1.0) * self.burned

    def ages(self, hours: Array) -> Array:
        """(n, M) hours → (n, M, ny, nx) ages: the integral of the share since ignition."""
        time = like(np.asarray(hours, dtype=np.float32)[..., None, None], self.entry)
        xp = array_namespace(self.entry)
        since = xp.clip(time - self.entry, 0.0, None)
        crossed = xp.minimum(since, self.crossing)
        return (0.5 * crossed**2 / self.crossing + since - crossed) * self.burned


@dataclass(frozen=True, slots=True)
class FireHistory:
    """Maps of every fire, which its snapshots share: of its age, or of its burned share.

    Smoke of a snapshot is released up to its own hour; maps may be later.
    """

    fields: Array  # (U, ny, nx), or an object that gives them when indexed by rows
    hours: Array  # (U,)
    rows: Array  # (M, K) numbers of the maps, ascending in time; −1 before the first
    ages: int | None = None  # so many of the fields are ages, the others burned shares; None: all

    def at(self, rows: Array | slice) -> FireHistory:
        """The history of some fires."""
        return replace(self, rows=self.rows[rows])

    def loaded(self) -> FireHistory:
        """The same with the maps of these fires in memory; each is read once."""
        if is_numpy_array(self.fields):
            return self
        numbers, places = np.unique(self.rows, return_inverse=True)
        absent = int(numbers.size > 0 and numbers[0] < 0)
        used = numbers[absent:]
        places = places.reshape(self.rows.shape) - absent
        ages = None if self.ages is None else int((used < self.ages).sum())
        return FireHistory(np.asarray(self.fields[used]), self.hours[used], places, ages)

    def known(self) -> Array:
        """(M,) whether the history tells more than a single map: several maps, or burned shares."""
        told = (self.rows >= 0).sum(axis=1) > 1
        return told if self.ages is None else told | (self.rows[:, -1] >= self.ages)

    def release(self, fire: Array) -> Shares:
        """The release of M fires on the device of their maps `fire`; each has a snapshot."""
        used = self.rows[:, np.any(self.rows >= 0, axis=0)]
        numbers, places = np.unique(used, return_inverse=True)
        absent = int(numbers[0] < 0)
        stored = np.asarray(self.fields[numbers[absent:]], dtype=np.float32)
        maps = np.concatenate([np.zeros((absent, *stored.shape[1:]), np.float32), stored])
        hours = np.concatenate([np.zeros(absent), self.hours[numbers[absent:]]])
        places = places.reshape(used.shape)
        fields, times = like(maps[places], fire), hours[places]
        known = np.zeros(len(used), dtype=bool) if self.ages is None else used[:, -1] >= self.ages
        if not known.any():
            return shares_of(times, fields)
        again = np.concatenate([times, times[:, -1:]], axis=1)  # as many nodes as of maps
        last = fields[:, -1:, ...]
        held = Shares.since_ignition(again, array_namespace(fields).concat([fields, last], axis=1))
        if known.all():
            return held
        others = shares_of(times, fields)
        chosen = like(known.astype(np.float32)[:, None, None, None], fields)
        return Shares(
            np.where(known[:, None], held.hours, others.hours),
            chosen * held.shares + (1.0 - chosen) * others.shares,
        )


def release_of(fire: Array, until: Array) -> Front:
    """The release of (M, ny, nx) ages at the hours `until` (M, 1, 1)."""
    xp = array_namespace(fire)
    oldest = neighbour_maximum(fire)
    crossing = xp.where(oldest > fire, oldest - fire, xp.abs(fire - oldest))
    crossing = xp.clip(crossing, LEAST_CROSSING, None)
    since = xp.where(fire < 0.5 * crossing, xp.sqrt(2.0 * crossing * fire), fire + 0.5 * crossing)
    since = xp.minimum(since, until)
    burned = xp.astype(fire > 0.0, fire.dtype)
    return Front(until - since, crossing, burned)


def partial_release_of(fire: Array, until: Array) -> Front:
    """The release of cells that burn in part, of (M, ny, nx) ages at the hours `until` (M, 1, 1).

    With the share φ = max f / until of every fire, the burned part of a cell has the age f / φ. It
    is released like a whole cell of this age, times φ.
    """
    xp = array_namespace(fire)
    oldest = xp.max(fire, axis=(1, 2), keepdims=True)
    hours = xp.where(until > 0.0, until, xp.ones_like(until))
    share = xp.clip(oldest / hours, LEAST_SHARE, 1.0)
    whole = release_of(xp.minimum(fire / share, until), until)
    return replace(whole, burned=whole.burned * share)


def neighbour_maximum(fire: Array) -> Array:
    """(M, ny, nx) largest value among the four neighbours; outside the grid is 0."""
    xp = array_namespace(fire)
    row, column = xp.zeros_like(fire[:, :1, :]), xp.zeros_like(fire[:, :, :1])
    south = xp.concat([row, fire[:, :-1, :]], axis=1)
    north = xp.concat([fire[:, 1:, :], row], axis=1)
    west = xp.concat([column, fire[:, :, :-1]], axis=2)
    east = xp.concat([fire[:, :, 1:], column], axis=2)
    return xp.maximum(xp.maximum(south, north), xp.maximum(west, east))
