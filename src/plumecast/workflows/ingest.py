"""Read fires into a snapshot store: resumable, and a failing fire does not stop the others."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT, TABLE
from plumecast.compute.blocks import Runner
from plumecast.data.schema import FIELD_NAMES
from plumecast.data.split import group_rows
from plumecast.data.store import append_fire, open_snapshots, stored_fires
from plumecast.sources.rasters import find_rasters, iter_arrival_times
from plumecast.sources.wrf import fire_name, read_wrf_fires

SETTINGS = "settings"
"""Attribute of what a reader returns: the choices that made it, as JSON."""

QUALITY = "quality"
"""Attribute of what a reader returns, and coordinate in a store: what the checks found."""

Progress = Callable[[int, int, str], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one fire: read, already there, or not read and why."""

    fire_id: str
    snapshots: int = 0
    hours: float = 0.0  # of the last snapshot
    acres: float = 0.0  # largest burned area
    quality: tuple[str, ...] = ()  # what the checks found
    problem: str | None = None
    stored: bool = False  # in the store before

    @property
    def state(self) -> str:
        """In one word."""
        return "failed" if self.problem else "skipped" if self.stored else "read"


class Labels(NamedTuple):
    """Drought and ignition of each fire, by its name."""

    drought: dict[str, str]
    ignition_id: dict[str, str]


def read_labels(path: str | Path) -> Labels:
    """A CSV table with the columns fire_id, drought and, if wanted, ignition_id."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PlumecastError(f"{path}: not a readable table ({error})") from error
    drought: dict[str, str] = {}
    ignition: dict[str, str] = {}
    for number, row in enumerate(rows, start=2):
        if not row.get("fire_id") or not row.get("drought"):
            raise PlumecastError(f"{path}: line {number} needs the columns fire_id and drought")
        if drought.setdefault(row["fire_id"], row["drought"]) != row["drought"]:
            raise PlumecastError(f"{path}: fire '{row['fire_id']}' stands there twice")
        if row.get("ignition_id"):
            ignition[row["fire_id"]] = row["ignition_id"]
    if not rows:
        raise PlumecastError(f"{path}: the table is empty")
    return Labels(drought, ignition)


def ingest_wrf(
    run_dirs: Sequence[str | Path],
    out: str | Path,
    *,
    drought: str | None = None,
    labels: str | Path | None = None,
    workers: int = 1,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, name: None,
    **options: Any,
) -> list[Outcome]:
    """Append WRF-Fire runs to a store, one commit per fire; those already there are passed over.

    `drought` labels all fires, or `labels` names a table for `read_labels`, which must hold every
    fire. A `runner` (`pc.cluster`) has fires read by a cluster; only this process writes. `options`
    are those of `read_wrf`. `progress(finished, total, fire_id)` follows them.
    """
    store = _Store(Path(out), FIELD_NAMES)
    table = read_labels(labels) if labels is not None else None
    named = {str(run): fire_name(run) for run in run_dirs}
    outcomes = [Outcome(name, stored=True) for name in sorted({*named.values()} & store.there)]
    known = named.values() if table is None else {*table.drought, *store.there}
    unlabelled = [run for run, name in named.items() if name not in known]
    outcomes += [
        Outcome(named[run], problem=f"{run}: {labels} has no line for fire '{named[run]}'")
        for run in unlabelled
    ]
    for result in read_wrf_fires(
        [run for run in run_dirs if str(run) not in unlabelled],
        drought=table.drought if table else drought,
        ignition_id=table.ignition_id if table else None,
        workers=workers,
        runner=runner,
        done=store.there,
        progress=lambda result, done, total: progress(done, total, result.fire_id),
        **options,
    ):
        if isinstance(result.outcome, str):
            outcomes.append(Outcome(result.fire_id, problem=result.outcome))
        else:
            found = tuple(map(str, result.quality))
            outcomes += store.append(_with_quality(result.outcome, found), found)
    return outcomes


def ingest_rasters(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    batch: int = 64,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, name: None,
    **options: Any,
) -> list[Outcome]:
    """Append fires of arrival-time rasters to a store of `time_since_ignition` alone.

    Each of `paths` is a file, a folder or a glob; `batch` files make one commit. A `runner`
    (`pc.cluster`) has files read by a cluster; only this process writes. `options` are those of
    `read_arrival_times`. The store opens with `open_snapshots(path,
    fields=("time_since_ignition",))`.
    """
    store = _Store(Path(out), (FIRE,))
    files = find_rasters(paths)
    outcomes = [
        Outcome(name, stored=True) for name in sorted({path.stem for path in files} & store.there)
    ]
    for fires in iter_arrival_times(
        files,
        batch=batch,
        runner=runner,
        done=store.there,
        on_error=lambda path, message: outcomes.append(Outcome(path.stem, problem=message)),
        progress=lambda done, total: progress(done, total, files[done - 1].stem),
        **options,
    ):
        outcomes.extend(store.append(fires))
    return outcomes


class _Store:
    """A store that grows; fires that were read with other settings are refused."""

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self.path, self.fields = path, fields
        self.there = stored_fires(path)
        self.settings: str | None = None
        if self.there:
            self.settings = open_snapshots(path, fields=fields).attrs.get(SETTINGS)
            if self.settings is None:
                raise PlumecastError(f"{path} holds fires from another source; choose another path")

    def append(self, fires: xr.Dataset, quality: tuple[str, ...] = ()) -> list[Outcome]:
        """One commit; what became of each of its fires."""
        problem = None
        try:
            self._check_settings(fires.attrs[SETTINGS])
            append_fire(self.path, fires, fields=self.fields)
        except PlumecastError as error:
            problem = str(error)
        return [
            _outcome(fires.isel({SNAPSHOT: rows}), quality, problem)
            for rows in group_rows(fires.fire_id.values)
        ]

    def _check_settings(self, settings: str) -> None:
        self.settings = self.settings or settings
        before, now = json.loads(self.settings), json.loads(settings)
        for name in now:
            if before.get(name) != now[name]:
                raise PlumecastError(
                    f"{self.path} was read with {name}={before.get(name)}, not {now[name]}; "
                    "repeat those settings to continue it, or choose another path"
                )


def _outcome(fire: xr.Dataset, quality: tuple[str, ...], problem: str | None) -> Outcome:
    return Outcome(
        fire_id=str(fire.fire_id.values[0]),
        snapshots=int(fire.sizes[SNAPSHOT]),
        hours=float(fire.hours.max()),
        acres=float(fire.burned_area.max()),
        quality=quality,
        problem=problem,
    )


def _with_quality(fire: xr.Dataset, found: tuple[str, ...]) -> xr.Dataset:
    """What the checks found goes along with each fire, because a store's attributes are one."""
    values = np.full(fire.sizes[SNAPSHOT], " | ".join(found) or "passed")
    labelled = fire.assign_coords({QUALITY: (SNAPSHOT, values, TABLE[QUALITY].attrs)})
    del labelled.attrs[QUALITY]
    return labelled
