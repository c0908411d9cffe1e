"""Apply a function to the snapshots of many fires, block by block, and add up its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import Runner, add_up, row_blocks
from plumecast.compute.threads import map_threads
from plumecast.data.clock import fire_blocks as whole_blocks
from plumecast.data.clock import take_final
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import final_rows
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.predict import open_fires

Progress = Callable[[int, int, str], object]


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


def reduce_fires(
    function: Callable[[xr.Dataset], Any],
    surrogate: Surrogate,
    fires: Fires | FireSource,
    *,
    size: int,
    final: bool = False,
    weather: xr.Dataset | None = None,
    threads: int = 1,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Any:
    """The sum of `function` over blocks of at most `size` snapshots of fires for a surrogate.

    Results of `function` can be added up, and with a `runner` the function can be pickled: workers
    read or simulate the fires and call it. `weather` replaces that of stores and
    Datasets. `final` keeps the last checkpoint of every fire. With several `threads`
    the function is called for as many blocks of stores at a time; the sum is the same.
    """
    parts: Iterable[Any]
    if isinstance(fires, FireSource):
        if weather is not None:
            raise PlumecastError("weather is for stores and Datasets; these fires have their own")
        earlier = surrogate.operator.needs_weather
        blockwise = partial(_sum_blocks, function, size, final, earlier)
        parts = fires.sums(blockwise, runner, progress)
    elif runner is not None:
        parts = _cluster_sums(
            function, surrogate, fires, size=size, final=final, weather=weather, runner=runner
        )
    else:
        blocks = fire_blocks(
            surrogate, fires, size, final=final, weather=weather, progress=progress
        )
        parts = map_threads(function, blocks, threads)
    total = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        raise PlumecastError("there are no fires; give at least one store or raster")
    return total


def _sum_blocks(
    function: Callable[[xr.Dataset], Any],
    size: int,
    final: bool,
    earlier: bool,
    fires: xr.Dataset,
) -> Any:
    """The sum of a function over blocks of at most `size` snapshots."""
    blocks = _blocks(fires, size, final)
    return add_up(function(_taken(fires, rows, earlier)) for rows in blocks)


def _blocks(fires: xr.Dataset, size: int, final: bool) -> Iterator[slice | Array]:
    """Rows of at most `size` snapshots; with `final` only the last ones of fires."""
    if not final:
        yield from whole_blocks(fires, size)
        return
    last = final_rows(fires)
    # Every last snapshot is read with the other maps of its fire.
    per_fire = max(1, round(fires.sizes[SNAPSHOT] / last.size))
    for part in row_blocks(last.size, max(1, size // per_fire)):
        yield last[part]


def _taken(fires: xr.Dataset, rows: slice | Array, history: bool) -> xr.Dataset:
    if isinstance(rows, slice):
        return fires.isel({SNAPSHOT: rows})
    return take_final(fires, rows, history=history)


def _cluster_sums(
    function: Callable[[xr.Dataset], Any],
    surrogate: Surrogate,
    fires: Fires,
    *,
    size: int,
    final: bool,
    weather: xr.Dataset | None,
    runner: Runner,
) -> Iterator[Any]:
    """The sum over each store; the workers of a cluster read its blocks and add their results."""
    for source in [fires] if isinstance(fires, xr.Dataset | str | Path) else fires:
        data = open_fires(surrogate, source, weather)
        of_rows = partial(_of_rows, function, data, surrogate.operator.needs_weather)
        yield runner.sum(of_rows, _blocks(data, size, final))


def _of_rows(
    function: Callable[[xr.Dataset], Any], fires: xr.Dataset, earlier: bool, rows: slice | Array
) -> Any:
    check_unchanged(fires)
    return function(_taken(fires, rows, earlier))


def fire_blocks(
    surrogate: Surrogate,
    fires: Fires,
    size: int,
    *,
    final: bool = False,
    weather: xr.Dataset | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Iterator[xr.Dataset]:
    """Fires in blocks of at most `size` snapshots."""
    if isinstance(fires, xr.Dataset | str | Path):
        fires = open_fires(surrogate, fires, weather)
        parts = list(_blocks(fires, size, final))
        done, count = 0, fires.sizes[SNAPSHOT] if not final else final_rows(fires).size
        for rows in parts:
            check_unchanged(fires)
            block = _taken(fires, rows, surrogate.operator.needs_weather)
            yield block
            done += block.sizes[SNAPSHOT]
            progress(done, count, "snapshots")
        return
    for part in fires:
        reported = progress if isinstance(part, str | Path) else _no_progress
        yield from fire_blocks(
            surrogate, part, size, final=final, weather=weather, progress=reported
        )


def _no_progress(done: int, total: int, what: str) -> None:
    """Report nothing: the caller who passes Datasets knows their number."""
