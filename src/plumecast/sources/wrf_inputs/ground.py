"""The ground of an ideal WRF run: `input_ht` (terrain) and `input_fc` (fuels).

WRF reads both on its staggered sizes, one row and column of cells more than the domain has.
"""

from __future__ import annotations

import numpy as np

from plumecast.compute.arrays import Array
from plumecast.sources.wrf_inputs.domain import Domain

RIM = 6
"""Columns at each edge over which terrain falls to the lowest ground, for calm open boundaries."""


def rimmed_terrain(elevation: Array) -> Array:
    """Terrain (ny, nx) above its lowest ground, m, times min(d / RIM, 1) at d columns from an edge.

    The sounding starts at height 0, so the lowest ground must be there.
    """
    ny, nx = elevation.shape
    rows, columns = np.arange(ny)[:, np.newaxis], np.arange(nx)
    edge = np.minimum(np.minimum(rows, ny - 1 - rows), np.minimum(columns, nx - 1 - columns))
    return (elevation - elevation.min()) * np.minimum(edge / RIM, 1.0)


def input_ht(terrain: Array) -> str:
    """Text of `input_ht` from terrain (ny, nx) on the columns, m."""
    return _table(np.pad(terrain, ((0, 1), (0, 1)), mode="edge"), ".1f")


def input_fc(categories: Array, domain: Domain) -> str:
    """Text of `input_fc` from fuel categories (ny·sr, nx·sr) on the fire cells."""
    more = (0, domain.refinement)
    return _table(np.pad(categories, (more, more), mode="edge"), "d")


def _table(values: Array, form: str) -> str:
    """WRF reads the two sizes, then one line for each index in x with all values along y."""
    ny, nx = values.shape
    lines = [" ".join(f"{value:{form}}" for value in values[:, column]) for column in range(nx)]
    return "\n".join([f"{nx} {ny}", *lines]) + "\n"
