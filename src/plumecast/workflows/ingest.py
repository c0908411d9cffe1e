"""Read fires into a snapshot store: resumable, and one that fails does not stop the others."""

from __future__ import annotations

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
from plumecast.data.covariates import STATE_WIND, WIND
from plumecast.data.schema import FIELD_NAMES
from plumecast.data.split import group_rows
from plumecast.data.store import append_fire, open_snapshots, stored_fires
from plumecast.sources.rasters import find_rasters, iter_arrival_times
from plumecast.sources.wrf import fire_name, read_wrf_fires
from plumecast.workflows.winds import (
    FireWind,
    Winds,
    WindsGiven,
    as_winds,
    check_raster_winds,
    read_table,
    wind_of_row,
    with_winds,
)

SETTINGS = "settings"
"""Attribute of the data set that a reader returns: the reader's settings, as JSON."""

QUALITY = "quality"
"""Findings of the checks: an attribute of the data set that a reader returns, a coordinate in a
store."""

Progress = Callable[[int, int, str], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one fire: read, already stored, or failed with a reason."""

    fire_id: str
    snapshots: int = 0
    hours: float = 0.0  # of the last snapshot
    acres: float = 0.0  # largest burned area
    quality: tuple[str, ...] = ()  # findings of the checks
    problem: str | None = None
    stored: bool = False  # was in the store before
    has_wind: bool = True  # False: it was read, and its wind is unknown

    @property
    def state(self) -> str:
        """The outcome in one word."""
        return "failed" if self.problem else "skipped" if self.stored else "read"


class Labels(NamedTuple):
    """Drought, ignition and wind of each fire, by `fire_id`."""

    drought: dict[str, str]
    ignition_id: dict[str, str]
    winds: dict[str, FireWind]
    unknown: tuple[str, ...]  # columns that are not read
    path: str


def read_labels(path: str | Path) -> Labels:
    """Read a CSV table with the columns fire_id and drought.

    Optional columns are ignition_id, wind_speed and wind_from_direction.
    """
    rows = read_table(path)
    known = ("fire_id", "drought", "ignition_id", *WIND)
    labels = Labels({}, {}, {}, tuple(name for name in rows[0] if name not in known), str(path))
    for number, row in enumerate(rows, start=2):
        if not row.get("fire_id") or not row.get("drought"):
            raise PlumecastError(f"{path}: line {number} needs the columns fire_id and drought")
        name = row["fire_id"]
        if labels.drought.setdefault(name, row["drought"]) != row["drought"]:
            raise PlumecastError(
                f"{path}: line {number} gives fire '{name}' a second drought; keep one"
            )
        if row.get("ignition_id"):
            labels.ignition_id[name] = row["ignition_id"]
        wind = wind_of_row(row, path, number)
        if wind is not None:
            labels.winds[name] = FireWind(*np.array(wind)[:, None])
    return labels


def ingest_wrf(
    run_dirs: Sequence[str | Path],
    out: str | Path,
    *,
    drought: str | None = None,
    labels: str | Path | Labels | None = None,
    winds: WindsGiven | None = None,
    workers: int = 1,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, name: None,
    **options: Any,
) -> list[Outcome]:
    """Append WRF-Fire runs to a store, one commit per fire; fires already stored are skipped.

    `drought` labels all fires. Alternatively, `labels` is the path of a table for `read_labels`
    with a line for every fire. `winds`, as for `with_winds`, or winds in `labels` replace those of
    the runs. With a `runner` (`pc.cluster`), cluster workers read the fires; only this process
    writes. `options` are those of `read_wrf`. `progress(finished, total, fire_id)` is called after
    each fire.
    """
    table = read_labels(labels) if isinstance(labels, str | Path) else labels
    store = _GrowingStore(Path(out), FIELD_NAMES, _winds_of(winds, table))
    named = {str(run): fire_name(run) for run in run_dirs}
    if winds is not None and store.winds is not None:
        store.winds.check_fires({*named.values()} - store.fire_ids)
    outcomes = [Outcome(name, stored=True) for name in sorted({*named.values()} & store.fire_ids)]
    known = named.values() if table is None else {*table.drought, *store.fire_ids}
    unlabelled = [run for run, name in named.items() if name not in known]
    outcomes += [
        Outcome(named[run], problem=f"{run}: {table.path} has no line for fire '{named[run]}'")
        for run in unlabelled
        if table
    ]
    for result in read_wrf_fires(
        [run for run in run_dirs if str(run) not in unlabelled],
        drought=table.drought if table else drought,
        ignition_id=table.ignition_id if table else None,
        workers=workers,
        runner=runner,
        done=store.fire_ids,
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
    winds: WindsGiven | None = None,
    batch: int = 64,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, name: None,
    **options: Any,
) -> list[Outcome]:
    """Append fires of arrival-time rasters to a store of `time_since_ignition` alone.

    Each of `paths` is a file, a folder or a glob; `batch` files make one commit. The fires have the
    wind of `winds`, as for `with_winds`. With a `runner` (`pc.cluster`), cluster workers read the
    files; only this process writes. `options` are those of `read_arrival_times`. Open the store
    with `open_snapshots(path, fields=("time_since_ignition",))`.
    """
    store = _GrowingStore(Path(out), (FIRE,), None if winds is None else as_winds(winds))
    files = find_rasters(paths)
    check_raster_winds(store.winds, files, options.get("format"), store.fire_ids)
    outcomes = [
        Outcome(name, stored=True)
        for name in sorted({path.stem for path in files} & store.fire_ids)
    ]
    for fires in iter_arrival_times(
        files,
        batch=batch,
        runner=runner,
        done=store.fire_ids,
        on_error=lambda path, message: outcomes.append(Outcome(path.stem, problem=message)),
        progress=lambda done, total: progress(done, total, files[done - 1].stem),
        **options,
    ):
        outcomes.extend(store.append(fires))
    return outcomes


def _winds_of(winds: WindsGiven | None, labels: Labels | None) -> Winds | None:
    """The winds that were given, or those of the labels."""
    if labels is None or not labels.winds:
        return None if winds is None else as_winds(winds)
    if winds is not None:
        raise PlumecastError(
            f"{labels.path} has winds in its columns {' and '.join(WIND)}; give no others beside it"
        )
    return Winds(labels.path, labels.winds)


class _GrowingStore:
    """A store to append to; all its fires must have been read with the same settings."""

    def __init__(self, path: Path, fields: Sequence[str], winds: Winds | None = None) -> None:
        self.path, self.fields, self.winds = path, fields, winds
        self.fire_ids = stored_fires(path)
        self.settings: str | None = None
        self.has_wind: bool | None = None
        if self.fire_ids:
            stored = open_snapshots(path, fields=fields)
            self.settings, self.has_wind = stored.attrs.get(SETTINGS), _has_wind(stored)
            if self.settings is None:
                raise PlumecastError(f"{path} holds fires from another source; choose another path")

    def append(self, fires: xr.Dataset, quality: tuple[str, ...] = ()) -> list[Outcome]:
        """Append fires in one commit; return the outcome of each fire."""
        problem = None
        try:
            self._check_settings(fires.attrs[SETTINGS])
            fires = self._with_wind(fires)
            append_fire(self.path, fires, fields=self.fields)
            self.has_wind = _has_wind(fires)
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

    def _with_wind(self, fires: xr.Dataset) -> xr.Dataset:
        """The fires with the wind that was given for them; raises where the store differs."""
        names = sorted(set(fires.fire_id.values.tolist()))
        given = self.winds
        if given is not None and (given.every_fire or set(names) & set(given.fires)):
            fires = with_winds(fires, given)
        if self.has_wind is False and _has_wind(fires):
            raise PlumecastError(
                f"{self.path} was made without the wind of its fires, but fire '{names[0]}' has a "
                "wind; read all fires again into a new store"
            )
        if self.has_wind and not _has_wind(fires):
            raise PlumecastError(
                f"the fires in {self.path} have a wind, but that of fire '{names[0]}' is unknown; "
                f"{STATE_WIND}"
            )
        return fires


def _has_wind(fires: xr.Dataset) -> bool:
    return set(WIND) <= set(fires.variables)


def _outcome(fire: xr.Dataset, quality: tuple[str, ...], problem: str | None) -> Outcome:
    return Outcome(
        fire_id=str(fire.fire_id.values[0]),
        snapshots=int(fire.sizes[SNAPSHOT]),
        hours=float(fire.hours.max()),
        acres=float(fire.burned_area.max()),
        quality=quality,
        problem=problem,
        has_wind=_has_wind(fire),
    )


def _with_quality(fire: xr.Dataset, found: tuple[str, ...]) -> xr.Dataset:
    """Store the checks' findings as a coordinate: attributes are shared by all fires of a store."""
    values = np.full(fire.sizes[SNAPSHOT], " | ".join(found) or "passed")
    labelled = fire.assign_coords({QUALITY: (SNAPSHOT, values, TABLE[QUALITY].attrs)})
    del labelled.attrs[QUALITY]
    return labelled
