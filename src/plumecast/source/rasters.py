"""Arrival-time rasters → time since ignition: what FARSITE, ELMFIRE and their like write.

file → burned cells with hours since ignition → one field or a series → the surrogate's grid, by
overlapping area.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from plumecast._array import Array
from plumecast._version import __version__
from plumecast.constants import M2_PER_ACRE
from plumecast.errors import PlumecastError
from plumecast.names import FIRE, SNAPSHOT, TABLE
from plumecast.source import regrid
from plumecast.source.regrid import Grid

Paths: TypeAlias = str | Path | Sequence[str | Path]

HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
"""Units of arrival time, in hours."""


class Format(NamedTuple):
    """A convention: unit, values that mean unburned, and hours a step of the clock lasts."""

    unit: str | None
    unburned: tuple[float, ...] = ()
    step: float = 0.0


FORMATS = {
    "farsite": Format("min", (-9999.0,)),
    "elmfire": Format("s", (-9999.0,)),
    "pyretechnics": Format("min"),
    # day of the year; 0 inactive, 1 (older releases) or 999 unburned, so 1 January cannot burn
    "landis": Format("d", (0.0, 1.0, 999.0), step=24.0),
    "generic": Format(None),
}

_HORIZON = 720.0
_OUTSIDE = 1e-3  # share of the burned area that may lie beyond the surrogate's grid
_ASCII_KEYS = {"ncols", "nrows", "xllcorner", "xllcenter", "yllcorner", "yllcenter", "cellsize",
               "nodata_value"}  # fmt: skip
_EASTWARD = {"x", "lon", "longitude", "easting", "west_east"}
_SUFFIXES = {".asc", ".tif", ".tiff", ".img", ".nc", ".nc4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    unit: str | None = None
    format: str | None = None
    like: xr.Dataset | xr.DataArray | None = None
    crs: Any = None
    hours: Sequence[float] | None = None
    aggregate: str = "mean"
    horizon: float = _HORIZON
    nodata: float | None = None
    variable: str | None = None

    def __post_init__(self) -> None:
        if self.convention not in FORMATS:
            raise PlumecastError(f"format={self.format!r}; choose one of {', '.join(FORMATS)}")
        if self.aggregate not in regrid.AGGREGATES:
            raise PlumecastError(f"aggregate={self.aggregate!r}; choose one of {regrid.AGGREGATES}")
        if self.hours is not None:
            series = np.asarray(self.hours, dtype=float)
            if series.ndim != 1 or not series.size or not (np.diff(series, prepend=0) > 0).all():
                raise PlumecastError(f"hours={self.hours!r}; give increasing hours above 0")

    @property
    def convention(self) -> str:
        """The format's name; "generic" where none is stated."""
        return self.format or "generic"

    def hours_per_unit(self, path: Path) -> float:
        """Hours in the stated unit, else in the format's."""
        unit = self.unit or FORMATS[self.convention].unit
        if unit in HOURS:
            return HOURS[unit]
        given = f"unit={unit!r}" if unit else "the unit of arrival times is not stated"
        raise PlumecastError(
            f"{path}: {given}; give unit ({', '.join(HOURS)}) or a format ({', '.join(FORMATS)})"
        )


class Raster(NamedTuple):
    """One file: values (ny, nx) with the south row first, and where they lie."""

    values: Array
    grid: Grid
    crs: Any  # whatever pyproj reads, or None
    nodata: float | None


class Fire(NamedTuple):
    """Burned cells of one fire, and when each burned, in hours since the first."""

    fire_id: str
    path: Path
    cells: Array  # (n,) flat index into the grid
    arrival: Array  # (n,)
    grid: Grid
    crs: Any


class Target(NamedTuple):
    """The grid of the result, its CRS, and the coordinates that come with it."""

    grid: Grid
    crs: Any
    coords: dict[str, Any]


class Rows(NamedTuple):
    """The snapshots of one fire."""

    fire_id: str
    fields: Array  # (k, ny, nx)
    hours: Array  # (k,)
    acres: Array  # (k,)
    target: Target


