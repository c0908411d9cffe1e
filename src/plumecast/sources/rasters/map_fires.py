"""What is made of the fires of rasters, where they are read: the fires themselves do not travel."""

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
from plumecast.sources.rasters.files import find_rasters
from plumecast.sources.rasters.options import Options
from plumecast.sources.rasters.read import Known, Read, read_file, to_dataset

TOGETHER = 16
"""Files read and worked on together: few enough to keep all workers of a cluster busy."""

Function = Callable[[xr.Dataset], xr.Dataset]


class _Made(NamedTuple):
    """What was made of a few files: nothing where none could be used."""

    reads: list[Read]  # without their fields
    snapshots: list[int]  # of each file
    result: xr.Dataset | None


def map_arrival_times(
    function: Function,
    paths: Paths,
    *,
    like: xr.Dataset,
    batch: int = 64,
    on_error: Callable[[Path, str], None] | None = None,
    progress: Callable[[int, int], object] | None = None,
    runner: Runner | None = None,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """`function` of the snapshots that `iter_arrival_times` gives, `batch` files at a time.

    It takes the snapshots of a few files on the grid of `like`, the same few with and without a
    `runner`, and returns as many, in their order; with one (`pc.cluster`) it is called in the
    processes of a cluster, where the files are read. A file that cannot be used, or whose fires
    were read before, goes to `on_error` as there.
    """
    settings = Options(like=like, **options)
    files = find_rasters(paths)
    settings.hours_per_unit(files[0])
    known = Known()
    batches = [_pieces(files[rows], TOGETHER) for rows in row_blocks(len(files), batch)]
    elsewhere = runner is not None
    items = [
        [worker_path(path, remote=elsewhere) for path in piece]
        for part in batches
        for piece in part
    ]
    results = map_over(_make, (function, settings.without_fields()), items, runner)
    finished = 0
    for part in batches:
        made: list[xr.Dataset] = []
        for piece in part:
            found = next(results)
            kept = _accepted(known, piece, found, on_error)
            if found.result is not None and kept.any():
                made.append(found.result if kept.all() else found.result.isel({SNAPSHOT: kept}))
            finished += len(piece)
            if progress is not None:
                progress(finished, len(files))
        if made:
            yield _joined(made)


def _pieces(files: Sequence[Path], size: int) -> list[Sequence[Path]]:
    return [files[rows] for rows in row_blocks(len(files), size)]


def _make(shared: tuple[Function, Options], files: Sequence[WorkerPath]) -> _Made:
    function, options = shared
    reads = [read_file((options, frozenset()), file) for file in files]
    rows = [row for read in reads for row in read.rows]
    return _Made(
        reads=[replace(read, rows=[]) for read in reads],
        snapshots=[sum(row.hours.size for row in read.rows) for read in reads],
        result=function(to_dataset(rows, options)) if rows else None,
    )


def _accepted(
    known: Known,
    files: Sequence[Path],
    made: _Made,
    on_error: Callable[[Path, str], None] | None,
) -> np.ndarray:
    """Which snapshots are of files that can be used."""
    usable = []
    for path, read in zip(files, made.reads, strict=True):
        try:
            known.accept(path, read)
        except PlumecastError as error:
            if on_error is None:
                raise
            on_error(path, str(error))
            usable.append(False)
        else:
            usable.append(True)
    return np.repeat(usable, made.snapshots)


def _joined(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    if len(parts) == 1:
        return parts[0]
    return xr.concat(
        parts, SNAPSHOT, data_vars="minimal", coords="minimal", compat="override", join="exact",
        combine_attrs="override",
    )  # fmt: skip
