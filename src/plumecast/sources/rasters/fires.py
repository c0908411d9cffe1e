"""The fires of one raster: how it is read, and time since ignition on the wanted grid and hours."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import hour_ladder
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.ignitions import ignition_name
from plumecast.base.names import M2_PER_ACRE
from plumecast.base.paths import WorkerPath
from plumecast.base.units import unit_named
from plumecast.base.values import check_number, setting
from plumecast.compute import regrid
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid
from plumecast.data.assembly import PER_FIRE, BurnedShares, burned_shares
from plumecast.data.crs import as_crs, same_crs
from plumecast.sources.rasters.files import EVENT_MAP, read_raster
from plumecast.sources.rasters.georeference import (
    RasterFire,
    TargetGrid,
    assumed_crs,
    cell_areas,
    looks_like_degrees,
    overlap,
    target_grid,
)
from plumecast.sources.rasters.raster import Raster

UNITS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
"""Hours per unit of arrival time."""

HORIZON = 720.0
"""Default limit for an arrival after ignition, h; a later one suggests a wrong unit."""

_MOST_EVENTS = 10_000  # of one event-ID map


class Format(NamedTuple):
    """Convention of one fire model."""

    unit: str | None
    unburned: tuple[float, ...] = ()  # values that mean unburned
    step: float = 0.0  # resolution of the arrival times, h


FORMATS = {
    "farsite": Format("min", (-9999.0,)),
    "elmfire": Format("s", (-9999.0,)),
    "pyretechnics": Format("min"),
    # day of the year; 0 inactive, 1 (older releases) or 999 unburned, so 1 January cannot burn
    "landis": Format("d", (0.0, 1.0, 999.0), step=24.0),
    "generic": Format(None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RasterOptions:
    """How arrival-time rasters are read.

    - The earliest arrival of a file is the ignition. Every fire gets one snapshot at each of
      `hours` since ignition; by default one, at its latest arrival.
    - `unit` (s, min, h, d) or `format` states the unit of the arrival times. An arrival more than
      `horizon` hours after ignition raises an error, because the unit is probably wrong.
    - `like` has the coordinates y and x (and the CRS) of the target grid. Fires are aggregated to
      it by area-weighted mean. Burned area and the integral of f are preserved exactly within one
      CRS; after reprojection they are preserved in the plane of `like` (see
      `regrid.projected_weights`).
    - `crs` is the CRS of files that do not contain one. Without it they are assumed to have the CRS
      of `like`, with a warning, if the fire then lies on that grid; "local" says that they do.
      Coordinates without a CRS are metres.
    - `nodata` is another value that means unburned.
    - `variable` selects a variable of NetCDF files.
    - `drought` is the drought label of all fires.
    """

    format: str | None = setting(None, f"Program that wrote the rasters: {', '.join(FORMATS)}.")
    unit: str | None = setting(None, f"Unit of the arrival times: {', '.join(UNITS)}.")
    like: xr.Dataset | xr.DataArray | None = None
    crs: Any = setting(
        None,
        "Coordinate system of files that state none, e.g. EPSG:5070; 'local' if it is that of the "
        "grid.",
        default_text="that of the grid",
    )
    hours: Sequence[float] | None = setting(
        None,
        "Hours since ignition to read the fires at, e.g. 1,2.5,6; any hours.",
        default_text="the latest arrival; stores: their snapshots",
    )
    drought: str | None = setting(None, "Drought label of fires that have none.")
    nodata: float | None = setting(
        None, "Another value that means unburned, e.g. 0 for a background of zeros."
    )
    variable: str | None = setting(None, "Variable to read from NetCDF files with several.")
    horizon: float = setting(
        HORIZON, "Reject arrival times above this (hours): the unit is probably wrong."
    )
    aggregate: str = setting("mean", "How raster cells become grid cells: mean (by area) or max.")
    step: float | None = None  # hours between further snapshots of every fire before its last

    def __post_init__(self) -> None:
        if self.convention not in FORMATS:
            advice = f"unknown; choose one of {', '.join(FORMATS)}"
            raise ArgumentError("format", self.format, advice)
        if self.aggregate not in regrid.AGGREGATES:
            raise PlumecastError(regrid.unknown_aggregate(self.aggregate))
        check_number("horizon", self.horizon, above=0.0)
        if self.hours is not None:
            series = np.asarray(self.hours, dtype=float)
            if series.ndim != 1 or not series.size or not (np.diff(series, prepend=0) > 0).all():
                raise ArgumentError("hours", self.hours, "give increasing hours above 0")

    @property
    def convention(self) -> str:
        """The format's name; "generic" where none is stated."""
        return self.format or "generic"

    @property
    def has_events(self) -> bool:
        """Whether a file may contain several fires, which an event-ID map separates."""
        return self.convention == "landis"

    def without_fields(self) -> RasterOptions:
        """The same options with only the grid in `like`, so that less is sent to workers."""
        like = self.like
        if isinstance(like, xr.Dataset):
            fields = [name for name, item in like.data_vars.items() if item.ndim]
            return replace(self, like=like.drop_vars(fields))
        return self if like is None else replace(self, like=like.coords.to_dataset())

    def hours_per_unit(self, path: Path) -> float:
        """Hours per unit of the arrival times: the stated unit, or else that of the format."""
        unit = self.unit or FORMATS[self.convention].unit
        if unit in UNITS:
            return UNITS[unit]
        what = "unknown" if unit else "the arrival times do not state it"
        advice = f"give one of {', '.join(UNITS)}, or a format ({', '.join(FORMATS)})"
        raise ArgumentError("unit", unit, f"{path}: {what}; {advice}")


