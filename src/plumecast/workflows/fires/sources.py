"""Fires on their way to a prediction: stores, rasters or drawn fires, in blocks, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import DATA_VERSION, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import Runner, add_up, map_over, map_threads, row_blocks
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.clock import by_fire, take_final, whole_fires
from plumecast.data.clock import fire_blocks as whole_blocks
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import final_rows, label_drought
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import ArrivalTimes, RasterOptions
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.fires.conditions import (
    FuelsGiven,
    as_fuels,
    check_has_weather,
    check_raster_fires,
    refuse_other_inputs,
    user_weather,
    with_conditions,
    with_fuels,
    with_user_weather,
)
from plumecast.workflows.fires.hours import moved_to, warn_of_ends

Progress = Callable[[int, int, str], object]

TOGETHER = 64
"""Stored snapshots of whole fires that are taken to other hours at a time."""

SHOWN = 3  # sources that are named; of more, only the number


@runtime_checkable
class FireSource(Protocol):
    """Fires that are made or read on demand, in the process that predicts their smoke."""

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Progress,
    ) -> Iterator[Any]:
        """`function` of the snapshots of a few fires at a time; the results can be added up.

        With an executor the fires are made, and the function is called, on its workers.
        """
        ...


Fires: TypeAlias = xr.Dataset | str | Path | Iterable[xr.Dataset | str | Path]


@dataclass(frozen=True, slots=True)
class Overrides:
    """What replaces the hours, the fuel load and missing drought labels of stored fires.

    Every fire gets snapshots at `hours` since ignition, by default at its own last one, and with a
    `step` at its multiples before (`at_hours`). `fuels` is a raster as for `with_fuels`. `drought`
    labels fires without a label; another label than a fire's own is refused.
    """

    hours: Sequence[float] | None = None
    step: float | None = None
    fuels: FuelsGiven | None = None
    drought: str | None = None

    @property
    def any(self) -> bool:
        """Whether anything is replaced."""
        return self.moves or self.fuels is not None or self.drought is not None

    @property
    def moves(self) -> bool:
        """Whether fires get snapshots at other hours than stored."""
        return self.hours is not None or self.step is not None


UNCHANGED = Overrides()
"""Fires as they are."""


def open_fires(
    surrogate: Surrogate,
    source: xr.Dataset | str | Path,
    weather: xr.Dataset | None = None,
    overrides: Overrides = UNCHANGED,
) -> xr.Dataset:
    """A Dataset or an opened store, fire by fire, with the weather that was given for them.

    Raises if the surrogate needs a wind or a weather and there is none. Of the overrides only the
    drought is applied; warns where fires end before or after the hours.
    """
    if isinstance(source, xr.Dataset):
        fires, where = source, "the Dataset"
    else:
        fires, where = open_snapshots(source, fields=list(surrogate.inputs.names)), str(source)
    fires = with_user_weather(by_fire(fires), weather)
    check_has_weather(surrogate, fires.variables, where)
    fires = fires if overrides.drought is None else label_drought(fires, overrides.drought)
    warn_of_ends(fires, overrides.hours)
    return fires


def map_parts(
    function: Callable[[xr.Dataset], Any],
    fires: xr.Dataset,
    overrides: Overrides,
    parts: Sequence[slice | Array],
    resources: Resources,
) -> Iterator[Any]:
    """`function` of parts of opened fires, at the hours and with the fuels of the overrides."""
    if overrides.fuels is not None:  # read once
        overrides = replace(overrides, fuels=as_fuels(overrides.fuels, fires))
    total, done = fires.sizes[SNAPSHOT], 0
    results = map_over(_of_part, (function, fires, overrides), parts, resources.runner)
    for rows, result in zip(parts, results, strict=True):
        yield result
        done += np.arange(total)[rows].size
        resources.progress(done, total, "snapshots")


def _of_part(
    shared: tuple[Callable[[xr.Dataset], Any], xr.Dataset, Overrides], rows: slice | Array
) -> Any:
    function, fires, overrides = shared
    check_unchanged(fires)
    part = moved_to(fires.isel({SNAPSHOT: rows}), overrides.hours, step=overrides.step)
    return function(part if overrides.fuels is None else with_fuels(part, overrides.fuels))


@dataclass(frozen=True, slots=True)
class StoreFires:
    """Fires of stores with overrides, made when their smoke is predicted."""

    surrogate: Surrogate
    stores: Sequence[xr.Dataset | str | Path]
    overrides: Overrides = UNCHANGED
    weather: xr.Dataset | None = None

    @property
    def paths(self) -> Sequence[str | Path]:
        """The stores that are files."""
        return [store for store in self.stores if not isinstance(store, xr.Dataset)]

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Progress,
    ) -> Iterator[Any]:
        """`function` of the snapshots of a few fires at a time."""
        resources = Resources(runner=runner, progress=progress)
        for store in self.stores:
            fires = open_fires(self.surrogate, store, self.weather, self.overrides)
            parts = list(whole_fires(fires["fire_id"].values, TOGETHER))
            yield from map_parts(function, fires, self.overrides, parts, resources)


@accepts_winds
def raster_fires(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    *,
    weather: WeatherLike | None = None,
    fuels: FuelsGiven | None = None,
    batch: int = 64,
    on_error: Callable[[Path, str], None] | None = None,
    on_note: Callable[[str], object] | None = None,
    words: Callable[[PlumecastError], str] = str,
    **options: Any,
) -> ArrivalTimes:
    """Arrival-time rasters as the fires of a prediction, regridded to the surrogate's grid.

    `weather`, as for `with_weather`, and `fuels`, as for `with_fuels`, are those of the fires.
    `options` are the fields of `RasterOptions` without `like`; the others are of `ArrivalTimes`.
    """
    refuse_other_inputs(surrogate, "rasters")
    checked = user_weather(weather)
    if checked is None:
        check_has_weather(surrogate, (), "rasters contain no wind")
    read = RasterOptions(like=surrogate.grid, **options)
    ground = None if fuels is None else as_fuels(fuels, surrogate.grid, read.crs)
    fires = ArrivalTimes(
        paths,
        read,
        batch,
        prepare=partial(with_conditions, checked, ground),
        on_error=on_error,
        on_note=on_note,
        words=words,
    )
    check_raster_fires(checked, fires.files, read.format)
    return fires


def reduce_fires(
    function: Callable[[xr.Dataset], Any],
    surrogate: Surrogate,
    fires: Fires | FireSource,
    *,
    size: int,
    final: bool = False,
    hours: Sequence[float] = (),
    weather: xr.Dataset | None = None,
    threads: int = 1,
    resources: Resources = LOCAL,
) -> Any:
    """The sum of `function` over blocks of at most `size` snapshots of fires for a surrogate.

    Results of `function` can be added up, and with a runner the function can be pickled: workers
    read or simulate the fires and call it. `weather` replaces that of stores and Datasets, `hours`
    since ignition those of their snapshots. `final` keeps the last
    checkpoint of every fire. With several `threads` the function is called for as many blocks of
    stores at a time; the sum is the same.
    """
    runner = resources.runner
    parts: Iterable[Any]
    blocks = _Blocks(size, final, surrogate.operator.needs_weather)
    if isinstance(fires, FireSource) and (weather is not None or hours):
        problem = (
            "weather is for stores and Datasets; these fires have their own"
            if weather is not None
            else "hours are for stores and Datasets; these fires are made at hours of their own"
        )
        raise PlumecastError(problem)
    if hours and not isinstance(fires, FireSource):
        fires = StoreFires(surrogate, listed(fires), Overrides(tuple(hours)), weather)
    if isinstance(fires, FireSource):
        parts = fires.sums(partial(blocks.sum, function), runner, resources.progress)
    elif runner is not None:
        stores = (open_fires(surrogate, source, weather) for source in listed(fires))
        parts = (
            runner.sum(partial(blocks.of_rows, function, data), blocks.rows(data))
            for data in stores
        )
    else:
        made = fire_blocks(
            surrogate, fires, size, final=final, weather=weather, progress=resources.progress
        )
        parts = map_threads(function, made, threads)
    total = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        raise PlumecastError("there are no fires; give at least one store or raster")
    return total


def listed(fires: Fires) -> list[xr.Dataset | str | Path]:
    """The stores and Datasets one by one."""
    return [fires] if isinstance(fires, xr.Dataset | str | Path) else list(fires)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of at most `size` snapshots of opened fires.

    With `final` only the last snapshots of fires, with the earlier maps if they are the `history`
    that the operator needs.
    """

    size: int
    final: bool
    history: bool

    def rows(self, fires: xr.Dataset) -> Iterator[slice | Array]:
        """The rows of every block."""
        if not self.final:
            yield from whole_blocks(fires, self.size)
            return
        last = final_rows(fires)
        # Every last snapshot is read with the other maps of its fire.
        per_fire = max(1, round(fires.sizes[SNAPSHOT] / last.size))
        for part in row_blocks(last.size, max(1, self.size // per_fire)):
            yield last[part]

    def at(self, fires: xr.Dataset, rows: slice | Array) -> xr.Dataset:
        """One block; raises if the store has changed since it was opened."""
        check_unchanged(fires)
        if isinstance(rows, slice):
            return fires.isel({SNAPSHOT: rows})
        return take_final(fires, rows, history=self.history)

    def of_rows(
        self, function: Callable[[xr.Dataset], Any], fires: xr.Dataset, rows: slice | Array
    ) -> Any:
        """`function` of one block."""
        return function(self.at(fires, rows))

    def sum(self, function: Callable[[xr.Dataset], Any], fires: xr.Dataset) -> Any:
        """The sum of `function` over all blocks."""
        return add_up(function(self.at(fires, rows)) for rows in self.rows(fires))


def fire_blocks(
    surrogate: Surrogate,
    fires: Fires,
    size: int,
    *,
    final: bool = False,
    weather: xr.Dataset | None = None,
    progress: Progress = LOCAL.progress,
) -> Iterator[xr.Dataset]:
    """Fires in blocks of at most `size` snapshots."""
    blocks = _Blocks(size, final, surrogate.operator.needs_weather)
    several = None if isinstance(fires, xr.Dataset | str | Path) else fires
    for source in listed(fires) if several is None else several:
        # The caller who passes several Datasets knows their number.
        reported = several is None or isinstance(source, str | Path)
        data = open_fires(surrogate, source, weather)
        done, count = 0, final_rows(data).size if final else data.sizes[SNAPSHOT]
        for rows in list(blocks.rows(data)):
            block = blocks.at(data, rows)
            yield block
            done += block.sizes[SNAPSHOT]
            if reported:
                progress(done, count, "snapshots")


def fires_origin(fires: Any) -> str:
    """Names of stores with the versions of their data, or of files, or the seed of a simulation."""
    if isinstance(fires, str | Path | xr.Dataset):
        data = fires if isinstance(fires, xr.Dataset) else open_snapshots(fires, fields=())
        version = data.attrs.get(DATA_VERSION)
        name = "data" if isinstance(fires, xr.Dataset) else Path(fires).name
        return name if version is None else f"{name}, version {version}"
    if hasattr(fires, "settings"):
        return f"simulated, seed {fires.settings.get('seed', 'unknown')}"
    if hasattr(fires, "paths"):
        return files_origin(fires.paths)
    if isinstance(fires, list | tuple):
        return _listed([fires_origin(item) for item in fires[:SHOWN]], "stores", len(fires))
    return "not recorded"


def files_origin(paths: Sequence[str | Path]) -> str:
    """Names of files that have no version."""
    return _listed([Path(path).name for path in paths], "files", len(paths))


def _listed(names: list[str], what: str, count: int) -> str:
    return f"{count} {what}, the first {names[0]}" if count > SHOWN else "; ".join(names)
