"""Places of a user, such as towns and power plants: a table (CSV) → cells of a grid."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial import cKDTree

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.tables import (
    DIRECTION,
    NUMBER,
    TEXT,
    Column,
    Table,
    TableFormat,
    parse_table,
    read_table,
)
from plumecast.compute.regrid import Grid, grid_from_centres
from plumecast.data.crs import as_crs, crs_of, import_extra

FORMAT = TableFormat(
    columns=(
        Column("name", "place town plant"),
        Column("lat", "latitude", "angle", -90.0, 90.0, required=False),
        Column("lon", "long lng longitude", "angle", -180.0, 360.0, required=False),
        Column("x", "", "length", required=False),
        Column("y", "", "length", required=False),
        Column("population", "pop people persons inhabitants", NUMBER, low=0.0, required=False,
               filled=False),
        Column("megawatts", "mw", "power", low=0.0, required=False, filled=False,
               no_unit="capacity ac_capacity power"),
        Column("tilt", "surface_tilt panel_tilt", "angle", 0.0, 90.0, required=False,
               filled=False),
        Column("azimuth", "surface_azimuth panel_azimuth", DIRECTION, 0.0, 360.0, required=False,
               filled=False),
        Column("elevation", "elev altitude", "length", -500.0, 9000.0, required=False,
               filled=False),
        Column("county", "district region", TEXT, required=False, filled=False),
    ),
    row="place",
    row_name="name",
    unique=("name",),
)  # fmt: skip
"""A table of places: x and y are metres on the grid; elevation, tilt and azimuth are of plants."""

_PAIRS = (("lat", "lon"), ("x", "y"))


@dataclass(frozen=True, slots=True)
class Places:
    """Named places on a grid: the cell of each, and the numbers of its table."""

    names: tuple[str, ...]
    cells: np.ndarray  # (P,) flat index into (y, x)
    rows: np.ndarray  # (P,) index along y
    columns: np.ndarray  # (P,) index along x
    numbers: Mapping[str, np.ndarray]  # (P,) by column of the table, NaN where left out
    source: str  # the file, for messages
    lines: tuple[int, ...] = ()  # (P,) number of each line in the file
    plane: np.ndarray | None = None  # (P, 2) x and y; None where cells alone are known
    counties: tuple[str, ...] = ()  # (P,) where the table has them
    outside: tuple[str, ...] = ()  # names of further places, which lie outside the grid

    def __len__(self) -> int:
        """Number of places."""
        return len(self.names)

    def positions(self, grid: Grid) -> np.ndarray:
        """(P, 2) x and y of the places on an ascending grid; of their cells if no more is known."""
        if self.plane is not None:
            return self.plane
        return np.stack([grid.x[self.columns], grid.y[self.rows]], axis=1)

    def county_of(self) -> dict[str, str]:
        """The counties of the places by their names; empty where the table has none."""
        return dict(zip(self.names, self.counties, strict=True)) if self.counties else {}

    def where(self, place: int) -> str:
        """Where a place is in its table, to begin a message with."""
        return f"{self.source}: line {self.lines[place]}, place '{self.names[place]}'"

    def at(self, fields: xr.DataArray) -> xr.DataArray:
        """The values (…, place) of fields (…, y, x) at the places."""
        rows, columns = (xr.DataArray(index, dims="place") for index in (self.rows, self.columns))
        picked = fields.isel(y=rows, x=columns)
        return picked.assign_coords(place=("place", list(self.names)))


def read_places(
    table: str | Path, like: xr.Dataset | xr.DataArray, *, keep: bool = False
) -> Places:
    """Places of a CSV table on the grid of `like`.

    Parameters
    ----------
    table
        Path of a table with the columns `name`, and `lat`, `lon` (degrees) or `x`, `y` (on the
        grid); optional are population, county, megawatts, tilt, azimuth and elevation. Headers may
        name a unit, such as `capacity_kw`, `x (km)` or `elevation [ft]`; without one, lengths are
        metres.
    like
        Dataset or field with the grid, such as an opened store or `Surrogate.grid`.
    keep
        Places outside the grid are kept by name, in `Places.outside`, unless all of them are;
        otherwise one of them raises.

    Returns
    -------
    Places
        The names, the cell that each place lies in and the numbers of the table.
    """
    return _locate(read_table(table, FORMAT), like, keep=keep)


def places_of_text(text: str, like: xr.Dataset | xr.DataArray) -> Places:
    """`read_places` of the text of a table."""
    return _locate(parse_table(text, FORMAT), like)


def _locate(table: Table, like: xr.Dataset | xr.DataArray, *, keep: bool = False) -> Places:
    pairs = [pair for pair in _PAIRS if set(pair) & set(table.headers)]
    if len(pairs) != 1 or not set(pairs[0]) <= set(table.headers):
        raise PlumecastError(
            f"{table.source}: places need the columns lat and lon, or x and y, and not both; found "
            f"{', '.join([*table.headers.values(), *table.extra])}"
        )
    grid = grid_from_centres(np.sort(like["x"].values), np.sort(like["y"].values), "the grid")
    numbers = table.numbers
    if "x" in table:
        plane: np.ndarray | None = np.stack([numbers["x"], numbers["y"]], axis=1)
    else:
        plane = _projected(like, numbers["lat"], numbers["lon"], table.source)
    if plane is not None:
        rows, columns = _cells_of(grid, *plane.T)
    else:
        rows, columns = _geographic_cells(like, numbers["lat"], numbers["lon"], table.source)
    inside = rows >= 0
    if not (keep and inside.any()):
        _check_inside(table, rows, grid, like)
    rows, columns = rows[inside], columns[inside]
    if "x" in table and rows.size > 1 and not rows.any() and not columns.any():
        warnings.warn(
            f"{table.source}: all {rows.size} places lie in the cell at the lower left corner of "
            "the grid; x and y are in metres unless the header names another unit, such as "
            "'x (km)'",
            PlumecastWarning,
            stacklevel=3,
        )
    if like["y"].values[0] > like["y"].values[-1]:
        rows = grid.ny - 1 - rows
    if like["x"].values[0] > like["x"].values[-1]:
        columns = grid.nx - 1 - columns
    cells = rows * grid.nx + columns
    kept = np.flatnonzero(inside)
    names, counties = table.texts["name"], table.texts.get("county", ())
    return Places(
        tuple(names[place] for place in kept),
        cells,
        rows,
        columns,
        {name: values[kept] for name, values in numbers.items()},
        table.source,
        tuple(table.lines[place] for place in kept),
        None if plane is None else plane[kept],
        tuple(counties[place] for place in kept) if counties else (),
        tuple(names[place] for place in np.flatnonzero(~inside)),
    )


def _cells_of(grid: Grid, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of points, y increasing with the row; −1 outside."""
    extent = (
        (x, grid.left, grid.dx, grid.nx),
        (y, grid.bottom, grid.dy, grid.ny),
    )
    columns, rows = (
        np.where(at == start + count * size, count - 1, np.floor((at - start) / size))
        for at, start, size, count in extent
    )
    inside = (columns >= 0) & (columns < grid.nx) & (rows >= 0) & (rows < grid.ny)
    rows, columns = (np.where(inside, part, -1).astype(np.int64) for part in (rows, columns))
    return rows, columns


