"""When every cell releases its smoke, from the time since ignition. Arrays only.

The age of a cell is a mean over its area. While the front crosses the cell in a time D at a
constant rate, the age is s² / (2 D) at a time s after the front entered it; afterwards it is
s − D/2. D is about the difference of the ages of the cell and of its oldest neighbour. Inverting
gives the time of entry, and the share of the cell that has burned by any earlier time.

Small fires stop within cells, which then burn in part. The cell of the ignition tells in which
part: its burned area has an age of nearly the hours since ignition, so that the share of a cell
that burns at all is about the largest age divided by these hours (`partial_release_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumecast.compute.arrays import Array, array_namespace, clip

LEAST_CROSSING = 0.5
"""Shortest time that a front needs to cross a cell, h."""

LEAST_SHARE = 0.02
"""Smallest share of a cell that burns, so that ages are divided by a positive number."""


@dataclass(frozen=True, slots=True)
class Release:
    """Entry of the front and time to cross, (M, ny, nx) each, in hours."""

    entry: Array
    crossing: Array
    burned: Array  # share of every cell that burns at all; 0.0 where nothing burned

    def by(self, hour: Array | float, until: Array) -> Array:
        """(…, M, ny, nx) share of every cell that has burned by min(hour, until).

        Hours may be an array (…, 1, 1, 1).
        """
        xp = array_namespace(self.entry)
        time = xp.clip(until, None, hour) if isinstance(hour, float) else xp.minimum(until, hour)
        return clip((time - self.entry) / self.crossing, 0.0, 1.0) * self.burned


def release_of(fire: Array, until: Array) -> Release:
    """The release of (M, ny, nx) ages at the hours `until` (M, 1, 1)."""
    xp = array_namespace(fire)
    oldest = neighbour_maximum(fire)
    crossing = xp.where(oldest > fire, oldest - fire, xp.abs(fire - oldest))
    crossing = xp.clip(crossing, LEAST_CROSSING, None)
    since = xp.where(fire < 0.5 * crossing, xp.sqrt(2.0 * crossing * fire), fire + 0.5 * crossing)
    since = xp.minimum(since, until)
    burned = xp.astype(fire > 0.0, fire.dtype)
    return Release(until - since, crossing, burned)


def partial_release_of(fire: Array, until: Array) -> Release:
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
