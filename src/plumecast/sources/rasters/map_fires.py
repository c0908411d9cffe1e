"""Read fires from rasters and apply a function to them on the same worker.

Only the results of the function return to the calling process. The fields of the fires stay on the
worker that read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.base.paths import Paths, WorkerPath, worker_path
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.data.assembly import concat_snapshots
from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.options import Options
from plumecast.sources.rasters.read import (
    AcceptedFires,
    FileResult,
    FireSnapshots,
    read_file,
    repeated_name,
    to_dataset,
)

FILES_PER_TASK = 16
"""Files that one task reads; small enough that a batch keeps all workers of a cluster busy."""

SnapshotFunction = Callable[[xr.Dataset], xr.Dataset]


class _TaskResult(NamedTuple):
    """Result of reading a few files and applying the function to their fires."""

    files: list[FileResult]  # without the fields, which stay on the worker
    snapshot_counts: list[int]  # one per file
    output: xr.Dataset | None  # None if no file could be read


def map_arrival_times(
    function: SnapshotFunction,
    paths: Paths,
    *,
    like: xr.Dataset,
    batch: int = 64,
    on_error: Callable[[Path, str], None] | None = None,
    on_note: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """Apply `function` to the snapshots of `iter_arrival_times`; yield one result per batch.

    `function` receives the snapshots of at most `FILES_PER_TASK` files on the grid of `like` and
    must return one row per snapshot, in the same order. With a `runner` (`pc.cluster`) it runs in
    the worker that has read the files; without one it runs in this process, on the same groups of
    files. A file that cannot be used, or that repeats the name of an earlier fire, is reported to
    `on_error` as in `iter_arrival_times`, as are notes to `on_note`.
    """
    settings, files = _prepare(paths, like, runner, options)
    accepted = AcceptedFires(on_note=on_note)
    batches = [_split(part, FILES_PER_TASK) for part in _split(files, batch)]
    tasks = [group for part in batches for group in part]
    results = map_over(_read_and_apply, (function, settings), tasks, runner)
    finished = 0
    for part in batches:
        outputs: list[xr.Dataset] = []
        for group in part:
            result = next(results)
            kept = _usable_snapshots(accepted, group, result, on_error)
            if result.output is not None and kept.any():
                outputs.append(
                    result.output if kept.all() else result.output.isel({SNAPSHOT: kept})
                )
            finished += len(group)
            if progress is not None:
                progress(finished, len(files))
        if outputs:
            yield concat_snapshots(outputs, combine_attrs="override")


def reduce_arrival_times(
    function: Callable[[xr.Dataset], Any],
    paths: Paths,
    *,
    like: xr.Dataset,
    batch: int = 64,
    on_error: Callable[[Path, str], None] | None = None,
    on_note: Callable[[str], object] | None = None,
    progress: Callable[[int, int], object] | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Iterator[Any]:
    """Apply `function` to the snapshots of every `batch` of files; yield its results.

    Unlike that of `map_arrival_times`, the function may return anything, such as sums over its
    snapshots. With a `runner` it runs in the worker that has read the files, so that no field
    leaves the worker. A batch in which a fire has the name of a fire in an earlier batch is read
    again without that file.
    """
    settings, files = _prepare(paths, like, runner, options)
    shared, tasks = (function, settings), _split(files, batch)
    names: set[str] = set()
    accepted = AcceptedFires(on_note=on_note)
    finished = 0
    for task, result in zip(tasks, map_over(_read_and_reduce, shared, tasks, runner), strict=True):
        found = result
        repeated = {name for name in result.names if name in names}
        if repeated:
            kept = [f for f, own in zip(task, result.names_by_file, strict=True)
                    if not repeated & set(own)]  # fmt: skip
            found = next(iter(map_over(_read_and_reduce, shared, [kept], runner)))
        problems = dict(result.problems)
        for file, own in zip(task, result.names_by_file, strict=True):
            for name in own:
                if name in repeated:
                    problems.setdefault(file.path, repeated_name(file.path, name))
        for path, message in problems.items():
            if on_error is None:
                raise PlumecastError(message)
            on_error(path, message)
        names.update(found.names)
        accepted.tell(found.note)
        finished += len(task)
        if progress is not None:
            progress(finished, len(files))
        if found.output is not None:
            yield found.output


class _Reduced(NamedTuple):
    """Result of reading one batch of files and applying the function to all their fires."""

    names_by_file: list[list[str]]
    names: list[str]  # of the fires that were used
    problems: dict[Path, str]  # why a file was not used
    note: str | None  # what was assumed about the first file with a note
    output: Any  # None if no file could be used


def _read_and_reduce(
    shared: tuple[Callable[[xr.Dataset], Any], Options], files: Sequence[WorkerPath]
) -> _Reduced:
    """Read the files of one batch and apply the function to their snapshots, on the worker."""
    function, options = shared
    accepted = AcceptedFires(on_note=lambda note: None)  # the calling process passes it on
    fires: list[FireSnapshots] = []
    names_by_file, problems = [], {}
    for file in files:
        result = read_file((options, frozenset()), file)
        names_by_file.append(result.names)
        try:
            fires += accepted.add(file.path, result)
        except PlumecastError as error:
            problems[file.path] = str(error)
    output = function(to_dataset(fires, options)) if fires else None
    return _Reduced(names_by_file, sorted(accepted.names), problems, accepted.note, output)


def _prepare(
    paths: Paths, like: xr.Dataset, runner: Runner | None, options: dict[str, Any]
) -> tuple[Options, list[WorkerPath]]:
    """Options and files to send to workers; a missing unit is found before any file is read."""
    settings = Options(like=like, **options)
    files = find_rasters(paths)
    settings.hours_per_unit(files[0])
    sent = [worker_path(path, remote=runner is not None) for path in files]
    return settings.without_fields(), sent


def _split(files: Sequence[WorkerPath], size: int) -> list[Sequence[WorkerPath]]:
    """Consecutive groups of at most `size` files."""
    return [files[rows] for rows in row_blocks(len(files), size)]


def _read_and_apply(
    shared: tuple[SnapshotFunction, Options], files: Sequence[WorkerPath]
) -> _TaskResult:
    """Read the files of one task and apply the function to their snapshots, on the worker."""
    function, options = shared
    results = [read_file((options, frozenset()), file) for file in files]
    fires = [fire for result in results for fire in result.fires]
    return _TaskResult(
        files=[replace(result, fires=[]) for result in results],
        snapshot_counts=[sum(fire.hours.size for fire in result.fires) for result in results],
        output=function(to_dataset(fires, options)) if fires else None,
    )


def _usable_snapshots(
    accepted: AcceptedFires,
    files: Sequence[WorkerPath],
    task: _TaskResult,
    on_error: Callable[[Path, str], None] | None,
) -> np.ndarray:
    """Mask of the snapshots whose file is accepted."""
    usable = []
    for file, result in zip(files, task.files, strict=True):
        try:
            accepted.add(file.path, result)
        except PlumecastError as error:
            if on_error is None:
                raise
            on_error(file.path, str(error))
            usable.append(False)
        else:
            usable.append(True)
    return np.repeat(usable, task.snapshot_counts)
