"""Read one fire or many; a fire that fails is reported and does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.findings import Finding
from plumecast.base.paths import Paths, WorkerPath, worker_path
from plumecast.compute.blocks import Runner
from plumecast.compute.processes import new_pool, stop_pools, submit
from plumecast.sources.wrf.run import SMOKE_FLOOR, Options, read_fire
from plumecast.sources.wrf.snapshots import Labels, to_dataset


class FireResult(NamedTuple):
    """Result of reading one fire: its snapshots or a one-line error, and the findings."""

    fire_id: str
    outcome: xr.Dataset | str
    quality: tuple[Finding, ...]


def read_wrf(
    paths: Paths,
    *,
    smoke: str = "fire_smoke",
    smoke_unit: str | None = None,
    drought: str | None = None,
    fire_id: str | None = None,
    ignition_id: str | None = None,
    every: str | float | None = None,
    domain: int | str | None = None,
    aggregate: str = "mean",
    floor: float = SMOKE_FLOOR,
) -> xr.Dataset:
    """Snapshots of one fire from WRF-Fire output.

    `paths` is a directory with wrfout files, a glob, a file or a list of files of one simulation.

    - f is the block mean (or maximum, `aggregate="max"`) of max(t − TIGN_G, 0) over fire cells with
      LFN < 0, in hours.
    - g is the sum over the frames of the column-mean smoke in µg m⁻³, including frames before
      ignition; values below `floor` are set to 0.
    - `every` ("6h", "30min" or a number of hours) keeps the frames at its multiples after the first
      frame; the sum runs over the kept frames.
    - `domain` defaults to the domain with the finest fire grid.
    - `hours` counts from the earliest arrival of any burned cell, so f ≤ hours.
    - `wind_speed` and `wind_from_direction` are those of the domain mean of U10 and V10, averaged
      over the kept frames since ignition: the mean of the speeds, and the direction of the mean
      vector from the grid's north. Without U10 and V10 they are left out; add them by `with_winds`.
    - Frames without a burned cell give no snapshot. Areas use the nominal cell size, without map
      factors. `attrs["quality"]` lists the findings of the checks.
    """
    options = Options(
        smoke=smoke,
        smoke_unit=smoke_unit,
        every=every,
        domain=domain,
        aggregate=aggregate,
        floor=floor,
    )
    name = fire_id or fire_name(paths)
    labels = Labels(name, ignition_id or name, drought or "unknown")
    return to_dataset(read_fire(paths, options), labels)


def read_wrf_fires(
    run_dirs: Sequence[str | Path],
    *,
    drought: str | Mapping[str, str] | None = None,
    ignition_id: Mapping[str, str] | None = None,
    workers: int = 1,
    runner: Runner | None = None,
    done: Collection[str] = frozenset(),
    progress: Callable[[FireResult, int, int], object] | None = None,
    **options: Any,
) -> Iterator[FireResult]:
    """Read many fires, one per entry of `run_dirs`, in that order; errors are part of the results.

    A fire is named after its directory; fires in `done` are skipped. `drought` and `ignition_id`
    may map fire_id to a label; `options` are those of `read_wrf`. With `workers` > 1, processes of
    this machine read at most `workers` fires ahead of the one being yielded; with a `runner`, the
    workers of a cluster read them. `progress(result, finished, total)` is called after each fire.
    """
    settings = Options(**options)
    jobs: list[Job] = []
    first: dict[str, str | Path] = {}
    for paths in run_dirs:
        name = fire_name(paths)
        label = drought.get(name) if isinstance(drought, Mapping) else drought
        other = first.setdefault(name, paths)
        clash = None
        if other is not paths:
            clash = f"{paths}: fire_id {name!r} is also that of {other}; rename one of them"
        labels = Labels(name, (ignition_id or {}).get(name, name), label or "unknown")
        if clash or name not in done:
            jobs.append(Job(paths, settings, labels, clash))
    for count, result in enumerate(read_in_order(jobs, workers, runner), start=1):
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


class Job(NamedTuple):
    """One fire to read."""

    paths: str | Path
    options: Options
    labels: Labels
    clash: str | None  # error message if another fire has the same name


def read_job(job: Job) -> FireResult:
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


def _read_on_worker(shared: None, item: tuple[Job, WorkerPath]) -> FireResult:
    """`read_job` on a worker of a cluster, which must see the same files."""
    job, place = item
    return read_job(job._replace(paths=place.checked()))


def read_in_order(
    jobs: Sequence[Job], workers: int, runner: Runner | None = None
) -> Iterator[FireResult]:
    """Read the jobs and yield the results in their order.

    Each process has one job at a time, so that the error after its death names the fire.
    """
    if runner is not None:
        items = [(job, worker_path(job.paths, remote=True)) for job in jobs]
        yield from runner.map(_read_on_worker, None, items)
        return
    if workers <= 1:
        yield from map(read_job, jobs)
        return
    slots = [new_pool(1) for _ in jobs[:workers]]
    try:
        running = [submit(slot, read_job, job) for slot, job in zip(slots, jobs, strict=False)]
        for number, job in enumerate(jobs):
            slot = number % len(slots)
            try:
                result = running[slot].result()
            except BrokenProcessPool:
                message = (
                    f"{job.paths}: the process that read it died, perhaps for lack of memory; "
                    "use fewer workers"
                )
                result = FireResult(job.labels.fire_id, message, ())
                slots[slot] = new_pool(1)
            if number + len(slots) < len(jobs):
                running[slot] = submit(slots[slot], read_job, jobs[number + len(slots)])
            yield result
    finally:
        stop_pools(*slots)