def read_arrival_times(
    paths: Paths,
    *,
    unit: str | None = None,
    format: str | None = None,
    like: xr.Dataset | xr.DataArray | None = None,
    crs: Any = None,
    hours: Sequence[float] | None = None,
    aggregate: str = "mean",
    horizon: float = _HORIZON,
    nodata: float | None = None,
    variable: str | None = None,
) -> xr.Dataset:
    """Time since ignition from arrival-time rasters: one fire per file (per event for LANDIS-II).

    f = max(t − arrival, 0) hours, t and arrival since the earliest arrival of the fire. `hours`
    gives a series of t; without it t is the latest arrival (for LANDIS-II the end of the last day).
    `unit` (s, min, h, d) or a `format` states the unit; arrivals later than `horizon` hours after
    ignition are refused as a wrong unit. `like` has the y, x (and CRS) of the grid to aggregate to,
    by area-weighted mean: burned area and the integral of f are kept exactly in one CRS, and in the
    plane of `like` after reprojection (see `regrid.projected_weights`). `crs` is for files that
    carry none; "local" says that the coordinates are already those of `like`. Files without a CRS
    are in metres. `nodata` adds a value that means unburned; `variable` picks one of a NetCDF file.
    """
    options = _Options(
        unit=unit,
        format=format,
        like=like,
        crs=crs,
        hours=hours,
        aggregate=aggregate,
        horizon=horizon,
        nodata=nodata,
        variable=variable,
    )
    files = find_rasters(paths)
    options.hours_per_unit(files[0])
    seen: set[str] = set()
    return _to_dataset([row for path in files for row in _read_rows(path, options, seen)], options)