class FireSnapshots(NamedTuple):
    """The snapshots of one fire on the target grid."""

    fire_id: str
    fields: Array  # (k, ny, nx) time since ignition, h
    hours: Array  # (k,) since ignition
    acres: Array  # (k,) burned area
    target: TargetGrid
    shares: BurnedShares | None  # of the whole fire, which its last snapshot keeps
    assumed_crs: str | None = None  # its name, if the file has none and the grid has one
    stray: str | None = None  # cells that burn long after all others
    lasts: float = 0.0  # hours from ignition to the last arrival
    ignition_id: str = ""  # of its place; an event of LANDIS-II is an ignition by itself


@dataclass(frozen=True, slots=True)
class FileResult:
    """The fires of one file, or the error if the file cannot be used."""

    names: list[str]  # of all fires in the file
    fires: list[FireSnapshots] = field(default_factory=list)  # those that are wanted
    error: PlumecastError | None = None
    note: str | None = None  # what was assumed about the file, or left out
    doubt: str | None = None  # what may be wrong with this file alone


def read_file(options: RasterOptions, done: Collection[str], file: WorkerPath) -> FileResult:
    """Read the fires of one file that are not in `done`; errors are returned, not raised.

    The result does not depend on other files, so that workers can read files in any order.
    """
    path = file.checked()
    names: list[str] = []
    try:
        fires = _read_fires(path, options)
        names = [fire.fire_id for fire in fires]
        read = [_snapshots(fire, options) for fire in fires if fire.fire_id not in done]
        doubt = next((f"{path}: {fire.stray}" for fire in read if fire.stray), None)
        return FileResult(names, read, note=_note(path, read), doubt=doubt)
    except PlumecastError as error:
        return FileResult(names, error=error)


def _note(path: Path, fires: Sequence[FireSnapshots]) -> str | None:
    """That a CRS was assumed, and that a fire burns longer than the hours that were asked for."""
    notes = [
        f"no CRS in {path}: assumed that of the target grid, {fire.assumed_crs}; state the CRS of "
        "the files if it is another"
        for fire in fires[:1]
        if fire.assumed_crs
    ]
    longest = max(fires, key=lambda fire: fire.lasts - fire.hours[-1], default=None)
    if longest is not None and longest.lasts > longest.hours[-1] * (1.0 + 1e-6):
        notes.append(
            f"{path} burns until {longest.lasts:.4g} h: what burns after the last of the hours "
            f"asked for, {longest.hours[-1]:g} h, is left out (other files may burn longer too)"
        )
    return "; ".join(notes) or None


