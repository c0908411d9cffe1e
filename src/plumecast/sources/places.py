"""Places of a user, such as towns and power plants: a table (CSV) → cells of a grid."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial import cKDTree

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.compute.regrid import Grid, grid_from_centres
from plumecast.data.crs import as_crs, crs_of, import_extra

NAME = "name"

NUMBERS = {
    "lat": (-90.0, 90.0),
    "lon": (-180.0, 360.0),
    "x": (-np.inf, np.inf),
    "y": (-np.inf, np.inf),
    "population": (0.0, np.inf),
    "megawatts": (0.0, np.inf),
    "tilt": (0.0, 90.0),
    "azimuth": (0.0, 360.0),
    "elevation": (-500.0, 9000.0),
}
"""Columns of a table beside the name, and the range of each."""

_PAIRS = (("lat", "lon"), ("x", "y"))


@dataclass(frozen=True, slots=True)
class Places:
    """Named places on a grid: the cell of each, and the numbers that are known of it."""

    names: tuple[str, ...]
    cells: np.ndarray  # (P,) flat index into (y, x)
    rows: np.ndarray  # (P,) index along y
    columns: np.ndarray  # (P,) index along x
    numbers: Mapping[str, np.ndarray]  # (P,) by column of the table, NaN where left out
    source: str  # the file, for messages

    def __len__(self) -> int:
        """Number of places."""
        return len(self.names)

    def known(self, column: str) -> np.ndarray | None:
        """The numbers of a column; None if the table does not have it."""
        return self.numbers.get(column)

    def at(self, fields: xr.DataArray) -> xr.DataArray:
        """The values (…, place) of fields (…, y, x) at the places."""
        rows, columns = (xr.DataArray(index, dims="place") for index in (self.rows, self.columns))
        picked = fields.isel(y=rows, x=columns)
        return picked.assign_coords(place=("place", list(self.names)))


def read_places(table: str | Path, like: xr.Dataset | xr.DataArray) -> Places:
    """Places of a CSV table on the grid of `like`.

    Columns: `name`, and `lat`, `lon` (degrees) or `x`, `y` (metres on the grid); optional are
    population, megawatts, tilt, azimuth and elevation. A place belongs to the cell that it lies in.
    """
    path = Path(table)
    return places_of_text(_read_text(path), like, path)


def places_of_text(
    text: str, like: xr.Dataset | xr.DataArray, source: str | Path = "the table"
) -> Places:
    """`read_places` of the text of a table; `source` is its name in messages."""
    path = Path(source)
    names, numbers = _parse_table(text, path)
    grid = grid_from_centres(np.sort(like["x"].values), np.sort(like["y"].values), "the grid")
    if "x" in numbers:
        rows, columns = _cells_of(grid, numbers["x"], numbers["y"])
    else:
        rows, columns = _geographic_cells(like, grid, numbers["lat"], numbers["lon"], path)
    _check_inside(path, names, numbers, rows, grid, like)
    if "x" in numbers:
        _warn_of_one_corner(path, rows, columns)
    if like["y"].values[0] > like["y"].values[-1]:
        rows = grid.ny - 1 - rows
    if like["x"].values[0] > like["x"].values[-1]:
        columns = grid.nx - 1 - columns
    return Places(tuple(names), rows * grid.nx + columns, rows, columns, numbers, str(path))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PlumecastError(f"{path}: no such file; give a table (CSV) of places") from None
    except UnicodeDecodeError as error:
        raise PlumecastError(f"{path}: not a text file in UTF-8; save it as CSV") from error


def _parse_table(text: str, path: Path) -> tuple[list[str], dict[str, np.ndarray]]:
    """Names and numbers of the rows; checks every value and names its line."""
    try:
        lines = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise PlumecastError(f"{path}: not a table (CSV): {error}") from None
    if not lines:
        raise PlumecastError(f"{path}: the table is empty; its first line names the columns")
    header = [cell.strip().lower() for cell in lines[0]]
    _check_header(path, header)
    if len(lines) == 1:
        raise PlumecastError(f"{path}: the table has no places, only the line with its columns")
    names: list[str] = []
    columns: dict[str, list[float]] = {column: [] for column in header if column != NAME}
    for number, cells in enumerate(lines[1:], start=2):
        if len(cells) != len(header):
            raise PlumecastError(
                f"{path}: row {number} has {len(cells)} values, the header {len(header)} columns"
            )
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        names.append(_name(path, number, row[NAME], names))
        for column in columns:
            columns[column].append(_number(path, number, row[NAME], column, row[column]))
    return names, {column: np.array(values) for column, values in columns.items()}


def _check_header(path: Path, header: list[str]) -> None:
    known = [NAME, *NUMBERS]
    wrong = [column for column in header if column not in known]
    if wrong:
        raise PlumecastError(
            f"{path}: unknown column '{wrong[0]}'; the columns are {', '.join(known)}"
            + ("; separate them by commas" if ";" in wrong[0] or "\t" in wrong[0] else "")
        )
    twice = [column for column in header if header.count(column) > 1]
    if twice:
        raise PlumecastError(f"{path}: column '{twice[0]}' occurs twice; keep one")
    if NAME not in header:
        raise PlumecastError(f"{path}: column 'name' is missing; found {', '.join(header)}")
    pairs = [pair for pair in _PAIRS if set(pair) & set(header)]
    if len(pairs) != 1 or not set(pairs[0]) <= set(header):
        raise PlumecastError(
            f"{path}: places need the columns lat and lon, or x and y, and not both; found "
            f"{', '.join(header)}"
        )


def _name(path: Path, number: int, name: str, earlier: list[str]) -> str:
    if not name:
        raise PlumecastError(f"{path}: row {number} has no name; every place needs one")
    if name in earlier:
        first = earlier.index(name) + 2
        raise PlumecastError(f"{path}: rows {first} and {number} are both named '{name}'")
    return name


def _number(path: Path, number: int, name: str, column: str, text: str) -> float:
    required = any(column in pair for pair in _PAIRS)
    if not text and not required:
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    low, high = NUMBERS[column]
    if not (np.isfinite(value) and low <= value <= high):
        within = f"from {low:g} to {high:g}" if np.isfinite(high) else f"of at least {low:g}"
        what = "a number" if not np.isfinite(low) else f"a number {within}"
        raise PlumecastError(
            f"{path}: row {number} ({name}): {column} is '{text}'; it must be {what}"
        )
    return value


def _cells_of(grid: Grid, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of points, y increasing with the row; −1 outside."""
    columns = np.floor((x - grid.left) / grid.dx)
    rows = np.floor((y - grid.bottom) / grid.dy)
    columns = np.where(x == grid.left + grid.nx * grid.dx, grid.nx - 1, columns)
    rows = np.where(y == grid.bottom + grid.ny * grid.dy, grid.ny - 1, rows)
    inside = (columns >= 0) & (columns < grid.nx) & (rows >= 0) & (rows < grid.ny)
    rows, columns = (np.where(inside, part, -1).astype(np.int64) for part in (rows, columns))
    return rows, columns


