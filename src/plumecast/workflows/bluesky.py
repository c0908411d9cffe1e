"""Hourly and daily GeoTIFFs with the names of BlueSky's maps (package blueskykml).

BlueSky's `dispersion_file_utils.image_pathname` joins parameter, height, kind of series, offset
from UTC (of days), colours and time with "_", in folders by kind of series and offset; an hour is
named after its begin. Files of values have no colours, and the height is "column" or "surface":

    FIRE/hourly/smoke_column_hourly_202608011800.tif
    FIRE/daily_average/UTC-0700/smoke_column_daily_average_UTC-0700_20260801.tif
    FIRE/daily_maximum/UTC-0700/smoke_column_daily_maximum_UTC-0700_20260801.tif

The dose D(h) = ∫ c dt, in µg m⁻³ h, is 0 at ignition, known at the snapshots and linear between
them. The mean of the hour from h to h + 1 since ignition is D(h + 1) − D(h), in µg m⁻³.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import publish, refuse_existing, temporary_folder
from plumecast.base.names import IGNITION_TIME, LEVEL, LOWEST, SNAPSHOT, SURFACE_SMOKE
from plumecast.compute.arrays import Array
from plumecast.data.crs import as_crs, grid_mapping
from plumecast.scores.quantities import BETWEEN
from plumecast.workflows.export import HISTORY, Exported, field_grid, write_geotiff
from plumecast.workflows.fires.hours import LeftOut

NAMES = ("plumecast", "bluesky")
"""How the GeoTIFFs of a prediction are named: by fire and hours since ignition, or by the clock."""

EXAMPLE = "2026-08-01T11:00-07:00"
_DAILY: Mapping[str, Callable[..., Array]] = {"daily_average": np.mean, "daily_maximum": np.max}
_DOSE = "_dose"

HOUR = timedelta(hours=1)
NEARLY = 0.02
"""Hours by which a fire may end before a full hour of the clock, whose mean is written all the
same: FARSITE ends seconds before."""


def read_clock(text: str | None) -> datetime:
    """The time of ignition with its offset from UTC, from ISO 8601 text.

    >>> read_clock("2026-08-01T18:00Z").isoformat()
    '2026-08-01T18:00:00+00:00'
    """
    name, advice = "ignition_time", f"write it as {EXAMPLE}"
    if text is None:
        raise ArgumentError(
            name,
            None,
            "the names 'bluesky' need the start time, which the fires do not record; state it as "
            f"in {EXAMPLE}",
        )
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(name, text, advice, problem="is not a date and time") from None
    if time.tzinfo is None:
        problem = "has no offset from UTC, by which the files are named"
        raise ArgumentError(name, text, f"{advice}, or with Z for UTC", problem=problem)
    return time


def recorded_time(fires: xr.Dataset) -> str | None:
    """The earliest time of ignition that snapshots record; None if one of them records none."""
    if IGNITION_TIME not in fires.variables:
        return None
    texts = np.unique(fires[IGNITION_TIME].values.astype(str))
    return None if texts.size == 0 or "" in texts else str(texts[0])


def export_bluesky(
    blocks: Iterable[xr.Dataset],
    path: str | Path,
    *,
    ignition_time: str | None = None,
    history: str = HISTORY,
) -> Exported:
    """Write hourly means of predicted smoke, and the mean and maximum of every day, to a folder.

    Blocks have the dose of smoke since ignition (variables "…_dose", µg m⁻³ h), all snapshots of a
    fire one after the other. Hours are those of UTC, days those of the offset of `ignition_time`;
    by default each fire ignites when its coordinate `ignition_time` says, and days are those of
    UTC. Smoke between two snapshots is spread evenly. A day has the hours that the fire covers; a
    warning says if its last hour is not a whole one, and left out.
    """
    where = refuse_existing(Path(path))
    count, has_crs = 0, False
    with temporary_folder(where) as folder:
        made = folder / where.name
        for name, fire in _by_fire(blocks):
            target = made / re.sub(r"[^\w.-]+", "-", name)
            if target.exists():
                raise PlumecastError(
                    f"two fires would have the folder {target.name}; rename fire '{name}'"
                )
            start = read_clock(ignition_time or recorded_time(fire))
            _write_fire(fire, target, start, {"fire_id": name, "history": history})
            count, has_crs = count + fire.sizes[SNAPSHOT], True
        if count:
            publish(made, where, overwrite=False)
    return Exported(where, count, has_crs)


def _by_fire(blocks: Iterable[xr.Dataset]) -> Iterator[tuple[str, xr.Dataset]]:
    """The snapshots of one fire after the other, in the order of their hours."""
    rows = (
        (str(block.fire_id.values[row]), block.isel({SNAPSHOT: [row]}))
        for block in blocks
        for row in range(block.sizes[SNAPSHOT])
    )
    seen = set()
    for name, parts in groupby(rows, key=lambda item: item[0]):
        if name in seen:
            raise PlumecastError(
                f"fire {name}: its snapshots do not follow one another; sort them by fire"
            )
        seen.add(name)
        fire = xr.concat([part for _, part in parts], SNAPSHOT, coords="minimal", compat="override")
        yield name, fire.sortby("hours")


def _write_fire(fire: xr.Dataset, folder: Path, start: datetime, tags: Mapping[str, str]) -> None:
    """One file for each hour, named after its begin in UTC, and two for each day of `start`."""
    mapping = grid_mapping(fire)
    if mapping is None:
        raise PlumecastError(
            "the names 'bluesky' need fires on a map projection, and the grid of these has none; "
            "give a georeferenced store, or use the names 'plumecast'"
        )
    grid, wkt = field_grid(fire), as_crs(mapping, folder.name).to_wkt()
    zone = f"UTC{start:%z}"[:8]
    hours = fire["hours"].values.astype(np.float64)

    def write(file: str, values: Array, begin: datetime, end: datetime, **said: str) -> None:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        said |= {"time_begin": begin.isoformat(), "time_end": end.isoformat()}
        made = {**said, "units": BETWEEN.units, **tags}
        write_geotiff(path, values.astype(np.float32), grid, wkt=wkt, tags=made)

    for name, field in fire.data_vars.items():
        base = str(name).removesuffix(_DOSE)
        if base == str(name):
            continue
        lowest = base.startswith(SURFACE_SMOKE) or field.attrs.get(LEVEL) == LOWEST
        label = f"{base.removeprefix('surface_')}_{'surface' if lowest else 'column'}"
        means = list(hourly_means(field.values, hours, start.astimezone(UTC)))
        if not means:
            raise PlumecastError(
                f"fire {tags['fire_id']} ends {hours[-1]:g} h after ignition at "
                f"{start.isoformat(timespec='minutes')}: no complete hour of the clock; use "
                "the names 'plumecast'"
            )
        end = (means[-1][0] + HOUR - start) / HOUR
        if hours[-1] > end + NEARLY:
            warnings.warn(
                f"fire {tags['fire_id']} is known until {hours[-1]:g} h after ignition; the last "
                f"{hours[-1] - end:.2g} h do not fill an hour of the clock and are left out",
                LeftOut,
                stacklevel=2,
            )
        for begin, mean in means:
            file = f"hourly/{label}_hourly_{begin:%Y%m%d%H%M}.tif"
            write(file, mean, begin, begin + HOUR, long_name="hourly mean smoke")
        for day, hourly in groupby(means, lambda item: item[0].astimezone(start.tzinfo).date()):
            begins, parts = zip(*hourly, strict=True)
            for kind, reduced in _DAILY.items():
                file = f"{kind}/{zone}/{label}_{kind}_{zone}_{day:%Y%m%d}.tif"
                values, count = reduced(np.stack(parts), axis=0), str(len(parts))
                long_name = f"{kind.replace('_', ' ')} of hourly mean smoke"
                span = begins[0], begins[-1] + HOUR
                write(file, values, *span, long_name=long_name, hours=count)


def hourly_means(dose: Array, hours: Array, ignition: datetime) -> Iterator[tuple[datetime, Array]]:
    """(begin, mean) of every hour of the clock from ignition to the end of the snapshots.

    The dose is linear between snapshots; there is no smoke before ignition. What is left at the
    end, if it is more than `NEARLY` less than an hour, is left out. A predicted dose may fall; no
    mean is below 0.
    """
    frames = np.concatenate([np.zeros_like(dose[:1]), dose])
    times = np.concatenate([[0.0], hours])

    def dose_at(edge: float) -> Array:
        if edge <= 0.0:
            return np.asarray(frames[0])
        after = min(int(np.searchsorted(times, edge)), times.size - 1)
        share = min(1.0, (edge - times[after - 1]) / (times[after] - times[after - 1]))
        return np.asarray(frames[after - 1] + share * (frames[after] - frames[after - 1]))

    begin = ignition.replace(minute=0, second=0, microsecond=0)
    edge = (begin - ignition) / HOUR
    while edge + 1.0 <= float(hours[-1]) + NEARLY:
        yield begin, np.maximum(dose_at(edge + 1.0) - dose_at(edge), 0.0)
        begin, edge = begin + HOUR, edge + 1.0