def _read_fires(path: Path, options: RasterOptions) -> list[RasterFire]:
    """Fires of one file: one, or for LANDIS-II one per event of its event-ID map."""
    raster = read_raster(path, options.variable)
    convention = FORMATS[options.convention]
    arrival = np.where(np.isfinite(raster.values), raster.values, np.nan)
    for value in (raster.nodata, options.nodata, *convention.unburned):
        if value is not None:
            arrival[arrival == value] = np.nan
    if np.isnan(arrival).all():
        raise PlumecastError(f"{path}: no burned cell, all values are nodata; remove the file")
    earliest, latest = float(np.nanmin(arrival)), float(np.nanmax(arrival))
    if earliest < 0:
        odd = f"{path}: arrival time {earliest:g} is negative; if it means unburned, give"
        raise ArgumentError("nodata", options.nodata, f"{odd} {earliest:g}")
    for value in (earliest, latest):
        _refuse_background(path, arrival, value, options)
    hours_per_unit = options.hours_per_unit(path)
    _check_unit(path, raster.unit, options)
    if not math.isfinite(latest * hours_per_unit):
        raise PlumecastError(f"{path}: arrival time {latest:g} is too large; is the unit right?")
    arrival *= hours_per_unit
    events: Iterable[tuple[str, Array]] = [(path.stem, np.ones(arrival.shape, dtype=bool))]
    if options.has_events:
        events = _landis_events(path, raster.grid)
    fires = [
        _fire(name, path, np.where(where, arrival, np.nan), raster=raster, options=options)
        for name, where in events
        if np.isfinite(arrival[where]).any()
    ]
    if not fires:
        raise PlumecastError(f"{path}: no event of its event-ID map has burned; remove the file")
    return fires


def _refuse_background(path: Path, arrival: Array, value: float, options: RasterOptions) -> None:
    """Raise if most cells, and most along the edge, have this arrival time: it means unburned.

    A fire cannot reach most of the edge of a raster at one time; an ignition along a line or a
    perimeter lies inside.
    """
    edge = np.concatenate([arrival[0], arrival[-1], arrival[:, 0], arrival[:, -1]])
    same, along = arrival == value, edge == value
    if 2 * np.count_nonzero(same) <= arrival.size or 2 * np.count_nonzero(along) <= edge.size:
        return
    advice = (
        f"{path}: {np.count_nonzero(same) / same.size:.0%} of the cells, also along the edge of "
        f"the raster, have the arrival time {value:g} and no missing value marks them; if it "
        f"means unburned, give {value:g}"
    )
    raise ArgumentError("nodata", options.nodata, advice)


def _check_unit(path: Path, label: str, options: RasterOptions) -> None:
    """Raise if the file labels its values with another unit of time than the user or the format."""
    labelled = unit_named(label.partition(" since ")[0], "time")
    unit = options.unit or FORMATS[options.convention].unit
    if labelled is None or labelled == unit:
        return
    by = "" if options.unit else f" of the format {options.convention}"
    advice = (
        f"{path}: the file labels its values {label!r}, not {unit}{by}; give {labelled}, or "
        "correct the label"
    )
    raise ArgumentError("unit", options.unit or unit, advice)


def _landis_events(path: Path, grid: Grid) -> Iterable[tuple[str, Array]]:
    """Name and mask of each event, from the event-ID map next to the day-of-fire map."""
    beside = path.with_name(path.name.replace("day-of-fire", EVENT_MAP))
    if beside == path or not beside.exists():
        advice = (
            f"{path}: no event-ID map beside it (day-of-fire-N needs event-ID-N); to read the map "
            "as one fire, give no format and the unit d"
        )
        raise ArgumentError("format", "landis", advice)
    events = read_raster(beside)
    if events.grid != grid:
        raise PlumecastError(
            f"{beside}: its grid differs from that of {path.name}; put both maps on one grid"
        )
    numbers = np.unique(events.values[events.values > 0])
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    if numbers.size > _MOST_EVENTS or not whole.all():
        raise PlumecastError(
            f"{beside}: {numbers.size} different values, from {numbers[0]:g} to {numbers[-1]:g}; "
            f"expected at most {_MOST_EVENTS} whole numbers of events"
        )
    return ((f"{path.stem}-event-{int(n)}", events.values == n) for n in numbers)


def _fire(
    name: str, path: Path, arrival: Array, *, raster: Raster, options: RasterOptions
) -> RasterFire:
    """One fire from its arrival times (ny, nx) in hours, NaN where unburned."""
    cells = np.flatnonzero(np.isfinite(arrival))
    since = arrival.ravel()[cells]
    since = since - since.min()
    if since.max() > options.horizon:
        advice = (
            f"{path}: the latest arrival is {since.max():.6g} h after ignition, beyond this; is "
            "the unit right?"
        )
        raise ArgumentError("horizon", options.horizon, advice)
    local = options.crs == "local"
    crs = raster.crs if options.crs is None or local else options.crs
    differs = crs is not raster.crs and raster.crs is not None
    if differs and not same_crs(as_crs(raster.crs, path), as_crs(crs, path)):
        raise ArgumentError("crs", options.crs, f"{path}: the file has another CRS; leave this out")
    return RasterFire(name, path, cells, since, raster.grid, crs, local)


