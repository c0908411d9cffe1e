"""One raster in memory, its limits of size and place, and readers of ASCII grids and NetCDF."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid, grid_from_centres

MOST_CELLS = 2**28
"""Cells of the largest raster that is read: 2 GiB in double precision."""

_ALWAYS_READ = 2**20  # cells that are read however small the file is
_CELLS_PER_BYTE = 4096  # of a compressed or sparse file; no real one has as many
_SMALLEST_CELL, _LARGEST_CELL = 1e-7, 1e6  # in degrees, metres or feet
_FARTHEST = 2e8  # beyond the circumference of the Earth in feet
_FINEST = 1e-10  # cell size relative to the coordinates, so that neighbouring centres differ

_KEYS = {
    "ncols",
    "nrows",
    "xllcorner",
    "xllcenter",
    "yllcorner",
    "yllcenter",
    "cellsize",
    "nodata_value",
}  # of an ASCII header, in lower case; fmt: skip

_PER_BYTE = 0.5  # a value is a digit and a space; the last one may lack the space
_LONGEST_PROJECTION = 100_000  # bytes of a .prj file

_EASTWARD = {"x", "lon", "longitude", "easting", "west_east"}


class Raster(NamedTuple):
    """Values (ny, nx) of one file, south row first, and their grid."""

    values: Array
    grid: Grid
    crs: Any  # anything that pyproj accepts, or None
    nodata: float | None
    unit: str = ""  # as the file labels its values


def check_size(
    path: str | Path, rows: int, columns: int, *, cells_per_byte: float = _CELLS_PER_BYTE
) -> None:
    """Raise before memory is allocated if a header states sizes that the file cannot have.

    A file holds at most `cells_per_byte` cells per byte.
    """
    what = f"{path}: its header says {rows} × {columns} cells"
    if rows < 1 or columns < 1:
        raise PlumecastError(f"{what}; write the file again")
    cells, size = rows * columns, Path(path).stat().st_size
    if cells > MOST_CELLS:
        raise PlumecastError(
            f"{what}, more than the {MOST_CELLS} that are read; crop or coarsen it"
        )
    compressed = cells_per_byte >= 1.0
    if cells > cells_per_byte * size and not (compressed and cells <= _ALWAYS_READ):
        raise PlumecastError(f"{what}, more than its {size} bytes can hold; write the file again")


def check_grid(path: str | Path, grid: Grid) -> None:
    """Raise if the cells of a raster have no size, or lie nowhere on Earth."""
    for name, start, size, count in (
        ("x", grid.left, grid.dx, grid.nx),
        ("y", grid.bottom, grid.dy, grid.ny),
    ):
        end = start + size * count
        farthest = max(abs(start), abs(end))
        if not _SMALLEST_CELL <= size <= _LARGEST_CELL:
            fault = (
                f"cell size {size:g} along {name} is not within {_SMALLEST_CELL:g} … "
                f"{_LARGEST_CELL:g}"
            )
        elif not math.isfinite(end) or farthest > _FARTHEST:
            fault = f"{name} from {start:g} to {end:g} is nowhere on Earth"
        elif size < _FINEST * farthest:
            fault = f"cells of {size:g} cannot be told apart at {name} = {end:g}"
        else:
            continue
        raise PlumecastError(f"{path}: {fault}; correct its header")


def is_ascii_grid(beginning: bytes) -> bool:
    """Whether the first bytes of a file are those of an ASCII grid."""
    return beginning.lstrip()[:5].lower() in (b"ncols", b"nrows")


def read_ascii(path: Path) -> Raster:
    """Read an ASCII grid; its CRS is in the .prj file beside it, if there is one."""
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    try:
        header, used = _header(lines)
        rows, columns = _count(header, "nrows"), _count(header, "ncols")
        size = header["cellsize"]
        grid = Grid(_corner(header, "x"), _corner(header, "y"), size, size, columns, rows)
    except PlumecastError as error:
        raise PlumecastError(f"{path}: not a readable ASCII grid: {error}") from error
    check_size(path, rows, columns, cells_per_byte=_PER_BYTE * 1.01)
    words = " ".join(lines[used:]).split()
    problem = None
    if len(words) != rows * columns:
        problem = f"{len(words)} values, but its header says {rows} × {columns}"
    elif odd := next((word for word in words if "_" in word or "\0" in word), None):
        problem = f"{odd[:40]!r} is no number"  # Python would read 1_0 as 10
    else:
        try:
            values = np.array(words, dtype=np.float64).reshape(rows, columns)
        except ValueError as error:
            problem = str(error)
    if problem:
        raise PlumecastError(f"{path}: not a readable ASCII grid: {problem}; write it again")
    return Raster(values[::-1], grid, _projection(path), header.get("nodata_value"))


def _header(lines: list[str]) -> tuple[dict[str, float], int]:
    """The lines that begin with a known key, and their number; blank ones are passed over."""
    header: dict[str, float] = {}
    used = 0
    for used, line in enumerate(lines):  # noqa: B007
        key, *words = line.split() or [""]
        if key and key.lower() not in _KEYS:
            break
        if key.lower() in header:
            raise PlumecastError(f"{key} is stated twice; keep one line")
        if key:
            text = " ".join(words)
            try:
                header[key.lower()] = float(text.replace("_", " "))  # Python would read 1_0 as 10
            except ValueError:
                raise PlumecastError(f"{key} is {text[:40]!r}; write one number") from None
    for key in ("ncols", "nrows", "cellsize"):
        if key not in header:
            raise PlumecastError(f"its header has no {key}; add it")
    return header, used


def _count(header: dict[str, float], key: str) -> int:
    value = header[key]
    if not math.isfinite(value) or value != int(value) or value < 1:
        raise PlumecastError(f"{key} is {value:g}; write a whole number above 0")
    return int(value)


def _corner(header: dict[str, float], axis: str) -> float:
    """Outer edge of the first cell along x or y."""
    corner, centre = header.get(f"{axis}llcorner"), header.get(f"{axis}llcenter")
    if corner is not None and centre is None:
        return corner
    if centre is not None and corner is None:
        return centre - header["cellsize"] / 2
    raise PlumecastError(f"give either {axis}llcorner or {axis}llcenter")


def _projection(path: Path) -> str | None:
    """The text of the .prj file; None if there is none."""
    beside = path.with_suffix(".prj")
    if not beside.is_file():
        return None
    if beside.stat().st_size > _LONGEST_PROJECTION:
        raise ArgumentError("crs", None, f"{beside}: too long for a CRS; remove it, give EPSG:…")
    try:
        return beside.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        advice = f"{beside}: not readable text; remove it and give EPSG:…"
        raise ArgumentError("crs", None, advice) from None


def read_netcdf(path: Path, variable: str | None) -> Raster:
    """One 2-D variable with coordinates along both dimensions."""
    try:
        with xr.open_dataset(path, decode_times=False, decode_timedelta=False) as file:
            names = [str(name) for name in file.data_vars if file[name].ndim >= 2]
            if variable is None and len(names) == 1:
                variable = names[0]
            if variable not in names:
                some = f"give one of {', '.join(names)}" if names else "it has no 2-D variable"
                raise ArgumentError("variable", variable, f"{path}: {some}")
            field = file[variable]
            shape = [size for size in field.shape if size != 1] or [1]
            check_size(path, math.prod(shape[:-1]), shape[-1])
            field = field.load()
            mapping = field.attrs.get("grid_mapping", field.encoding.get("grid_mapping"))
            crs: Any = dict(file[mapping].attrs) if mapping in file.variables else None
    except PlumecastError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        raise PlumecastError(f"{path}: damaged or truncated NetCDF file ({error})") from error
    field = field.squeeze(drop=True)
    missing = [str(dim) for dim in field.dims if dim not in field.coords]
    if field.ndim != 2:
        fault = f"{variable} has dimensions {field.dims}; select one y, x field"
        raise PlumecastError(f"{path}: {fault}")
    if missing:
        fault = f"no coordinates along {', '.join(missing)}; add the cell centres to the file"
        raise PlumecastError(f"{path}: {fault}")
    if str(field.dims[0]).lower() in _EASTWARD:
        field = field.transpose()
    for item in (field, *(field[dim] for dim in field.dims)):
        if item.dtype.kind not in "iuf":
            raise PlumecastError(
                f"{path}: {item.name} has values of type {item.dtype}; write them as numbers"
            )
    y, x = (field[dim].values.astype(np.float64) for dim in field.dims)
    values = field.values.astype(np.float64)
    if y[0] > y[-1]:
        y, values = y[::-1], values[::-1]
    if crs is None and str(field[field.dims[1]].attrs.get("units", "")).startswith("degree"):
        crs = "EPSG:4326"
    unit = str(field.attrs.get("units", ""))
    return Raster(values, grid_from_centres(x, y, str(path)), crs, None, unit)
