"""Borders of countries, states and counties in the plane of a grid, from TopoJSON files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np

from plumecast.compute.regrid import Grid
from plumecast.data.crs import as_crs, import_extra

Lines = dict[str, list[np.ndarray]]
"""Lines (n, 2) of x and y in metres by kind: "country", "state" or "county"."""

COUNTIES_BELOW = 6e5  # m: wider grids show no counties
_MARGIN = 0.05  # of the grid's size, drawn around it
_PLACES = (
    ("country", ("world-atlas", "countries-50m.json"), "countries"),
    ("state", ("us-atlas", "counties-10m.json"), "states"),
    ("county", ("us-atlas", "counties-10m.json"), "counties"),
)


def borders(grid: Grid, crs: Any) -> Lines:
    """The borders that cross a grid whose plane is `crs`."""
    plane = as_crs(crs, "the grid")
    pyproj = import_extra("pyproj", "the grid")
    to_plane = pyproj.Transformer.from_crs(4326, plane, always_xy=True)
    width, height = grid.nx * grid.dx, grid.ny * grid.dy
    margin = _MARGIN * max(width, height)
    box = (grid.left - margin, grid.bottom - margin,
           grid.left + width + margin, grid.bottom + height + margin)  # fmt: skip
    around = to_plane.transform_bounds(*box, direction="INVERSE")
    if not np.isfinite(around).all() or around[0] > around[2]:
        return {}  # a grid across the date line
    found: Lines = {}
    seen: set[tuple[str, int]] = set()
    for kind, (folder, name), layer in _PLACES:
        if kind == "county" and max(width, height) > COUNTIES_BELOW:
            continue
        atlas = json.loads((_vendor() / folder / name).read_text(encoding="utf-8"))
        for arc in sorted({abs_arc(k) for k in _arcs(atlas["objects"][layer])}):
            if (name, arc) in seen:
                continue
            seen.add((name, arc))
            degrees = _degrees(atlas, arc)
            if _apart(degrees, around):
                continue
            x, y = to_plane.transform(degrees[:, 0], degrees[:, 1])
            found.setdefault(kind, []).extend(_within(np.stack([x, y], axis=1), box))
    return {kind: lines for kind, lines in found.items() if lines}


def _vendor() -> Any:
    return files("plumecast.app") / "assets" / "vendor"


def abs_arc(number: int) -> int:
    """Number of an arc; TopoJSON writes ~number for an arc that is followed backwards."""
    return number if number >= 0 else ~number


def _arcs(item: Any) -> Iterator[int]:
    """Numbers of all arcs within a TopoJSON object."""
    if isinstance(item, int):
        yield item
    elif isinstance(item, list):
        for part in item:
            yield from _arcs(part)
    elif "geometries" in item:
        yield from _arcs(item["geometries"])
    else:
        yield from _arcs(item.get("arcs", []))


def _degrees(atlas: dict[str, Any], arc: int) -> np.ndarray:
    """(n, 2) longitudes and latitudes of an arc: sums of steps, scaled and shifted."""
    steps = np.array(atlas["arcs"][arc], dtype=np.float64)
    transform = atlas["transform"]
    moved: np.ndarray = np.cumsum(steps, axis=0) * transform["scale"] + transform["translate"]
    return moved


def _apart(points: np.ndarray, box: tuple[float, ...]) -> bool:
    low, high = points.min(axis=0), points.max(axis=0)
    return bool(low[0] > box[2] or high[0] < box[0] or low[1] > box[3] or high[1] < box[1])


def _within(line: np.ndarray, box: tuple[float, ...]) -> Iterator[np.ndarray]:
    """The pieces of a line whose segments meet a box; segments are kept whole."""
    start, end = line[:-1], line[1:]
    low, high = np.minimum(start, end), np.maximum(start, end)
    meets = (low[:, 0] <= box[2]) & (high[:, 0] >= box[0])
    meets &= (low[:, 1] <= box[3]) & (high[:, 1] >= box[1]) & np.isfinite(low + high).all(axis=1)
    kept = np.flatnonzero(meets)
    for run in np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1):
        if run.size:
            yield line[run[0] : run[-1] + 2]
