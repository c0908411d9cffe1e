"""Read arrival-time rasters as time since ignition, all at once or in batches."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import hour_ladder
from plumecast.base.constants import M2_PER_ACRE
from plumecast.base.errors import PlumecastError
from plumecast.base.names import (
    FIRE,
    SNAPSHOT,
    TABLE,
)
from plumecast.base.paths import Paths, WorkerPath, worker_path
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import Runner, map_over
from plumecast.data.assembly import PER_FIRE, BurnedShares, burned_shares, with_burned_shares
from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.fires import read_fires
from plumecast.sources.rasters.georeference import (
    RasterFire,
    TargetGrid,
    assumed_crs,
    cell_areas,
    overlap,
    target_grid,
)
from plumecast.sources.rasters.options import FORMATS, HORIZON, Options


class FireSnapshots(NamedTuple):
    """The snapshots of one fire on the target grid."""

    fire_id: str
    fields: Array  # (k, ny, nx) time since ignition, h
    hours: Array  # (k,) since ignition
    acres: Array  # (k,) burned area
    target: TargetGrid
    kept: BurnedShares | None  # of the whole fire, which its last snapshot keeps
    assumed_crs: str | None = None  # its name, if the file has none and the grid has one
    lasts: float = 0.0  # hours from ignition to the last arrival


@dataclass(frozen=True, slots=True)
class FileResult:
    """The fires of one file, or the error message if the file cannot be used."""

    names: list[str]  # of all fires in the file
    fires: list[FireSnapshots] = field(default_factory=list)  # those that were not in `done`
    error: str | None = None
    note: str | None = None  # what was assumed about the file


@dataclass(slots=True)
class AcceptedFires:
    """Checks each new file against the files before it: unique names, one grid.

    The first note about an accepted file is passed to `on_note`, without it to `warnings`. Further
    files of a run tell the same.
    """

    names: set[str] = field(default_factory=set)
    first: FireSnapshots | None = None
    on_note: Callable[[str], object] | None = None
    note: str | None = None

    def add(self, path: Path, result: FileResult) -> list[FireSnapshots]:
        """Accept one more file and return its fires, or raise."""
        for name in result.names:
            if name in self.names:
                raise PlumecastError(repeated_name(path, name))
        if result.error is not None:
            raise PlumecastError(result.error)
        for fire in result.fires:
            self.first = self.first or fire
            if fire.target.grid != self.first.target.grid:
                raise PlumecastError(
                    f"{path}: its grid differs from that of {self.first.fire_id}; give like, the "
                    "grid for all files"
                )
        self.names.update(result.names)
        self.tell(result.note)
        return result.fires

    def tell(self, note: str | None) -> None:
        """Pass on the first note."""
        if note is None or self.note is not None:
            return
        self.note = note
        (self.on_note or _warn)(note)


def _warn(note: str) -> None:
    warnings.warn(note, stacklevel=5)


def repeated_name(path: Path, name: str) -> str:
    """The message for a fire whose name an earlier file has."""
    return f"{path}: a fire named {name!r} was read before; rename it"


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

    f = max(t − arrival, 0) in hours; t and arrival count from the earliest arrival of the fire.

    - `hours` lists the times t. By default t is the latest arrival (for LANDIS-II, the end of the
      last day).
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
    options.hours_per_unit(files[0])  # a missing unit is reported before any file is read
    accepted = AcceptedFires()
    shared = (options, frozenset[str]())
    fires = [
        fire for path in files for fire in accepted.add(path, read_file(shared, WorkerPath(path)))
    ]
    return to_dataset(fires, options)


def iter_arrival_times(
    paths: Paths,
    *,
    batch: int = 64,
    done: Collection[str] = frozenset(),
    on_error: Callable[[Path, str], None] | None = None,
    on_note: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """`read_arrival_times` for any number of files, `batch` files in memory at a time.

    Fires in `done` are skipped. If `on_error` is given, a file that cannot be used is reported as
    `on_error(path, message)` and skipped; otherwise it raises. `on_note(message)` is called instead
    of a warning. `progress(finished, total)` is called after every file. With a `runner`
    (`pc.cluster`) the workers of a cluster read the files; the result is the same.
    """
    settings = Options(**options)
    files = find_rasters(paths)
    settings.hours_per_unit(files[0])
    accepted = AcceptedFires(on_note=on_note)
    skipped = set() if settings.has_events else {path for path in files if path.stem in done}
    to_read = [
        worker_path(path, remote=runner is not None) for path in files if path not in skipped
    ]
    shared = (settings.without_fields(), frozenset(done))
    results = map_over(read_file, shared, to_read, runner)
    remaining = iter(enumerate(files, start=1))
    while chunk := list(islice(remaining, batch)):
        fires: list[FireSnapshots] = []
        for number, path in chunk:
            result = FileResult([path.stem]) if path in skipped else next(results)
            try:
                fires += accepted.add(path, result)
            except PlumecastError as error:
                if on_error is None:
                    raise
                on_error(path, str(error))
            if progress is not None:
                progress(number, len(files))
        if fires:
            yield to_dataset(fires, settings)


def read_file(shared: tuple[Options, Collection[str]], file: WorkerPath) -> FileResult:
    """Read the fires of one file that are not in `done`; errors are returned, not raised.

    The result does not depend on other files, so that workers can read files in any order.
    """
    options, done = shared
    path = file.checked()
    names: list[str] = []
    try:
        fires = read_fires(path, options)
        names = [fire.fire_id for fire in fires]
        wanted = [fire for fire in fires if fire.fire_id not in done]
        read = [_fire_snapshots(fire, options) for fire in wanted]
        assumed = next((fire.assumed_crs for fire in read if fire.assumed_crs), None)
        notes = [assumed and _assumption(path, assumed), _left_out(path, read)]
        return FileResult(names, read, note="; ".join(filter(None, notes)) or None)
    except PlumecastError as error:
        return FileResult(names, error=str(error))


def _assumption(path: Path, crs: str) -> str:
    return f"no CRS in {path}: assumed that of `like`, {crs}; give crs=EPSG:… otherwise"


def _left_out(path: Path, fires: Sequence[FireSnapshots]) -> str | None:
    """That a fire burns longer than it was asked for."""
    longest = max(fires, key=lambda fire: fire.lasts - fire.hours[-1], default=None)
    if longest is None or longest.lasts <= longest.hours[-1] * (1.0 + 1e-6):
        return None
    return (
        f"{path} burns until {longest.lasts:.4g} h: what burns after the last of the hours asked "
        f"for, {longest.hours[-1]:g} h, is left out (other files may burn longer too)"
    )


def _fire_snapshots(fire: RasterFire, options: Options) -> FireSnapshots:
    """Time since ignition of one fire at the wanted hours, on the target grid."""
    last = fire.arrival.max() + FORMATS[options.convention].step
    asked = [float(last)] if options.hours is None else list(map(float, options.hours))
    hours = np.array(hour_ladder(asked, options.step))
    like = options.like
    target = TargetGrid(fire.grid, fire.crs, {}) if like is None else target_grid(like)
    shape = (target.grid.ny, target.grid.nx)
    fields = np.zeros((hours.size, *shape), dtype=np.float32)
    local = options.crs == "local"
    weights = None if like is None else overlap(fire, target, local=local)
    assumed = assumed_crs(fire, target, local=local)
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
    kept = None
    if weights is not None and options.step is None:
        kept = burned_shares(
            fire.arrival,
            weights,
            np.array([fire.arrival.max()]),
            most=PER_FIRE,
            aggregate=options.aggregate,
        )
    area = cell_areas(fire) / M2_PER_ACRE
    acres = np.array([area[fire.arrival <= t].sum() for t in hours])
    return FireSnapshots(fire.fire_id, fields, hours, acres, target, kept, assumed, float(last))


def to_dataset(fires: Sequence[FireSnapshots], options: Options) -> xr.Dataset:
    """Labelled snapshots of fires on one grid."""
    target = fires[0].target
    mapping = target.grid_mapping()
    attrs = {**TABLE[FIRE].attrs, **({"grid_mapping": "crs"} if mapping else {})}
    settings = {
        "format": options.convention,
        "unit": options.unit or FORMATS[options.convention].unit,
        "aggregate": options.aggregate,
        "hours": None if options.hours is None else [float(t) for t in options.hours],
    }
    fields: dict[str, Any] = {
        FIRE: ((SNAPSHOT, "y", "x"), np.concatenate([fire.fields for fire in fires]), attrs)
    }
    made = xr.Dataset(
        fields,
        coords={
            **_snapshot_coordinates(fires, options.drought or "unknown"),
            **_grid_coordinates(target, mapping),
        },
        attrs={
            "Conventions": "CF-1.11",
            "source": f"arrival-time rasters ({options.convention})",
            "plumecast_version": __version__,
            "settings": json.dumps(settings),
        },
    )
    if all(fire.kept is None for fire in fires):
        return made
    rows = np.cumsum([fire.hours.size for fire in fires]) - 1
    times = np.full((rows[-1] + 1, PER_FIRE), np.nan)
    shares = np.zeros((rows[-1] + 1, PER_FIRE, target.grid.ny * target.grid.nx), np.float32)
    for row, fire in zip(rows, fires, strict=True):
        if fire.kept is not None:
            times[row], shares[row] = (values[0] for values in fire.kept)
    return with_burned_shares(made, (times, shares))


def _snapshot_coordinates(fires: Sequence[FireSnapshots], drought: str) -> dict[str, Any]:
    """Coordinates along the snapshots; every fire has its own ignition."""
    count = [fire.hours.size for fire in fires]
    names = np.repeat([fire.fire_id for fire in fires], count)
    columns = {
        "fire_id": names,
        "ignition_id": names,
        "hours": np.concatenate([fire.hours for fire in fires]),
        "drought": np.full(names.size, drought),
        "burned_area": np.concatenate([fire.acres for fire in fires]),
        "is_final": np.concatenate([np.arange(n) == n - 1 for n in count]),
    }
    return {name: (SNAPSHOT, values, TABLE[name].attrs) for name, values in columns.items()}


def _grid_coordinates(target: TargetGrid, mapping: dict[str, Any]) -> dict[str, Any]:
    """Coordinates of the target grid, with the CRS if it is known."""
    coords = dict(target.coords)
    degrees = mapping.get("grid_mapping_name") == "latitude_longitude"
    for axis, centres in (("y", target.grid.y), ("x", target.grid.x)):
        geographic = TABLE["lat" if axis == "y" else "lon"].attrs
        coords[axis] = (axis, centres, geographic if degrees else TABLE[axis].attrs)
    if mapping:
        coords["crs"] = ((), 0, mapping)
    return coords
