"""The smoke grid of a landscape: cell centres and, if the ground is on a map, its CRS."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumecast.base.names import TABLE
from plumecast.sources.rasters.georeference import as_crs, in_metres, latitude_longitude
from plumecast.sources.simulator.fields import Field
from plumecast.sources.simulator.land.landscape import Landscape


def smoke_grid(landscape: Landscape, block: int) -> dict[str, Any]:
    """Coordinates y and x of the smoke cells (`block` by `block` fire cells each).

    A landscape with a CRS adds the CF grid mapping `crs`, and `lat` and `lon` of the cells.
    """
    shape = (landscape.shape[0] // block, landscape.shape[1] // block)
    y, x = smoke_centres(shape, landscape.cell * block, landscape.corner)
    out: dict[str, Any] = {"y": ("y", y, TABLE["y"].attrs), "x": ("x", x, TABLE["x"].attrs)}
    if landscape.crs is None:
        return out
    crs = in_metres(as_crs(landscape.crs, "the landscape"))
    for name, degrees in zip(("lat", "lon"), latitude_longitude(crs, y, x), strict=True):
        out[name] = (("y", "x"), degrees, TABLE[name].attrs)
    return out | {"crs": ((), 0, crs.to_cf())}


def smoke_centres(
    shape: tuple[int, int], cell: float, corner: tuple[float, float] = (0.0, 0.0)
) -> tuple[Field, Field]:
    """Cell centres (y, x) of the smoke grid, from south to north and from west to east, m.

    `corner` is x and y of the south-west corner.
    """
    (ny, nx), (left, bottom) = shape, corner
    y, x = (cell * (np.arange(count, dtype=np.float64) + 0.5) for count in (ny, nx))
    return bottom + y, left + x
