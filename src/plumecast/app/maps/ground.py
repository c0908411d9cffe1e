"""What lies around and below the smoke of a map: perimeters, borders, and a hillshade."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from plumecast.base.errors import PlumecastError
from plumecast.compute.regrid import Grid
from plumecast.data.crs import as_crs, import_extra, same_crs
from plumecast.sources.rasters.files import read_raster

Ring = list[tuple[int, int]]
"""Closed line through corners (column, row) of cells; the first corner is not repeated."""


def outline(burned: np.ndarray) -> list[Ring]:
    """Rings around the burned cells of a (ny, nx) field, burned on the left of the way.

    Corner (i, j) is the lower left corner of cell (row j, column i). Only the corners at which a
    ring turns are kept.

    >>> outline(np.array([[True, True], [False, False]]))
    [[(0, 0), (2, 0), (2, 1), (0, 1)]]
    """
    follow = _edges(np.pad(np.asarray(burned, dtype=bool), 1))
    rings = []
    while follow:
        ring = _walk(follow, min(follow, key=lambda corner: (corner[1], corner[0])))
        around = zip(ring[-1:] + ring[:-1], ring, ring[1:] + ring[:1], strict=True)
        rings.append([
            here
            for before, here, after in around
            if not (before[0] == here[0] == after[0] or before[1] == here[1] == after[1])
        ])  # fmt: skip
    return rings


def perimeters(burned: np.ndarray, grid: Grid) -> list[np.ndarray]:
    """The rings of `outline` in the plane of a grid: (n, 2) x and y, ending where they begin."""
    rings = (np.array([*ring, ring[0]], dtype=np.float64) for ring in outline(burned))
    return [ring * (grid.dx, grid.dy) + (grid.left, grid.bottom) for ring in rings]


def _edges(padded: np.ndarray) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Directed edges between burned and unburned cells, by the corner where they begin."""
    follow: dict[tuple[int, int], list[tuple[int, int]]] = {}
    ways = (
        ((-1, 0), (0, 0), (1, 0)),  # unburned below: east along the lower edge
        ((0, 1), (1, 0), (1, 1)),  # unburned right: north
        ((1, 0), (1, 1), (0, 1)),  # unburned above: west
        ((0, -1), (0, 1), (0, 0)),  # unburned left: south
    )
    for (down, right), (x0, y0), (x1, y1) in ways:
        other = np.roll(padded, (-down, -right), axis=(0, 1))
        for row, column in np.argwhere(padded & ~other):
            j, i = int(row) - 1, int(column) - 1
            follow.setdefault((i + x0, j + y0), []).append((i + x1, j + y1))
    return follow


def _walk(
    follow: dict[tuple[int, int], list[tuple[int, int]]], start: tuple[int, int]
) -> list[tuple[int, int]]:
    """Corners of one ring, whose edges are taken away; cells that touch at a corner stay apart."""
    ring, here, way = [start], start, (0, 0)
    while True:
        choices = follow[here]
        left = (here[0] - way[1], here[1] + way[0])
        following = left if len(choices) > 1 and left in choices else choices[0]
        choices.remove(following)
        if not choices:
            del follow[here]
        way = (following[0] - here[0], following[1] - here[1])
        here = following
        if here == start:
            return ring
        ring.append(here)


Lines = dict[str, list[np.ndarray]]
"""Lines (n, 2) of x and y in metres by kind: "country", "state" or "county"."""

GROUND_HEIGHT = "surface_altitude"
"""Field of a store with the height of the ground in m, for the hillshade."""

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
    lines_by_kind: Lines = {}
    seen: set[tuple[str, int]] = set()
    for kind, (folder, name), layer in _PLACES:
        if kind == "county" and max(width, height) > COUNTIES_BELOW:
            continue
        path = files("plumecast.app") / "assets" / "vendor" / folder / name
        atlas = json.loads(path.read_text(encoding="utf-8"))
        scale, shift = (atlas["transform"][part] for part in ("scale", "translate"))
        # TopoJSON writes ~number for an arc that is followed backwards.
        for arc in sorted({max(k, ~k) for k in _arcs(atlas["objects"][layer])}):
            if (name, arc) in seen:
                continue
            seen.add((name, arc))
            # Longitudes and latitudes are sums of steps, scaled and shifted.
            degrees = np.cumsum(np.array(atlas["arcs"][arc], dtype=np.float64), axis=0)
            degrees = degrees * scale + shift
            if (degrees.min(axis=0) > around[2:]).any() or (degrees.max(axis=0) < around[:2]).any():
                continue
            line = np.stack(to_plane.transform(*degrees.T), axis=1)
            lines_by_kind.setdefault(kind, []).extend(_within(line, box))
    return {kind: lines for kind, lines in lines_by_kind.items() if lines}


@dataclass(frozen=True, slots=True)
class Ground:
    """What lies around and below the smoke of a plane with a coordinate system."""

    grid: Grid
    borders: Lines
    graticule: dict[str, np.ndarray]  # (n, 2) x and y by label
    heights: np.ndarray | None = None  # (ny, nx), m


def ground_of(grid: Grid, crs: Any, heights: Any = None) -> Ground:
    """The borders and the graticule of a grid, and the heights (y, x) of its cells."""
    known = None if heights is None or set(heights.dims) != {"y", "x"} else heights
    values = None if known is None else known.transpose("y", "x").values.astype(np.float64)
    return Ground(grid, borders(grid, crs), graticule(grid, crs), values)


_STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # degrees between lines
_MOST_LINES = 3  # of each direction


def graticule(grid: Grid, crs: Any) -> dict[str, np.ndarray]:
    """Meridians and parallels within a grid by their labels, from the bottom and from the left."""
    to_plane = import_extra("pyproj", "the grid").Transformer.from_crs(
        4326, as_crs(crs, "the grid"), always_xy=True
    )
    right, top = grid.left + grid.nx * grid.dx, grid.bottom + grid.ny * grid.dy
    around = to_plane.transform_bounds(grid.left, grid.bottom, right, top, direction="INVERSE")
    if not np.isfinite(around).all() or around[0] > around[2]:
        return {}
    lines = {}
    for axis, (names, low, high) in enumerate((("EW", *around[::2]), ("NS", *around[1::2]))):
        step = next((s for s in _STEPS if (high - low) / s <= _MOST_LINES + 1), 30.0)
        along = np.linspace(around[1 - axis], around[3 - axis], 400)
        for number in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1):
            degrees = np.full((400, 2), round(number * step, 6))
            degrees[:, 1 - axis] = along
            x, y = to_plane.transform(*degrees.T)
            inside = (x >= grid.left) & (x <= right) & (y >= grid.bottom) & (y <= top)
            if inside.sum() > 1:
                label = f"{abs(number * step):g}° {names[number < 0]}"
                lines[label] = np.stack([x, y], axis=1)[inside]
    return lines


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


LONGEST = 600  # pixels of the longer side
_SUN_FROM, _SUN_HEIGHT = 315.0, 45.0  # degrees, as maps have it
_LEAST_INSIDE = 0.01  # share of the grid that an elevation model must cover


def shade(heights: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """Brightness (0 to 1) of a surface (ny, nx) in m, south row first, lit from the north-west.

    cos i = cos z + sin z (−∂h/∂x sin a − ∂h/∂y cos a), divided by √(1 + |∇h|²), with the sun at
    the zenith angle z and the azimuth a. Flat ground has cos z. Steep relief is not clipped, and
    gentle relief is raised so that the steepest tenth of the slopes is about 1 in 2.
    """
    slope_y, slope_x = np.gradient(heights, dy, dx)
    steep = float(np.nanpercentile(np.hypot(slope_x, slope_y), 90)) if heights.size else 0.0
    raised = max(1.0, 0.5 / steep) if steep > 0.0 else 1.0
    slope_x, slope_y = raised * slope_x, raised * slope_y
    azimuth, zenith = np.radians(_SUN_FROM), np.radians(90.0 - _SUN_HEIGHT)
    # The slope faces the sun where the ground falls towards it.
    facing = -(slope_x * np.sin(azimuth) + slope_y * np.cos(azimuth))
    light = (np.cos(zenith) + np.sin(zenith) * facing) / np.sqrt(1.0 + slope_x**2 + slope_y**2)
    clipped: np.ndarray = np.clip(light, 0.0, 1.0)
    return clipped


def resample(path: str | Path, grid: Grid, crs: Any) -> tuple[np.ndarray, float, float]:
    """Heights of an elevation model on the plane of a grid: (ny, nx), and the size of pixels.

    Interpolated linearly at the pixels of a picture of the grid; NaN outside the model.
    """
    raster = read_raster(Path(path))
    if raster.crs is not None and crs is None:
        raise PlumecastError(
            f"{path}: has a coordinate system, the grid of the fires has none, so that its place "
            "is unknown; leave dem out"
        )
    width, height = grid.nx * grid.dx, grid.ny * grid.dy
    nx, ny = (max(2, round(side * LONGEST / max(width, height))) for side in (width, height))
    x = grid.left + (np.arange(nx) + 0.5) * width / nx
    y = grid.bottom + (np.arange(ny) + 0.5) * height / ny
    across, up = np.meshgrid(x, y)
    if raster.crs is not None and not same_crs(as_crs(raster.crs, path), as_crs(crs, path)):
        move = import_extra("pyproj", path).Transformer.from_crs(
            as_crs(crs, path), as_crs(raster.crs, path), always_xy=True
        )
        across, up = move.transform(across, up)
    values = np.asarray(raster.values, dtype=np.float64)
    if raster.nodata is not None:
        values = np.where(values == raster.nodata, np.nan, values)
    places = [(up - raster.grid.bottom) / raster.grid.dy - 0.5,
              (across - raster.grid.left) / raster.grid.dx - 0.5]  # fmt: skip
    heights: np.ndarray = map_coordinates(values, places, order=1, mode="constant", cval=np.nan)
    if np.isfinite(heights).mean() < _LEAST_INSIDE:
        raise PlumecastError(
            f"{path}: the elevation model does not cover the grid of the fires; give another dem"
        )
    return heights, width / nx, height / ny


def relief(heights: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """RGBA picture (ny, nx, 4), north up: light grey relief, transparent where it is unknown."""
    light = shade(np.where(np.isfinite(heights), heights, np.nan), dx, dy)
    grey = np.where(np.isfinite(light), 130.0 + 125.0 * light, 0.0).astype(np.uint8)
    opaque = np.where(np.isfinite(light), 255, 0).astype(np.uint8)
    return np.stack([grey, grey, grey, opaque], axis=2)[::-1]
