"""Read one fire or many; a fire that fails is reported and does not stop the others."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import xarray as xr

from plumecast.base.deprecated import deprecate, folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.integrity import Finding
from plumecast.base.paths import Paths, WorkerPath, worker_path
from plumecast.compute.blocks import Runner
from plumecast.compute.processes import DiedError, HungError, LimitedProcess
from plumecast.compute.resources import LOCAL, Resources
from plumecast.sources.wrf.options import WrfOptions
from plumecast.sources.wrf.run import read_fire
from plumecast.sources.wrf.snapshots import FireLabels, to_dataset

TIME_LIMIT = 600.0
"""Seconds for opening a file or reading a variable of a frame before its file is given up.

A damaged HDF5 file may keep the library in an endless loop.
"""

_FOR_EVER = 1e8  # s
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, getattr(signal, "SIGBUS", 0))


class FireResult(NamedTuple):
    """Result of reading one fire: its snapshots or a one-line error, and the findings."""

    fire_id: str
    outcome: xr.Dataset | str
    quality: tuple[Finding, ...]


@folded_arguments(options=WrfOptions)
def read_wrf(
    paths: Paths,
    options: WrfOptions | None = None,
    *,
    drought: str | None = None,
    fire_id: str | None = None,
    ignition_id: str | None = None,
) -> xr.Dataset:
    """Snapshots of one fire from WRF-Fire output.

    - f is the block mean (or maximum, `aggregate="max"`) of max(t − TIGN_G, 0) over fire cells with
      LFN < 0, in hours.
    - g is the sum over the frames of the column-mean smoke in µg m⁻³, including frames before
      ignition.
    - `hours` counts from the earliest arrival of any burned cell, so f ≤ hours.
    - `wind_speed` and `wind_from_direction` are those of the domain mean of U10 and V10, averaged
      over the kept frames since ignition: the mean of the speeds, and the direction of the mean
      vector from the grid's north. Without any wind they are left out; add one by `with_weather`.
    - `wind_u`, `wind_v` and `boundary_layer_depth` are the hourly ambient weather: the median over
      the columns of U and V at fixed heights above ground, of U10, V10 and PBLH. Without U and V,
      the default profile is used above 10 m (see `constant_weather`).
    - `fuel_load` is the block mean of FGIP, if the files have it.
    - Frames without a burned cell give no snapshot. Areas use the nominal cell size, without map
      factors. `attrs["quality"]` lists the findings of the checks.

    Parameters
    ----------
    paths
        A directory with wrfout files, a glob, a file or a list of files of one simulation.
    options
        The variables, their units, the checkpoints and more.
    drought, fire_id, ignition_id
        Labels of the fire; by default its names come from its folder.
    """
    name = fire_id or fire_name(paths)
    labels = FireLabels(name, ignition_id or name, drought or "unknown")
    return to_dataset(read_fire(paths, options or WrfOptions()), labels)


def read_wrf_profile(paths: Paths, options: WrfOptions | None = None) -> xr.Dataset | None:
    """Hourly weather of one run since ignition; None if its files have no wind.

    Runs without U and V get the default profile above their 10 m wind, those without PBLH the
    default boundary layer; attributes say so. The attribute `fire_smk_scheme` has the smoke scheme
    of the run, if its files state it.
    """
    return read_fire(paths, options or WrfOptions()).weather


@folded_arguments(options=WrfOptions, resources=Resources)
def read_wrf_fires(
    run_dirs: Sequence[str | Path],
    options: WrfOptions | None = None,
    *,
    drought: str | Mapping[str, str] | None = None,
    ignition_id: Mapping[str, str] | None = None,
    workers: int = 1,
    time_limit: float | None = None,
    done: Collection[str] = frozenset(),
    resources: Resources = LOCAL,
    progress: Callable[[FireResult, int, int], object] | None = None,
) -> Iterator[FireResult]:
    """Read many fires, one per entry of `run_dirs`, in that order; errors are part of the results.

    A fire is named after its directory; fires in `done` are skipped. `drought` and `ignition_id`
    may map fire_id to a label. With `workers` > 1, processes of this machine read at most `workers`
    fires ahead of the one being yielded; with a `runner` of the resources, the workers of a cluster
    read them. With a `time_limit` (seconds for opening a file or reading a variable of a frame), a
    process reads even with one worker; one that takes longer, or dies of a damaged file, costs only
    its own fire. Progress is reported after each fire, with its name.
    """
    if time_limit is not None and not 0.0 < time_limit < _FOR_EVER:
        raise ArgumentError("time_limit", time_limit, "give a number of seconds above 0")
    if progress is not None:
        deprecate("read_wrf_fires(progress=…)", "resources=Resources(progress=…)")
    jobs: list[FireJob] = []
    first: dict[str, str | Path] = {}
    for paths in run_dirs:
        name = fire_name(paths)
        label = drought.get(name) if isinstance(drought, Mapping) else drought
        other = first.setdefault(name, paths)
        clash = None
        if other is not paths:
            clash = f"{paths}: fire_id {name!r} is also that of {other}; rename one of them"
        labels = FireLabels(name, (ignition_id or {}).get(name, name), label or "unknown")
        if clash or name not in done:
            jobs.append(FireJob(paths, options or WrfOptions(), labels, clash))
    results = _read_in_order(jobs, workers, resources.runner, time_limit)
    for count, result in enumerate(results, start=1):
        resources.progress(count, len(jobs), result.fire_id)
        if progress is not None:
            progress(result, count, len(jobs))
        yield result


def fire_name(paths: Paths) -> str:
    """Name of the directory with the files, because the files of all WRF runs have the same names.

    A single file with a name of its own, such as fire_001.nc, names the fire. Links keep the name
    that was given.
    """
    path = Path(paths) if isinstance(paths, str | Path) else Path(paths[0])
    absolute = path.resolve() if path.name == ".." else path.absolute()
    if path.is_file() and isinstance(paths, str | Path) and not path.name.startswith("wrfout"):
        return absolute.stem
    names_files = path.is_file() or set(path.name) & set("*?[")
    return absolute.parent.name if names_files else absolute.name


class FireJob(NamedTuple):
    """One fire to read."""

    paths: str | Path
    options: WrfOptions
    labels: FireLabels
    clash: str | None  # error message if another fire has the same name


def read_job(job: FireJob) -> FireResult:
    """Read one fire; an error becomes the outcome."""
    name = job.labels.fire_id
    if job.clash:
        return FireResult(name, job.clash, ())
    try:
        fire = read_fire(job.paths, job.options)
        return FireResult(name, to_dataset(fire, job.labels), fire.findings)
    except PlumecastError as error:
        return FireResult(name, str(error), ())
    except Exception as error:  # an unexpected error in one fire must not stop the others
        return FireResult(name, f"{job.paths}: {type(error).__name__}: {error}", ())


def read_limited(process: LimitedProcess, job: FireJob) -> FireResult:
    """The result of a job that `process` was given; a process that hangs or dies is an error."""
    try:
        result: FireResult = process.result()
        return result
    except HungError as error:
        problem = (
            f"{error.args[0] or job.paths}: no progress in {process.limit:g} s, the file may be "
            f"damaged; copy it again, or raise the time limit"
        )
    except DiedError as error:
        why = "perhaps for lack of memory; use fewer workers"
        if -error.code in _CRASHES:
            why = f"{signal.Signals(-error.code).name}; the file is damaged: copy it again"
        problem = f"{error.args[0] or job.paths}: the process that read it died ({why})"
    return FireResult(job.labels.fire_id, problem, ())


_of_thread = threading.local()  # of a thread of a cluster worker: the process that reads for it


def _read_on_worker(limit: float | None, item: tuple[FireJob, WorkerPath]) -> FireResult:
    """`read_job` on a worker of a cluster, which must see the same files."""
    job, place = item
    job = job._replace(paths=place.checked())
    if limit is None:
        return read_job(job)
    process: LimitedProcess | None = getattr(_of_thread, "process", None)
    if process is None or process.limit != limit:
        process = _of_thread.process = LimitedProcess(limit)
    process.start(read_job, job)
    return read_limited(process, job)


def _read_in_order(
    jobs: Sequence[FireJob],
    workers: int,
    runner: Runner | None,
    limit: float | None,
) -> Iterator[FireResult]:
    """Read the jobs and yield the results in their order.

    Each process has one job at a time, so that the error after its death names the fire.
    """
    if runner is not None:
        items = [(job, worker_path(job.paths, remote=True)) for job in jobs]
        yield from runner.map(_read_on_worker, limit, items)
        return
    if workers <= 1 and limit is None:
        yield from map(read_job, jobs)
        return
    slots = [LimitedProcess(limit or _FOR_EVER) for _ in jobs[: max(1, workers)]]
    try:
        for slot, job in zip(slots, jobs, strict=False):
            slot.start(read_job, job)
        for number, job in enumerate(jobs):
            slot = slots[number % len(slots)]
            result = read_limited(slot, job)
            if number + len(slots) < len(jobs):
                slot.start(read_job, jobs[number + len(slots)])
            yield result
    finally:
        for slot in slots:
            slot.close()