def _projected(
    like: xr.Dataset | xr.DataArray, lat: np.ndarray, lon: np.ndarray, source: str
) -> np.ndarray | None:
    """(P, 2) x and y of places with latitude and longitude; None without a projection."""
    crs: Any = crs_of(like)
    if crs is None:
        return None
    plane = as_crs(crs, source)
    move = import_extra("pyproj", source).Transformer.from_crs(4326, plane, always_xy=True)
    return np.stack(move.transform(lon, lat), axis=1)


def _geographic_cells(
    like: xr.Dataset | xr.DataArray, lat: np.ndarray, lon: np.ndarray, source: str
) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of places with latitude and longitude; −1 outside."""
    if "lat" in like.coords and "lon" in like.coords:
        return _nearest_cells(like, lat, lon)
    raise PlumecastError(
        f"{source}: the places have lat and lon, but the grid has neither a projection nor "
        "latitudes; give x and y in metres on the grid"
    )


def _nearest_cells(
    like: xr.Dataset | xr.DataArray, lat: np.ndarray, lon: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The cells with the nearest centres; −1 for places farther than a cell's half diagonal."""
    ascending = like.sortby(["y", "x"])
    centres = _on_sphere(ascending["lat"].values, ascending["lon"].values)
    shape = centres.shape[:2]
    flat = centres.reshape(-1, 3)
    steps = [np.linalg.norm(np.diff(centres, axis=axis), axis=-1).max() for axis in (0, 1)]
    reach = 0.5 * float(np.hypot(*steps))
    distance, index = cKDTree(flat).query(_on_sphere(lat, lon))
    rows, columns = np.unravel_index(index, shape)
    inside = distance <= reach
    return np.where(inside, rows, -1), np.where(inside, columns, -1)


def _on_sphere(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Unit vectors (…, 3) of latitudes and longitudes in degrees."""
    phi, theta = np.radians(lat), np.radians(lon)
    return np.stack(
        [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=-1
    )


def _check_inside(
    table: Table, rows: np.ndarray, grid: Grid, like: xr.Dataset | xr.DataArray
) -> None:
    """Raise for the first place outside the grid, with the extent of the grid."""
    outside = np.flatnonzero(rows < 0)
    if not outside.size:
        return
    first = int(outside[0])
    pair = _PAIRS[0] if "lat" in table else _PAIRS[1]
    where = ", ".join(f"{column} {table.numbers[column][first]:g}" for column in pair)
    extent = (
        f"x {grid.left:g} … {grid.left + grid.nx * grid.dx:g}, "
        f"y {grid.bottom:g} … {grid.bottom + grid.ny * grid.dy:g}"
    )
    if "lat" in table and "lat" in like.coords:
        lat, lon = like["lat"].values, like["lon"].values
        extent = f"lat {lat.min():.4g} … {lat.max():.4g}, lon {lon.min():.4g} … {lon.max():.4g}"
    more = f"; {outside.size - 1} more of the places do too" if outside.size > 1 else ""
    raise table.error(first, f"{where} lies outside the grid ({extent}){more}")
