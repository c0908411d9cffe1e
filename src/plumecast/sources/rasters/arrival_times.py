"""Fires of arrival-time rasters: one source that is iterated, mapped or reduced.

With a runner the workers of a cluster read the files, and apply a function where they have read
them, so that no field leaves the worker.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT, TABLE
from plumecast.base.paths import Paths, WorkerPath, worker_path
from plumecast.base.version import __version__
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.assembly import PER_FIRE, concat_snapshots, with_burned_shares
from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.fires import (
    FORMATS,
    FileResult,
    FireSnapshots,
    RasterOptions,
    read_file,
)
from plumecast.sources.rasters.georeference import TargetGrid

FILES_PER_TASK = 16
"""Files that a mapped function gets at a time; few enough to keep all workers of a cluster busy."""

_MOST_DOUBTS = 20  # files that are named with what may be wrong with them

SnapshotFunction = Callable[[xr.Dataset], xr.Dataset]


def _unchanged(fires: xr.Dataset) -> xr.Dataset:
    return fires


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalTimes:
    """Fires of the arrival-time rasters that `paths` name, read `batch` files at a time when asked.

    Fires in `done` are skipped. `prepare` is applied to the snapshots where they are read. If
    `on_error` is given, a file that cannot be used is reported as `on_error(path, message)` and
    skipped; otherwise it raises. `on_note(message)` is called instead of a warning, for the first
    file that there is something to note of. `words` words errors as messages.
    """

    paths: Paths
    options: RasterOptions = field(default_factory=RasterOptions)
    batch: int = 64
    done: Collection[str] = frozenset()
    prepare: SnapshotFunction = _unchanged
    on_error: Callable[[Path, str], object] | None = None
    on_note: Callable[[str], object] | None = None
    words: Callable[[PlumecastError], str] = str
    files: tuple[Path, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(find_rasters(self.paths)))
        self.options.hours_per_unit(self.files[0])  # a missing unit is found before any is read

    def __iter__(self) -> Iterator[xr.Dataset]:
        """The snapshots of each batch of files."""
        return self.batches()

    def batches(self, resources: Resources = LOCAL) -> Iterator[xr.Dataset]:
        """The snapshots of each batch of files; progress is reported by file."""
        parts = self._read(None, [self.files[n : n + 1] for n in range(len(self.files))], resources)
        while batch := list(islice(parts, max(1, self.batch))):
            fires = [fire for part in batch for fire in part or ()]
            if fires:
                yield self.prepare(to_dataset(fires, self.options))

    def map(self, function: SnapshotFunction, resources: Resources = LOCAL) -> Iterator[xr.Dataset]:
        """`function` of the snapshots of each batch of files.

        It gets the snapshots of at most `FILES_PER_TASK` files, on the grid of `options.like`, and
        returns one row per snapshot, in the same order.
        """
        batches = [_split(files, FILES_PER_TASK) for files in _split(self.files, self.batch)]
        outputs = self._read(function, [files for batch in batches for files in batch], resources)
        for batch in batches:
            made = [output for output in islice(outputs, len(batch)) if output is not None]
            if made:
                yield concat_snapshots(made, combine_attrs="override")

    def reduce(
        self, function: Callable[[xr.Dataset], Any], resources: Resources = LOCAL
    ) -> Iterator[Any]:
        """Anything that `function` returns for the snapshots of each batch, such as their sums."""
        outputs = self._read(function, _split(self.files, self.batch), resources)
        return (output for output in outputs if output is not None)

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Callable[[int, int, str], object],
    ) -> Iterator[Any]:
        """`reduce`, as for every source of fires whose smoke is predicted."""
        return self.reduce(function, Resources(runner=runner, progress=progress))

    def _read(
        self,
        function: Callable[[xr.Dataset], Any] | None,
        tasks: Sequence[Sequence[Path]],
        resources: Resources,
    ) -> Iterator[Any]:
        """The output of `function`, or without one the fires, of each task of a few files.

        None if no file of a task can be used. A task in which a fire has the name of a fire of an
        earlier one is read again without that file.
        """
        options, done = self.options.without_fields(), frozenset(self.done)
        shared = _Shared(function, self.prepare, options, done)
        remote = resources.runner is not None
        wanted = [
            [worker_path(path, remote=remote) for path in files if not self._is_done(path)]
            for files in tasks
        ]
        results = map_over(_read_task, shared, [part for part in wanted if part], resources.runner)
        accepted = _AcceptedFires()
        finished = 0
        for files, sent in zip(tasks, wanted, strict=True):
            task = next(results) if sent else _TaskResult([], None)
            read = iter(zip(sent, task.files, strict=True))
            usable: list[tuple[WorkerPath, FileResult]] = []
            repeats = False
            for path in files:
                where, file = (None, FileResult([path.stem])) if self._is_done(path) else next(read)
                if not self._accept(accepted, path, file):
                    repeats = repeats or file.error is None
                elif where is not None:
                    usable.append((where, file))
            finished += len(files)
            what = "files" if function is not None else files[0].stem
            resources.progress(finished, len(self.files), what)
            if function is None:
                yield [fire for _, file in usable for fire in file.fires]
                continue
            if repeats:
                again = [where for where, _ in usable]
                task = next(map_over(_read_task, shared, [again], resources.runner))
            yield task.output
        if function is not None and accepted.problem is not None and not accepted.names:
            count = len(self.files)
            several = f"none of {count} rasters can be read; the first: " if count > 1 else ""
            raise PlumecastError(several + accepted.problem)

    def _accept(self, accepted: _AcceptedFires, path: Path, file: FileResult) -> bool:
        """Whether a file can be used. If not, it is reported; the first note is passed on."""
        try:
            accepted.add(path, file)
        except PlumecastError as error:
            if self.on_error is None:
                raise
            problem = self.words(error)
            accepted.problem = accepted.problem or problem
            self.on_error(path, problem)
            return False
        if file.note is not None and not accepted.noted:
            accepted.noted = True
            self._note(file.note)
        if file.doubt is not None:
            accepted.doubts += 1
            if accepted.doubts <= _MOST_DOUBTS:
                more = "; further files are not named" if accepted.doubts == _MOST_DOUBTS else ""
                self._note(file.doubt + more)
        return True

    def _note(self, text: str) -> None:
        if self.on_note is None:
            warnings.warn(text, stacklevel=5)
        else:
            self.on_note(text)

    def _is_done(self, path: Path) -> bool:
        """Whether a file need not be read; one with several fires must be."""
        return not self.options.has_events and path.stem in self.done


class _Shared(NamedTuple):
    """What all tasks have in common."""

    function: Callable[[xr.Dataset], Any] | None
    prepare: SnapshotFunction
    options: RasterOptions
    done: frozenset[str]


class _TaskResult(NamedTuple):
    """Result of reading a few files and applying the function to their fires."""

    files: list[FileResult]  # with a function without the fires, which stay on the worker
    output: Any  # None if no file could be used


def _read_task(shared: _Shared, files: Sequence[WorkerPath]) -> _TaskResult:
    """Read the files of one task and apply the function to their snapshots, on the worker."""
    accepted = _AcceptedFires()
    results: list[FileResult] = []
    fires: list[FireSnapshots] = []
    for file in files:
        result = read_file(shared.options, shared.done, file)
        try:
            fires += accepted.add(file.path, result)
        except PlumecastError as error:
            result = replace(result, error=error)
        results.append(result if shared.function is None else replace(result, fires=[]))
    if shared.function is None or not fires:
        return _TaskResult(results, None)
    return _TaskResult(results, shared.function(shared.prepare(to_dataset(fires, shared.options))))


@dataclass(slots=True)
class _AcceptedFires:
    """Checks each new file against the files before it: unique names, one grid."""

    names: set[str] = field(default_factory=set)
    first: FireSnapshots | None = None
    noted: bool = False
    doubts: int = 0  # files with something to check
    problem: str | None = None  # of the first file that cannot be used

    def add(self, path: Path, file: FileResult) -> list[FireSnapshots]:
        """Accept one more file and return its fires, or raise."""
        for name in file.names:
            if name in self.names:
                raise PlumecastError(f"{path}: a fire named {name!r} was read before; rename it")
        if file.error is not None:
            raise file.error
        for fire in file.fires:
            self.first = self.first or fire
            if fire.target.grid != self.first.target.grid:
                raise PlumecastError(
                    f"{path}: its grid differs from that of {self.first.fire_id}; give like, the "
                    "grid for all files"
                )
        self.names.update(file.names)
        return file.fires


def _split(files: Sequence[Path], size: int) -> list[Sequence[Path]]:
    """Consecutive groups of at most `size` files."""
    return [files[rows] for rows in row_blocks(len(files), size)]


@folded_arguments(options=RasterOptions)
def read_arrival_times(paths: Paths, options: RasterOptions | None = None) -> xr.Dataset:
    """Time since ignition from arrival-time rasters: one fire per file (per event for LANDIS-II).

    f = max(t − arrival, 0) in hours; t and arrival count from the earliest arrival of the fire. By
    default t is the latest arrival (for LANDIS-II, the end of the last day).

    Parameters
    ----------
    paths
        A file, a folder, a glob or a list of them: ASCII grids, GeoTIFF, Erdas Imagine or NetCDF.
    options
        Their unit or format, the target grid, the hours t and more: see `RasterOptions`.

    Returns
    -------
    Dataset
        `time_since_ignition(snapshot, y, x)`, with the labels and burned areas of the snapshots.
    """
    source = ArrivalTimes(paths, options or RasterOptions())
    (fires,) = replace(source, batch=len(source.files))
    return fires


@folded_arguments(
    adapted={"progress": lambda heard: lambda done, total, _: heard(done, total)},
    options=RasterOptions,
    resources=Resources,
)
def iter_arrival_times(
    paths: Paths,
    options: RasterOptions | None = None,
    *,
    batch: int = 64,
    done: Collection[str] = frozenset(),
    on_error: Callable[[Path, str], None] | None = None,
    on_note: Callable[[str], object] | None = None,
    resources: Resources = LOCAL,
) -> Iterator[xr.Dataset]:
    """`read_arrival_times` for any number of files, `batch` files in memory at a time.

    Fires in `done` are skipped. If `on_error` is given, a file that cannot be used is reported as
    `on_error(path, message)` and skipped; otherwise it raises. `on_note(message)` is called instead
    of a warning. Of the resources, progress is reported after every file, and the workers of a
    `runner` read the files; the result is the same.
    """
    source = ArrivalTimes(
        paths, options or RasterOptions(), batch, done, on_error=on_error, on_note=on_note
    )
    return source.batches(resources)


def to_dataset(fires: Sequence[FireSnapshots], options: RasterOptions) -> xr.Dataset:
    """Labelled snapshots of fires on one grid; an ignition has the name of its place."""
    target = fires[0].target
    mapping = target.grid_mapping()
    attrs = {**TABLE[FIRE].attrs, **({"grid_mapping": "crs"} if mapping else {})}
    settings = {
        "format": options.convention,
        "unit": options.unit or FORMATS[options.convention].unit,
        "aggregate": options.aggregate,
        "hours": None if options.hours is None else [float(t) for t in options.hours],
    }
    counts = [fire.hours.size for fire in fires]
    names = np.repeat([fire.fire_id for fire in fires], counts)
    columns = {
        "fire_id": names,
        "ignition_id": np.repeat([fire.ignition_id for fire in fires], counts),
        "hours": np.concatenate([fire.hours for fire in fires]),
        "drought": np.full(names.size, options.drought or "unknown"),
        "burned_area": np.concatenate([fire.acres for fire in fires]),
        "is_final": np.concatenate([np.arange(n) == n - 1 for n in counts]),
    }
    made = xr.Dataset(
        {FIRE: ((SNAPSHOT, "y", "x"), np.concatenate([fire.fields for fire in fires]), attrs)},
        coords={
            **{name: (SNAPSHOT, values, TABLE[name].attrs) for name, values in columns.items()},
            **_grid_coordinates(target, mapping),
        },
        attrs={
            "Conventions": "CF-1.11",
            "source": f"arrival-time rasters ({options.convention})",
            "plumecast_version": __version__,
            "settings": json.dumps(settings),
        },
    )
    if all(fire.shares is None for fire in fires):
        return made
    times = np.full((names.size, PER_FIRE), np.nan)
    shares = np.zeros((names.size, PER_FIRE, target.grid.ny * target.grid.nx), np.float32)
    for row, fire in zip(np.cumsum(counts) - 1, fires, strict=True):
        if fire.shares is not None:
            times[row], shares[row] = (values[0] for values in fire.shares)
    return with_burned_shares(made, (times, shares))


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
