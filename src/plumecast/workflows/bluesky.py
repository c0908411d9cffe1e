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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import publish, refuse_existing, temporary_folder
from plumecast.base.names import IGNITION_TIME, LEVEL, LOWEST, SNAPSHOT, SURFACE_SMOKE
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid
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
    if text is None:
        raise PlumecastError(
            "names='bluesky' needs the start time, which the fires do not record; state "
            f"ignition_time={EXAMPLE}"
        )
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PlumecastError(
            f"ignition_time={text} is not a date and time; write it as {EXAMPLE}"
        ) from None
    if time.tzinfo is None:
        raise PlumecastError(
            f"ignition_time={text} has no offset from UTC, by which the files are named; write it "
            f"as {EXAMPLE}, or with Z for UTC"
        )
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
    mapping = grid_mapping(fire)
    if mapping is None:
        raise PlumecastError(
            "names='bluesky' needs fires on a map projection, and the grid of these has none; "
            "give a georeferenced store, or use names='plumecast'"
        )
    place = _Place(folder, field_grid(fire), as_crs(mapping, folder.name).to_wkt(), dict(tags))
    hours = fire["hours"].values.astype(np.float64)
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
                "names='plumecast'"
            )
        end = (means[-1][0] + HOUR - start) / HOUR
        if hours[-1] > end + NEARLY:
            warnings.warn(
                f"fire {tags['fire_id']} is known until {hours[-1]:g} h after ignition; the last "
                f"{hours[-1] - end:.2g} h do not fill an hour of the clock and are left out",
                LeftOut,
                stacklevel=2,
            )
        place.write_hours(label, means)
        place.write_days(label, means, start)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the files of a fire are written, and what they have in common."""

    folder: Path
    grid: Grid
    wkt: str
    tags: dict[str, str]

    def write_hours(self, label: str, means: Sequence[tuple[datetime, Array]]) -> None:
        """One file for each hour, named after its begin in UTC."""
        for begin, mean in means:
            name = f"{label}_hourly_{begin:%Y%m%d%H%M}.tif"
            said = {"long_name": "hourly mean smoke", **_span(begin, begin + HOUR)}
            self._write(self.folder / "hourly" / name, mean, said)

    def write_days(
        self, label: str, means: Sequence[tuple[datetime, Array]], start: datetime
    ) -> None:
        """Mean and maximum over the hours of each day, in the time zone of `start`."""
        zone = f"UTC{start:%z}"[:8]
        days: dict[date, list[tuple[datetime, Array]]] = {}
        for begin, mean in means:
            days.setdefault(begin.astimezone(start.tzinfo).date(), []).append((begin, mean))
        for day, parts in days.items():
            values = np.stack([mean for _, mean in parts])
            for kind, reduced in _DAILY.items():
                name = f"{label}_{kind}_{zone}_{day:%Y%m%d}.tif"
                said = {
                    "long_name": f"{kind.replace('_', ' ')} of hourly mean smoke",
                    "hours": str(len(parts)), **_span(parts[0][0], parts[-1][0] + HOUR),
                }  # fmt: skip
                self._write(self.folder / kind / zone / name, reduced(values, axis=0), said)

    def _write(self, path: Path, values: Array, said: dict[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        tags = said | {"units": BETWEEN.units} | self.tags
        write_geotiff(path, values.astype(np.float32), self.grid, wkt=self.wkt, tags=tags)


def _span(begin: datetime, end: datetime) -> dict[str, str]:
    return {"time_begin": begin.isoformat(), "time_end": end.isoformat()}


def dose_at(dose: Array, hours: Array, edge: float) -> Array:
    """D (y, x) at one hour since ignition, from (M, y, x) at rising hours (M,).

    >>> dose_at(np.array([[[6.0]], [[18.0]]]), np.array([2.0, 4.0]), 3.0).item()
    12.0
    """
    if edge <= 0.0:
        return np.zeros_like(dose[0])
    after = min(int(np.searchsorted(hours, edge)), hours.size - 1)
    start = hours[after - 1] if after else 0.0
    before = dose[after - 1] if after else np.zeros_like(dose[0])
    share = min(1.0, (edge - start) / (hours[after] - start))
    return np.asarray(before + share * (dose[after] - before))


def hourly_means(dose: Array, hours: Array, ignition: datetime) -> Iterator[tuple[datetime, Array]]:
    """(begin, mean) of every hour of the clock from ignition to the end of the snapshots.

    There is no smoke before ignition. What is left at the end, if it is more than `NEARLY` less
    than an hour, is left out. A predicted dose may fall; no mean is below 0.
    """
    begin = ignition.replace(minute=0, second=0, microsecond=0)
    edge = (begin - ignition) / HOUR
    while edge + 1.0 <= float(hours[-1]) + NEARLY:
        mean = dose_at(dose, hours, edge + 1.0) - dose_at(dose, hours, edge)
        yield begin, np.maximum(mean, 0.0)
        begin, edge = begin + HOUR, edge + 1.0