def _snapshots(fire: RasterFire, options: RasterOptions) -> FireSnapshots:
    """Time since ignition of one fire at the wanted hours, on the target grid."""
    last = fire.arrival.max() + FORMATS[options.convention].step
    asked = [float(last)] if options.hours is None else list(map(float, options.hours))
    hours = np.array(hour_ladder(asked, options.step))
    like = options.like
    target = TargetGrid(fire.grid, fire.crs, {}) if like is None else target_grid(like)
    unplaced = fire.crs is None and not fire.local and looks_like_degrees(fire.grid)
    if unplaced and (like is None or not looks_like_degrees(target.grid)):
        raise ArgumentError("crs", None, _in_degrees(fire))
    shape = (target.grid.ny, target.grid.nx)
    fields = np.zeros((hours.size, *shape), dtype=np.float32)
    weights = None if like is None else overlap(fire, target)
    assumed = assumed_crs(fire, target)
    if assumed is not None:
        fire = fire._replace(crs=target.crs)

    for out, t in zip(fields, hours, strict=True):
        age = np.maximum(t - fire.arrival, 0.0)
        if weights is None:
            out.ravel()[fire.cells] = age
        else:
            combine = weights.mean if options.aggregate == "mean" else weights.max
            out[:] = combine(age).reshape(shape)
    # Cells of the file itself burn at once, and snapshots at every step tell when.
    shares = None
    if weights is not None and options.step is None:
        end = np.array([fire.arrival.max()])
        shares = burned_shares(
            fire.arrival, weights, end, most=PER_FIRE, aggregate=options.aggregate
        )
    area = cell_areas(fire) / M2_PER_ACRE
    acres = np.array([area[fire.arrival <= t].sum() for t in hours])
    stray = _stray(fire) if hours[-1] >= fire.arrival.max() else None
    ignition = fire.fire_id if options.has_events else _ignition(fire)
    return FireSnapshots(
        fire.fire_id, fields, hours, acres, target, shares, assumed, stray, float(last), ignition
    )


def _ignition(fire: RasterFire) -> str:
    """The name of the place of the first burned cell; of several, the one in their middle."""
    grid = fire.grid
    place = np.stack(np.divmod(fire.cells[fire.arrival <= 0.0], grid.nx))  # rows, columns
    apart = np.abs(place - place.mean(axis=1, keepdims=True)).sum(axis=0)
    row, column = place[:, int(np.argmin(apart))]
    return ignition_name(grid.x[column], grid.y[row], max(grid.dx, grid.dy))


def _in_degrees(fire: RasterFire) -> str:
    """That coordinates without a CRS look like degrees, and what to give."""
    grid = fire.grid
    return (
        f"{fire.path}: no CRS, and its coordinates look like degrees (x from {grid.left:.6g}, y "
        f"from {grid.bottom:.6g}, cells of {grid.dx:g}); give EPSG:4326, or local if they are "
        "those of the grid"
    )


_LATE = 0.5  # of the time from ignition to the last arrival but one or two


def _stray(fire: RasterFire) -> str | None:
    """That one or two cells, which touch no other burned cell, burn far later than all others."""
    count = fire.arrival.size
    if count < 4:
        return None
    latest = np.argpartition(fire.arrival, [count - 3, count - 2, count - 1])[-3:]
    for few in (1, 2):
        last, before = latest[-few:], float(fire.arrival[latest[-few - 1]])
        first = float(fire.arrival[last[0]])
        if before > 0.0 and first - before > _LATE * before and _is_apart(fire, last):
            row, column = divmod(int(fire.cells[last[0]]), fire.grid.nx)
            return (
                f"{'a cell' if few == 1 else 'two cells'} apart from the fire (x "
                f"{fire.grid.x[column]:.7g}, y {fire.grid.y[row]:.7g}) burns at {first:.4g} h, all "
                f"others by {before:.4g} h; the fire is read until then: correct the raster, or "
                "give the hours to read it at"
            )
    return None


def _is_apart(fire: RasterFire, some: Array) -> bool:
    """Whether no other burned cell touches one of some cells."""
    rows, columns = np.divmod(np.delete(fire.cells, some), fire.grid.nx)
    return not any(
        ((abs(rows - row) <= 1) & (abs(columns - column) <= 1)).any()
        for row, column in zip(*np.divmod(fire.cells[some], fire.grid.nx), strict=True)
    )