def _geographic_cells(
    like: xr.Dataset | xr.DataArray, grid: Grid, lat: np.ndarray, lon: np.ndarray, path: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of places with latitude and longitude; −1 outside."""
    crs: Any = crs_of(like)
    if crs is not None:
        plane = as_crs(crs, path)
        move = import_extra("pyproj", path).Transformer.from_crs(4326, plane, always_xy=True)
        x, y = move.transform(lon, lat)
        return _cells_of(grid, np.asarray(x), np.asarray(y))
    if "lat" in like.coords and "lon" in like.coords:
        return _nearest_cells(like, lat, lon)
    raise PlumecastError(
        f"{path}: the places have lat and lon, but the grid has neither a projection nor "
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


def _warn_of_one_corner(path: Path, rows: np.ndarray, columns: np.ndarray) -> None:
    """Warn if several places lie in the cell at the origin: their unit may be another."""
    if rows.size > 1 and not rows.any() and not columns.any():
        warnings.warn(
            f"{path}: all {rows.size} places lie in the cell at the lower left corner of the grid; "
            "x and y are in metres, convert kilometres",
            PlumecastWarning,
            stacklevel=2,
        )


def _check_inside(
    path: Path,
    names: list[str],
    numbers: Mapping[str, np.ndarray],
    rows: np.ndarray,
    grid: Grid,
    like: xr.Dataset | xr.DataArray,
) -> None:
    """Raise for the first place outside the grid, with the extent of the grid."""
    outside = np.flatnonzero(rows < 0)
    if not outside.size:
        return
    first = int(outside[0])
    pair = _PAIRS[0] if "lat" in numbers else _PAIRS[1]
    where = ", ".join(f"{column} {numbers[column][first]:g}" for column in pair)
    extent = (
        f"x {grid.left:g} … {grid.left + grid.nx * grid.dx:g}, "
        f"y {grid.bottom:g} … {grid.bottom + grid.ny * grid.dy:g}"
    )
    if "lat" in numbers and "lat" in like.coords:
        lat, lon = like["lat"].values, like["lon"].values
        extent = f"lat {lat.min():.4g} … {lat.max():.4g}, lon {lon.min():.4g} … {lon.max():.4g}"
    more = f"; {outside.size - 1} more of the places do too" if outside.size > 1 else ""
    raise PlumecastError(
        f"{path}: row {first + 2} ({names[first]}) at {where} lies outside the grid "
        f"({extent}){more}"
    )
