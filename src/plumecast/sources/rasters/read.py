"""Time since ignition from arrival-time rasters: at once, or streamed in batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.constants import M2_PER_ACRE
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT, TABLE
from plumecast.base.paths import Paths, WorkerPath, worker_path
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import Runner, map_over
from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.fires import read_fires
from plumecast.sources.rasters.options import FORMATS, HORIZON, Options
from plumecast.sources.rasters.place import Fire, Target, cell_areas, overlap, target_of


class Rows(NamedTuple):
    """The snapshots of one fire."""

    fire_id: str
    fields: Array  # (k, ny, nx)
    hours: Array  # (k,)
    acres: Array  # (k,)
    target: Target


@dataclass(frozen=True, slots=True)
class Read:
    """What one file holds, or why it cannot be used."""

    names: list[str]  # of all its fires
    rows: list[Rows] = field(default_factory=list)  # of those that were wanted
    problem: str | None = None


@dataclass(slots=True)
class Known:
    """What was read so far: names must differ, and grids agree."""

    names: set[str] = field(default_factory=set)
    first: Rows | None = None

    def accept(self, path: Path, read: Read) -> list[Rows]:
        """The fires of one more file."""
        for name in read.names:
            if name in self.names:
                raise PlumecastError(f"{path}: a fire named {name!r} was read before; rename it")
        if read.problem is not None:
            raise PlumecastError(read.problem)
        for row in read.rows:
            self.first = self.first or row
            if row.target.grid != self.first.target.grid:
                raise PlumecastError(
                    f"{path}: its grid differs from that of {self.first.fire_id}; give like"
                )
        self.names.update(read.names)
        return read.rows


def read_arrival_times(
    paths: Paths,
    *,
    unit: str | None = None,
    format: str | None = None,
    like: xr.Dataset | xr.DataArray | None = None,
    crs: Any = None,
    hours: Sequence[float] | None = None,
    aggregate: str = "mean",
    horizon: float = HORIZON,
    nodata: float | None = None,
    variable: str | None = None,
    drought: str | None = None,
) -> xr.Dataset:
    """Time since ignition from arrival-time rasters: one fire per file (per event for LANDIS-II).

    f = max(t − arrival, 0) hours, t and arrival since the earliest arrival of the fire. `hours`
    gives a series of t; without it t is the latest arrival (for LANDIS-II the end of the last day).
    `unit` (s, min, h, d) or a `format` states the unit; arrivals later than `horizon` hours after
    ignition are refused as a wrong unit. `like` has the y, x (and CRS) of the grid to aggregate to,
    by area-weighted mean: burned area and the integral of f are kept exactly in one CRS, and in the
    plane of `like` after reprojection (see `regrid.projected_weights`). `crs` is for files that
    carry none; "local" says that the coordinates are already those of `like`. Files without a CRS
    are in metres. `nodata` adds a value that means unburned; `variable` picks one of a NetCDF file;
    `drought` labels the fires.
    """
    options = Options(
        unit=unit,
        format=format,
        like=like,
        crs=crs,
        hours=hours,
        aggregate=aggregate,
        horizon=horizon,
        nodata=nodata,
        variable=variable,
        drought=drought,
    )
    files = find_rasters(paths)
    options.hours_per_unit(files[0])  # what all files share is refused at once
    known = Known()
    shared = (options, frozenset[str]())
    rows = [
        row for path in files for row in known.accept(path, read_file(shared, WorkerPath(path)))
    ]
    return to_dataset(rows, options)


def iter_arrival_times(
    paths: Paths,
    *,
    batch: int = 64,
    done: Collection[str] = frozenset(),
    on_error: Callable[[Path, str], None] | None = None,
    progress: Callable[[int, int], object] | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """`read_arrival_times` for any number of files, `batch` files in memory at a time.

    Fires in `done` are passed over. With `on_error`, a file that cannot be used is reported to it
    (path, message) and passed over. `progress(finished, total)` hears of every file. A `runner`
    (`pc.cluster`) has files read by the processes of a cluster, with the same result.
    """
    settings = Options(**options)
    files = find_rasters(paths)
    settings.hours_per_unit(files[0])
    known = Known()
    passed = set() if settings.has_events else {path for path in files if path.stem in done}
    ahead = [worker_path(path, remote=runner is not None) for path in files if path not in passed]
    shared = (settings.without_fields(), frozenset(done))
    results = map_over(read_file, shared, ahead, runner)
    remaining = iter(enumerate(files, start=1))
    while chunk := list(islice(remaining, batch)):
        rows: list[Rows] = []
        for number, path in chunk:
            read = Read([path.stem]) if path in passed else next(results)
            try:
                rows += known.accept(path, read)
            except PlumecastError as error:
                if on_error is None:
                    raise
                on_error(path, str(error))
            if progress is not None:
                progress(number, len(files))
        if rows:
            yield to_dataset(rows, settings)


def read_file(shared: tuple[Options, Collection[str]], file: WorkerPath) -> Read:
    """The fires of one file that are not done; depends on no other file."""
    options, done = shared
    path = file.checked()
    names: list[str] = []
    try:
        fires = read_fires(path, options)
        names = [fire.fire_id for fire in fires]
        return Read(names, [_rows(fire, options) for fire in fires if fire.fire_id not in done])
    except PlumecastError as error:
        return Read(names, problem=str(error))


def _rows(fire: Fire, options: Options) -> Rows:
    last = fire.arrival.max() + FORMATS[options.convention].step
    hours = np.array([last]) if options.hours is None else np.asarray(options.hours, dtype=float)
    target = Target(fire.grid, fire.crs, {}) if options.like is None else target_of(options.like)
    shape = (target.grid.ny, target.grid.nx)
    fields = np.zeros((hours.size, *shape), dtype=np.float32)
    local = options.crs == "local"
    weights = None if options.like is None else overlap(fire, target, local=local)
    for out, t in zip(fields, hours, strict=True):
        age = np.maximum(t - fire.arrival, 0.0)
        if weights is None:
            out.ravel()[fire.cells] = age
        else:
            combine = weights.mean if options.aggregate == "mean" else weights.max
            out[:] = combine(age).reshape(shape)
    area = cell_areas(fire) / M2_PER_ACRE
    acres = np.array([area[fire.arrival <= t].sum() for t in hours])
    return Rows(fire.fire_id, fields, hours, acres, target)


def to_dataset(rows: Sequence[Rows], options: Options) -> xr.Dataset:
    """The snapshots of fires on one grid, labelled."""
    target = rows[0].target
    mapping = target.grid_mapping()
    attrs = {**TABLE[FIRE].attrs, **({"grid_mapping": "crs"} if mapping else {})}
    settings = {
        "format": options.convention,
        "unit": options.unit or FORMATS[options.convention].unit,
        "aggregate": options.aggregate,
        "hours": None if options.hours is None else [float(t) for t in options.hours],
    }
    return xr.Dataset(
        {FIRE: ((SNAPSHOT, "y", "x"), np.concatenate([row.fields for row in rows]), attrs)},
        coords={**_columns(rows, options.drought or "unknown"), **_place(target, mapping)},
        attrs={
            "Conventions": "CF-1.11",
            "source": f"arrival-time rasters ({options.convention})",
            "plumecast_version": __version__,
            "settings": json.dumps(settings),
        },
    )


def _columns(rows: Sequence[Rows], drought: str) -> dict[str, Any]:
    """The coordinates of the snapshots; every fire is an ignition of its own."""
    count = [row.hours.size for row in rows]
    names = np.repeat([row.fire_id for row in rows], count)
    columns = {
        "fire_id": names,
        "ignition_id": names,
        "hours": np.concatenate([row.hours for row in rows]),
        "drought": np.full(names.size, drought),
        "burned_area": np.concatenate([row.acres for row in rows]),
        "is_final": np.concatenate([np.arange(n) == n - 1 for n in count]),
    }
    return {name: (SNAPSHOT, values, TABLE[name].attrs) for name, values in columns.items()}


def _place(target: Target, mapping: dict[str, Any]) -> dict[str, Any]:
    """The coordinates of the grid."""
    coords = dict(target.coords)
    degrees = mapping.get("grid_mapping_name") == "latitude_longitude"
    for axis, centres in (("y", target.grid.y), ("x", target.grid.x)):
        geographic = TABLE["lat" if axis == "y" else "lon"].attrs
        coords[axis] = (axis, centres, geographic if degrees else TABLE[axis].attrs)
    if mapping:
        coords["crs"] = ((), 0, mapping)
    return coords