def iter_arrival_times(
    paths: Paths,
    *,
    batch: int = 64,
    on_error: Callable[[Path, str], None] | None = None,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """`read_arrival_times` for any number of files, `batch` files in memory at a time.

    With `on_error`, a file that cannot be used is reported to it (path, message) and passed over.
    """
    settings = _Options(**options)
    files = find_rasters(paths)
    settings.hours_per_unit(files[0])  # what all files share is refused at once
    remaining = iter(files)
    seen: set[str] = set()
    while chunk := list(islice(remaining, batch)):
        rows: list[Rows] = []
        for path in chunk:
            try:
                rows += _read_rows(path, settings, seen)
            except PlumecastError as error:
                if on_error is None:
                    raise
                on_error(path, str(error))
        if rows:
            yield _to_dataset(rows, settings)


def find_rasters(paths: Paths) -> list[Path]:
    """The raster files of a directory, glob, file or list, sorted by name unless listed."""
    if not isinstance(paths, str | Path):
        found = [Path(path) for path in paths]
    elif Path(paths).is_dir():
        found = sorted(path for path in Path(paths).iterdir() if path.suffix.lower() in _SUFFIXES)
    elif Path(paths).exists():
        found = [Path(paths)]
    else:
        pattern = Path(paths)
        found = sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    if not found:
        raise PlumecastError(f"{paths}: no rasters here ({', '.join(sorted(_SUFFIXES))})")
    return found


# -- files


def read_raster(path: Path, variable: str | None = None) -> Raster:
    """An ASCII grid, a GeoTIFF (or other GDAL raster) or a NetCDF file, told by its first bytes."""
    try:
        with path.open("rb") as file:
            magic = file.read(16)
    except OSError as error:
        raise PlumecastError(f"{path}: cannot be opened ({error.strerror})") from error
    if magic[:3] == b"CDF" or magic[1:4] == b"HDF":
        return _read_netcdf(path, variable)
    if magic.lstrip()[:5].lower() in (b"ncols", b"nrows"):
        return _read_ascii(path)
    return _read_gdal(path)


def _read_ascii(path: Path) -> Raster:
    """Esri ASCII grid: `key value` lines, then rows from north to south."""
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    header: dict[str, float] = {}
    try:
        for line in lines:
            key, *rest = line.split()
            if key.lower() not in _ASCII_KEYS:
                break
            header[key.lower()] = float(rest[0])
        nx, ny, size = int(header["ncols"]), int(header["nrows"]), header["cellsize"]
        left = header["xllcorner"] if "xllcorner" in header else header["xllcenter"] - size / 2
        bottom = header["yllcorner"] if "yllcorner" in header else header["yllcenter"] - size / 2
        values = np.array(" ".join(lines[len(header) :]).split(), dtype=np.float64)
    except (ValueError, KeyError, IndexError) as error:
        raise PlumecastError(f"{path}: not a readable ASCII grid ({error})") from error
    if values.size != nx * ny:
        raise PlumecastError(f"{path}: {values.size} values, its header says {ny} × {nx}")
    projection = path.with_suffix(".prj")
    crs = projection.read_text().strip() if projection.exists() else None
    grid = Grid(left, bottom, size, size, nx, ny)
    return Raster(values.reshape(ny, nx)[::-1], grid, crs, header.get("nodata_value"))


def _read_gdal(path: Path) -> Raster:
    rasterio = _import("rasterio", path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        try:
            with rasterio.open(path) as file:
                count, at, crs, nodata = file.count, file.transform, file.crs, file.nodata
                values = file.read(1).astype(np.float64)
        except rasterio.errors.RasterioIOError as error:
            raise PlumecastError(f"{path}: not a readable raster ({error})") from error
    if count != 1:
        raise PlumecastError(f"{path}: {count} bands; give one arrival-time band per file")
    if at.is_identity or at.b or at.d or at.a < 0:
        raise PlumecastError(f"{path}: not georeferenced, or rotated; warp it to a plain grid")
    ny, nx = values.shape
    north_up = at.e < 0
    bottom = at.f + ny * at.e if north_up else at.f
    grid = Grid(at.c, bottom, at.a, abs(at.e), nx, ny)
    return Raster(values[::-1] if north_up else values, grid, crs and crs.to_wkt(), nodata)


def _read_netcdf(path: Path, variable: str | None) -> Raster:
    try:
        with xr.open_dataset(path, decode_times=False, decode_timedelta=False) as file:
            names = [str(name) for name in file.data_vars if file[name].ndim >= 2]
            if variable is None and len(names) == 1:
                variable = names[0]
            if variable not in names:
                raise PlumecastError(
                    f"{path}: state variable, one of {', '.join(names) or 'none with y and x'}"
                )
            field = file[variable].load()
            mapping = field.attrs.get("grid_mapping", field.encoding.get("grid_mapping"))
            crs: Any = dict(file[mapping].attrs) if mapping in file.variables else None
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, PlumecastError):
            raise
        raise PlumecastError(f"{path}: damaged or truncated NetCDF file ({error})") from error
    field = field.squeeze(drop=True)
    if field.ndim != 2:
        raise PlumecastError(
            f"{path}: {variable} has dimensions {field.dims}; select one y, x field"
        )
    missing = [str(dim) for dim in field.dims if dim not in field.coords]
    if missing:
        raise PlumecastError(f"{path}: no coordinates along {', '.join(missing)}")
    if str(field.dims[0]).lower() in _EASTWARD:
        field = field.transpose()
    y, x = (field[dim].values.astype(np.float64) for dim in field.dims)
    values = field.values.astype(np.float64)
    if y[0] > y[-1]:
        y, values = y[::-1], values[::-1]
    if crs is None and str(field[field.dims[1]].attrs.get("units", "")).startswith("degree"):
        crs = "EPSG:4326"
    return Raster(values, regrid.grid_from_centres(x, y, str(path)), crs, None)


def _import(name: str, path: Path | str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise PlumecastError(
            f'{path}: {name} is needed; pip install "plumecast[raster]"'
        ) from error


# -- fires


def read_fires(path: Path, options: _Options) -> list[Fire]:
    """The fires of one file: one, or for LANDIS-II one per event of the event-ID map beside it."""
    raster = read_raster(path, options.variable)
    convention = FORMATS[options.convention]
    arrival = np.where(np.isfinite(raster.values), raster.values, np.nan)
    for value in (raster.nodata, options.nodata, *convention.unburned):
        if value is not None:
            arrival[arrival == value] = np.nan
    if np.isnan(arrival).all():
        raise PlumecastError(f"{path}: no burned cell, all values are nodata")
    if np.nanmin(arrival) < 0:
        raise PlumecastError(
            f"{path}: arrival time {np.nanmin(arrival):g} is negative; state nodata if it means "
            "unburned"
        )
    arrival *= options.hours_per_unit(path)
    events = {path.stem: np.ones(arrival.shape, dtype=bool)}
    if options.convention == "landis":
        events = _landis_events(path, raster.grid)
    return [
        _fire(name, path, np.where(where, arrival, np.nan), raster=raster, options=options)
        for name, where in events.items()
        if np.isfinite(arrival[where]).any()
    ]


def _landis_events(path: Path, grid: Grid) -> dict[str, Array]:
    """Mask of each event, from the event-ID map that is written beside each day-of-fire map."""
    beside = path.with_name(path.name.replace("day-of-fire", "event-ID"))
    if beside == path or not beside.exists():
        raise PlumecastError(
            f"{path}: no event-ID map beside it (day-of-fire-N → event-ID-N); "
            'unit="d" without a format reads the map as one fire'
        )
    events = read_raster(beside)
    if events.grid != grid:
        raise PlumecastError(f"{beside}: its grid differs from that of {path.name}")
    numbers = np.unique(events.values[events.values > 0])
    return {f"{path.stem}-event-{int(n)}": events.values == n for n in numbers}


def _fire(name: str, path: Path, arrival: Array, *, raster: Raster, options: _Options) -> Fire:
    cells = np.flatnonzero(np.isfinite(arrival))
    since = arrival.ravel()[cells]
    since = since - since.min()
    if since.max() > options.horizon:
        raise PlumecastError(
            f"{path}: the latest arrival is {since.max():.6g} h after ignition, beyond "
            f"horizon={options.horizon:g} h; is the unit right?"
        )
    if options.crs in (None, "local"):
        crs = raster.crs
    elif raster.crs is not None and not _same(_crs(raster.crs, path), _crs(options.crs, path)):
        raise PlumecastError(f"{path}: has a CRS of its own; leave crs={options.crs!r} out")
    else:
        crs = options.crs
    return Fire(name, path, cells, since, raster.grid, crs)


def _read_rows(path: Path, options: _Options, seen: set[str]) -> list[Rows]:
    """Everything that can fail for one file; adds its fires to `seen`."""
    fires = read_fires(path, options)
    for fire in fires:
        if fire.fire_id in seen:
            raise PlumecastError(
                f"{path}: a fire named {fire.fire_id!r} was read before; rename it"
            )
    rows = [_rows(fire, options) for fire in fires]
    seen.update(fire.fire_id for fire in fires)
    return rows


def _rows(fire: Fire, options: _Options) -> Rows:
    last = fire.arrival.max() + FORMATS[options.convention].step
    hours = np.array([last]) if options.hours is None else np.asarray(options.hours, dtype=float)
    target = Target(fire.grid, fire.crs, {}) if options.like is None else _target(options.like)
    shape = (target.grid.ny, target.grid.nx)
    fields = np.zeros((hours.size, *shape), dtype=np.float32)
    weights = None if options.like is None else _weights(fire, target, options)
    for field, t in zip(fields, hours, strict=True):
        age = np.maximum(t - fire.arrival, 0.0)
        if weights is None:
            field.ravel()[fire.cells] = age
        else:
            combine = weights.mean if options.aggregate == "mean" else weights.max
            field[:] = combine(age).reshape(shape)
    area = _cell_areas(fire) / M2_PER_ACRE
    acres = np.array([area[fire.arrival <= t].sum() for t in hours])
    return Rows(fire.fire_id, fields, hours, acres, target)


def _weights(fire: Fire, target: Target, options: _Options) -> regrid.Weights:
    """Overlap of the burned cells with the target's cells; they must lie inside it."""
    if options.crs == "local" or (fire.crs is None and target.crs is None):
        weights = regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    elif fire.crs is None:
        raise PlumecastError(f"{fire.path}: no CRS, and the grid of `like` has one; state crs")
    elif target.crs is None:
        raise PlumecastError(
            f"{fire.path}: has a CRS, the grid of `like` has none; "
            'crs="local" takes the coordinates as they are'
        )
    else:
        weights = _reprojected(fire, target)
    if weights.outside > _OUTSIDE:
        raise PlumecastError(
            f"{fire.path}: {weights.outside:.1%} of the burned area is outside the grid of `like` "
            f"(x {target.grid.x[0]:g} … {target.grid.x[-1]:g}, "
            f"y {target.grid.y[0]:g} … {target.grid.y[-1]:g})"
        )
    return weights


def _reprojected(fire: Fire, target: Target) -> regrid.Weights:
    source, goal = _crs(fire.crs, fire.path), _crs(target.crs, fire.path)
    if _same(source, goal):
        return regrid.overlap_weights(fire.grid, target.grid, fire.cells)
    move = _import("pyproj", fire.path).Transformer.from_crs(source, goal, always_xy=True).transform
    try:
        return regrid.projected_weights(fire.grid, target.grid, fire.cells, to_target=move)
    except PlumecastError as error:
        raise PlumecastError(f"{fire.path}: {error}") from error


def _crs(raw: Any, path: Path | str) -> Any:
    """A pyproj CRS from a CF grid mapping, or anything else pyproj reads."""
    pyproj = _import("pyproj", path)
    try:
        return pyproj.CRS.from_cf(raw) if isinstance(raw, dict) else pyproj.CRS(raw)
    except (pyproj.exceptions.CRSError, KeyError) as error:
        raise PlumecastError(f"{path}: unknown CRS {str(raw)[:60]!r}") from error


def _same(one: Any, two: Any) -> bool:
    return bool(one.equals(two, ignore_axis_order=True))


def _cell_areas(fire: Fire) -> Array:
    """Area of each burned cell, m²: on the sphere for a grid in degrees."""
    if fire.crs is None:
        return np.full(fire.cells.size, fire.grid.cell_area)
    crs = _crs(fire.crs, fire.path)
    if crs.is_geographic:
        return regrid.spherical_cell_area(fire.grid, fire.cells)
    metres = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
    return np.full(fire.cells.size, fire.grid.cell_area * metres**2)


# -- labels


def _target(like: xr.Dataset | xr.DataArray) -> Target:
    """Grid, CRS and geography of a template with y, x (cell centres)."""
    if "x" not in like.coords or "y" not in like.coords:
        raise PlumecastError(
            f"like has no coordinates y and x; found {', '.join(map(str, like.coords))}"
        )
    grid = regrid.grid_from_centres(like["x"].values, like["y"].values, "like")
    scalars = like.variables.values() if isinstance(like, xr.Dataset) else like.coords.values()
    mappings = [v.attrs for v in scalars if {"grid_mapping_name", "crs_wkt"} & set(v.attrs)]
    kept = {name: like[name].variable for name in ("lat", "lon") if name in like.coords}
    return Target(grid, dict(mappings[0]) if mappings else like.attrs.get("crs"), kept)


def _to_dataset(rows: Sequence[Rows], options: _Options) -> xr.Dataset:
    target = rows[0].target
    for row in rows:
        if row.target.grid != target.grid:
            raise PlumecastError(
                f"{row.fire_id}: its grid differs from that of {rows[0].fire_id}; give like"
            )
    count = [row.hours.size for row in rows]
    columns = {
        "fire_id": np.repeat([row.fire_id for row in rows], count),
        "hours": np.concatenate([row.hours for row in rows]),
        "burned_area": np.concatenate([row.acres for row in rows]),
        "is_final": np.concatenate([np.arange(n) == n - 1 for n in count]),
    }
    coords: dict[str, Any] = {
        **{name: (SNAPSHOT, values, TABLE[name].attrs) for name, values in columns.items()},
        **target.coords,
    }
    mapping = _grid_mapping(target)
    degrees = mapping.get("grid_mapping_name") == "latitude_longitude"
    for axis, centres in (("y", target.grid.y), ("x", target.grid.x)):
        geographic = TABLE["lat" if axis == "y" else "lon"].attrs
        coords[axis] = (axis, centres, geographic if degrees else TABLE[axis].attrs)
    if mapping:
        coords["crs"] = ((), 0, mapping)
    attrs = {**TABLE[FIRE].attrs, **({"grid_mapping": "crs"} if mapping else {})}
    settings = {
        "format": options.convention,
        "unit": options.unit or FORMATS[options.convention].unit,
        "aggregate": options.aggregate,
    }
    return xr.Dataset(
        {FIRE: ((SNAPSHOT, "y", "x"), np.concatenate([row.fields for row in rows]), attrs)},
        coords=coords,
        attrs={
            "Conventions": "CF-1.11",
            "source": f"arrival-time rasters ({options.convention})",
            "plumecast_version": __version__,
            "settings": json.dumps(settings),
        },
    )


def _grid_mapping(target: Target) -> dict[str, Any]:
    if target.crs is None:
        return {}
    if isinstance(target.crs, dict):
        return dict(target.crs)
    return dict(_crs(target.crs, "like").to_cf())
