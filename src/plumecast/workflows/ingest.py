"""Read fires into a snapshot store: resumable, and one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.integrity import Finding
from plumecast.base.names import FIRE, WIND
from plumecast.base.tables import DIRECTION, Column, TableFormat, read_table
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.schema import FIELD_NAMES
from plumecast.sources.rasters import ArrivalTimes, RasterOptions
from plumecast.sources.wrf import (
    TIME_LIMIT,
    FireResult,
    WrfOptions,
    find_runs,
    fire_name,
    read_wrf_fires,
)
from plumecast.weather.fires import with_weather
from plumecast.weather.options import TRUE
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.weather.series import Origin, check_fires, fire_winds, fires_of
from plumecast.workflows.fires.conditions import (
    FuelsGiven,
    as_fuels,
    check_raster_fires,
    user_weather,
    with_fuels,
)
from plumecast.workflows.fires.growing_store import GrowingStore, Outcome

SKIP, RELABEL, REPLACE = EXISTING = ("skip", "relabel", "replace")
"""What becomes of fires that are already in the store."""


LABELS = TableFormat(
    columns=(
        Column("fire_id", "fire fire_name"),
        Column("drought"),
        Column("ignition_id", "ignition", required=False, filled=False),
        Column("wind_speed", "speed", "speed", low=0.0, required=False, filled=False),
        Column("wind_from_direction", "wind_from wind_direction direction", DIRECTION, 0.0, 360.0,
               required=False, filled=False),
    ),
    row="fire",
    row_name="fire_id",
)  # fmt: skip


class Labels(NamedTuple):
    """Drought, ignition and wind of each fire, by `fire_id`."""

    drought: dict[str, str]
    ignition_id: dict[str, str]
    winds: xr.Dataset | None  # a weather of the fires whose wind it has
    path: str


def read_labels(path: str | Path) -> Labels:
    """Read a CSV table with the columns fire_id and drought.

    Optional columns are ignition_id, wind_speed and wind_from_direction.
    """
    table = read_table(path, LABELS)
    names, count = table.texts["fire_id"], len(table)
    ignitions = table.texts.get("ignition_id", ("",) * count)
    labels = Labels({}, {}, None, str(path))
    wind = np.array([table.numbers.get(column, np.full(count, np.nan)) for column in WIND])
    for row, (name, drought) in enumerate(zip(names, table.texts["drought"], strict=True)):
        if labels.drought.setdefault(name, drought) != drought:
            raise table.error(row, "this is the fire's second drought; keep one")
        if ignitions[row]:
            labels.ignition_id[name] = ignitions[row]
        empty = np.isnan(wind[:, row])
        if empty.any() and not empty.all():
            raise table.error(row, f"{WIND[np.argmax(empty)]} is empty; give both or none")
    windy = {name: row for row, name in enumerate(names) if not np.isnan(wind[0, row])}
    if not windy:
        return labels
    origin = Origin(path, "table", north=TRUE)
    speed, direction = wind[:, [*windy.values()]]
    return labels._replace(winds=fire_winds(speed, direction, origin, [*windy]))


@accepts_winds
@folded_arguments(options=WrfOptions, resources=Resources)
def ingest_wrf(
    run_dirs: Sequence[str | Path],
    out: str | Path,
    options: WrfOptions | None = None,
    *,
    drought: str | None = None,
    labels: str | Path | Labels | None = None,
    weather: WeatherLike | None = None,
    existing: str = SKIP,
    workers: int = 1,
    time_limit: float | None = TIME_LIMIT,
    resources: Resources = LOCAL,
) -> list[Outcome]:
    """Append WRF-Fire runs to a store, one commit per fire.

    Each of `run_dirs` is one fire: a folder of wrfout files, a glob or a file. A flat folder of
    NetCDF files with other names, such as fire_001.nc, has one fire per file.

    `existing` says what becomes of fires that are already stored: "skip" leaves them, and their
    outcomes name the labels and settings that differ from those asked for; "relabel" changes their
    labels; "replace" reads them again. Each makes one commit.

    `drought` labels all fires. Alternatively, `labels` is the path of a table for `read_labels`
    with a line for every fire. `weather`, as for `with_weather`, replaces that of the runs, and so
    do winds in `labels`, of the fires that have one there. With a `runner` of the resources
    (`pc.cluster`), cluster workers read the fires; only this process writes. Other processes read
    the files: one that makes no progress in `time_limit` seconds, or that dies of a damaged file,
    is reported, and the other fires are read. With None and one worker, this process reads.
    Progress is reported after each fire.
    """
    if existing not in EXISTING:
        raise ArgumentError("existing", existing, f"give one of {', '.join(EXISTING)}")
    read_as, replace = options or WrfOptions(), existing == REPLACE
    table = read_labels(labels) if isinstance(labels, str | Path) else labels
    label_winds = None if table is None else table.winds
    if table is not None and label_winds is not None and weather is not None:
        raise PlumecastError(
            f"{table.path} has winds in its columns {' and '.join(WIND)}; give no others beside it"
        )
    store = GrowingStore(Path(out), FIELD_NAMES, user_weather(weather))
    done = frozenset() if replace else store.fire_ids
    named = [(run, fire_name(run)) for run in find_runs(run_dirs)]
    names = [name for _, name in named]
    if store.weather is not None:  # every fire that is read needs its weather
        check_fires(store.weather, {*names} - done)
    outcomes: list[Outcome] = []
    if not replace:
        asked = {} if drought is None else {"drought": dict.fromkeys(names, drought)}
        if table is not None:
            asked = {"drought": table.drought, "ignition_id": table.ignition_id}
        outcomes = store.already_stored(names, asked, asdict(read_as), existing == RELABEL)
    runs = []
    for run, name in named:
        if table is None or name in table.drought or name in store.fire_ids:
            runs.append(run)
        else:
            problem = f"{run}: {table.path} has no line for fire '{name}'"
            outcomes.append(Outcome(name, problem=problem))
    results = read_wrf_fires(
        runs,
        read_as,
        drought=table.drought if table else drought,
        ignition_id=table.ignition_id if table else None,
        workers=workers,
        time_limit=time_limit,
        done=done,
        resources=resources,
    )
    if replace:
        failed: list[Outcome] = []
        whole = store.fire_ids <= {*names}
        return outcomes + store.replace(_read(results, failed, label_winds), whole=whole) + failed
    for fire, findings in _read(results, outcomes, label_winds):
        outcomes += store.append_checked(fire, findings)
    return outcomes


def _read(
    results: Iterable[FireResult], failed: list[Outcome], winds: xr.Dataset | None
) -> Iterator[tuple[xr.Dataset, tuple[Finding, ...]]]:
    """The fires that could be read, with their findings; the others are added to `failed`.

    The fires that are named in `winds` have their wind from there.
    """
    for result in results:
        if isinstance(result.outcome, str):
            failed.append(Outcome(result.fire_id, problem=result.outcome))
        elif winds is not None and result.fire_id in fires_of(winds):
            yield with_weather(result.outcome, winds), result.quality
        else:
            yield result.outcome, result.quality


@accepts_winds
@folded_arguments(options=RasterOptions, resources=Resources)
def ingest_rasters(
    paths: Sequence[str | Path],
    out: str | Path,
    options: RasterOptions | None = None,
    *,
    weather: WeatherLike | None = None,
    fuels: FuelsGiven | None = None,
    batch: int = 64,
    relabel: bool = False,
    resources: Resources = LOCAL,
    on_note: Callable[[str], object] | None = None,
    words: Callable[[PlumecastError], str] = str,
) -> list[Outcome]:
    """Append fires of arrival-time rasters to a store of `time_since_ignition` alone.

    Each of `paths` is a file, a folder or a glob; `batch` files make one commit. The fires have the
    `weather`, as for `with_weather`, and the fuel load of `fuels`, as for `with_fuels`; a store has
    fires on one fuel map. With a `runner` of the resources (`pc.cluster`), cluster workers read the
    files; only this process writes. `relabel` gives fires that are already stored the drought label
    of the options, in one commit. `on_note` and `words` are those of `ArrivalTimes`. Open the store
    with `open_snapshots(path, fields=("time_since_ignition",))`.
    """
    store = GrowingStore(Path(out), (FIRE,), user_weather(weather))
    outcomes: list[Outcome] = []
    source = ArrivalTimes(
        paths,
        options or RasterOptions(),
        batch,
        store.fire_ids,
        on_error=lambda path, message: outcomes.append(Outcome(path.stem, problem=message)),
        on_note=on_note,
        words=words,
    )
    settings = source.options
    check_raster_fires(store.weather, source.files, settings.format, store.fire_ids)
    names = [path.stem for path in source.files]
    labels = {} if settings.drought is None else {"drought": dict.fromkeys(names, settings.drought)}
    outcomes += store.already_stored(names, labels, {}, relabel)
    for read in source.batches(resources):
        fires = read
        if fuels is not None:
            fuels = as_fuels(fuels, fires, settings.crs)
            fires = with_fuels(fires, fuels)
            store.agreement.check_fuel(fires, fuels.source)
        outcomes += store.append(fires)
    return outcomes
