"""The fires of one raster: burned cells and their arrival times in hours since ignition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid
from plumecast.data.crs import as_crs, same_crs
from plumecast.sources.rasters.files import EVENT_MAP, read_raster
from plumecast.sources.rasters.georeference import RasterFire
from plumecast.sources.rasters.options import FORMATS, Options
from plumecast.sources.rasters.raster import Raster

_MOST_EVENTS = 10_000  # of one event-ID map


def read_fires(path: Path, options: Options) -> list[RasterFire]:
    """Fires of one file: one, or for LANDIS-II one per event of its event-ID map."""
    raster = read_raster(path, options.variable)
    convention = FORMATS[options.convention]
    arrival = np.where(np.isfinite(raster.values), raster.values, np.nan)
    for value in (raster.nodata, options.nodata, *convention.unburned):
        if value is not None:
            arrival[arrival == value] = np.nan
    if np.isnan(arrival).all():
        raise PlumecastError(f"{path}: no burned cell, all values are nodata; remove the file")
    if np.nanmin(arrival) < 0:
        raise PlumecastError(
            f"{path}: arrival time {np.nanmin(arrival):g} is negative; if it means unburned, give "
            f"nodata={np.nanmin(arrival):g}"
        )
    latest, hours_per_unit = float(np.nanmax(arrival)), options.hours_per_unit(path)
    if not math.isfinite(latest * hours_per_unit):
        raise PlumecastError(f"{path}: arrival time {latest:g} is too large; is the unit right?")
    arrival *= hours_per_unit
    events: Iterable[tuple[str, Array]] = [(path.stem, np.ones(arrival.shape, dtype=bool))]
    if options.has_events:
        events = _landis_events(path, raster.grid)
    fires = [
        _fire(name, path, np.where(where, arrival, np.nan), raster=raster, options=options)
        for name, where in events
        if np.isfinite(arrival[where]).any()
    ]
    if not fires:
        raise PlumecastError(f"{path}: no event of its event-ID map has burned; remove the file")
    return fires


def _landis_events(path: Path, grid: Grid) -> Iterator[tuple[str, Array]]:
    """Name and mask of each event, from the event-ID map next to the day-of-fire map."""
    beside = path.with_name(path.name.replace("day-of-fire", EVENT_MAP))
    if beside == path or not beside.exists():
        raise PlumecastError(
            f"{path}: no event-ID map beside it (day-of-fire-N needs event-ID-N); to read the map "
            'as one fire, give unit="d" and no format'
        )
    events = read_raster(beside)
    if events.grid != grid:
        raise PlumecastError(
            f"{beside}: its grid differs from that of {path.name}; put both maps on one grid"
        )
    numbers = np.unique(events.values[events.values > 0])
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    if numbers.size > _MOST_EVENTS or not whole.all():
        raise PlumecastError(
            f"{beside}: {numbers.size} different values, from {numbers[0]:g} to {numbers[-1]:g}; "
            f"expected at most {_MOST_EVENTS} whole numbers of events"
        )
    return ((f"{path.stem}-event-{int(n)}", events.values == n) for n in numbers)


def _fire(name: str, path: Path, arrival: Array, *, raster: Raster, options: Options) -> RasterFire:
    """One fire from its arrival times (ny, nx) in hours, NaN where unburned."""
    cells = np.flatnonzero(np.isfinite(arrival))
    since = arrival.ravel()[cells]
    since = since - since.min()
    if since.max() > options.horizon:
        raise PlumecastError(
            f"{path}: the latest arrival is {since.max():.6g} h after ignition, beyond "
            f"horizon={options.horizon:g} h; is the unit right?"
        )
    if options.crs in (None, "local"):
        crs = raster.crs
    elif raster.crs is not None and not same_crs(
        as_crs(raster.crs, path), as_crs(options.crs, path)
    ):
        raise PlumecastError(
            f"{path}: the file has another CRS than crs={options.crs!r}; leave crs out"
        )
    else:
        crs = options.crs
    return RasterFire(name, path, cells, since, raster.grid, crs)
